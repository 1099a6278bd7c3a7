"""`interlingua translate`: one wire's reply → another's, as a stream or whole."""

from __future__ import annotations

import argparse
from collections.abc import Iterable, Iterator
from itertools import chain
from typing import Any

import interlingua as il
from interlingua import events as ev
from interlingua.cli.common import console as io
from interlingua.cli.common import options
from interlingua.cli.common import two_columns as columns
from interlingua.cli.translate import capture_replay as captures
from interlingua.cli.translate.explain import Explainer
from interlingua.cli.translate.missed_calls import Overlooked
from interlingua.common.jsontext.codec import encode_json
from interlingua.errors import UpstreamError
from interlingua.translation.translator__pipeline import Step
from interlingua.wires import WIRES

NAME = "translate"
HELP = "one wire's reply → another's, as a stream or whole"
DESCRIPTION = f"""\
Reads the server-sent events of one reply and writes what a client expects,
each frame as soon as it is known. A whole reply (a JSON object) is translated
as a whole.

wires: {", ".join(WIRES)}"""
EPILOG = """\
examples:
  curl -sN … | interlingua translate
  interlingua translate --dialect kimi_k2 --tools tools.json recorded.sse
  interlingua translate --explain recorded.sse | less
  interlingua translate whole-reply.json
  interlingua translate --from openai-chat --to anthropic-messages recorded.sse
  interlingua translate --explain captured.jsonl

A capture of the gateway (`interlingua serve --capture DIR`) has its wires, tools
and dialect with it; --dialect reads it in another one. How the exchange ended is
told on standard error.

--explain shows what matters of each chunk: its delta, without what is null,
empty or said twice. A whole reply is one chunk, and its translation follows. It
takes two columns from a width of 100 on ($COLUMNS is heeded), and colours on a
terminal unless $NO_COLOR is set. Findings stand in their place there, and not on
standard error.
"""
_BOM = b"\xef\xbb\xbf"
_BLANK = b" \t\r\n" + _BOM  # however it is cut, nothing else begins with these bytes
_BODY_HINT = "a stream is server-sent events (data: {…}), a whole reply is one JSON object"


def add_options(parser: argparse.ArgumentParser) -> None:
    options.add_wires(parser)
    options.add_dialect(parser, "by --model, else by the model that the reply names (default)")
    options.add_tools(parser)
    options.add_prefill(parser)
    parser.add_argument(
        "--delivery",
        choices=("stream", "whole"),
        default="stream",
        help="stream: arguments go out as they come (default); whole: a call goes out once it is complete and valid",
    )
    parser.add_argument(
        "--reasoning",
        choices=("keep", "as_content", "drop"),
        default="keep",
        help="what becomes of the thinking (default: keep)",
    )
    parser.add_argument("--explain", action="store_true", help="what came, what goes out, and why, chunk by chunk")
    options.add_findings(parser)
    options.add_file(parser, "the reply")


def run(args: argparse.Namespace) -> None:
    came = io.pieces(args.file, "a reply's server-sent events or JSON")
    tools = options.tools_from(args.tools)
    if args.file.endswith(captures.SUFFIX):
        replay = captures.load(args.file)
        came, tools = replay.pieces, replay.tools if tools is None else tools
        args.source, args.target, args.model = replay.source, replay.target, args.model or replay.model
        args.dialect = replay.dialect if args.dialect == options.AUTO else args.dialect
        io.tell(f"capture: {io.printable(replay.ended)}")
    translator = il.Translator(
        source=args.source,
        target=args.target,
        dialect=args.dialect if args.dialect == options.AUTO else options.dialect_called(args.dialect),
        model=args.model,
        tools=tools,
        options=il.Options(prefill=args.prefill, delivery=args.delivery, reasoning=args.reasoning),
    )
    first, pieces = _begin(came)
    if first != b"{":
        listener = il.Translator(source=args.source, target=args.target, dialect="detect", tools=tools)
        overlooked = Overlooked(translator, listener)
        failure = (_explain if args.explain else _pass_on)(translator, overlooked.listening(pieces), args.tell)
        if hint := overlooked.hint():
            io.tell(f"hint: {hint}")
    else:
        failure = (_explain_whole if args.explain else _whole)(translator, b"".join(pieces), args.tell)
    if failure:
        raise UpstreamError(f"the reply failed: {failure}", "the client is told so too; what came before it is good")


def _begin(pieces: Iterator[bytes]) -> tuple[bytes, Iterator[bytes]]:
    """The first byte that is no white space, and all the pieces."""
    blank: list[bytes] = []
    for piece in pieces:
        if start := piece.lstrip(_BLANK):
            return start[:1], chain(blank, [piece], pieces)
        blank.append(piece)
    return b"", iter(blank)


def _whole(translator: il.Translator, raw: bytes, how: io.Tell) -> str | None:
    translated = translator.reply(_body(raw))
    io.write_json(translated)
    io.tell_findings(translator.findings, how)
    return _error(translated)


def _explain_whole(translator: il.Translator, raw: bytes, _: io.Tell) -> str | None:
    """As one chunk. A row has no room for all of it, so that the translated body follows."""
    body = _body(raw)
    translated = translator.reply(body)
    came, sent = (b"data: " + encode_json(one) + b"\n\n" for one in (body, translated))
    step = Step(came, encode_json(body).decode(), [*translator.findings], sent, "")
    _explain_steps(translator, [step])
    io.write(b"\n")
    io.write_json(translated)
    return _error(translated)


def _body(raw: bytes) -> dict[str, Any]:
    return io.read_json(raw.removeprefix(_BOM), dict[str, Any], "the reply", _BODY_HINT)


def _error(translated: dict[str, Any]) -> str | None:
    error = translated.get("error")
    return str(error.get("message") if isinstance(error, dict) else error) if error else None


def _pass_on(translator: il.Translator, pieces: Iterable[bytes], how: io.Tell) -> str | None:
    told, failure = 0, None
    for step in _steps(translator, pieces):
        io.write(step.sent)
        io.tell_findings(translator.findings[told:], how)
        told = len(translator.findings)
        failure = failure or _failure(step)
    return failure


def _explain(translator: il.Translator, pieces: Iterable[bytes], _: io.Tell) -> str | None:
    return _explain_steps(translator, _steps(translator, pieces))


def _explain_steps(translator: il.Translator, steps: Iterable[Step]) -> str | None:
    """Findings are told among the rest, in their place."""
    explainer = Explainer(translator)
    layout = columns.Layout(io.terminal_width(), columns.paint_for(io.stdout_is_terminal()))
    io.write(layout.head("from the upstream", "to the client").encode())
    failure = None
    for step in steps:
        io.write(layout.row(explainer.explain(step)).encode())
        failure = failure or _failure(step)
    io.write(f"\n{layout.note(explainer.summary())}".encode())
    return failure


def _steps(translator: il.Translator, pieces: Iterable[bytes]) -> Iterator[Step]:
    for piece in pieces:
        yield from translator.steps(piece)
    yield from translator.last_steps()


def _failure(step: Step) -> str | None:
    return next((event.message for event in step.events if isinstance(event, ev.Failure)), None)
