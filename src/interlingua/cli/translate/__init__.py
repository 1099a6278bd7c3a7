"""`interlingua translate`: translate a reply from one wire (API) to another, streamed or whole."""

from __future__ import annotations

import argparse
from collections.abc import Iterable, Iterator
from itertools import chain
from typing import Any

import msgspec

import interlingua as il
from interlingua.captures import capture_replay
from interlingua.cli.common import console, options
from interlingua.cli.common.capture_files import add_captures_option, find_capture
from interlingua.cli.translate.missed_calls import MissedCallDetector
from interlingua.cli.translate.output import ExplainedOutput, Output, ReplyOutput, TraceOutput
from interlingua.cli.translate.row_selection import ROW_SELECTIONS
from interlingua.common.ansi import Style
from interlingua.errors import UpstreamError, UsageError
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
  interlingua translate --explain --only findings recorded.sse
  interlingua translate whole-reply.json
  interlingua translate --from openai-chat --to anthropic-messages recorded.sse
  interlingua translate --explain captured.jsonl
  interlingua translate --explain req_1f3a
  interlingua translate --trace recorded.sse | jq 'select(.kind == "HeldBack")'

A capture of the gateway (`interlingua serve --capture DIR`) contains the wires,
the tools, the dialect and the options; --dialect and the other options override
them. The outcome of the captured request is printed to standard error. See
`interlingua captures` and `interlingua inspect`.

--explain shows the delta of each chunk, without null, empty or repeated fields.
Three or more chunks that fared alike, such as unchanged ones, are one row.
Findings are shown next to their chunk, with their severity, and not on standard
error; `interlingua explain KIND` says what a finding means. A whole reply is
shown as one chunk, followed by its translation. The output has two columns if
the width (of the terminal, or $COLUMNS) is at least 100.

