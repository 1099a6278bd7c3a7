"""Structured tool calls as upstreams send them, mended: entries of `tool_calls` → CallStart, ArgsDelta, CallEnd.

Upstreams leave out or repeat `index`, `id`, `type` and `name`, put several calls on one index, send arguments as an
object, as null, twice, or with more behind them. What an entry belongs to is decided in one place: `_owner`.
"""

from __future__ import annotations

from copy import deepcopy
from typing import Any

from interlingua import events as ev
from interlingua.common.jsontext.arguments import ArgumentsStream
from interlingua.common.jsontext.codec import write_json
from interlingua.core.options import Limits
from interlingua.wires.openai_chat.custom_tools import (
    ARGUMENTS_CLOSER,
    ARGUMENTS_OPENER,
    custom_tool_call,
    input_to_arguments,
)
from interlingua.wires.streaming.text_digest import TextDigest

__all__ = ["ToolCallAssembler"]


class _PendingCall:
    """A call in the making. It has a name once its start has gone out; what came `early` waits for that."""

    def __init__(self, key: int, id: str | None, limits: Limits) -> None:
        self.key = key
        self.id = id
        self.name: str | None = None
        self.args = ArgumentsStream(limits.held)
        self.early_arguments: list[str] = []
        self.ended = False
        self.is_custom = False
        self.early_size = 0
        self.digest = TextDigest()
        self.is_resending = False
        self.reported: set[str] = set()

    def is_repeated_by(self, text: str) -> bool:
        """Whether this begins with all the arguments so far."""
        return self.digest.size > 0 and self.digest.remainder(text) is not None


