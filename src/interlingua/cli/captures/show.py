"""`interlingua captures show`: show what a capture recorded, or print the bytes in it."""

from __future__ import annotations

import argparse
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import interlingua as il
from interlingua.captures.capture_format import (
    CapturedExchange,
    ClientRequestLine,
    FindingsLine,
    SentLine,
    UpstreamRequestLine,
    read_capture,
)
from interlingua.cli.captures.capture_summary import CaptureSummary, read_summary
from interlingua.cli.common import console, terminal
from interlingua.cli.common.capture_files import add_captures_option, capture_folder, find_capture
from interlingua.common.jsontext.codec import read_full_object
from interlingua.common.short_text import shorten
from interlingua.core.finding_severity import advice_for, severity_of
from interlingua.errors import BadInput
from interlingua.wires import WIRES

DESCRIPTION = """\
Shows one exchange: who asked which model, what became of it, the findings, the
last message of the client, and the reply that the client received. With one of
the options, prints the recorded bytes instead."""
EPILOG = """\
examples:
  interlingua captures show                     the newest capture
  interlingua captures show req_1f3a
  interlingua captures show captures/20260101T120000000000Z-req_1f3a….jsonl
  interlingua captures show req_1f3a --received > recorded.sse
  interlingua captures show req_1f3a --request | jq .tools
"""
MAX_TEXT_CHARS = 600
LABEL_WIDTH = 11
PARTS = {
    "request": "the body of the client's request",
    "asked": "the body of the last request to the upstream",
    "received": "what the upstream sent",
    "sent": "what the client received",
}


def add_options(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "capture", nargs="?", metavar="CAPTURE", help="id of the request, or its beginning; file; folder: its newest"
    )
    add_captures_option(parser)
    parts = parser.add_mutually_exclusive_group()
    for name, description in PARTS.items():
        parts.add_argument(
            f"--{name}", dest="part", action="store_const", const=name, help=f"print {description}, as it was recorded"
        )
    parts.add_argument("--json", action="store_true", help="print the record of the exchange as JSON")


def run(args: argparse.Namespace) -> None:
    path = _find(args)
    summary = read_summary(path)
    if args.json:
        console.write_json(summary.exchange)
        return
    captured = read_capture(path)
    if args.part:
        console.write(_part(captured, args.part))
        return
    lines = [*_facts(summary), *_finding_lines(captured), *_conversation_lines(captured, summary)]
    if kinds := [kind for kind in _finding_kinds(captured) if advice_for(kind)]:
        lines += ["", f"what to do: interlingua explain {' '.join(kinds)}"]
    if captured.received:
        is_found_by_id = args.captures is None and not Path(args.capture or "").is_file()
        lines += ["", f"next: interlingua translate --explain {summary.id if is_found_by_id else path}"]
    console.write_lines(lines)


def _find(args: argparse.Namespace) -> Path:
    reference = args.capture or str(capture_folder(args.captures))
    path = find_capture(reference, args.captures)
    if path is None:
        raise BadInput(f"{reference} is not a capture", "pass the id of a request, or a file of `--capture DIR`")
    return path


def _part(captured: CapturedExchange, name: str) -> bytes:
    if name == "received":
        return b"".join(line.data for line in captured.received)
    if name == "sent":
        return b"".join(line.data for line in captured.lines_of(SentLine))
    requests: list[ClientRequestLine] | list[UpstreamRequestLine] = (
        captured.lines_of(ClientRequestLine) if name == "request" else captured.lines_of(UpstreamRequestLine)
    )
    return requests[-1].data if requests else b""


# ── facts ─────────────────────────────────────────────────────────────────────────────────────────────────────────────


