"""Tools run: at once, with limits, and whatever goes wrong is a result in words for the model."""

from __future__ import annotations

import asyncio
import enum
import logging
import threading
import time
from dataclasses import dataclass
from typing import Any, Literal

import pytest

import interlingua as il
from interlingua.client import ToolBox, ToolResult
from interlingua.errors import UsageError
from interlingua.reply import Call, Reply, Text


def call(name: str, arguments: str = "{}", id: str = "call_1") -> Call:
    return Call(id, name, arguments)


def ran(box: ToolBox, *calls: Call) -> list[ToolResult]:
    return asyncio.run(box.run(calls))


class Mode(enum.Enum):
    READ = "r"
    WRITE = "w"


@dataclass
class Range:
    first: int
    last: int = 0


def read(path: str, limit: int = 100, mode: Mode = Mode.READ, within: Range | None = None) -> str:
    """Reads a file.

    As much of it as you like.

    Args:
        path: where it is,
            from the root
        limit (int): how many lines
        mode: how

    Returns:
        the text
    """
    return f"{path} {limit} {mode} {within}"


async def fetch(url: str, kind: Literal["text", "html"] = "text") -> dict[str, Any]:
    """Fetches a page.

    :param url: what to fetch
    :param str kind: as what
    """
    await asyncio.sleep(0)
    return {"url": url, "kind": kind}


def numpy_style(a: float) -> None:
    """Does nothing.

    Parameters
    ----------
    a : float
        A number,
        of any size.
    """


def test_schemas_come_from_hints_and_docstrings() -> None:
    tools = {tool.name: tool for tool in ToolBox(read, fetch, numpy_style).tools}
    assert tools["read"].description == "Reads a file.\n\nAs much of it as you like."
    schema = tools["read"].schema
    assert (schema["required"], schema["additionalProperties"]) == (["path"], False)
    assert schema["properties"]["path"] == {"type": "string", "description": "where it is, from the root"}
    assert schema["properties"]["limit"] == {"type": "integer", "description": "how many lines", "default": 100}
    assert set(schema["$defs"]) == {"Mode", "Range"}
    assert tools["fetch"].description == "Fetches a page."
    assert tools["fetch"].schema["properties"] == {
        "url": {"type": "string", "description": "what to fetch"},
        "kind": {"enum": ["html", "text"], "description": "as what", "default": "text"},
    }
    assert tools["numpy_style"].schema["properties"]["a"]["description"] == "A number, of any size."


@pytest.mark.parametrize("wire", ["openai-chat", "anthropic-messages", "openai-responses"])
def test_what_is_offered_is_read_back_the_same(wire: str) -> None:
    box = ToolBox(read, fetch)
    again = [il.Tool.read(tool) for tool in box.offer(wire)]
    assert [(tool.name, tool.description, tool.schema) for tool in again] == [
        (tool.name, tool.description, tool.schema) for tool in box.tools
    ]


def test_calls_run_with_their_types() -> None:
    box = ToolBox(read, fetch)
    results = ran(
        box,
        call("read", '{"path": "a", "mode": "w", "within": {"first": 3}}'),
        call("fetch", '{"url": "u", "kind": "html"}', "call_2"),
    )
    assert [(result.outcome, result.content) for result in results] == [
        ("ok", "a 100 Mode.WRITE Range(first=3, last=0)"),
        ("ok", '{"url":"u","kind":"html"}'),
    ]
    assert [result.call.id for result in results] == ["call_1", "call_2"]
    assert box.run_sync([call("fetch", '{"url": "u"}')])[0].value == {"url": "u", "kind": "text"}


def test_they_run_at_once() -> None:
    meeting = threading.Barrier(3)

    def wait() -> str:
        meeting.wait(10)
        return "met"

    assert [result.content for result in ran(ToolBox(wait), *[call("wait")] * 3)] == ["met"] * 3


def test_no_more_than_allowed_run_at_once() -> None:
    running, most = 0, 0

    async def work() -> None:
        nonlocal running, most
        running += 1
        most = max(most, running)
        await asyncio.sleep(0.01)
        running -= 1

    ran(ToolBox(work, parallel=2), *[call("work")] * 6)
    assert most == 2


@pytest.mark.parametrize(
    ("one", "outcome", "words"),
    [
        (call("reed", '{"path": "a"}'), "unknown-tool", "there is no tool 'reed'; did you mean 'read'?"),
        (call("xyz", "{}"), "unknown-tool", "known: fetch, read"),
        (call("read", ""), "bad-call", "the arguments are empty: send a JSON object with `path`"),
        (call("read", '{"path": "a'), "bad-call", "cut short at character 11, inside a string"),
        (call("read", '{"limit": "5"}'), "bad-call", '`limit` should be an integer but is "5"'),
        (call("read", '{"path": "a", "line": 1}'), "bad-call", "`line`, which is not known"),
    ],
)
def test_a_wrong_call_is_told_to_the_model(one: Call, outcome: str, words: str) -> None:
    (result,) = ran(ToolBox(read, fetch), one)
    assert (result.ok, result.outcome) == (False, outcome)
    assert words in result.content


