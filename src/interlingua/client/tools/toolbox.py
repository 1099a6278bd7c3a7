"""Tools that a program has, and running what a model calls: at once, with limits, and never with an exception.

box = ToolBox(read_file, search)
request["tools"] = box.offer("openai-chat")
…
results = await box.run(acc.calls)
messages += box.messages("openai-chat", acc.reply(), results)
"""

from __future__ import annotations

import asyncio
import contextlib
import contextvars
import inspect
import itertools
import logging
import threading
import time
from collections.abc import AsyncGenerator, Callable, Iterable, Mapping
from typing import Any, TypeAlias, TypeVar, overload

from interlingua.client.tools.function_tool import FunctionTool
from interlingua.client.tools.messages import as_messages, as_tools
from interlingua.client.tools.tool_result import Outcome, ToolResult, safe_str, value_to_text
from interlingua.core.call_arguments import RepairPolicy, check_repair_policy
from interlingua.core.reply import Call, Reply
from interlingua.core.tools import Tool
from interlingua.errors import CallError, UsageError, expect_type, suggestion_hint
from interlingua.events import Finding
from interlingua.wires.base import Json

__all__ = ["ToolBox"]

LOG = logging.getLogger("interlingua.client")
MAX_GENERATOR_ITEMS = 10_000
"""So many may a generator yield: a result is no stream."""
F = TypeVar("F", bound=Callable[..., Any])
RunResult: TypeAlias = tuple[Any, BaseException | None]
"""What a tool returned, or what it raised."""


class ToolBox:
    """Functions as tools. `timeout` is for each call, in seconds; `parallel` how many run at once; `longest` how many
    characters of a result a model is told."""

    def __init__(
        self,
        *functions: Callable[..., Any],
        timeout: float | None = 60.0,
        parallel: int = 16,
        longest: int = 200_000,
        repair: RepairPolicy = "never",
    ) -> None:
        if timeout is not None and not timeout > 0:
            raise UsageError(f"timeout should be more than 0 s, not {timeout}", "None is to wait for ever")
        for name, number in (("parallel", parallel), ("longest", longest)):
            if number < 1:
                raise UsageError(f"{name} should be 1 or more, not {number}")
        check_repair_policy(repair)
        self._functions: dict[str, FunctionTool] = {}
        self._timeout = timeout
        self._parallel = parallel
        self._max_result_chars = longest
        self._repair: RepairPolicy = repair
        for function in functions:
            self.add(function)

    @overload
    def add(
        self, function: F, name: str = "", description: str = "", tool: Tool | Mapping[str, Any] | None = None
    ) -> F: ...

    @overload
    def add(
        self, *, name: str = "", description: str = "", tool: Tool | Mapping[str, Any] | None = None
    ) -> Callable[[F], F]: ...

    def add(
        self,
        function: F | None = None,
        name: str = "",
        description: str = "",
        tool: Tool | Mapping[str, Any] | None = None,
    ) -> F | Callable[[F], F]:
        """One more tool. It gives the function back, so that it can stand over it as a decorator: `@box.add`, or
        `@box.add(name="read")`.

        With a `tool`, its schema is what a model is told and what calls have to fit, and the function gets the
        arguments as they are.
        """
        if function is None:
            return lambda later: self.add(later, name, description, tool)
        one = FunctionTool(function, name, description, tool)
        if one.name in self._functions:
            raise UsageError(f"there is a tool {one.name!r} already", "give it another name: box.add(function, name=…)")
        self._functions[one.name] = one
        return function

    @property
    def tools(self) -> list[Tool]:
        return [function.tool for function in self._functions.values()]

    def offer(self, wire: str) -> list[Json]:
        """The tools as a request of this wire has them."""
        return as_tools(wire, self.tools)

    def messages(self, wire: str, reply: Reply | None, results: Iterable[ToolResult] = ()) -> list[Json]:
        """What the conversation goes on with: the reply, and the results of its calls."""
        return as_messages(wire, reply, results)

    def run_sync(self, calls: Iterable[Call]) -> list[ToolResult]:
        """`run`, for programs without a loop."""
        try:
            asyncio.get_running_loop()
        except RuntimeError:
            return asyncio.run(self.run(calls))
        raise UsageError("a loop is running already", "write `await box.run(calls)`")

    async def run(self, calls: Iterable[Call]) -> list[ToolResult]:
        """The result of each call, in their order. Whatever goes wrong is a result too, in words for the model.

        If this is cancelled, all tools are. A function that is not async runs in a thread of its own, and a thread
        cannot be stopped: after its timeout it goes on, but nobody waits for it, and it does not keep the program.
        """
        calls = _require_calls(calls)
        slots = asyncio.Semaphore(self._parallel)
        async with asyncio.TaskGroup() as group:
            tasks = [group.create_task(self._run(call, slots)) for call in calls]
        return [task.result() for task in tasks]

    async def _run(self, call: Call, slots: asyncio.Semaphore) -> ToolResult:
        findings: list[Finding] = []
        try:
            function = self._get_function(call.name)
            arguments = call.parse(function.tool, repair=self._repair, findings=findings)
            converted = _convert_arguments(function, arguments)
        except CallError as error:
            outcome: Outcome = "unknown-tool" if error.kind == "unknown-tool" else "bad-call"
            return ToolResult(
                call=call, outcome=outcome, content=value_to_text(str(error), self._max_result_chars), error=error
            )
        async with slots:
            start_time = time.perf_counter()
            outcome, content, value, raised = await self._execute(function, converted)
        return ToolResult(
            call=call,
            outcome=outcome,
            content=content,
            seconds=time.perf_counter() - start_time,
            value=value,
            error=raised,
            findings=findings,
        )

    def _get_function(self, name: str) -> FunctionTool:
        if name not in self._functions:
            suggestion = suggestion_hint(name, self._functions) if self._functions else "no tools are offered"
            problem = f"there is no tool {name!r}; {suggestion}"
            raise CallError(name, "unknown-tool", [problem])
        return self._functions[name]

    async def _execute(
        self, function: FunctionTool, arguments: dict[str, Any]
    ) -> tuple[Outcome, str, Any, BaseException | None]:
        """How it went, what the model is told, what was returned, and what was raised."""
        try:
            async with asyncio.timeout(self._timeout) as deadline:
                value, raised = await _run_tool(function, arguments)
        except TimeoutError as error:
            value, raised = None, error
        if raised is None:
            return "ok", value_to_text(value, self._max_result_chars), value, None
        if deadline.expired():
            return "timeout", f"The tool {function.name!r} took more than {self._timeout:g} s: given up.", None, raised
        if isinstance(raised, asyncio.CancelledError):
            return "cancelled", f"The tool {function.name!r} was cancelled.", None, raised
        return "failed", self._failure_text(function, raised), None, raised

    def _failure_text(self, function: FunctionTool, error: BaseException) -> str:
        """What it raised is named. Where, is for the log: a model has no use for it, and it may tell too much."""
        LOG.error("the tool %r failed", function.name, exc_info=error)
        message = value_to_text(f"{type(error).__name__}: {safe_str(error)}".rstrip(": "), self._max_result_chars)
        return f"The tool {function.name!r} failed. {message}"


