"""Assembler for structured tool calls: entries of `tool_calls` → CallStart, ArgsDelta, CallEnd.

It repairs what upstreams get wrong. They leave out or repeat `index`, `id`, `type` and `name`, put several calls on
one index, and send arguments as an object, as null, twice, or with more text after them. One function decides which
call an entry belongs to: `_owning_call`. If several calls may own the arguments of an entry, none of them gets
them, and no call without arguments is complete: better no call than one with the arguments of another.
"""

from __future__ import annotations

from copy import deepcopy
from typing import Any

from interlingua import events as ev
from interlingua.common.jsontext.arguments import ArgumentsStream
from interlingua.common.jsontext.codec import write_json
from interlingua.core.options import ArgumentsPolicy, Limits
from interlingua.core.text_forwarder import TextForwarder
from interlingua.wires.openai_chat.custom_tools import (
    ARGUMENTS_CLOSER,
    ARGUMENTS_OPENER,
    custom_tool_call,
    input_to_arguments,
)
from interlingua.wires.streaming.text_digest import TextDigest

__all__ = ["ToolCallAssembler"]

MAX_INDEX_DIGITS = 10


class _PendingCall:
    """Call in progress. `name` is set when its CallStart is sent; `early_arguments` are buffered until then."""

    def __init__(self, key: int, id: str | None, index: int | None, limits: Limits, repairs: bool) -> None:
        self.key = key
        self.id = id
        self.index = index  # the upstream's index; None while it has sent none
        self.name: str | None = None
        self.args = ArgumentsStream(limits.held, limits.blanks, repairs=repairs)
        self.early_arguments: list[str] = []
        self.has_arguments = False
        self.may_lack_beginning = False
        self.ended = False
        self.is_custom = False
        self.early_size = 0
        self.digest = TextDigest()
        self.is_resending = False
        self.reported_kinds: set[str] = set()

    def is_repeated_by(self, text: str) -> bool:
        """Return whether the text begins with all the arguments so far."""
        return self.digest.size > 0 and self.digest.remainder(text) is not None

    @property
    def may_lack_arguments(self) -> bool:
        """True if dropped arguments may be a part of this call."""
        return self.is_custom or self.may_lack_beginning or not self.args.scanner.first_char


