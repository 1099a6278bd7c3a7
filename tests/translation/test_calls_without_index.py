"""Structured calls of which only some deltas have an index or an id: no call gets invented arguments, or those of
another call."""

from __future__ import annotations

import json
import re
from typing import Any

import pytest

import interlingua as il
from tests.support import chat_scenarios as chat
from tests.support.pair_sources import CHAT, MESSAGES, RESPONSES

Json = dict[str, Any]
COMMAND, FILE = '{"command":"ls"}', '{"path":"a","content":"b"}'
TOOLS = [
    {"type": "function", "function": {"name": name, "parameters": {"type": "object", "properties": properties}}}
    for name, properties in {
        "bash": {"command": {"type": "string"}},
        "Write": {"path": {"type": "string"}, "content": {"type": "string"}},
        "now": {},
    }.items()
]
Calls = dict[str, str | None]
"""Arguments of each call, by name; None if the call is incomplete."""
BOTH: Calls = {"bash": COMMAND, "Write": FILE}
NEITHER: Calls = {"bash": None, "Write": None}


def start(name: str, id: str | None = None, index: int | None = None, arguments: str = "") -> Json:
    entry = {"index": index, "id": id, "type": "function", "function": {"name": name, "arguments": arguments}}
    return {key: value for key, value in entry.items() if value is not None}


def more(arguments: Any, index: int | None = None, id: str | None = None) -> Json:
    entry = {"index": index, "id": id, "function": {"arguments": arguments}}
    return {key: value for key, value in entry.items() if value is not None}


def custom(name: str | None, text: str, id: str | None = None) -> Json:
    entry = {"id": id, "type": "custom", "custom": {"name": name, "input": text}}
    return {key: value for key, value in entry.items() if value is not None}


NO_INDEX = [start("bash", "c1"), start("Write", "c2")]
INDEXED = [start("bash", "c1", 0), start("Write", "c2", 1)]
INDEXED_NO_ID = [start("bash", index=0), start("Write", index=1)]

ROWS: dict[str, tuple[list[list[Json]], Calls]] = {
    # The arguments have neither an index nor an id.
    "by position": ([NO_INDEX, [more(COMMAND), more(FILE)]], BOTH),
    "by position, the starts one by one": ([NO_INDEX[:1], NO_INDEX[1:], [more(COMMAND), more(FILE)]], BOTH),
    "by position, the starts have an index": ([INDEXED, [more(COMMAND), more(FILE)]], BOTH),
    "by position, in pieces": (
        [NO_INDEX, [more(COMMAND[:5]), more(FILE[:9])], [more(COMMAND[5:]), more(FILE[9:])]],
        BOTH,
    ),
    "by position, the first call ends earlier": (
        [NO_INDEX, [more(COMMAND), more(FILE[:9])], [more(""), more(FILE[9:15])], [more(FILE[15:])]],
        BOTH,
    ),
    "by position, arguments as objects": ([NO_INDEX, [more(json.loads(COMMAND)), more(json.loads(FILE))]], BOTH),
    "by position, only of the calls that are open": (
        [[start("now", "c0", arguments="{}"), *NO_INDEX], [more(COMMAND), more(FILE)]],
        {"now": "{}", **BOTH},
    ),
    "two pieces of one call in one delta": ([NO_INDEX, [more(COMMAND[:5]), more(COMMAND[5:])]], NEITHER),
    "more calls than arguments in a delta": (
        [[*NO_INDEX, start("now", "c3")], [more(COMMAND), more(FILE)]],
        {**NEITHER, "now": None},
    ),
    "one by one": ([INDEXED, [more(COMMAND)], [more(FILE)]], NEITHER),
    "one by one, no index anywhere": ([NO_INDEX, [more(COMMAND)], [more(FILE)]], NEITHER),
    "only of the first call": ([INDEXED, [more(COMMAND)]], NEITHER),
    "one call has no arguments yet": ([INDEXED, [more(COMMAND, 0)], [more(FILE[:9])], [more(FILE[9:])]], BOTH),
    "in order": ([NO_INDEX[:1], [more(COMMAND[:5])], [more(COMMAND[5:])], NO_INDEX[1:], [more(FILE)]], BOTH),
    "a start between two pieces": (
        [NO_INDEX[:1], [more(COMMAND[:5])], NO_INDEX[1:], [more(COMMAND[5:])], [more(FILE)]],
        NEITHER,
    ),
    "after the end of all calls": (
        [NO_INDEX[:1], [more(COMMAND)], [more(FILE)], NO_INDEX[1:]],
        {**NEITHER, "bash": COMMAND},
    ),
    "on the index of a call that has ended": (
        [INDEXED, [more(COMMAND, 0)], [more(FILE, 0)]],
        {**NEITHER, "bash": COMMAND},
    ),
    "arguments again, then a call without any": (
        [INDEXED[:1], [more(COMMAND, 0)], [more(COMMAND)], [start("now", "c2", 1)]],
        {"bash": COMMAND, "now": "{}"},
    ),
    "null, then the arguments of another call": ([INDEXED, [more("null", 0)], [more(FILE)]], NEITHER),
    # Some of the arguments have an index.
    "the index in the first piece only": ([NO_INDEX, [more('{"comm', 0)], [more('and":"ls"}')], [more(FILE, 1)]], BOTH),
    "the index in the first piece of each call": (
        [INDEXED, [more(COMMAND[:5], 0)], [more(COMMAND[5:])], [more(FILE[:9], 1)], [more(FILE[9:])]],
        BOTH,
    ),
    "the index in the second piece only": ([INDEXED, [more(COMMAND[:5])], [more(COMMAND[5:], 0)]], NEITHER),
    "the index in the second piece only, which is an object": (
        [INDEXED, [more('{"command":[')], [more('{"id":1}', 0)], [more("]}", 0)]],
        NEITHER,
    ),
    "the index in the pieces of another call": (
        [INDEXED, [more('{"command":[')], [more(FILE, 1)], [more('{"id":1}')], [more("]}")]],
        NEITHER,
    ),
    # The ids come late.
    "late ids in another order": ([INDEXED_NO_ID, [more(FILE, id="c2")], [more(COMMAND, id="c1")]], NEITHER),
    "late id of one of two calls": ([INDEXED_NO_ID, [more(FILE, id="c2")]], NEITHER),
    "late id of the only call without one": (
        [[INDEXED_NO_ID[0], INDEXED[1]], [more(FILE, id="c2")], [more(COMMAND, id="c1")]],
        BOTH,
    ),
    "another id without an index": ([INDEXED[:1], [more(COMMAND, id="x")]], {"bash": None}),
    # The arguments come before the name.
    "arguments first, on the same index": ([[more(COMMAND, 0)], [start("bash", "c1", 0)]], {"bash": COMMAND}),
    "arguments first, the start without an index": ([[more(COMMAND, 0)], [start("bash", "c1")]], {"bash": COMMAND}),
    "arguments first, no index anywhere": ([[more(COMMAND)], [start("bash", "c1")]], {"bash": COMMAND}),
    "arguments first, more after the start": (
        [[more(COMMAND[:5], 0)], [start("bash", "c1")], [more(COMMAND[5:], id="c1")]],
        {"bash": COMMAND},
    ),
    "arguments first, without an index; the start has one": (
        [[more(COMMAND)], [start("bash", "c1", 0)]],
        {"bash": None},
    ),
    "arguments first, on another index": ([[more(COMMAND, 0)], [start("bash", "c1", 1)]], {"bash": None}),
    "arguments first, of two calls": ([[more(COMMAND, 0)], [more(FILE, 1)], NO_INDEX], NEITHER),
    "arguments first, the start has others": (
        [[more(COMMAND, 0)], [start("Write", "c2", arguments=FILE)]],
        {"Write": FILE},
    ),
    # Custom tools.
    "custom tools in order": (
        [[custom("bash", "a", "c1")], [custom(None, "b")], [custom("Write", "", "c2")], [custom(None, "c")]],
        {"bash": "ab", "Write": "c"},
    ),
    "custom tools by position": (
        [[custom("bash", "", "c1"), custom("Write", "", "c2")], [custom(None, "a"), custom(None, "b")]],
        {"bash": "a", "Write": "b"},
    ),
    "custom tools one by one": (
        [[custom("bash", "", "c1"), custom("Write", "", "c2")], [custom(None, "a")], [custom(None, "b")]],
        NEITHER,
    ),
}