def test_what_a_tool_raises_is_named_and_its_trace_is_logged(caplog: pytest.LogCaptureFixture) -> None:
    def boom() -> None:
        raise FileNotFoundError("no such file: a.txt")  # in this line

    async def exits() -> None:
        raise SystemExit(3)

    def sync_exits() -> None:
        raise SystemExit(3)

    def stops() -> None:
        raise StopIteration

    with caplog.at_level(logging.ERROR, "interlingua.client"):
        results = ran(ToolBox(boom, exits, sync_exits, stops), *map(call, ("boom", "exits", "sync_exits", "stops")))
    assert [result.outcome for result in results] == ["failed"] * 4
    assert results[0].content == "The tool 'boom' failed. FileNotFoundError: no such file: a.txt"
    assert isinstance(results[0].error, FileNotFoundError)
    assert "Traceback" not in results[0].content
    assert "in this line" in caplog.text
    assert "in this line" not in results[0].content


def test_a_slow_tool_is_given_up() -> None:
    async def slow() -> None:
        await asyncio.sleep(60)

    def own() -> None:
        raise TimeoutError("of its own")

    began = time.monotonic()
    slow_one, own_one, good = ran(
        ToolBox(slow, own, read, timeout=0.1), call("slow"), call("own"), call("read", '{"path": "a"}')
    )
    assert time.monotonic() - began < 10
    assert (slow_one.outcome, slow_one.content) == ("timeout", "The tool 'slow' took more than 0.1 s: given up.")
    assert (own_one.outcome, good.outcome) == ("failed", "ok")


def test_cancelling_cancels_the_tools() -> None:
    stopped: list[str] = []

    async def slow(name: str) -> None:
        try:
            await asyncio.sleep(60)
        except asyncio.CancelledError:
            stopped.append(name)
            raise

    async def cancels_itself() -> None:
        raise asyncio.CancelledError

    async def go() -> None:
        box = ToolBox(slow, cancels_itself)
        task = asyncio.create_task(box.run([call("slow", '{"name": "a"}'), call("slow", '{"name": "b"}')]))
        await asyncio.sleep(0.05)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        (result,) = await box.run([call("cancels_itself")])
        assert result.outcome == "cancelled"

    asyncio.run(go())
    assert sorted(stopped) == ["a", "b"]


def test_long_results_are_cut_in_the_middle() -> None:
    def long() -> str:
        return "a" * 500 + "b" * 500

    (result,) = ran(ToolBox(long, longest=100), call("long"))
    assert result.content == "a" * 50 + "\n[… 900 characters left out …]\n" + "b" * 50


@pytest.mark.parametrize(
    ("value", "content"),
    [
        ("x", "x"),
        (None, "done"),
        ({"a": {1, 2}}, '{"a":[1,2]}'),
        (b"\0", "AA=="),
        ([Mode.READ], '["r"]'),
        (object, "<class 'object'>"),
    ],
)
def test_what_tools_return_is_text(value: Any, content: str) -> None:
    def give() -> Any:
        return value

    assert ran(ToolBox(give), call("give"))[0].content in (content, f'"{content}"')


def test_repairs_are_seen() -> None:
    (result,) = ran(ToolBox(read, repair="safe"), call("read", '{"path": "a",}'))
    assert (result.ok, [finding.kind for finding in result.findings]) == (True, ["repaired-arguments"])


def test_functions_that_cannot_be_tools() -> None:
    def many(*names: str) -> None: ...

    class Odd: ...

    def odd(a: Odd) -> None: ...

    for function in (many, odd):
        with pytest.raises(UsageError, match="cannot be a tool"):
            ToolBox(function)
    with pytest.raises(UsageError, match="already"):
        ToolBox(read, read)

    async def inside() -> None:
        ToolBox(read).run_sync([])

    with pytest.raises(UsageError, match="a loop is running"):
        asyncio.run(inside())


def test_results_are_messages_of_each_wire() -> None:
    box = ToolBox(read)
    calls = [call("read", '{"path": "a"}', "functions.read:0"), call("read", "", "functions.read:1")]
    reply = Reply(parts=[Text("I look."), *calls])
    results = ran(box, *calls)
    chat = box.messages("openai-chat", reply, results)
    assert [message["role"] for message in chat] == ["assistant", "tool", "tool"]
    assert [message["tool_call_id"] for message in chat[1:]] == ["functions.read:0", "functions.read:1"]
    told, answered = box.messages("anthropic-messages", reply, results)
    uses = [block["id"] for block in told["content"] if block["type"] == "tool_use"]
    assert uses == [block["tool_use_id"] for block in answered["content"]]
    assert [block.get("is_error", False) for block in answered["content"]] == [False, True]
    items = box.messages("openai-responses", reply, results)
    assert [item["type"] for item in items] == [
        "message",
        "function_call",
        "function_call",
        *["function_call_output"] * 2,
    ]
    assert box.messages("openai-chat", None, results) == chat[1:]