class ToolCallAssembler:
    """Assembler for the structured calls of one choice."""

    __slots__ = (
        "_by_id",
        "_by_index",
        "_calls",
        "_calls_at_drop",
        "_custom_by_index",
        "_events",
        "_has_dropped_arguments",
        "_index_base",
        "_limits",
        "_open",
        "_receiving",
        "_repairs",
        "_unmatched",
        "_unmatched_size",
        "_without_id",
        "_without_index",
        "_without_name",
        "call_count",
    )

    def __init__(self, limits: Limits, arguments: ArgumentsPolicy = "repair") -> None:
        self._limits = limits
        self._repairs = arguments == "repair"
        self._calls: list[_PendingCall] = []
        self.call_count = 0
        """Number of calls so far."""
        self._by_index: dict[int, _PendingCall] = {}
        self._custom_by_index: dict[int, _PendingCall] = {}  # some upstreams count each kind of call from 0
        self._index_base: int | None = None  # 0 or 1 once it is known, for arguments of calls without an index
        self._without_index: tuple[dict[int, _PendingCall], ...] = ({}, {})
        """Open calls that started without an index, by key: of functions, and of custom tools."""
        self._without_id: dict[int, _PendingCall] = {}
        """Open calls that started without an id, by key."""
        self._without_name: dict[int, _PendingCall] = {}
        self._open: tuple[dict[int, _PendingCall], ...] = ({}, {})
        """Calls that more arguments may belong to, by key: of functions, and of custom tools."""
        self._receiving: _PendingCall | None = None
        """The call that received arguments last; None if another call has started since."""
        self._has_dropped_arguments = False
        self._calls_at_drop = 0  # number of calls when arguments without an index were dropped
        self._unmatched: dict[tuple[bool, int], list[Any]] = {}
        """Arguments on an index that may belong to several open calls, by kind of tool and index."""
        self._unmatched_size = 0
        self._by_id: dict[str, _PendingCall] = {}
        self._events: list[ev.Event] = []

    def read(self, entries: list[Any]) -> tuple[list[ev.Event], bool]:
        """Read the entries of one chunk. Returns: the events, and whether the entries are written as clients expect."""
        exact = True
        owners = self._calls_by_position(entries)
        for entry, owner in zip(entries, owners, strict=True):
            if isinstance(entry, dict):
                exact &= self._read_entry(entry, owner, is_only_entry=len(entries) == 1)
                if self.call_count > self._limits.calls:  # the reader reports it
                    break
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
        if call is None or call.name is None or call.is_custom or (call.ended and self._without_index[False]):
            return None
        self._note_receiver(call, arguments)
        untouched = self._add_arguments(call, arguments)
        return self._drain(), untouched and index == call.key

    def arguments_forwarder(self, index: int) -> TextForwarder | None:
        """Return a function for more arguments that `read_arguments` would return unchanged. It is valid until anything
        else is read.

        None if the call did not receive the last arguments.
        """
        call = self._by_index.get(index)
        if call is None or call is not self._receiving or call.name is None or call.is_custom or call.ended:
            return None
        skip_string_texts, digest = call.args.scanner.skip_string_texts, call.digest

        def forward_arguments(texts: list[str], joined: str) -> int:
            if len(joined) >= digest.size and max(map(len, texts)) >= digest.size:  # it may repeat all arguments so far
                return 0
            count = skip_string_texts(texts, joined)
            digest.add(joined if count == len(texts) else "".join(texts[:count]))
            return count

        return forward_arguments

    def finish(self, truncated: bool = False) -> list[ev.Event]:
        """End all calls that are complete, after the upstream sent its finish_reason.

        `truncated`: a limit or filter cut the reply. Then the last call counts as cut too if it has no arguments.
        """
        self._place_unmatched_at_end()
        self._has_dropped_arguments |= any(call.has_arguments for call in self._without_name.values())
        for call in self._calls:
            is_cut = truncated and call is self._calls[-1] and (call.is_custom or call.args.empty)
            is_cut |= self._has_dropped_arguments and call.may_lack_arguments
            if call.is_custom and call.name is not None and not is_cut:
                self._add_arguments(call, ARGUMENTS_CLOSER)
            if call.name is None:
                text = "".join(call.early_arguments)
                self._report(
                    "call-without-name", f"a call without a name (id {call.id!r}): its arguments are sent as text"
                )
                self._events += [ev.TextDelta(text)] if text else []
            elif not call.ended and not call.args.unfinished and not is_cut:
                self._end_call(call)  # unfinished arguments: the call is truncated, whatever the finish_reason
        return self.flush()

    def flush(self) -> list[ev.Event]:
        """Return what is still buffered, at the end of the stream. The guard ends the calls that are still open."""
        for call in self._calls:
            if call.name is not None and not call.ended:
                if remainder := call.args.flush():
                    self._events.append(ev.ArgsDelta(call.key, remainder))
                self._report_notes(call)
        self._calls, self._by_index, self._custom_by_index, self._by_id = [], {}, {}, {}
        self._index_base, self._unmatched, self._unmatched_size = None, {}, 0
        self._without_index, self._open, self._without_id, self._without_name = ({}, {}), ({}, {}), {}, {}
        self._receiving, self._has_dropped_arguments, self._calls_at_drop = None, False, 0
        return self._drain()

    def _drain(self) -> list[ev.Event]:
        events, self._events = self._events, []
        return events

    def _report(self, finding_kind: str, message: str) -> None:
        self._events.append(ev.Finding(finding_kind, message, f"tool call {len(self._calls)}"))

    def _report_once(self, call: _PendingCall, finding_kind: str, message: str) -> None:
        """Report a finding once per call: an upstream makes the same mistake in every entry of a call."""
        if finding_kind not in call.reported_kinds:
            call.reported_kinds.add(finding_kind)
            self._report(finding_kind, message)

    # ── one entry ─────────────────────────────────────────────────────────────────────────────────────────────────

    def _read_entry(self, entry: dict[str, Any], owner: _PendingCall | None, is_only_entry: bool) -> bool:
        """Read one entry. `owner`: its call, if its position decides.

        Returns: whether it may be forwarded unchanged.
        """
        custom = custom_tool_call(entry)
        function = _function_object(entry) if custom is None else custom
        id, name = _nonblank(entry.get("id")), _nonblank(function.get("name"))
        value = function.get("arguments" if custom is None else "input")
        if id is not None and len(id) > self._limits.name:
            message = f"the id of a call has more than {self._limits.name:,} characters (limits.name)"
            self._events.append(ev.Failure(message))
            return False
        call = owner or self._owning_call(entry, id, name, value, is_only_entry, custom is not None)
        if call is None:
            self._hold_unmatched(entry, value, custom is not None)
            return False
        if custom is not None and not call.is_custom:
            self._without_index[False].pop(call.key, None)
            if self._open[False].pop(call.key, None) is not None:
                self._open[True][call.key] = call
            call.is_custom = True
        if name is not None and call.name is None:
            well_formed = self._start_call(call, name, entry, function)
        else:
            well_formed = not any(key in entry for key in ("id", "type")) and "name" not in function
            self._report_repeats(call, id, name)
        well_formed = well_formed and type(entry.get("index")) is int and entry["index"] == call.key
        return self._add_value(call, value) and well_formed

    # ── the call that an entry belongs to ─────────────────────────────────────────────────────────────────────────

    def _owning_call(
        self,
        entry: dict[str, Any],
        id: str | None,
        name: str | None,
        arguments: Any,
        is_only_entry: bool,
        is_custom: bool,
    ) -> _PendingCall | None:
        """Return the call that an entry belongs to; a new call if the entry starts one.

        Args:
            entry: the entry.
            id: its id, if it has one.
            name: its name, if it has one.
            arguments: its arguments, or the input of a custom tool.
            is_only_entry: the chunk has no other entry.
            is_custom: the call is one of a custom tool.

        Returns: the call; None if several calls may own the entry.
        """
        index = _read_index(entry.get("index"))
        if index is None:
            placed = self._owning_call_without_index(id, name, arguments, is_only_entry, is_custom)
            if placed is not None:
                self._report_once(placed, "no-index", "a tool call without an index: matched by its id or order")
            return placed
        by_index = self._custom_by_index if is_custom else self._by_index
        call = by_index.get(index)
        same_id = self._by_id.get(id) if id is not None else None
        if (
            same_id is not None
            and same_id is not call
            and self._is_owner(same_id, name, index_is_used=call is not None)
        ):
            return self._claim(same_id, index, by_index)
        if name is None and (call is None or (call.ended and self._begins_waiting_call(arguments))):
            owner = self._call_by_order(index, is_custom, is_shared_index=call is not None)
            if owner is not None:
                return self._claim(owner, index, by_index)
            if self._without_index[is_custom]:
                return None
        if call is None:
            call = by_index[index] = self._add_call(id, index, is_custom)
            if index != call.key or type(entry.get("index")) is not int:
                problem = f"a tool call has index {entry.get('index')!r:.40} instead of {call.key}: renumbered"
                self._report_once(call, "renumbered", problem)
        elif _is_new_call(call, id, name, arguments):
            call = by_index[index] = self._add_call(id, index, is_custom)
            self._report_once(call, "shared-index", f"another call uses index {index}: read as a separate call")
        return call

    def _owning_call_without_index(
        self, id: str | None, name: str | None, arguments: Any, is_only_entry: bool, is_custom: bool
    ) -> _PendingCall | None:
        if id is not None and id in self._by_id:
            return self._by_id[id]
        if name is not None:
            last = self._calls[-1] if self._calls else None
            # A repeated name belongs to the last call, unless that call has ended or the chunk has other entries.
            if id is None and last is not None and is_only_entry and name == last.name and not last.ended:
                return last
            return self._call_to_name(id, arguments) or self._add_call(id, None, is_custom)
        if id is not None and self._without_id:  # an id that comes late, after a call that started without one
            return next(iter(self._without_id.values())) if len(self._without_id) == 1 else None
        if id is not None or not self._calls:
            return self._add_call(id, None, is_custom)
        return self._continued_call(arguments, is_custom)

    def _call_to_name(self, id: str | None, arguments: Any) -> _PendingCall | None:
        """Return the call whose arguments or id came before its name; None if there is none or more than one."""
        if len(self._without_name) != 1:
            return None
        call = next(iter(self._without_name.values()))
        is_same_id = id is None or call.id is None or call.id == id
        return call if is_same_id and not (call.has_arguments and _has_text(arguments)) else None

    def _continued_call(self, arguments: Any, is_custom: bool) -> _PendingCall | None:
        """Return the call that arguments without an index, id and name belong to; None if several calls may own them.

        That is the only open call, or the one that received arguments last and whose JSON is not complete.
        """
        receiving, open_calls = self._receiving, self._open[is_custom]
        if len(open_calls) == 1:
            return next(iter(open_calls.values()))
        if receiving is not None and receiving.key in open_calls and receiving.args.scanner.first_char:
            return receiving
        return None if open_calls and _has_text(arguments) else self._calls[-1]

    def _calls_by_position(self, entries: list[Any]) -> list[_PendingCall | None]:
        """Return the call of each entry, if the entries have only arguments, and are as many as the open calls.

        A list of None if another rule decides.
        """
        undecided: list[_PendingCall | None] = [None] * len(entries)
        if len(entries) < 2 or len(entries) != len(self._open[False]) + len(self._open[True]):
            return undecided
        calls = [call for _, call in sorted({**self._open[False], **self._open[True]}.items())]
        return [*calls] if all(map(_may_continue, calls, entries)) else undecided

    # ── calls that start without an index, and arguments with one ─────────────────────────────────────────────────

    def _is_owner(self, call: _PendingCall, name: str | None, *, index_is_used: bool) -> bool:
        """Return whether an entry with the id of this call, but another index, belongs to it.

        The id says more than an index that several calls share, or than the first index of a call. But some upstreams
        give the same id to several calls, each with its own index.
        """
        return name in (None, call.name) and (index_is_used or call.index is None)

    def _claim(self, call: _PendingCall, index: int, by_index: dict[int, _PendingCall]) -> _PendingCall:
        """Use this call for the index from here on."""
        call.index, by_index[index] = index, call
        self._without_index[call.is_custom].pop(call.key, None)
        return call

    def _begins_waiting_call(self, arguments: Any) -> bool:
        """Return whether arguments on the index of a call that has ended may be the first ones of another call."""
        return bool(self._without_index[False]) and isinstance(arguments, str) and arguments.lstrip().startswith("{")

    def _call_by_order(self, index: int, is_custom: bool, *, is_shared_index: bool) -> _PendingCall | None:
        """Return the call that arguments on this index belong to; None if it cannot be decided yet.

        Upstreams count calls from 0 or from 1. Index 1 is the first or the second call, until another index decides.
        `is_shared_index`: the index does not count calls, because a call that has ended has the same one.
        """
        waiting = self._without_index[is_custom]
        if not waiting:  # more arguments of a call that is complete
            position = index - (self._index_base or 0)
            call = self._calls[position] if 0 <= position < len(self._calls) else None
            return call if call is not None and call.index is None and call.is_custom is is_custom else None
        if len(waiting) == 1 and not self._unmatched:
            only = next(iter(waiting.values()))
            if self._index_base is None and not is_shared_index and index - only.key in (0, 1):
                self._index_base = index - only.key
            return only
        if is_shared_index:
            return None
        if self._index_base is None:
            if index == 0:
                self._place_unmatched(0)
            elif index == len(self._calls):
                self._place_unmatched(1)
        return self._waiting_call_at(index, self._index_base, is_custom)

    def _waiting_call_at(self, index: int, index_base: int | None, is_custom: bool) -> _PendingCall | None:
        return None if index_base is None else self._without_index[is_custom].get(index - index_base)

    def _hold_unmatched(self, entry: dict[str, Any], value: Any, is_custom: bool) -> None:
        """Keep arguments, or the input of a custom tool, until it is known which call they belong to.

        Nothing that follows can decide this for arguments without an index: they are dropped.
        """
        if _read_index(entry.get("index")) is None:
            if _has_text(value):
                self._drop_arguments("arguments without an index that several calls may own: dropped")
                self._calls_at_drop = len(self._calls)
            return
        self._unmatched_size += len(value if isinstance(value, str) else write_json(value))
        if self._unmatched_size <= self._limits.held:
            index = _read_index(entry.get("index")) or 0
            self._unmatched.setdefault((is_custom, index), []).append(value)

    def _place_unmatched(self, index_base: int) -> None:
        """Pass the kept arguments to their calls, now that the first index is known."""
        self._index_base = index_base
        unmatched, self._unmatched = self._unmatched, {}
        for (is_custom, index), values in unmatched.items():
            call = self._waiting_call_at(index, index_base, is_custom)
            if call is None:
                self._drop_arguments(f"arguments on index {index}, which no call has: dropped")
                continue
            self._claim(call, index, self._custom_by_index if is_custom else self._by_index)
            for value in values:
                self._add_value(call, value)

    def _place_unmatched_at_end(self) -> None:
        """Place the kept arguments if only one first index fits."""
        if not self._unmatched:
            return
        keys = self._unmatched
        fits = [
            base for base in (0, 1) if all(self._waiting_call_at(index, base, is_custom) for is_custom, index in keys)
        ]
        if len(fits) == 1 and self._unmatched_size <= self._limits.held:
            self._place_unmatched(fits[0])
        else:
            self._drop_arguments("arguments on an index that several calls may have: dropped")

    def _drop_arguments(self, problem: str) -> None:
        """Report the first arguments that are dropped. No call that may lack them is complete."""
        if not self._has_dropped_arguments:
            self._report("no-such-call", problem)
        self._has_dropped_arguments = True

    def _add_call(self, id: str | None, index: int | None, is_custom: bool) -> _PendingCall:
        call = _PendingCall(len(self._calls), id, index, self._limits, self._repairs)
        call.is_custom = is_custom
        self.call_count += 1
        self._close_receiving()
        self._calls.append(call)
        self._without_name[call.key] = self._open[is_custom][call.key] = call
        if id is not None:
            self._by_id.setdefault(id, call)
        if index is None:
            self._without_index[is_custom][call.key] = call
        return call

    def _close_receiving(self) -> None:
        """Take no more arguments without an index for the last call if only its next call shows that it is complete.

        That holds for the input of custom tools, and for arguments that are not JSON.
        """
        call, self._receiving = self._receiving, None
        if call is not None and call.name is not None and (call.is_custom or not call.args.unfinished):
            self._open[call.is_custom].pop(call.key, None)

    def _start_call(self, call: _PendingCall, name: str, entry: dict[str, Any], function: dict[str, Any]) -> bool:
        """Start the call. Returns: whether the entry is a well-formed start."""
        call.name = name
        call.id = call.id or _nonblank(entry.get("id"))
        self._without_name.pop(call.key, None)
        if call.id is not None:
            self._by_id.setdefault(call.id, call)
        else:
            self._without_id[call.key] = call
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
        has_all_fields = (call.is_custom or "arguments" in function) and call.reported_kinds.isdisjoint(
            ("no-id", "no-type")
        )
        return has_all_fields and entry.get("id") == call.id and not early_arguments

    def _report_repeats(self, call: _PendingCall, id: str | None, name: str | None) -> None:
        if call.name is None:
            call.id = call.id or id
        elif id is not None and id == call.id:
            self._report_once(call, "repeated-id", f"the id {id!r} is repeated: dropped")
        elif id is not None and call.id is None:
            self._by_id.setdefault(id, call)
            self._without_id.pop(call.key, None)
            self._report_once(call, "late-id", f"the id {id!r} arrives after the call has started: dropped")
        elif id is not None:
            self._report_once(
                call, "changed-id", f"a second id {id!r} in the call that started with {call.id!r}: dropped"
            )
        if name is not None:
            self._report_once(call, "repeated-name", f"the name {name!r} is repeated: dropped")

    # ── arguments ─────────────────────────────────────────────────────────────────────────────────────────────────

    def _add_value(self, call: _PendingCall, value: Any) -> bool:
        """Add arguments, or the input of a custom tool. Returns: whether they are forwarded unchanged."""
        self._note_receiver(call, value)
        if call.is_custom:
            return self._add_input(call, value)
        text = value if isinstance(value, str) else self._as_text(call, value)
        return self._add_arguments(call, text) and text is value

    def _note_receiver(self, call: _PendingCall, value: Any) -> None:
        if call is not self._receiving and _has_text(value):
            self._receiving = call
            if not call.has_arguments:  # a dropped piece of JSON may be the beginning, and this piece a value in it
                call.has_arguments, call.may_lack_beginning = True, call.key < self._calls_at_drop

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
            is_object = excess.lstrip().startswith("{")  # perhaps the arguments of another call
            self._has_dropped_arguments |= is_object and not call.is_repeated_by(excess)
        if call.args.scanner.ended and not call.ended and not call.may_lack_beginning:
            self._end_call(call)
        return accepted == text

    def _is_resent(self, call: _PendingCall, text: str) -> bool:
        """Return whether the upstream resends all the arguments so far with more text after them.

        That is the case if the text repeats them and is not valid JSON as a continuation. After the first resend
        no further check is needed: such an upstream resends every time.
        """
        scanner = call.args.scanner
        if call.ended or scanner.first_char != "{" or scanner.problem is not None or not call.is_repeated_by(text):
            return False
        if not call.is_resending:
            trial = deepcopy(scanner)
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
            self._has_dropped_arguments = True
        call.early_arguments, call.early_size = [], 0

    def _end_call(self, call: _PendingCall) -> None:
        call.ended = True
        self._without_index[call.is_custom].pop(call.key, None)
        self._open[call.is_custom].pop(call.key, None)
        self._without_id.pop(call.key, None)
        if remainder := call.args.end():
            self._events.append(ev.ArgsDelta(call.key, remainder))
        self._report_notes(call)
        self._events.append(ev.CallEnd(call.key))

    def _report_notes(self, call: _PendingCall) -> None:
        for finding_kind, message in call.args.notes:
            self._report(finding_kind, message)


