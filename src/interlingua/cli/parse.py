"""`interlingua parse`: a model's native text → the reply, as JSON."""

from __future__ import annotations

import argparse
from collections.abc import Iterable, Iterator
from typing import Any

import msgspec

import interlingua as il
from interlingua import events as ev
from interlingua.cli.common import console as io
from interlingua.cli.common import options

NAME = "parse"
HELP = "a model's native text → the reply, as JSON"
DESCRIPTION = """\
Reads what a model wrote and tells the reply as one JSON object: text,
reasoning, calls, parts (all of them in order), stop_reason and findings.
It is indented on a terminal and one line otherwise, so that the replies of
many runs can be gathered in a file of JSON lines."""
EPILOG = """\
examples:
  interlingua parse --dialect kimi_k2 reply.txt
  interlingua parse --model moonshotai/kimi-k2.5 --tools tools.json < reply.txt
  interlingua parse --dialect kimi_k2 --prefill '<think>' --events < slow-pipe
"""


def add_options(parser: argparse.ArgumentParser) -> None:
    options.add_dialect(parser, "by --model (default)")
    options.add_tools(parser)
    options.add_prefill(parser)
    parser.add_argument("--events", action="store_true", help="one JSON line per event, as they come")
    options.add_findings(parser)
    options.add_file(parser, "the text")


def run(args: argparse.Namespace) -> None:
    parser = il.Parser(options.dialect_from_args(args), options.load_tools(args.tools), args.prefill)
    events = _parse_events(parser, io.read_chunks(args.file, "the model's text"))
    if args.events:
        _write_events(events, args.tell)
    else:
        reply = il.fold(events)
        io.write_json(_as_json(reply))
        io.print_findings(reply.findings, args.tell)


def _parse_events(parser: il.Parser, chunks: Iterable[bytes]) -> Iterator[ev.Event]:
    decoder = io.Utf8Decoder()
    for chunk in chunks:
        yield from parser.feed(decoder.decode(chunk))
    yield from parser.feed(decoder.decode(b"", final=True))
    yield from decoder.findings()
    yield from parser.close()


def _write_events(events: Iterable[ev.Event], finding_format: io.FindingFormat) -> None:
    for event in events:
        io.write_json_line({"event": type(event).__name__, **msgspec.to_builtins(event)})
        if isinstance(event, ev.Finding):
            io.print_findings([event], finding_format)


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