def _require_calls(calls: Iterable[Call]) -> list[Call]:
    """Raises UsageError if they are no calls: a program's fault is no result."""
    message, hint = "run() takes a list of calls", "give acc.calls or reply.calls"
    expect_type(calls, Iterable, message, hint)
    checked = list(calls)
    for call in checked:
        expect_type(call, Call, message, hint)
    return checked


# ── running one ───────────────────────────────────────────────────────────────────────────────────────────────────────


async def _run_tool(function: FunctionTool, arguments: dict[str, Any]) -> RunResult:
    """Whatever a tool raises is told. Only who cancels us, or ends the program, is let through."""
    try:
        if function.is_async:
            value = await function.run(**arguments)
        else:
            value, raised = await _run_in_thread(function, arguments)
            if raised is not None:
                return None, raised
        value = await value if inspect.isawaitable(value) else value
        return (await _collect_items(value) if inspect.isasyncgen(value) else value), None
    except asyncio.CancelledError as error:
        task = asyncio.current_task()
        if task is not None and task.cancelling():
            raise
        return None, error
    except KeyboardInterrupt:
        raise
    except BaseException as error:  # noqa: BLE001  whatever a tool raises is its result
        return None, error


async def _run_in_thread(function: FunctionTool, arguments: dict[str, Any]) -> RunResult:
    """In a thread of its own: a pool would be used up by tools that never return, and be waited for at the end."""
    loop = asyncio.get_running_loop()
    future: asyncio.Future[RunResult] = loop.create_future()
    context = contextvars.copy_context()

    def set_result(result: RunResult) -> None:
        if not future.done():  # nobody has given it up
            future.set_result(result)

    def run_function() -> None:
        try:
            result: RunResult = context.run(_call_function, function.run, arguments), None
        except BaseException as error:  # noqa: BLE001  whatever a tool raises is its result
            result = None, error
        with contextlib.suppress(RuntimeError):  # the loop has ended
            loop.call_soon_threadsafe(set_result, result)

    threading.Thread(target=run_function, name=f"tool {function.name}", daemon=True).start()
    return await future


def _call_function(run: Callable[..., Any], arguments: dict[str, Any]) -> Any:
    value = run(**arguments)
    if not inspect.isgenerator(value):
        return value
    return _check_item_count(list(itertools.islice(value, MAX_GENERATOR_ITEMS + 1)))


async def _collect_items(generator: AsyncGenerator[Any, Any]) -> list[Any]:
    items: list[Any] = []
    async with contextlib.aclosing(generator):
        async for item in generator:
            items.append(item)
            _check_item_count(items)
    return items


def _check_item_count(items: list[Any]) -> list[Any]:
    if len(items) > MAX_GENERATOR_ITEMS:
        raise ValueError(f"it yields more than {MAX_GENERATOR_ITEMS:,} items")
    return items


def _convert_arguments(function: FunctionTool, arguments: dict[str, Any]) -> dict[str, Any]:
    try:
        return function.convert_arguments(arguments)
    except Exception as error:  # its types are its own, and raise what they like
        raise CallError(function.name, "misfit", [f"the arguments do not fit: {safe_str(error)}"]) from error