def _is_new_call(call: _PendingCall, id: str | None, name: str | None, arguments: Any) -> bool:
    """Return whether an entry on the index of this call starts another call."""
    if call.name is None:
        return False
    if id is not None and call.id is not None:
        return id != call.id and (name is not None or call.ended)
    if name is None:
        return False
    if not call.ended:  # another name and arguments, while this call has none yet
        return name != call.name and call.args.empty and isinstance(arguments, str) and bool(arguments.strip())
    is_repeat = isinstance(arguments, str) and call.is_repeated_by(arguments) and len(arguments) == call.digest.size
    return not (is_repeat and call.id is not None and name == call.name)


def _read_index(value: Any) -> int | None:
    """Return the index as a number: some upstreams send a string. None if it is missing or something else."""
    if isinstance(value, str) and value.isascii() and value.isdigit() and len(value) < MAX_INDEX_DIGITS:
        return int(value)
    return value if isinstance(value, int) and not isinstance(value, bool) else None


def _may_continue(call: _PendingCall, entry: Any) -> bool:
    """Return whether an entry has only arguments, of the kind of this call, and the first ones begin an object."""
    if not isinstance(entry, dict) or _read_index(entry.get("index")) is not None or _nonblank(entry.get("id")):
        return False
    custom = custom_tool_call(entry)
    if _nonblank((custom or _function_object(entry)).get("name")) or call.is_custom is (custom is None):
        return False
    arguments = _function_object(entry).get("arguments")
    if call.is_custom or call.has_arguments or not isinstance(arguments, str):
        return True
    return arguments.lstrip()[:1] in ("", "{")


def _has_text(arguments: Any) -> bool:
    return bool(arguments.strip()) if isinstance(arguments, str) else arguments is not None


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
