"""Tool box: offers Python functions to a model and runs its calls concurrently, with limits and without exceptions.

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
from interlingua.core.wire_traits import WireLike
from interlingua.errors import CallError, UsageError, expect_type, suggestion_hint
from interlingua.events import Finding
from interlingua.wires.base import Json

__all__ = ["ToolBox"]

LOG = logging.getLogger("interlingua.client")
MAX_GENERATOR_ITEMS = 10_000
"""Maximum number of items that a generator may yield: a tool result is not a stream."""
F = TypeVar("F", bound=Callable[..., Any])
RunResult: TypeAlias = tuple[Any, BaseException | None]
"""Return value of a tool, and the exception that it raised."""


class ToolBox:
    """Collection of functions that a model may call.

    Args:
        functions: Functions with type hints. See `add` for other tools.
        timeout: Limit for each call, in seconds; None for no limit.
        parallel: Maximum number of calls that run at the same time.
        longest: Maximum number of characters of a result; a longer result loses its middle.
        repair: Policy for malformed arguments.
    """

    def __init__(
        self,
        *functions: Callable[..., Any],
        timeout: float | None = 60.0,
        parallel: int = 16,
        longest: int = 200_000,
        repair: RepairPolicy = "never",
    ) -> None:
        if timeout is not None and not timeout > 0:
            raise UsageError(f"timeout should be more than 0 s, not {timeout}", "use None for no limit")
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
        """Add a tool and return the function, so that it works as a decorator: `@box.add` or `@box.add(name="read")`.

        Args:
            function: Function to call.
            name: Name of the tool; default is the name of the function.
            description: Description for the model; default is the docstring of the function.
            tool: Tool definition. The model gets its schema, and calls are validated against it. The function then
                gets the arguments unconverted.
        """
        if function is None:
            return lambda decorated: self.add(decorated, name, description, tool)
        function_tool = FunctionTool(function, name, description, tool)
        if function_tool.name in self._functions:
            raise UsageError(
                f"the tool {function_tool.name!r} exists already", "pass another name: box.add(function, name=…)"
            )
        self._functions[function_tool.name] = function_tool
        return function

    @property
    def tools(self) -> list[Tool]:
        return [function.tool for function in self._functions.values()]

    def offer(self, wire: WireLike) -> list[Json]:
        """Return the tools in the request format of this wire."""
        return as_tools(wire, self.tools)

    def messages(self, wire: WireLike, reply: Reply | None, results: Iterable[ToolResult] = ()) -> list[Json]:
        """Return the messages that continue the conversation: the reply and the results of its calls."""
        return as_messages(wire, reply, results)

    def run_sync(self, calls: Iterable[Call]) -> list[ToolResult]:
        """Run the calls from code without an event loop. See `run`."""
        try:
            asyncio.get_running_loop()
        except RuntimeError:
            return asyncio.run(self.run(calls))
        raise UsageError("an event loop is already running", "use `await box.run(calls)`")

    async def run(self, calls: Iterable[Call]) -> list[ToolResult]:
        """Run the calls and return their results in order. An error is also a result, with a text for the model.

        Cancelling this coroutine cancels all tools. A function that is not async runs in its own thread, and a thread
        cannot be stopped: after a timeout it continues in the background. It does not keep the program alive.
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
        """Return the outcome, the text for the model, the return value and the raised exception."""
        try:
            async with asyncio.timeout(self._timeout) as deadline:
                value, raised = await _run_tool(function, arguments)
        except TimeoutError as error:
            value, raised = None, error
        if raised is None:
            return "ok", value_to_text(value, self._max_result_chars), value, None
        if deadline.expired():
            return "timeout", f"The tool {function.name!r} took more than {self._timeout:g} s: timed out.", None, raised
        if isinstance(raised, asyncio.CancelledError):
            return "cancelled", f"The tool {function.name!r} was cancelled.", None, raised
        return "failed", self._failure_text(function, raised), None, raised

    def _failure_text(self, function: FunctionTool, error: BaseException) -> str:
        """Return type and message of the exception. The traceback goes to the log only: it may expose internals."""
        LOG.error("the tool %r failed", function.name, exc_info=error)
        message = value_to_text(f"{type(error).__name__}: {safe_str(error)}".rstrip(": "), self._max_result_chars)
        return f"The tool {function.name!r} failed. {message}"


def _require_calls(calls: Iterable[Call]) -> list[Call]:
    """Return the calls as a list. Raises UsageError for anything else, because that is a bug of the program."""
    message, hint = "run() expects a list of calls", "pass acc.calls or reply.calls"
    expect_type(calls, Iterable, message, hint)
    checked = list(calls)
    for call in checked:
        expect_type(call, Call, message, hint)
    return checked


# ── running one call ──────────────────────────────────────────────────────────────────────────────────────────────────


async def _run_tool(function: FunctionTool, arguments: dict[str, Any]) -> RunResult:
    """Run a tool and return its value or its exception. Only our own cancellation and KeyboardInterrupt propagate."""
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
    except BaseException as error:  # noqa: BLE001  any exception of a tool is its result
        return None, error


async def _run_in_thread(function: FunctionTool, arguments: dict[str, Any]) -> RunResult:
    """Run a function in its own thread.

    A thread pool would be exhausted by tools that never return, and joined when the program exits.
    """
    loop = asyncio.get_running_loop()
    future: asyncio.Future[RunResult] = loop.create_future()
    context = contextvars.copy_context()

    def set_result(result: RunResult) -> None:
        if not future.done():  # the call may have timed out
            future.set_result(result)

    def run_function() -> None:
        try:
            result: RunResult = context.run(_call_function, function.run, arguments), None
        except BaseException as error:  # noqa: BLE001  any exception of a tool is its result
            result = None, error
        with contextlib.suppress(RuntimeError):  # the event loop is closed
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
    except Exception as error:  # the function's own types may raise any exception
        raise CallError(function.name, "misfit", [f"the arguments do not fit: {safe_str(error)}"]) from error
