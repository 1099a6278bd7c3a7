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
    parser = il.Parser(options.known_dialect(args), options.tools_from(args.tools), args.prefill)
    events = _events(parser, io.pieces(args.file, "the model's text"))
    if args.events:
        _tell_events(events, args.tell)
    else:
        reply = il.fold(events)
        io.write_json(_as_json(reply))
        io.tell_findings(reply.findings, args.tell)


def _events(parser: il.Parser, pieces: Iterable[bytes]) -> Iterator[ev.Event]:
    utf8 = io.Utf8()
    for piece in pieces:
        yield from parser.feed(utf8.decode(piece))
    yield from parser.feed(utf8.decode(b"", final=True))
    yield from utf8.findings()
    yield from parser.close()


def _tell_events(events: Iterable[ev.Event], how: io.Tell) -> None:
    for event in events:
        io.write_line({"event": type(event).__name__, **msgspec.to_builtins(event)})
        if isinstance(event, ev.Finding):
            io.tell_findings([event], how)


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
