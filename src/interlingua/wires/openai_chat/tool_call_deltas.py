"""Assembler for structured tool calls: entries of `tool_calls` → CallStart, ArgsDelta, CallEnd.

It repairs what upstreams get wrong. They leave out or repeat `index`, `id`, `type` and `name`, put several calls on
one index, and send arguments as an object, as null, twice, or with more text after them. One function decides which
call an entry belongs to: `_owning_call`.
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
    """Call in progress. `name` is set when its CallStart is sent; `early_arguments` are buffered until then."""

    def __init__(self, key: int, id: str | None, limits: Limits) -> None:
        self.key = key
        self.id = id
        self.name: str | None = None
        self.args = ArgumentsStream(limits.held, limits.blanks)
        self.early_arguments: list[str] = []
        self.ended = False
        self.is_custom = False
        self.early_size = 0
        self.digest = TextDigest()
        self.is_resending = False
        self.reported: set[str] = set()

    def is_repeated_by(self, text: str) -> bool:
        """Return whether the text begins with all the arguments so far."""
        return self.digest.size > 0 and self.digest.remainder(text) is not None


class ToolCallAssembler:
    """Assembler for the structured calls of one choice."""

    def __init__(self, limits: Limits) -> None:
        self._limits = limits
        self._calls: list[_PendingCall] = []
        self._by_index: dict[int, _PendingCall] = {}
        self._by_id: dict[str, _PendingCall] = {}
        self._events: list[ev.Event] = []

    def read(self, entries: list[Any]) -> tuple[list[ev.Event], bool]:
        """Read the entries of one chunk. Returns: the events, and whether the entries are written as clients expect."""
        exact = True
        for entry in entries:
            if isinstance(entry, dict):
                exact &= self._read_entry(entry, alone=len(entries) == 1)
            else:
                self._report("bad-chunk", f"an entry of tool_calls is not an object: {entry!r:.60}; dropped")
                exact = False
        return self._drain(), exact

    def read_arguments(self, index: int, arguments: str) -> tuple[list[ev.Event], bool] | None:
        """Fast path of `read` for one entry that only continues the arguments of a function.

        Returns: as `read`; None if there is no call on this index, its name is not known yet, or it is a custom tool.
        In that case the state is unchanged.
        """
        call = self._by_index.get(index)
        if call is None or call.name is None or call.is_custom:
            return None
        untouched = self._add_arguments(call, arguments)
        return self._drain(), untouched and index == call.key

    def finish(self, truncated: bool = False) -> list[ev.Event]:
        """End all calls that are complete, after the upstream sent its finish_reason.

        `truncated`: a limit or filter cut the reply. Then the last call counts as cut too if it has no arguments.
        """
        for call in self._calls:
            last = truncated and call is self._calls[-1]
            if call.is_custom and call.name is not None and not last:
                self._add_arguments(call, ARGUMENTS_CLOSER)
            if call.name is None:
                text = "".join(call.early_arguments)
                self._report(
                    "call-without-name", f"a call without a name (id {call.id!r}): its arguments are sent as text"
                )
                self._events += [ev.TextDelta(text)] if text else []
            elif not call.ended and not call.args.unfinished and not (last and call.args.empty):
                self._end_call(call)  # unfinished arguments: the call is truncated, whatever the finish_reason
        return self.flush()

    def flush(self) -> list[ev.Event]:
        """Return what is still buffered, at the end of the stream. The guard ends the calls that are still open."""
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
        """Report a finding once per call: an upstream makes the same mistake in every entry of a call."""
        if finding_kind not in call.reported:
            call.reported.add(finding_kind)
            self._report(finding_kind, message)

    # ── one entry ─────────────────────────────────────────────────────────────────────────────────────────────────

    def _read_entry(self, entry: dict[str, Any], alone: bool) -> bool:
        """Read one entry. Returns: whether it may be forwarded unchanged."""
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
        """Return the call that an entry belongs to; a new call if the entry starts one.

        `alone`: the chunk has no other entry.
        """
        if not isinstance(index, int):
            placed = self._owning_call_without_index(id, name, alone) or self._add_call(id)
            self._report_once(placed, "no-index", "a tool call without an index: matched by its id or order")
            return placed
        call = self._by_index.get(index)
        if call is None:
            call = self._by_index[index] = self._add_call(id)
            if index != call.key:
                self._report_once(
                    call, "renumbered", f"a tool call has index {index} instead of {call.key}: renumbered"
                )
        elif _is_new_call(call, id, name, arguments):
            call = self._by_index[index] = self._add_call(id)
            self._report_once(call, "shared-index", f"another call uses index {index}: read as a separate call")
        return call

    def _owning_call_without_index(self, id: str | None, name: str | None, alone: bool) -> _PendingCall | None:
        if id is not None:
            return self._by_id.get(id)
        last = self._calls[-1] if self._calls else None
        if last is None or name is None:
            return last
        # A repeated name belongs to the last call, unless that call has ended or the chunk has other entries.
        return last if alone and name == last.name and not last.ended else None

    def _add_call(self, id: str | None) -> _PendingCall:
        call = _PendingCall(len(self._calls), id, self._limits)
        self._calls.append(call)
        if id is not None:
            self._by_id.setdefault(id, call)
        return call

    def _start_call(self, call: _PendingCall, name: str, entry: dict[str, Any], function: dict[str, Any]) -> bool:
        """Start the call. Returns: whether the entry is a well-formed start."""
        call.name = name
        call.id = call.id or _nonblank(entry.get("id"))
        if call.id is None:
            self._report_once(call, "no-id", f"a call of {name!r} without an id: one is created")
        call_type = "custom" if call.is_custom else "function"
        if entry.get("type") != call_type:
            self._report_once(call, "no-type", f"a call of {name!r} without a type: read as a {call_type} call")
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
            self._report_once(call, "repeated-id", f"the id {id!r} is repeated: dropped")
        elif id is not None:
            self._report_once(
                call, "changed-id", f"a second id {id!r} in the call that started with {call.id!r}: dropped"
            )
        if name is not None:
            self._report_once(call, "repeated-name", f"the name {name!r} is repeated: dropped")

    # ── arguments ─────────────────────────────────────────────────────────────────────────────────────────────────

    def _as_text(self, call: _PendingCall, arguments: Any) -> str:
        if arguments is None:
            return ""
        self._report_once(
            call, "arguments-as-value", "the arguments are a JSON value, not a string: converted to a string"
        )
        return write_json(arguments)

    def _add_input(self, call: _PendingCall, text: Any) -> bool:
        """Add input text of a custom tool. Returns: whether it is forwarded unchanged."""
        if text is not None and not isinstance(text, str):
            self._report_once(
                call,
                "arguments-as-value",
                "the input of a custom tool is a JSON value, not a string: converted to a string",
            )
            text = write_json(text)
            self._add_arguments(call, input_to_arguments(text))
            return False
        return not text or self._add_arguments(call, input_to_arguments(text))

    def _add_arguments(self, call: _PendingCall, text: str) -> bool:
        """Add text to the arguments. Returns: whether it is forwarded unchanged."""
        if call.name is None:
            self._buffer_early(call, text)
            return False
        resent = len(text) >= call.digest.size and self._is_resent(
            call, text
        )  # size first: nearly all pieces are shorter
        new = text[call.digest.size :] if resent else text
        accepted, excess = ("", new) if call.ended else call.args.feed(new)
        call.digest.add(new[: len(new) - len(excess)] if excess else new)
        if accepted or call.args.runaway:
            self._events.append(ev.ArgsDelta(call.key, accepted, call.args.runaway))
        if excess and excess.strip():
            self._report_once(
                call, "after-arguments", f"{len(excess)} characters after the end of the arguments: dropped"
            )
        if call.args.scanner.ended and not call.ended:
            self._end_call(call)
        return accepted == text

    def _is_resent(self, call: _PendingCall, text: str) -> bool:
        """Return whether the upstream resends all the arguments so far with more text after them.

        That is the case if the text repeats them and is not valid JSON as a continuation. After the first resend
        no further check is needed: such an upstream resends every time.
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
                call, "resent-arguments", "each delta of the arguments repeats the earlier ones: sent once"
            )
        return call.is_resending

    def _buffer_early(self, call: _PendingCall, text: str) -> None:
        call.early_arguments.append(text)
        call.early_size += len(text)
        if call.early_size <= self._limits.held:
            return
        message = f"a call without a name is longer than {self._limits.held:,} characters"
        if self._limits.over == "error":
            self._events.append(ev.Failure(message))
        else:
            self._report("over-limit", f"{message}: its arguments are sent as text")
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
    """Return whether an entry on the index of this call starts another call."""
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
    """Return the non-standard fields of an entry; for a custom tool always with the key `custom`. None if empty."""
    extra = {key: value for key, value in entry.items() if key not in ("index", "id", "type", call_type)}
    inner = {
        key: value
        for key, value in body.items()
        if key not in ("name", "input" if call_type == "custom" else "arguments")
    }
    return {**extra, **({call_type: inner} if inner or call_type == "custom" else {})} or None
