"""Tools that a program has, and running what a model calls: at once, with limits, and never with an exception.

box = ToolBox(read_file, search)
request["tools"] = box.offer("openai-chat")
…
results = await box.run(acc.calls)
messages += box.messages("openai-chat", acc.reply(), results)
"""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Callable, Iterable
from typing import Any

import msgspec

from interlingua.call_check import Repair
from interlingua.client.functions import Function
from interlingua.client.history import as_messages, as_tools
from interlingua.client.results import Outcome, ToolResult, as_text
from interlingua.errors import CallError, UsageError, nearest
from interlingua.events import Finding
from interlingua.reply import Call, Reply
from interlingua.tools import Tool
from interlingua.wire.wire import Json

__all__ = ["ToolBox"]

LOG = logging.getLogger("interlingua.client")


class ToolBox:
    """Functions as tools. `timeout` is for each call, in seconds; `parallel` how many run at once; `longest` how many
    characters of a result a model is told."""

    def __init__(
        self,
        *functions: Callable[..., Any],
        timeout: float | None = 60.0,
        parallel: int = 16,
        longest: int = 200_000,
        repair: Repair = "never",
    ) -> None:
        self._functions: dict[str, Function] = {}
        self._timeout = timeout
        self._parallel = parallel
        self._longest = longest
        self._repair: Repair = repair
        for function in functions:
            self.add(function)

    def add(self, function: Callable[..., Any], name: str = "", description: str = "") -> Callable[..., Any]:
        """One more tool. It gives the function back, so that it can stand over it as a decorator."""
        one = Function(function, name, description)
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

        If this is cancelled, all tools are. A function that is not async runs in a thread, and a thread cannot be
        stopped: after its timeout it goes on, but nobody waits for it.
        """
        free = asyncio.Semaphore(self._parallel)
        async with asyncio.TaskGroup() as group:
            tasks = [group.create_task(self._run(call, free)) for call in calls]
        return [task.result() for task in tasks]

    async def _run(self, call: Call, free: asyncio.Semaphore) -> ToolResult:
        findings: list[Finding] = []
        try:
            function = self._function(call.name)
            arguments = call.parse(function.tool, repair=self._repair, findings=findings)
            typed = _typed(function, arguments)
        except CallError as error:
            outcome: Outcome = "unknown-tool" if error.kind == "unknown-tool" else "bad-call"
            return ToolResult(call=call, outcome=outcome, content=str(error), error=error)
        async with free:
            began = time.perf_counter()
            outcome, content, value, raised = await self._outcome(function, typed)
        return ToolResult(
            call=call,
            outcome=outcome,
            content=content,
            seconds=time.perf_counter() - began,
            value=value,
            error=raised,
            findings=findings,
        )

    def _function(self, name: str) -> Function:
        if name not in self._functions:
            problem = f"there is no tool {name!r}; {nearest(name, list(self._functions))}"
            raise CallError(name, "unknown-tool", [problem])
        return self._functions[name]

    async def _outcome(
        self, function: Function, arguments: dict[str, Any]
    ) -> tuple[Outcome, str, Any, BaseException | None]:
        """How it went, what the model is told, what was returned, and what was raised."""
        try:
            async with asyncio.timeout(self._timeout) as limit:
                value = await _call(function, arguments)
            return "ok", as_text(value, self._longest), value, None
        except TimeoutError as error:
            if limit.expired():
                return (
                    "timeout",
                    f"The tool {function.name!r} took more than {self._timeout:g} s: given up.",
                    None,
                    error,
                )
            return self._failed(function, error)
        except asyncio.CancelledError as error:
            task = asyncio.current_task()
            if task is not None and task.cancelling():
                raise
            return "cancelled", f"The tool {function.name!r} was cancelled.", None, error
        except (Exception, SystemExit) as error:  # noqa: BLE001  whatever a tool raises is its result
            return self._failed(function, error)

    def _failed(self, function: Function, error: BaseException) -> tuple[Outcome, str, Any, BaseException | None]:
        """What it raised is named. Where, is for the log: a model has no use for it, and it may tell too much."""
        LOG.error("the tool %r failed", function.name, exc_info=error)
        message = as_text(f"{type(error).__name__}: {error}".rstrip(": "), self._longest)
        return "failed", f"The tool {function.name!r} failed. {message}", None, error


async def _call(function: Function, arguments: dict[str, Any]) -> Any:
    if function.is_async:
        return await function.run(**arguments)
    value = await asyncio.to_thread(_without_exit, function.run, arguments)
    return await value if asyncio.iscoroutine(value) else value


def _without_exit(run: Callable[..., Any], arguments: dict[str, Any]) -> Any:
    """A tool that ends the program has failed, and the program goes on."""
    try:
        return run(**arguments)
    except SystemExit as error:
        raise RuntimeError(f"it tried to end the program (SystemExit: {error})") from error
    except StopIteration as error:  # no future can hold it
        raise RuntimeError("it raised StopIteration") from error


def _typed(function: Function, arguments: dict[str, Any]) -> dict[str, Any]:
    try:
        return function.typed(arguments)
    except msgspec.ValidationError as error:
        raise CallError(function.name, "misfit", [f"the arguments do not fit: {error}"]) from None
