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
from interlingua.cli.translate.missed_calls import MissedCallDetector
from interlingua.common.jsontext.codec import encode_json
from interlingua.errors import UpstreamError
from interlingua.translation.translator import TraceStep
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
    incoming = io.read_chunks(args.file, "a reply's server-sent events or JSON")
    tools = options.load_tools(args.tools)
    if args.file.endswith(captures.CAPTURE_SUFFIX):
        replay = captures.load_capture(args.file)
        incoming, tools = replay.chunks, replay.tools if tools is None else tools
        args.source, args.target, args.model = replay.source, replay.target, args.model or replay.model
        args.dialect = replay.dialect if args.dialect == options.AUTO else args.dialect
        io.print_stderr(f"capture: {io.printable(replay.outcome)}")
    translator = il.Translator(
        source=args.source,
        target=args.target,
        dialect=args.dialect if args.dialect == options.AUTO else options.resolve_dialect(args.dialect),
        model=args.model,
        tools=tools,
        options=il.Options(prefill=args.prefill, delivery=args.delivery, reasoning=args.reasoning),
    )
    first_byte, chunks = _peek_first_byte(incoming)
    if first_byte != b"{":
        detecting_translator = il.Translator(source=args.source, target=args.target, dialect="detect", tools=tools)
        missed_call_detector = MissedCallDetector(translator, detecting_translator)
        failure = (_explain_stream if args.explain else _translate_stream)(
            translator, missed_call_detector.observe(chunks), args.tell
        )
        if hint := missed_call_detector.hint():
            io.print_stderr(f"hint: {hint}")
    else:
        failure = (_explain_body if args.explain else _translate_body)(translator, b"".join(chunks), args.tell)
    if failure:
        raise UpstreamError(f"the reply failed: {failure}", "the client is told so too; what came before it is good")


def _peek_first_byte(chunks: Iterator[bytes]) -> tuple[bytes, Iterator[bytes]]:
    """The first byte that is no white space, and all the pieces."""
    blank_chunks: list[bytes] = []
    for chunk in chunks:
        if stripped := chunk.lstrip(_BLANK):
            return stripped[:1], chain(blank_chunks, [chunk], chunks)
        blank_chunks.append(chunk)
    return b"", iter(blank_chunks)


def _translate_body(translator: il.Translator, raw: bytes, finding_format: io.FindingFormat) -> str | None:
    translated = translator.reply(_read_body(raw))
    io.write_json(translated)
    io.print_findings(translator.findings, finding_format)
    return _error_message(translated)


def _explain_body(translator: il.Translator, raw: bytes, _: io.FindingFormat) -> str | None:
    """As one chunk. A row has no room for all of it, so that the translated body follows."""
    body = _read_body(raw)
    translated = translator.reply(body)
    received, sent = (b"data: " + encode_json(value) + b"\n\n" for value in (body, translated))
    step = TraceStep(received, encode_json(body).decode(), [*translator.findings], sent, "")
    _explain_steps(translator, [step])
    io.write(b"\n")
    io.write_json(translated)
    return _error_message(translated)


def _read_body(raw: bytes) -> dict[str, Any]:
    return io.read_json(raw.removeprefix(_BOM), dict[str, Any], "the reply", _BODY_HINT)


def _error_message(translated: dict[str, Any]) -> str | None:
    error = translated.get("error")
    return str(error.get("message") if isinstance(error, dict) else error) if error else None


def _translate_stream(
    translator: il.Translator, chunks: Iterable[bytes], finding_format: io.FindingFormat
) -> str | None:
    printed_count, failure = 0, None
    for step in _trace_steps(translator, chunks):
        io.write(step.sent)
        io.print_findings(translator.findings[printed_count:], finding_format)
        printed_count = len(translator.findings)
        failure = failure or _failure_message(step)
    return failure


def _explain_stream(translator: il.Translator, chunks: Iterable[bytes], _: io.FindingFormat) -> str | None:
    return _explain_steps(translator, _trace_steps(translator, chunks))


def _explain_steps(translator: il.Translator, steps: Iterable[TraceStep]) -> str | None:
    """Findings are told among the rest, in their place."""
    explainer = Explainer(translator)
    layout = columns.ColumnLayout(io.terminal_width(), columns.style_for(io.stdout_is_terminal()))
    io.write(layout.format_header("from the upstream", "to the client").encode())
    failure = None
    for step in steps:
        io.write(layout.format_row(explainer.explain(step)).encode())
        failure = failure or _failure_message(step)
    io.write(f"\n{layout.format_note(explainer.summary())}".encode())
    return failure


def _trace_steps(translator: il.Translator, chunks: Iterable[bytes]) -> Iterator[TraceStep]:
    for chunk in chunks:
        yield from translator.trace(chunk)
    yield from translator.trace_end()


def _failure_message(step: TraceStep) -> str | None:
    return next((event.message for event in step.events if isinstance(event, ev.Failure)), None)