def complete_calls(reply: Json, findings: list[il.Finding]) -> Calls:
    """Return the arguments of each call of a folded chat reply, by name; None if the call is incomplete."""
    incomplete = {
        match[1] for one in findings if one.kind == "cut-short" and (match := re.search("call of '(.*)'", one.message))
    }
    bodies = [call.get("function") or call["custom"] for call in reply["tool_calls"]]
    return {
        body["name"]: None if body["name"] in incomplete else body.get("arguments", body.get("input"))
        for body in bodies
    }


def read_chat(stream: bytes) -> Json:
    """Return the message that a chat client reads from the stream."""
    message: Json = {"content": "", "tool_calls": []}
    for line in stream.decode().splitlines():
        if not line.startswith("data: {"):
            continue
        for choice in json.loads(line[len("data: ") :])["choices"]:
            message["content"] += choice["delta"].get("content") or ""
            message["finish_reason"] = choice["finish_reason"]
            for entry in choice["delta"].get("tool_calls", ()):
                key, field = ("custom", "input") if "custom" in entry else ("function", "arguments")
                if entry["index"] == len(message["tool_calls"]):
                    message["tool_calls"].append({key: {**entry[key], field: ""}})
                message["tool_calls"][entry["index"]][key][field] += entry[key].get(field, "")
    return message


@pytest.mark.parametrize("reads", ["one read per chunk", "one read"])
@pytest.mark.parametrize(("deltas", "expected"), [pytest.param(*row, id=name) for name, row in ROWS.items()])
def test_no_call_gets_invented_arguments(deltas: list[list[Json]], expected: Calls, reads: str) -> None:
    stream = chat.call_stream(*deltas)
    pieces = [stream] if reads == "one read" else stream.splitlines(keepends=True)
    translator = il.Translator(CHAT, CHAT, tools=TOOLS)
    message = read_chat(b"".join(map(translator.feed, pieces)) + translator.close())
    assert complete_calls(message, translator.findings) == expected
    is_complete = None not in expected.values()
    assert message["finish_reason"] == ("tool_calls" if is_complete else "length")
    kinds = {finding.kind for finding in translator.findings}
    assert is_complete or kinds & {"no-such-call", "call-without-name", "after-arguments"}, kinds


@pytest.mark.parametrize("target", [MESSAGES, RESPONSES])
@pytest.mark.parametrize(("deltas", "expected"), [pytest.param(*row, id=name) for name, row in ROWS.items()])
def test_other_wires_have_the_same_incomplete_calls(deltas: list[list[Json]], expected: Calls, target: str) -> None:
    translator = il.Translator(CHAT, target, tools=TOOLS)
    translator.feed(chat.call_stream(*deltas))
    translator.close()
    incomplete = [finding for finding in translator.findings if finding.kind == "cut-short"]
    assert len(incomplete) == list(expected.values()).count(None)
