"""Structured tool calls as upstreams send them, mended: entries of `tool_calls` → CallStart, ArgsDelta, CallEnd.

Upstreams leave out or repeat `index`, `id`, `type` and `name`, put several calls on one index, send arguments as an
object, as null, twice, or with more behind them. What an entry belongs to is decided in one place: `_owner`.
"""

from __future__ import annotations

from copy import deepcopy
from typing import Any

from interlingua import events as ev
from interlingua.common.jsontext.arguments import Args
from interlingua.common.jsontext.codec import write_json
from interlingua.core.options__limits import Limits
from interlingua.wires.openai_chat.custom_tools import CLOSER, OPENER, as_arguments, custom_of
from interlingua.wires.streaming.text_digest import Told

__all__ = ["Calls"]


class _Call:
    """A call in the making. It has a name once its start has gone out; what came `early` waits for that."""

    def __init__(self, key: int, id: str | None, limits: Limits) -> None:
        self.key = key
        self.id = id
        self.name: str | None = None
        self.args = Args(limits.held)
        self.early: list[str] = []
        self.ended = False
        self.custom = False
        self.early_size = 0
        self.told = Told()
        self.resends = False
        self.noted: set[str] = set()

    def repeats(self, text: str) -> bool:
        """Whether this begins with all the arguments so far."""
        return self.told.size > 0 and self.told.rest(text) is not None


