"""Tests of the tool box: concurrent calls, limits, and errors as results for the model."""

from __future__ import annotations

import asyncio
import contextvars
import datetime
import enum
import functools
import json
import logging
import pathlib
import threading
import time
from collections.abc import AsyncIterator, Callable, Iterator
from dataclasses import dataclass
from typing import Annotated, Any, Literal

import msgspec
import pydantic
import pytest

import interlingua as il
from interlingua.client import ToolBox, ToolResult
from interlingua.client.tools.docstrings import read_docstring
from interlingua.core.reply import Call, Reply, Text
from interlingua.errors import BadInput, UsageError


def call(name: str, arguments: str = "{}", id: str = "call_1") -> Call:
    return Call(id, name, arguments)


def run_calls(box: ToolBox, *calls: Call) -> list[ToolResult]:
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


def test_schema_from_type_hints_and_docstring() -> None:
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
def test_offered_tools_can_be_read_back(wire: str) -> None:
    box = ToolBox(read, fetch)
    read_back = [il.Tool.read(tool) for tool in box.offer(wire)]
    assert [(tool.name, tool.description, tool.schema) for tool in read_back] == [
        (tool.name, tool.description, tool.schema) for tool in box.tools
    ]


def test_arguments_are_converted_to_the_hinted_types() -> None:
    box = ToolBox(read, fetch)
    results = run_calls(
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


def test_calls_run_concurrently() -> None:
    barrier = threading.Barrier(3)

    def wait() -> str:
        barrier.wait(10)
        return "passed"

    assert [result.content for result in run_calls(ToolBox(wait), *[call("wait")] * 3)] == ["passed"] * 3


def test_parallel_limits_concurrent_calls() -> None:
    running, most = 0, 0

    async def work() -> None:
        nonlocal running, most
        running += 1
        most = max(most, running)
        await asyncio.sleep(0.01)
        running -= 1

    run_calls(ToolBox(work, parallel=2), *[call("work")] * 6)
    assert most == 2


CONTEXT_VALUE = contextvars.ContextVar("CONTEXT_VALUE", default="outside")


def test_hanging_threads_do_not_block_other_calls() -> None:
    end = threading.Event()

    def hangs() -> None:
        end.wait(60)

    def quick() -> str:
        return CONTEXT_VALUE.get()

    start_time = time.monotonic()
    box = ToolBox(hangs, quick, timeout=0.2, parallel=40)
    CONTEXT_VALUE.set("inside")
    results = box.run_sync([*[call("hangs")] * 40, call("quick")])
    assert [result.outcome for result in results] == ["timeout"] * 40 + ["ok"]
    assert results[-1].content == "inside"
    assert box.run_sync([call("quick")])[0].ok
    assert time.monotonic() - start_time < 20
    assert any(thread.daemon and thread.name == "tool hangs" for thread in threading.enumerate())
    end.set()


def test_timeout_starts_when_the_tool_starts() -> None:
    def work() -> None:
        time.sleep(0.2)

    results = ToolBox(work, timeout=1, parallel=2).run_sync([call("work")] * 16)  # 1.6 s, two by two
    assert {result.outcome for result in results} == {"ok"}
    assert max(result.seconds for result in results) < 1


@pytest.mark.parametrize(
    ("invalid_call", "outcome", "message"),
    [
        (call("reed", '{"path": "a"}'), "unknown-tool", "there is no tool 'reed'; did you mean 'read'?"),
        (call("xyz", "{}"), "unknown-tool", "known: fetch, read"),
        (call("read", ""), "bad-call", "the arguments are empty: send a JSON object with `path`"),
        (call("read", '{"path": "a'), "bad-call", "cut off at character 11, inside a string"),
        (call("read", '{"limit": "5"}'), "bad-call", '`limit` should be an integer but is "5"'),
        (call("read", '{"path": "a", "line": 1}'), "bad-call", "unknown keys: `line`"),
        (Call("c", "read", '{"path": "a"}', complete=False), "bad-call", "the reply ended inside this call"),
        (call("\ud800"), "unknown-tool", "there is no tool"),
        (call("read", '{"path": ["\\ud800"]}'), "bad-call", "`path` should be a string"),
    ],
)
def test_invalid_call_returns_an_error_text(invalid_call: Call, outcome: str, message: str) -> None:
    (result,) = run_calls(ToolBox(read, fetch), invalid_call)
    assert (result.ok, result.outcome) == (False, outcome)
    assert message in result.content
    assert result.content.encode()


def test_toolbox_without_tools() -> None:
    assert "there is no tool 'a'; no tools are offered" in run_calls(ToolBox(), call("a"))[0].content


def test_integral_floats_are_accepted_as_integers() -> None:
    def add(numbers: list[int], ratio: float = 0.5) -> str:
        return repr((numbers, ratio))

    assert run_calls(ToolBox(add), call("add", '{"numbers": [5.0, 1e2], "ratio": 2.0}'))[0].content == "([5, 100], 2.0)"
    assert run_calls(ToolBox(add), call("add", '{"numbers": [5.5]}'))[0].outcome == "bad-call"


def test_exception_is_named_and_its_traceback_logged(caplog: pytest.LogCaptureFixture) -> None:
    def boom() -> None:
        raise FileNotFoundError("no such file: a.txt")  # in this line

    async def exits() -> None:
        raise SystemExit(3)

    def sync_exits() -> None:
        raise SystemExit(3)

    def stops() -> None:
        raise StopIteration

    with caplog.at_level(logging.ERROR, "interlingua.client"):
        results = run_calls(
            ToolBox(boom, exits, sync_exits, stops), *map(call, ("boom", "exits", "sync_exits", "stops"))
        )
    assert [result.outcome for result in results] == ["failed"] * 4
    assert results[0].content == "The tool 'boom' failed. FileNotFoundError: no such file: a.txt"
    assert isinstance(results[0].error, FileNotFoundError)
    assert "Traceback" not in results[0].content
    assert "in this line" in caplog.text
    assert "in this line" not in results[0].content


class Silent(Exception):
    def __str__(self) -> str:
        raise ValueError("no")


@pytest.mark.parametrize(
    "error", [Silent(), BaseException("x"), GeneratorExit(), KeyboardInterrupt(), SystemExit(), StopAsyncIteration()]
)
def test_exceptions_of_tools_do_not_propagate(error: BaseException) -> None:
    def raises() -> None:
        raise error

    async def later() -> None:
        raise error if not isinstance(error, KeyboardInterrupt) else ValueError  # KeyboardInterrupt must propagate

    for result in run_calls(ToolBox(raises, later), call("raises"), call("later")):
        assert result.outcome == "failed"
        assert result.error is not None
        assert type(result.error).__name__ in result.content


def test_wrong_usage_raises_usage_error() -> None:
    for wrong in ([{"id": "1", "name": "read", "arguments": "{}"}], call("read"), None):
        with pytest.raises(UsageError, match="expects a list of calls"):
            ToolBox(read).run_sync(wrong)  # type: ignore[arg-type]
    for settings in ({"parallel": 0}, {"timeout": 0}, {"longest": 0}, {"repair": True}):
        with pytest.raises(UsageError, match=next(iter(settings))):
            ToolBox(read, **settings)
    with pytest.raises(UsageError, match="not callable"):
        ToolBox("read")  # type: ignore[arg-type]


def test_slow_tool_times_out() -> None:
    async def slow() -> None:
        await asyncio.sleep(60)

    def own() -> None:
        raise TimeoutError("of its own")

    start_time = time.monotonic()
    slow_result, own_result, good = run_calls(
        ToolBox(slow, own, read, timeout=0.1), call("slow"), call("own"), call("read", '{"path": "a"}')
    )
    assert time.monotonic() - start_time < 10
    assert (slow_result.outcome, slow_result.content) == ("timeout", "The tool 'slow' took more than 0.1 s: timed out.")
    assert (own_result.outcome, good.outcome) == ("failed", "ok")


def test_cancelling_run_cancels_the_tools() -> None:
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


def test_long_result_loses_its_middle() -> None:
    def long() -> str:
        return "a" * 500 + "b" * 500

    (result,) = run_calls(ToolBox(long, longest=100), call("long"))
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
        (Range(1), '{"first":1,"last":0}'),
        ("a\ud800b", "a\ufffdb"),
        ({"a": Range(1), "b": "\ud800"}, '{"a": {"first": 1, "last": 0}, "b": "\\ud800"}'),
        (Silent(), "<Silent>"),
    ],
)
def test_return_values_are_converted_to_text(value: Any, content: str) -> None:
    def give() -> Any:
        return value

    assert run_calls(ToolBox(give), call("give"))[0].content in (content, f'"{content}"')


