"""The items of a response as they have been heard so far, and which of them an event means.

Of what was said of an item, only size and checksum are kept.
"""

from __future__ import annotations

from typing import Any

from interlingua import events as ev
from interlingua.common.coerce import as_dict, as_list
from interlingua.common.jsontext.arguments import Args
from interlingua.common.jsontext.codec import write_json
from interlingua.core.options__limits import Limits
from interlingua.wires.base import Choice, Json
from interlingua.wires.openai_responses.event_types import ANNOTATED, ARGUMENTS, Word
from interlingua.wires.streaming.text_digest import Told

__all__ = ["OPENER", "Call", "Heard", "Register", "Untold"]


OPENER, CLOSER = '{"input":"', '"}'
"""What stands around the text of a custom tool, so that it is the arguments of a function."""
_ANNOTATIONS = "annotations of a text"
_SILENT = ("ping", "keepalive")
"""Events that say nothing."""


class Call:
    """A call that has begun. The text of a custom tool is no JSON: it has no `args` to watch."""

    def __init__(self, key: int, word: Word, limits: Limits) -> None:
        self.key = key
        self.args = Args(limits.held) if word is ARGUMENTS else None

    def end(self, cut: bool, choice: Choice) -> None:
        if cut or (self.args is not None and self.args.unfinished):
            if self.args is not None and (rest := self.args.cut()):
                choice.events.append(ev.ArgsDelta(self.key, rest))
            choice.events.append(ev.Finding("cut-short", "the reply ended inside a call: it is incomplete"))
            choice.events.append(ev.CallEnd(self.key, complete=False))
            return
        if self.args is None:
            choice.events.append(ev.ArgsDelta(self.key, CLOSER))
        else:
            if rest := self.args.end():
                choice.events.append(ev.ArgsDelta(self.key, rest))
                choice.exact = False
            for kind, message in self.args.notes:
                choice.report(kind, message)
        choice.events.append(ev.CallEnd(self.key))


class Heard:
    """An item. `first` is how it was added, and `waiting` are the arguments of a call that has no name yet."""

    def __init__(self, given: Json) -> None:
        self.type = str(given.get("type"))
        self.id = given.get("id")
        self.call_id = given.get("call_id")
        self.first = given
        self.told: dict[tuple[str, int], Told] = {}
        self.waiting: list[str] = []
        self.call: Call | None = None
        self.over = False
        self._reported: set[str] = set()

    @property
    def speaks(self) -> bool:
        return any(told.size for told in self.told.values())

    def at(self, key: tuple[str, int]) -> Told:
        told = self.told.get(key)
        if told is None:
            told = self.told[key] = Told()
        return told

    def report(self, kind: str, message: str, choice: Choice) -> None:
        """A finding, the first time: upstreams tell an item several times over."""
        choice.exact = False
        if kind not in self._reported:
            self._reported.add(kind)
            choice.report(kind, message)

    def as_text(self, arguments: Any, choice: Choice) -> str:
        message = "the arguments were sent as a value, not as text: written as text"
        self.report("arguments-as-value", message, choice)
        return write_json(arguments)

    def take_waiting(self) -> str:
        """All of it; what counts as told begins anew."""
        text = "".join(self.waiting)
        if self.waiting:
            self.waiting, self.told = [], {}
        return text

    def has(self, ids: tuple[Any, ...]) -> bool:
        return any(isinstance(id, str) and id in (self.id, self.call_id) for id in ids)

    def is_same(self, given: Json) -> bool:
        """Whether this is the item again, and not another one in its place."""
        call_id = given.get("call_id")
        if isinstance(call_id, str) and isinstance(self.call_id, str):
            return call_id == self.call_id
        return isinstance(self.id, str) and given.get("id") == self.id


class Register:
    """Which item is meant: all that have been heard of, in their order, by index and by id.

    The index comes first, for some upstreams send another id with every event; the last event has no indexes.
    """

    def __init__(self) -> None:
        self.items: list[Heard] = []
        self._by_index: dict[int, Heard] = {}
        self._by_id: dict[str, Heard] = {}

    def add(self, given: Json, index: Any) -> Heard:
        """An item that nothing has been heard of. One without an index has its place in the order."""
        item = Heard(given)
        if isinstance(index, int):
            self._by_index[index] = item
        else:
            self._by_index.setdefault(len(self.items), item)
        self.items.append(item)
        for id in (given.get("id"), given.get("call_id")):
            if isinstance(id, str):
                self._by_id.setdefault(id, item)
        return item

    def holds(self, index: int) -> bool:
        return index in self._by_index

    def at(self, index: int) -> Heard | None:
        return self._by_index.get(index)

    def find(self, chunk: Json, type: str, ids: tuple[Any, ...]) -> Heard | None:
        """By its index, unless another item has just this id."""
        index = chunk.get("output_index")
        known = self._by_ids(ids)
        if isinstance(index, int):
            placed = self._by_index.get(index)
            return placed if placed is None or known is None or placed.has(ids) else known
        if known is not None or any(isinstance(id, str) for id in ids):
            return known
        return next((item for item in reversed(self.items) if item.type == type and not item.over), None)

    def in_output(self, position: int, given: Json) -> Heard | None:
        """By its id here, for upstreams may leave items out of the last event."""
        ids = (given.get("id"), given.get("call_id"))
        known = self._by_ids(ids)
        placed = self._by_index.get(position)
        if known is not None or placed is None or placed.type != str(given.get("type")):
            return known
        both = isinstance(placed.call_id, str) and isinstance(given.get("call_id"), str)
        return placed if not both else None

    def _by_ids(self, ids: tuple[Any, ...]) -> Heard | None:
        return next((self._by_id[id] for id in ids if isinstance(id, str) and id in self._by_id), None)


class Untold:
    """What other wires have no word for: a finding, the first time."""

    def __init__(self) -> None:
        self._noted: set[str] = set()

    def note(self, what: str) -> list[ev.Event]:
        if what in self._noted:
            return []
        self._noted.add(what)
        return [ev.Finding("not-translated", f"{what}: told only to clients of this wire")]

    def note_event(self, kind: Any) -> list[ev.Event]:
        if kind in _SILENT:
            return []
        return self.note(_ANNOTATIONS if kind == ANNOTATED else f"an event of type {kind!r:.60}")

    def note_annotations(self, item: Json) -> list[ev.Event]:
        parts = map(as_dict, as_list(item.get("content")))
        return self.note(_ANNOTATIONS) if any(part.get("annotations") for part in parts) else []