class Calls:
    """The structured calls of one choice."""

    def __init__(self, limits: Limits) -> None:
        self._limits = limits
        self._calls: list[_Call] = []
        self._by_index: dict[int, _Call] = {}
        self._by_id: dict[str, _Call] = {}
        self._out: list[ev.Event] = []

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

    def more(self, index: int, arguments: str) -> tuple[list[ev.Event], bool] | None:
        """`read` for an entry that has nothing but more of the arguments of a function. None, and nothing has happened,
        if it is not being called, or its name is not known."""
        call = self._by_index.get(index)
        if call is None or call.name is None or call.custom:
            return None
        untouched = self._args(call, arguments)
        return self._drain(), untouched and index == call.key

    def finish(self, cut: bool = False) -> list[ev.Event]:
        """The upstream has stopped well: the calls that it has not cut are over. `cut`: by a limit or a filter, and the
        last call with it if it has no arguments."""
        for call in self._calls:
            last = cut and call is self._calls[-1]
            if call.custom and call.name is not None and not last:
                self._args(call, CLOSER)
            if call.name is None:
                text = "".join(call.early)
                self._report("call-without-name", f"a call without a name (id {call.id!r}): given out as text")
                self._out += [ev.TextDelta(text)] if text else []
            elif not call.ended and not call.args.unfinished and not (last and call.args.empty):
                self._end(call)  # one that has begun and not ended is cut, whatever the upstream says
        return self.cut()

    def cut(self) -> list[ev.Event]:
        """No more will come: gives out what is still held. Ending the calls that are open is the guard's."""
        for call in self._calls:
            if call.name is not None and not call.ended and (rest := call.args.cut()):
                self._out.append(ev.ArgsDelta(call.key, rest))
        self._calls, self._by_index, self._by_id = [], {}, {}
        return self._drain()

    def _drain(self) -> list[ev.Event]:
        out, self._out = self._out, []
        return out

    def _report(self, kind: str, message: str) -> None:
        self._out.append(ev.Finding(kind, message, f"tool call {len(self._calls)}"))

    def _report_once(self, call: _Call, kind: str, message: str) -> None:
        """A finding, the first time: what an upstream does to one entry of a call, it does to all."""
        if kind not in call.noted:
            call.noted.add(kind)
            self._report(kind, message)

    # ── one entry ─────────────────────────────────────────────────────────────────────────────────────────────────

    def _read_entry(self, entry: dict[str, Any], alone: bool) -> bool:
        """Returns whether the entry may be passed on as it is."""
        custom = custom_of(entry)
        function = _as_function(entry) if custom is None else custom
        id, name = _text(entry.get("id")), _text(function.get("name"))
        call = self._owner(entry.get("index"), id, name, function.get("arguments"), alone)
        call.custom |= custom is not None
        if name is not None and call.name is None:
            proper = self._start(call, name, entry, function)
        else:
            proper = not any(key in entry for key in ("id", "type")) and "name" not in function
            self._note_repeats(call, id, name)
        if custom is not None:
            return self._input(call, custom.get("input")) and proper and entry.get("index") == call.key
        arguments = function.get("arguments")
        text = arguments if isinstance(arguments, str) else self._as_text(call, arguments)
        return self._args(call, text) and text is arguments and proper and entry.get("index") == call.key

    def _owner(self, index: Any, id: str | None, name: str | None, arguments: Any, alone: bool) -> _Call:
        """The call that an entry belongs to, a new one if it begins one."""
        if not isinstance(index, int):
            placed = self._owner_without_index(id, name, alone) or self._new(id)
            self._report_once(placed, "no-index", "a tool call without its index: placed by its id or its order")
            return placed
        call = self._by_index.get(index)
        if call is None:
            call = self._by_index[index] = self._new(id)
            if index != call.key:
                self._report_once(
                    call, "renumbered", f"a tool call on index {index} where {call.key} comes next: renumbered"
                )
        elif _is_another(call, id, name, arguments):
            call = self._by_index[index] = self._new(id)
            self._report_once(call, "shared-index", f"another call on index {index}: taken as a call of its own")
        return call

    def _owner_without_index(self, id: str | None, name: str | None, alone: bool) -> _Call | None:
        if id is not None:
            return self._by_id.get(id)
        last = self._calls[-1] if self._calls else None
        if last is None or name is None:
            return last
        # The name again: of the last call, unless that one is over or a sibling stands in the same chunk.
        return last if alone and name == last.name and not last.ended else None

    def _new(self, id: str | None) -> _Call:
        call = _Call(len(self._calls), id, self._limits)
        self._calls.append(call)
        if id is not None:
            self._by_id.setdefault(id, call)
        return call

    def _start(self, call: _Call, name: str, entry: dict[str, Any], function: dict[str, Any]) -> bool:
        """Returns whether the entry begins a call as it should."""
        call.name = name
        call.id = call.id or _text(entry.get("id"))
        if call.id is None:
            self._report_once(call, "no-id", f"a call of {name!r} without an id: it gets one")
        kind = "custom" if call.custom else "function"
        if entry.get("type") != kind:
            self._report_once(call, "no-type", f"a call of {name!r} without its type: taken as a {kind}")
        self._out.append(ev.CallStart(call.key, call.id, name, _extra(entry, kind, function)))
        early, call.early = call.early, []
        if call.custom:
            self._args(call, OPENER)
        for text in early:
            self._args(call, text)
        complete = (call.custom or "arguments" in function) and call.noted.isdisjoint(("no-id", "no-type"))
        return complete and entry.get("id") == call.id and not early

    def _note_repeats(self, call: _Call, id: str | None, name: str | None) -> None:
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

    def _as_text(self, call: _Call, arguments: Any) -> str:
        if arguments is None:
            return ""
        self._report_once(call, "arguments-as-value", "arguments sent as a value, not as text: written as text")
        return write_json(arguments)

    def _input(self, call: _Call, text: Any) -> bool:
        """The text of a custom tool. Returns whether it goes on just as it is."""
        if text is not None and not isinstance(text, str):
            self._report_once(call, "arguments-as-value", "the text of a custom tool is none: written as text")
            text = write_json(text)
            self._args(call, as_arguments(text))
            return False
        return not text or self._args(call, as_arguments(text))

    def _args(self, call: _Call, text: str) -> bool:
        """Returns whether the text goes on just as it is."""
        if call.name is None:
            self._keep_early(call, text)
            return False
        resent = len(text) >= call.told.size and self._is_resent(call, text)  # nearly all pieces are shorter
        new = text[call.told.size :] if resent else text
        passed, rest = ("", new) if call.ended else call.args.feed(new)
        call.told.add(new[: len(new) - len(rest)] if rest else new)
        if passed:
            self._out.append(ev.ArgsDelta(call.key, passed))
        if rest and rest.strip():
            self._report_once(call, "after-arguments", f"{len(rest)} characters after the arguments' end: dropped")
        if call.args.cursor.ended and not call.ended:
            self._end(call)
        return passed == text

    def _is_resent(self, call: _Call, text: str) -> bool:
        """Whether the upstream sends all the arguments so far again, with more behind them.

        Then, and only then, they are no JSON where they stand. Once it did so, it always does.
        """
        cursor = call.args.cursor
        if call.ended or cursor.first != "{" or cursor.problem is not None or not call.repeats(text):
            return False
        if not call.resends:
            trial = deepcopy(cursor)
            trial.walk(text, 0)
            call.resends = trial.problem is not None
        if call.resends:
            self._report_once(
                call, "resent-arguments", "each piece of the arguments holds all those before it: sent once"
            )
        return call.resends

    def _keep_early(self, call: _Call, text: str) -> None:
        call.early.append(text)
        call.early_size += len(text)
        if call.early_size <= self._limits.held:
            return
        message = f"a call without a name: longer than {self._limits.held:,} characters"
        if self._limits.over == "error":
            self._out.append(ev.Failure(message))
        else:
            self._report("over-limit", f"{message}; given out as text")
            self._out.append(ev.TextDelta("".join(call.early)))
        call.early, call.early_size = [], 0

    def _end(self, call: _Call) -> None:
        call.ended = True
        if rest := call.args.end():
            self._out.append(ev.ArgsDelta(call.key, rest))
        for kind, message in call.args.notes:
            self._report(kind, message)
        self._out.append(ev.CallEnd(call.key))


def _is_another(call: _Call, id: str | None, name: str | None, arguments: Any) -> bool:
    """Whether an entry on the index of this call begins another one."""
    if call.name is None:
        return False
    if id is not None and call.id is not None:
        return id != call.id and (name is not None or call.ended)
    if name is None or not call.ended:
        return False
    again = isinstance(arguments, str) and call.repeats(arguments) and len(arguments) == call.told.size
    return not (again and call.id is not None and name == call.name)


def _text(value: Any) -> str | None:
    return value if isinstance(value, str) and value.strip() else None


def _as_function(entry: dict[str, Any]) -> dict[str, Any]:
    function = entry.get("function")
    return function if isinstance(function, dict) else {}


def _extra(entry: dict[str, Any], kind: str, body: dict[str, Any]) -> dict[str, Any] | None:
    """What an entry has beside the standard fields. Of a custom tool it says so."""
    extra = {key: value for key, value in entry.items() if key not in ("index", "id", "type", kind)}
    inner = {
        key: value for key, value in body.items() if key not in ("name", "input" if kind == "custom" else "arguments")
    }
    return {**extra, **({kind: inner} if inner or kind == "custom" else {})} or None