class Model(pydantic.BaseModel):
    a: int = 1


@dataclass
class Picky:
    a: Any

    def __post_init__(self) -> None:
        raise KeyError("nothing pleases")


def test_argument_types_may_raise_any_exception() -> None:
    def picky(one: Picky) -> None: ...

    def gone() -> Picky:
        return Picky.__new__(Picky)  # without its attributes

    wrong, odd = run_calls(ToolBox(picky, gone), call("picky", '{"one": {"a": 1}}'), call("gone"))
    assert (wrong.outcome, "nothing pleases" in wrong.content) == ("bad-call", True)
    assert odd.ok

    def day(day: datetime.date, any: Any) -> None: ...

    deep = f'{{"day": "no day", "any": {"[" * 900}1.0{"]" * 900}}}'
    assert run_calls(ToolBox(day), call("day", deep))[0].outcome == "bad-call"


def test_yielded_items_become_a_list() -> None:
    def lines() -> Iterator[str]:
        yield from "ab"

    async def later() -> AsyncIterator[Model]:
        yield Model()
        yield Model(a=2)

    def endless() -> Iterator[int]:
        while True:
            yield 1

    async def endless_later() -> AsyncIterator[int]:
        while True:
            yield 1

    functions = (lines, later, endless, endless_later)
    results = run_calls(ToolBox(*functions), *(call(function.__name__) for function in functions))
    assert [result.content for result in results[:2]] == ['["a","b"]', '[{"a":1},{"a":2}]']
    assert results[0].value == ["a", "b"]
    for result in results[2:]:
        assert (result.outcome, "more than 10,000 items" in result.content) == ("failed", True)