class ToolCallAssembler:
    """The structured calls of one choice."""

    def __init__(self, limits: Limits) -> None:
        self._limits = limits
        self._calls: list[_PendingCall] = []
        self._by_index: dict[int, _PendingCall] = {}
        self._by_id: dict[str, _PendingCall] = {}
        self._events: list[ev.Event] = []

    def read(self, entries: list[Any]) -> tuple[list[ev.Event], bool]:
        """Entries of one chunk. Also tells whether they say just that, in the form that clients expect."""
        exact = True
        for entry in entries:
            if isinstance(entry, dict):
                exact &= self._read_entry(entry, alone=len(entries) == 1)
            else:
                self._report("bad-chunk", f"an entry of tool_calls is no object: {entry!r:.60}; dropped")
                exact = False
        return self._drain(), exact

    def read_arguments(self, index: int, arguments: str) -> tuple[list[ev.Event], bool] | None:
        """`read` for an entry that has nothing but more of the arguments of a function. None, and nothing has happened,
        if it is not being called, or its name is not known."""
        call = self._by_index.get(index)
        if call is None or call.name is None or call.is_custom:
            return None
        untouched = self._add_arguments(call, arguments)
        return self._drain(), untouched and index == call.key

    def finish(self, truncated: bool = False) -> list[ev.Event]:
        """The upstream has stopped well: the calls that it has not cut are over. `cut`: by a limit or a filter, and the
        last call with it if it has no arguments."""
        for call in self._calls:
            last = truncated and call is self._calls[-1]
            if call.is_custom and call.name is not None and not last:
                self._add_arguments(call, ARGUMENTS_CLOSER)
            if call.name is None:
                text = "".join(call.early_arguments)
                self._report("call-without-name", f"a call without a name (id {call.id!r}): given out as text")
                self._events += [ev.TextDelta(text)] if text else []
            elif not call.ended and not call.args.unfinished and not (last and call.args.empty):
                self._end_call(call)  # one that has begun and not ended is cut, whatever the upstream says
        return self.flush()

    def flush(self) -> list[ev.Event]:
        """No more will come: gives out what is still held. Ending the calls that are open is the guard's."""
        for call in self._calls:
            if call.name is not None and not call.ended and (remainder := call.args.flush()):
                self._events.append(ev.ArgsDelta(call.key, remainder))
        self._calls, self._by_index, self._by_id = [], {}, {}
        return self._drain()

    def _drain(self) -> list[ev.Event]:
        events, self._events = self._events, []
        return events

    def _report(self, finding_kind: str, message: str) -> None:
        self._events.append(ev.Finding(finding_kind, message, f"tool call {len(self._calls)}"))

    def _report_once(self, call: _PendingCall, finding_kind: str, message: str) -> None:
        """A finding, the first time: what an upstream does to one entry of a call, it does to all."""
        if finding_kind not in call.reported:
            call.reported.add(finding_kind)
            self._report(finding_kind, message)

    # ── one entry ─────────────────────────────────────────────────────────────────────────────────────────────────

    def _read_entry(self, entry: dict[str, Any], alone: bool) -> bool:
        """Returns whether the entry may be passed on as it is."""
        custom = custom_tool_call(entry)
        function = _function_object(entry) if custom is None else custom
        id, name = _nonblank(entry.get("id")), _nonblank(function.get("name"))
        call = self._owning_call(entry.get("index"), id, name, function.get("arguments"), alone)
        call.is_custom |= custom is not None
        if name is not None and call.name is None:
            well_formed = self._start_call(call, name, entry, function)
        else:
            well_formed = not any(key in entry for key in ("id", "type")) and "name" not in function
            self._report_repeats(call, id, name)
        if custom is not None:
            return self._add_input(call, custom.get("input")) and well_formed and entry.get("index") == call.key
        arguments = function.get("arguments")
        text = arguments if isinstance(arguments, str) else self._as_text(call, arguments)
        return self._add_arguments(call, text) and text is arguments and well_formed and entry.get("index") == call.key

    def _owning_call(self, index: Any, id: str | None, name: str | None, arguments: Any, alone: bool) -> _PendingCall:
        """The call that an entry belongs to, a new one if it begins one."""
        if not isinstance(index, int):
            placed = self._owning_call_without_index(id, name, alone) or self._add_call(id)
            self._report_once(placed, "no-index", "a tool call without its index: placed by its id or its order")
            return placed
        call = self._by_index.get(index)
        if call is None:
            call = self._by_index[index] = self._add_call(id)
            if index != call.key:
                self._report_once(
                    call, "renumbered", f"a tool call on index {index} where {call.key} comes next: renumbered"
                )
        elif _is_new_call(call, id, name, arguments):
            call = self._by_index[index] = self._add_call(id)
            self._report_once(call, "shared-index", f"another call on index {index}: taken as a call of its own")
        return call

    def _owning_call_without_index(self, id: str | None, name: str | None, alone: bool) -> _PendingCall | None:
        if id is not None:
            return self._by_id.get(id)
        last = self._calls[-1] if self._calls else None
        if last is None or name is None:
            return last
        # The name again: of the last call, unless that one is over or a sibling stands in the same chunk.
        return last if alone and name == last.name and not last.ended else None

    def _add_call(self, id: str | None) -> _PendingCall:
        call = _PendingCall(len(self._calls), id, self._limits)
        self._calls.append(call)
        if id is not None:
            self._by_id.setdefault(id, call)
        return call

    def _start_call(self, call: _PendingCall, name: str, entry: dict[str, Any], function: dict[str, Any]) -> bool:
        """Returns whether the entry begins a call as it should."""
        call.name = name
        call.id = call.id or _nonblank(entry.get("id"))
        if call.id is None:
            self._report_once(call, "no-id", f"a call of {name!r} without an id: it gets one")
        call_type = "custom" if call.is_custom else "function"
        if entry.get("type") != call_type:
            self._report_once(call, "no-type", f"a call of {name!r} without its type: taken as a {call_type}")
        self._events.append(ev.CallStart(call.key, call.id, name, _extra_fields(entry, call_type, function)))
        early_arguments, call.early_arguments = call.early_arguments, []
        if call.is_custom:
            self._add_arguments(call, ARGUMENTS_OPENER)
        for text in early_arguments:
            self._add_arguments(call, text)
        complete = (call.is_custom or "arguments" in function) and call.reported.isdisjoint(("no-id", "no-type"))
        return complete and entry.get("id") == call.id and not early_arguments

    def _report_repeats(self, call: _PendingCall, id: str | None, name: str | None) -> None:
        if call.name is None:
            call.id = call.id or id
        elif id is not None and id == call.id:
            self._report_once(call, "repeated-id", f"the id {id!r} was sent again: dropped")
        elif id is not None:
            self._report_once(
                call, "changed-id", f"the id {id!r} came after the call had begun with {call.id!r}: dropped"
            )
        if name is not None:
            self._report_once(call, "repeated-name", f"the name {name!r} was sent again: dropped")

    # ── arguments ─────────────────────────────────────────────────────────────────────────────────────────────────

    def _as_text(self, call: _PendingCall, arguments: Any) -> str:
        if arguments is None:
            return ""
        self._report_once(call, "arguments-as-value", "arguments sent as a value, not as text: written as text")
        return write_json(arguments)

    def _add_input(self, call: _PendingCall, text: Any) -> bool:
        """The text of a custom tool. Returns whether it goes on just as it is."""
        if text is not None and not isinstance(text, str):
            self._report_once(call, "arguments-as-value", "the text of a custom tool is none: written as text")
            text = write_json(text)
            self._add_arguments(call, input_to_arguments(text))
            return False
        return not text or self._add_arguments(call, input_to_arguments(text))

    def _add_arguments(self, call: _PendingCall, text: str) -> bool:
        """Returns whether the text goes on just as it is."""
        if call.name is None:
            self._buffer_early(call, text)
            return False
        resent = len(text) >= call.digest.size and self._is_resent(call, text)  # nearly all pieces are shorter
        new = text[call.digest.size :] if resent else text
        accepted, excess = ("", new) if call.ended else call.args.feed(new)
        call.digest.add(new[: len(new) - len(excess)] if excess else new)
        if accepted:
            self._events.append(ev.ArgsDelta(call.key, accepted))
        if excess and excess.strip():
            self._report_once(call, "after-arguments", f"{len(excess)} characters after the arguments' end: dropped")
        if call.args.scanner.ended and not call.ended:
            self._end_call(call)
        return accepted == text

    def _is_resent(self, call: _PendingCall, text: str) -> bool:
        """Whether the upstream sends all the arguments so far again, with more behind them.

        Then, and only then, they are no JSON where they stand. Once it did so, it always does.
        """
        cursor = call.args.scanner
        if call.ended or cursor.first_char != "{" or cursor.problem is not None or not call.is_repeated_by(text):
            return False
        if not call.is_resending:
            trial = deepcopy(cursor)
            trial.scan(text, 0)
            call.is_resending = trial.problem is not None
        if call.is_resending:
            self._report_once(
                call, "resent-arguments", "each piece of the arguments holds all those before it: sent once"
            )
        return call.is_resending

    def _buffer_early(self, call: _PendingCall, text: str) -> None:
        call.early_arguments.append(text)
        call.early_size += len(text)
        if call.early_size <= self._limits.held:
            return
        message = f"a call without a name: longer than {self._limits.held:,} characters"
        if self._limits.over == "error":
            self._events.append(ev.Failure(message))
        else:
            self._report("over-limit", f"{message}; given out as text")
            self._events.append(ev.TextDelta("".join(call.early_arguments)))
        call.early_arguments, call.early_size = [], 0

    def _end_call(self, call: _PendingCall) -> None:
        call.ended = True
        if remainder := call.args.end():
            self._events.append(ev.ArgsDelta(call.key, remainder))
        for finding_kind, message in call.args.notes:
            self._report(finding_kind, message)
        self._events.append(ev.CallEnd(call.key))


def _is_new_call(call: _PendingCall, id: str | None, name: str | None, arguments: Any) -> bool:
    """Whether an entry on the index of this call begins another one."""
    if call.name is None:
        return False
    if id is not None and call.id is not None:
        return id != call.id and (name is not None or call.ended)
    if name is None or not call.ended:
        return False
    is_repeat = isinstance(arguments, str) and call.is_repeated_by(arguments) and len(arguments) == call.digest.size
    return not (is_repeat and call.id is not None and name == call.name)


def _nonblank(value: Any) -> str | None:
    return value if isinstance(value, str) and value.strip() else None


def _function_object(entry: dict[str, Any]) -> dict[str, Any]:
    function = entry.get("function")
    return function if isinstance(function, dict) else {}


def _extra_fields(entry: dict[str, Any], call_type: str, body: dict[str, Any]) -> dict[str, Any] | None:
    """What an entry has beside the standard fields. Of a custom tool it says so."""
    extra = {key: value for key, value in entry.items() if key not in ("index", "id", "type", call_type)}
    inner = {
        key: value
        for key, value in body.items()
        if key not in ("name", "input" if call_type == "custom" else "arguments")
    }
    return {**extra, **({call_type: inner} if inner or call_type == "custom" else {})} or None
