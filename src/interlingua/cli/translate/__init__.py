"""`interlingua translate`: translate a reply from one wire (API) to another, streamed or whole."""

from __future__ import annotations

import argparse
from collections.abc import Iterable, Iterator
from itertools import chain
from typing import Any

import interlingua as il
from interlingua import events as ev
from interlingua.cli.common import console, options, two_columns
from interlingua.cli.translate import capture_replay
from interlingua.cli.translate.explain import Explainer
from interlingua.cli.translate.missed_calls import MissedCallDetector
from interlingua.common.jsontext.codec import encode_json
from interlingua.errors import UpstreamError
from interlingua.translation.translator import TraceStep
from interlingua.wires import WIRES

DESCRIPTION = f"""\
Reads the server-sent events of one reply and prints the events that the client
expects, each as soon as it is known. If the input is one JSON object, it is
translated as a whole reply.

wires: {", ".join(WIRES)}"""
EPILOG = """\
examples:
  curl -sN … | interlingua translate
  interlingua translate --dialect kimi_k2 --tools tools.json recorded.sse
  interlingua translate --explain recorded.sse | less
  interlingua translate whole-reply.json
  interlingua translate --from openai-chat --to anthropic-messages recorded.sse
  interlingua translate --explain captured.jsonl

A capture file of the gateway (`interlingua serve --capture DIR`) contains the
wires, the tools and the dialect. --dialect overrides the dialect. The outcome of
the captured request is printed to standard error.

--explain shows the delta of each chunk, without null, empty or repeated fields.
A whole reply is shown as one chunk, followed by its translation. The output has
two columns if the width (of the terminal, or $COLUMNS) is at least 100. It is
coloured on a terminal unless $NO_COLOR is set. Findings are shown next to their
chunk and not on standard error.
"""
_BOM = b"\xef\xbb\xbf"
_BLANK = b" \t\r\n" + _BOM  # skipped byte by byte: a chunk may end inside the BOM
_BODY_HINT = "the input is a stream of server-sent events (data: {…}) or one JSON object"


def add_options(parser: argparse.ArgumentParser) -> None:
    options.add_wires(parser)
    options.add_dialect(parser, "choose it by --model, or by the model in the reply (default)")
    options.add_tools(parser)
    options.add_prefill(parser)
    parser.add_argument(
        "--delivery",
        choices=("stream", "whole"),
        default="stream",
        help="stream: send arguments as they arrive (default); whole: send a call when it is complete and valid",
    )
    parser.add_argument(
        "--reasoning",
        choices=("keep", "as_content", "drop"),
        default="keep",
        help="keep reasoning (default), send it as content, or drop it",
    )
    parser.add_argument(
        "--explain", action="store_true", help="show chunk by chunk what was received, what is sent, and why"
    )
    options.add_findings(parser)
    options.add_file(parser, "the reply")


def run(args: argparse.Namespace) -> None:
    incoming = console.read_chunks(args.file, "a reply's server-sent events or JSON")
    tools = options.load_tools(args.tools)
    if args.file.endswith(capture_replay.CAPTURE_SUFFIX):
        replay = capture_replay.load_capture(args.file)
        incoming, tools = replay.chunks, replay.tools if tools is None else tools
        args.source, args.target, args.model = replay.source, replay.target, args.model or replay.model
        args.dialect = replay.dialect if args.dialect == options.AUTO else args.dialect
        console.print_stderr(f"capture: {console.printable(replay.outcome)}")
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
            translator, missed_call_detector.observe(chunks), args.finding_format
        )
        if hint := missed_call_detector.hint():
            console.print_stderr(f"hint: {hint}")
    else:
        failure = (_explain_body if args.explain else _translate_body)(
            translator, b"".join(chunks), args.finding_format
        )
    if failure:
        raise UpstreamError(
            f"the reply failed: {failure}", "the translated reply reports the error too; the output before it is valid"
        )


def _peek_first_byte(chunks: Iterator[bytes]) -> tuple[bytes, Iterator[bytes]]:
    """Return the first byte that is not whitespace (b"" if there is none), and all chunks."""
    blank_chunks: list[bytes] = []
    for chunk in chunks:
        if stripped := chunk.lstrip(_BLANK):
            return stripped[:1], chain(blank_chunks, [chunk], chunks)
        blank_chunks.append(chunk)
    return b"", iter(blank_chunks)


def _translate_body(translator: il.Translator, raw: bytes, finding_format: console.FindingFormat) -> str | None:
    translated = translator.reply(_read_body(raw))
    console.write_json(translated)
    console.print_findings(translator.findings, finding_format)
    return _error_message(translated)


def _explain_body(translator: il.Translator, raw: bytes, _: console.FindingFormat) -> str | None:
    """Explain a whole reply as one chunk. A row shortens it, so the full translated body is printed below."""
    body = _read_body(raw)
    translated = translator.reply(body)
    received, sent = (b"data: " + encode_json(value) + b"\n\n" for value in (body, translated))
    step = TraceStep(received, encode_json(body).decode(), [*translator.findings], sent, "")
    _explain_steps(translator, [step])
    console.write(b"\n")
    console.write_json(translated)
    return _error_message(translated)


def _read_body(raw: bytes) -> dict[str, Any]:
    return console.read_json(raw.removeprefix(_BOM), dict[str, Any], "the reply", _BODY_HINT)


def _error_message(translated: dict[str, Any]) -> str | None:
    error = translated.get("error")
    return str(error.get("message") if isinstance(error, dict) else error) if error else None


def _translate_stream(
    translator: il.Translator, chunks: Iterable[bytes], finding_format: console.FindingFormat
) -> str | None:
    printed_count, failure = 0, None
    for step in _trace_steps(translator, chunks):
        console.write(step.sent)
        console.print_findings(translator.findings[printed_count:], finding_format)
        printed_count = len(translator.findings)
        failure = failure or _failure_message(step)
    return failure


def _explain_stream(translator: il.Translator, chunks: Iterable[bytes], _: console.FindingFormat) -> str | None:
    return _explain_steps(translator, _trace_steps(translator, chunks))


def _explain_steps(translator: il.Translator, steps: Iterable[TraceStep]) -> str | None:
    """Print one row per step. Findings are part of the rows."""
    explainer = Explainer(translator)
    layout = two_columns.ColumnLayout(console.terminal_width(), two_columns.style_for(console.stdout_is_terminal()))
    console.write(layout.format_header("from the upstream", "to the client").encode())
    failure = None
    for step in steps:
        console.write(layout.format_row(explainer.explain(step)).encode())
        failure = failure or _failure_message(step)
    console.write(f"\n{layout.format_note(explainer.summary())}".encode())
    return failure


def _trace_steps(translator: il.Translator, chunks: Iterable[bytes]) -> Iterator[TraceStep]:
    for chunk in chunks:
        yield from translator.trace(chunk)
    yield from translator.trace_end()


def _failure_message(step: TraceStep) -> str | None:
    return next((event.message for event in step.events if isinstance(event, ev.Failure)), None)