def test_repair_is_reported_as_a_finding() -> None:
    (result,) = run_calls(ToolBox(read, repair="safe"), call("read", '{"path": "a",}'))
    assert (result.ok, [finding.kind for finding in result.findings]) == (True, ["repaired-arguments"])


def test_functions_that_cannot_be_tools_raise() -> None:
    def many(*names: str) -> None: ...

    class Odd: ...

    def odd(a: Odd) -> None: ...

    def path(p: pathlib.Path) -> None: ...

    def models(m: list[Model]) -> None: ...

    for function in (many, odd, path, models):
        with pytest.raises(UsageError, match="cannot be a tool"):
            ToolBox(function)
    with pytest.raises(UsageError, match=r"its param 'p' is Path: JSON has no such type") as raised:
        ToolBox(path)
    assert "box.add(function, tool=Tool(name, schema))" in raised.value.hint
    with pytest.raises(UsageError, match="'<lambda>' is not a valid tool name"):
        ToolBox(lambda: None)
    with pytest.raises(UsageError, match="is not a valid tool name"):
        ToolBox().add(read, name="r" * 65)
    with pytest.raises(UsageError, match="already"):
        ToolBox(read, read)

    async def inside() -> None:
        ToolBox(read).run_sync([])

    with pytest.raises(UsageError, match="loop is already running"):
        asyncio.run(inside())


def schema(function: Callable[..., Any], name: str = "") -> Any:
    box = ToolBox()
    box.add(function, name)
    return box.tools[0].schema["properties"]


def test_schema_has_defaults_and_annotated_metadata() -> None:
    def defaults(a: list[int] = [1, 2], b: float = float("inf"), c: Any = object, d: object = None) -> Any:  # noqa: B006
        return a, b, c, d

    assert schema(defaults) == {
        "a": {"type": "array", "items": {"type": "integer"}, "default": [1, 2]},
        "b": {"type": "number"},
        "c": {},
        "d": {"default": None},
    }
    assert run_calls(ToolBox(defaults), call("defaults"))[0].value == ([1, 2], float("inf"), object, None)

    def said(
        a: Annotated[str, "the path"],
        b: Annotated[int, pydantic.Field(ge=1, description="how many")] = 1,
        c: Annotated[str, msgspec.Meta(description="what")] = "",
    ) -> None:
        """Says.

        Args:
            a: not this
        """

    assert schema(said) == {
        "a": {"type": "string", "description": "the path"},
        "b": {"type": "integer", "description": "how many", "minimum": 1, "default": 1},
        "c": {"type": "string", "description": "what", "default": ""},
    }


class Greeter:
    """Greets."""

    async def __call__(self, name: str) -> str:
        return f"hello {name}"

    def again(self, name: str, times: int) -> str:
        """Greets again."""
        return f"hello {name}" * times


def test_callables_other_than_functions() -> None:
    box = ToolBox(Greeter(), Greeter().again)
    box.add(functools.partial(Greeter().again, times=2), name="twice")
    assert [(tool.name, tool.description) for tool in box.tools] == [
        ("Greeter", "Greets."),
        ("again", "Greets again."),
        ("twice", "Greets again."),
    ]
    results = run_calls(box, call("Greeter", '{"name": "x"}'), call("twice", '{"name": "x"}'))
    assert [result.content for result in results] == ["hello x", "hello xhello x"]

    def within(range: Range) -> None: ...

    assert set(schema(functools.partial(within), name="Range")) == {"range"}  # the tool has the name of a type


