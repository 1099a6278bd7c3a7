"""`interlingua cassettes show`: show the requests and replies of cassettes."""

from __future__ import annotations

import argparse
from collections.abc import Iterator
from typing import TYPE_CHECKING

from interlingua.cli.common import console
from interlingua.common.jsontext.codec import write_json
from interlingua.core.reply import Text
from interlingua.core.request import CacheMark, Piece, Result

if TYPE_CHECKING:
    from interlingua.cassettes.recorded_exchange import RecordedExchange
    from interlingua.cassettes.recording_index import Recording
    from interlingua.core.request import Request

DESCRIPTION = """\
Prints a summary of each recorded exchange: the end of the conversation (>),
what the model replied (<), and where the reply came from."""
EPILOG = """\
examples:
  interlingua cassettes show cassettes
  interlingua cassettes show tests/cassettes/test_agent/test_weather.yaml
"""
MAX_TEXT_CHARS = 200


def add_options(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("paths", metavar="PATH", nargs="+", help="a cassette: a file, or a folder")


def run(args: argparse.Namespace) -> None:
    from interlingua.cassettes.cassette_files import load_cassette

    for path in args.paths:
        source = ""
        for recording in load_cassette(path).recordings:
            if recording.source != source:
                source = recording.source
                console.write_lines([console.printable(source)])
            console.write_lines(f"  {console.printable(line)}" for line in _summary(recording))


def _summary(recording: Recording) -> Iterator[str]:
    exchange = recording.exchange
    request, reply, upstream = exchange.request.read(), exchange.reply, exchange.upstream
    seconds = reply.pieces[-1].seconds if reply.pieces else 0.0
    counts = f"{_count(len(request.messages), 'message')}, {_count(len(request.tools), 'tool')}"
    yield f"{recording.number}. {exchange.request.wire} {request.model}, {counts}"
    yield f"   > {_shorten(_last_message(request))}"
    yield from (f"   < {_shorten(line)}" for line in _reply_lines(exchange))
    dialect = f", {upstream.dialect}" if upstream.dialect != "auto" else ""
    status = f", status {reply.status}" if reply.status != 200 else ""
    incomplete = "" if reply.is_complete else ", the client left before its end"
    yield (
        f"   from {upstream.name or 'an upstream'} ({upstream.wire}, {upstream.model}{dialect}): "
        f"{len(reply.body):,} bytes in {_count(len(reply.pieces), 'piece')}, {seconds:.1f} s{status}{incomplete}"
    )


def _last_message(request: Request) -> str:
    """Return the last message of the user's side in words."""
    messages = [message for message in request.messages if message.role == "user"]
    return " ".join(filter(None, map(_piece_text, messages[-1].pieces if messages else ())))


def _piece_text(piece: Piece) -> str:
    match piece:
        case Text():
            return piece.text
        case Result():
            return f"[result: {' '.join(filter(None, map(_piece_text, piece.content)))}]"
        case CacheMark():
            return ""
    return f"[{type(piece).__name__.lower()}]"


def _count(number: int, noun: str) -> str:
    return f"{number} {noun}" if number == 1 else f"{number} {noun}s"


def _reply_lines(exchange: RecordedExchange) -> Iterator[str]:
    meaning = exchange.meaning
    if meaning.reasoning:
        yield f"(thinking) {meaning.reasoning}"
    if meaning.text:
        yield meaning.text
    for call in meaning.calls:
        yield f"{call.name}({write_json(call.arguments)})"
    if meaning.refusal or meaning.error:
        yield f"error: {meaning.refusal or meaning.error}"


def _shorten(text: str) -> str:
    line = " ".join(text.split())
    return line if len(line) <= MAX_TEXT_CHARS else f"{line[:MAX_TEXT_CHARS]}…"