--trace prints what --explain is made of, for programs: JSON lines with the
bytes received, the markers, the text held back and why, the events and the
bytes sent. docs/reference/trace.md describes them.
"""
_OPTION_NAMES = ("prefill", "delivery", "arguments", "reasoning")
"""Options of the translation that can be set, also for a capture."""
_BOM = b"\xef\xbb\xbf"
_BLANK = b" \t\r\n" + _BOM  # skipped byte by byte: a chunk may end inside the BOM
_BODY_HINT = "the input is a stream of server-sent events (data: {…}) or one JSON object"


def add_options(parser: argparse.ArgumentParser) -> None:
    options.add_wires(parser)
    options.add_dialect(parser, "choose it by --model, or by the model in the reply (default)")
    options.add_tools(parser)
    options.add_tool_choice(parser)
    options.add_prefill(parser)
    parser.add_argument(
        "--delivery",
        choices=("stream", "whole"),
        help="stream: send arguments as they arrive (default); whole: send a call when it is complete and its "
        "arguments are a JSON object",
    )
    parser.add_argument(
        "--arguments",
        choices=("repair", "exact"),
        help="repair: correct arguments that are almost JSON, if that cannot change their meaning (default); exact: "
        "send them as the model wrote them",
    )
    parser.add_argument(
        "--reasoning",
        choices=("keep", "as_content", "drop"),
        help="keep reasoning (default), send it as content, or drop it",
    )
    views = parser.add_mutually_exclusive_group()
    views.add_argument(
        "--explain", action="store_true", help="show chunk by chunk what was received, what is sent, and why"
    )
    views.add_argument(
        "--trace", action="store_true", help="print each step as a line of JSON instead of the translated reply"
    )
    parser.add_argument(
        "--only",
        choices=ROW_SELECTIONS,
        help="with --explain: only chunks that are changed, or that have findings of at least this severity",
    )
    parser.add_argument("--all-chunks", action="store_true", help="with --explain: each chunk in a row of its own")
    options.add_findings(parser)
    options.add_file(parser, "the reply; a capture, or the id of a captured request; a folder: its newest capture")
    add_captures_option(parser)


def run(args: argparse.Namespace) -> None:
    capture = find_capture(args.file, args.captures) if args.file != console.STDIN else None
    incoming = console.read_chunks(args.file, "a reply's server-sent events or JSON")
    tools = options.load_tools(args.tools)
    tool_choice = options.tool_choice_from_args(args, tools)
    reply_options = il.Options()
    if capture is not None:
        captured = capture_replay.load_capture(str(capture))
        replay = capture_replay.plan_replay(captured, str(capture))
        incoming = (line.data for line in captured.received)
        tools = replay.tools if tools is None else tools
        tool_choice = tool_choice or replay.tool_choice
        args.source, args.target, args.model = replay.source, replay.target, args.model or replay.model
        args.dialect = replay.dialect if args.dialect == options.AUTO else args.dialect
        reply_options = replay.options
        name = f" {capture}" if str(capture) != args.file else ""
        console.print_stderr(console.printable(f"capture{name}: {capture_replay.describe_outcome(captured)}"))
    changed_options = {name: getattr(args, name) for name in _OPTION_NAMES if getattr(args, name)}
    output = _choose_output(args)
    translator = il.Translator(
        source=args.source,
        target=args.target,
        dialect=args.dialect if args.dialect == options.AUTO else options.resolve_dialect(args.dialect),
        model=args.model,
        tools=tools,
        tool_choice=tool_choice,
        options=msgspec.structs.replace(reply_options, **changed_options),
        observer=output.observer,
    )
    first_byte, chunks = _peek_first_byte(incoming)
    if first_byte == b"{":
        failure = _translate_body(translator, b"".join(chunks), output)
    else:
        failure = _translate_stream(translator, chunks, output, MissedCallDetector(args.source, tools))
    if not args.trace:
        console.print_explain_hint(translator.findings, args.finding_format)
    if failure:
        hint = "the translated reply reports the error too; the output before it is valid"
        raise UpstreamError(
            f"the reply failed: {failure}", hint if translator.begun or first_byte == b"{" else _BODY_HINT
        )


def _choose_output(args: argparse.Namespace) -> Output:
    if (args.only or args.all_chunks) and not args.explain:
        raise UsageError(f"{'--only' if args.only else '--all-chunks'} needs --explain", "add --explain")
    if args.explain:
        return ExplainedOutput(args.only, is_collapsed=not args.all_chunks)
    return TraceOutput() if args.trace else ReplyOutput(args.finding_format)


def _peek_first_byte(chunks: Iterator[bytes]) -> tuple[bytes, Iterator[bytes]]:
    """Return the first byte that is not whitespace (b"" if there is none), and all chunks."""
    blank_chunks: list[bytes] = []
    for chunk in chunks:
        if stripped := chunk.lstrip(_BLANK):
            return stripped[:1], chain(blank_chunks, [chunk], chunks)
        blank_chunks.append(chunk)
    return b"", iter(blank_chunks)


def _translate_body(translator: il.Translator, raw: bytes, output: Output) -> str | None:
    """Translate a whole reply. Return the message of its error, if it is one."""
    body = console.read_json(raw.removeprefix(_BOM), dict[str, Any], "the reply", _BODY_HINT)
    translated = translator.reply(body)
    output.begin()
    output.write_body(translated, translator)
    error = translated.get("error")
    return str(error.get("message") if isinstance(error, dict) else error) if error else None


def _translate_stream(
    translator: il.Translator, chunks: Iterable[bytes], output: Output, missed_call_detector: MissedCallDetector
) -> str | None:
    """Translate a stream. Return the message of its failure, if it failed."""
    output.begin()
    for chunk in chunks:
        missed_call_detector.feed(chunk)
        output.write_frames(translator.feed(chunk), translator)
    missed_call_detector.close()
    output.write_frames(translator.close(), translator)
    output.end()
    if hint := missed_call_detector.hint(translator.dialect):
        console.print_labelled("hint", hint, Style.MARKER)
    failure = translator.tally.failure
    return failure.message if failure else None