def test_explicit_tool_definition() -> None:
    box = ToolBox()
    wanted = {"type": "object", "properties": {"p": {"type": "string"}}, "required": ["p"]}

    @box.add(tool={"name": "size", "description": "Tells.", "inputSchema": wanted})
    def size_of(p: pathlib.Path) -> str:
        return repr(p)

    assert box.tools == [il.Tool("size", wanted, "Tells.")]
    good, bad = run_calls(box, call("size", '{"p": "a"}'), call("size", "{}"))
    assert (good.content, bad.outcome) == ("'a'", "bad-call")
    with pytest.raises(BadInput, match="schema of the tool 'x'"):
        box.add(size_of, tool=il.Tool("x", {"type": "nope"}))
    with pytest.raises(UsageError, match="tool should be a Tool"):
        box.add(size_of, tool="x")  # type: ignore[call-overload]


def test_add_as_a_decorator_returns_the_function() -> None:
    box = ToolBox()

    @box.add
    def one(a: int) -> int:
        return a

    @box.add(name="second", description="Two.")
    def two(a: int) -> int:
        return a + 1

    kept: int = one(1) + two(1)
    assert kept == 3
    assert [(tool.name, tool.description) for tool in box.tools] == [("one", ""), ("second", "Two.")]


@pytest.mark.parametrize(
    ("text", "description", "params"),
    [
        ("Reads.\n\nArgs:\n    a (dict[str, tuple(int)]): where\n\nWarning:\n    Slow.", "Reads.\n\nWarning:\n    Slow.", {"a": "where"}),  # noqa: E501
        ("Reads.\n\nArgs:\n    a: where. Note: x : y\n\nExample:\n    >>> 1\n\nMore.", "Reads.\n\nMore.", {"a": "where. Note: x : y"}),  # noqa: E501
        ("Reads.\n\nArgs:\n    a:\n        where\n        it is\n    **b: what", "Reads.", {"a": "where it is", "b": "what"}),  # noqa: E501
        ("Reads.\n\n:param str a: where,\n    it is\n:type a: str\n:param b: what\n:returns: x\n    y", "Reads.", {"a": "where, it is", "b": "what"}),  # noqa: E501
        ("Reads.\n\n@param a: where", "Reads.", {"a": "where"}),
        ("Notes\nare read here.", "Notes\nare read here.", {}),
        ("Runs.\n\nArguments\nare text.", "Runs.\n\nArguments\nare text.", {}),
        ("Runs.\n\nParameters\n----------\na : int\n    How many.\n\nReturns\n-------\nint", "Runs.", {"a": "How many."}),  # noqa: E501
        ("", "", {}),
    ],
)  # fmt: skip
def test_docstring_styles(text: str, description: str, params: dict[str, str]) -> None:
    assert read_docstring(text) == (description, params)


def test_deeply_nested_arguments_are_a_bad_call() -> None:
    for depth in (400, 900, 5000):
        deep = f'{{"path": {"[" * depth}1.0{"]" * depth}}}'
        (result,) = run_calls(ToolBox(read), call("read", deep))
        assert result.outcome == "bad-call"
    assert json.dumps(result.content)


def test_results_as_messages_of_each_wire() -> None:
    box = ToolBox(read)
    calls = [call("read", '{"path": "a"}', "functions.read:0"), call("read", "", "functions.read:1")]
    reply = Reply(parts=[Text("I look."), *calls])
    results = run_calls(box, *calls)
    chat = box.messages("openai-chat", reply, results)
    assert [message["role"] for message in chat] == ["assistant", "tool", "tool"]
    assert [message["tool_call_id"] for message in chat[1:]] == ["functions.read:0", "functions.read:1"]
    assistant_message, result_message = box.messages("anthropic-messages", reply, results)
    uses = [block["id"] for block in assistant_message["content"] if block["type"] == "tool_use"]
    assert uses == [block["tool_use_id"] for block in result_message["content"]]
    assert [block.get("is_error", False) for block in result_message["content"]] == [False, True]
    items = box.messages("openai-responses", reply, results)
    assert [item["type"] for item in items] == [
        "message",
        "function_call",
        "function_call",
        *["function_call_output"] * 2,
    ]
    assert box.messages("openai-chat", None, results) == chat[1:]