def _facts(summary: CaptureSummary) -> Iterator[str]:
    exchange = summary.exchange
    texts = {name: str(value) for name, value in exchange.items() if value not in (None, "")}
    yield _line("id", summary.id)
    if summary.time is not None:
        yield _line("time", f"{summary.time.astimezone():%Y-%m-%d %H:%M:%S}")
    yield from _path_lines("file", summary.file)
    if not exchange:
        yield _line("outcome", "the capture has no end: the gateway was killed, or the request is not finished")
        return
    yield _line("client", " ".join(texts[name] for name in ("client", "wire", "path") if name in texts))
    if "upstream" in texts:
        target = f"{texts.get('upstream_model', '')} at {texts['upstream']}, dialect {texts.get('dialect', 'unknown')}"
        yield _line("model", f"{texts.get('model', '')} → {target}")
    else:
        yield _line("model", texts.get("model", "unknown"))
    error = f": {texts['error']}" if "error" in texts else ""
    yield from _wrap_field("outcome", f"{texts.get('status', '')} {texts.get('outcome', '')}{error}".strip())
    for attempt in exchange.get("failed_attempts") or ():
        yield from _wrap_field("failed", f"{attempt.get('upstream')}: {attempt.get('model')}: {attempt.get('reason')}")
    tokens = exchange.get("tokens") or {}
    used = f", {tokens.get('input', 0)} + {tokens.get('output', 0)} tokens" if tokens else ""
    yield _line("took", f"{exchange.get('seconds') or 0:.2f} s, {_count(exchange.get('calls') or 0, 'call')}{used}")


def _path_lines(label: str, path: str) -> Iterator[str]:
    """Yield the line of a path, or two of them: a terminal would break a path that is too long."""
    line = _line(label, path)
    if console.stdout_is_terminal() and len(line) > terminal.terminal_width():
        yield label
        yield f"  {console.printable(path)}"
    else:
        yield line


def _count(number: int, noun: str) -> str:
    return f"{number} {noun}{'' if number == 1 else 's'}"


def _line(label: str, text: str) -> str:
    return f"{label:<{LABEL_WIDTH}}{console.printable(text)}"


def _finding_kinds(captured: CapturedExchange) -> Iterator[str]:
    """Yield each kind of finding once."""
    yield from dict.fromkeys(finding.kind for line in captured.lines_of(FindingsLine) for finding in line.findings)


def _finding_lines(captured: CapturedExchange) -> Iterator[str]:
    for line in captured.lines_of(FindingsLine):
        for finding in line.findings:
            place = f" at {finding.place}" if finding.place else ""
            yield from _wrap_field(severity_of(finding.kind), f"{finding.kind}{place}: {finding.message}")


# ── conversation ──────────────────────────────────────────────────────────────────────────────────────────────────────


def _conversation_lines(captured: CapturedExchange, summary: CaptureSummary) -> Iterator[str]:
    body = read_full_object(_part(captured, "request").decode("utf-8", "replace")) or {}
    messages: Any = next((body[name] for name in ("messages", "input") if body.get(name)), [])
    if messages:
        messages = messages if isinstance(messages, list) else [messages]
        tools = body.get("tools") if isinstance(body.get("tools"), list) else []
        counts = f"{_count(len(messages), 'message')}, {_count(len(tools or ()), 'tool')}"
        yield _line("request", f"{counts}; the last message:")
        yield from _wrap_field("", _message_text(messages[-1]))
    wire = summary.exchange.get("wire")
    sent = _part(captured, "sent")
    if wire in WIRES and sent:
        yield from _reply_lines(str(wire), sent)


def _message_text(message: Any) -> str:
    content = message.get("content", message) if isinstance(message, dict) else message
    return content if isinstance(content, str) else json.dumps(content, ensure_ascii=False)


def _reply_lines(wire: str, sent: bytes) -> Iterator[str]:
    accumulator = il.Accumulator(wire, dialect="standard")
    accumulator.add(sent)
    accumulator.close()
    reply = accumulator.reply()
    yield from _wrap_field("thinking", reply.reasoning) if reply.reasoning else ()
    yield from _wrap_field("reply", reply.text) if reply.text else ()
    for call in reply.calls:
        yield from _wrap_field("call", f"{call.name} {call.arguments}{'' if call.complete else ' (incomplete)'}")
    if reply.failure is not None:
        yield from _wrap_field("error", reply.failure.message)


def _wrap_field(label: str, text: str) -> Iterator[str]:
    indent = f"{label:<{LABEL_WIDTH}}"
    yield from terminal.wrap(console.printable(shorten(text, MAX_TEXT_CHARS)), indent, " " * LABEL_WIDTH)
