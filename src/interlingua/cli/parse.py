"""`interlingua parse`: convert a model's native text to a reply in JSON."""

from __future__ import annotations

import argparse
from collections.abc import Iterable, Iterator
from typing import Any

import msgspec

import interlingua as il
from interlingua import events as ev
from interlingua.cli.common import console, options

DESCRIPTION = """\
Parses the text that a model wrote and prints the reply as one JSON object:
text, reasoning, calls, parts (text, reasoning and calls in their order),
stop_reason and findings.

The JSON is indented on a terminal. Otherwise it is one line, so that the output
of several runs can be appended to a JSON Lines file."""
EPILOG = """\
examples:
  interlingua parse --dialect kimi_k2 reply.txt
  interlingua parse --model moonshotai/kimi-k2.5 --tools tools.json < reply.txt
  interlingua parse --dialect kimi_k2 --prefill '<think>' --events < slow-pipe
"""


def add_options(parser: argparse.ArgumentParser) -> None:
    options.add_dialect(parser, "choose it by --model (default)")
    options.add_tools(parser)
    options.add_tool_choice(parser)
    options.add_prefill(parser)
    parser.add_argument("--events", action="store_true", help="print one JSON line per event, as soon as it is known")
    options.add_findings(parser)
    options.add_file(parser, "the model's text")


def run(args: argparse.Namespace) -> None:
    dialect, tools = options.dialect_from_args(args), options.load_tools(args.tools)
    parser = il.Parser(dialect, tools, args.prefill, tool_choice=options.tool_choice_from_args(args, tools))
    events = _parse_events(parser, console.read_chunks(args.file, "the model's text"))
    if args.events:
        _write_events(events, args.finding_format)
    else:
        reply = il.fold(events)
        console.write_json(_as_json(reply))
        console.print_findings(reply.findings, args.finding_format)
        console.print_explain_hint(reply.findings, args.finding_format)


def _parse_events(parser: il.Parser, chunks: Iterable[bytes]) -> Iterator[ev.Event]:
    decoder = console.Utf8Decoder()
    for chunk in chunks:
        yield from parser.feed(decoder.decode(chunk))
    yield from parser.feed(decoder.decode(b"", final=True))
    yield from decoder.findings()
    yield from parser.close()


def _write_events(events: Iterable[ev.Event], finding_format: console.FindingFormat) -> None:
    for event in events:
        console.write_json_line({"event": type(event).__name__, **msgspec.to_builtins(event)})
        if isinstance(event, ev.Finding):
            console.print_findings([event], finding_format)


def _as_json(reply: il.Reply) -> dict[str, Any]:
    calls = [{key: value for key, value in msgspec.to_builtins(call).items() if key != "kind"} for call in reply.calls]
    return {
        "text": reply.text,
        "reasoning": reply.reasoning,
        "calls": calls,
        "parts": reply.parts,
        "stop_reason": reply.stop_reason,
        "findings": reply.findings,
    }
