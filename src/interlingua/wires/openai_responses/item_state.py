"""State of the events and items received so far, and lookup of the item that an event belongs to.

Of the text of an item, only length and checksum are kept.
"""

from __future__ import annotations

from typing import Any, TypeAlias

from interlingua import events as ev
from interlingua.common.coerce import as_dict, as_list
from interlingua.common.jsontext.arguments import ArgumentsStream
from interlingua.common.jsontext.codec import write_json
from interlingua.core.options import ArgumentsPolicy, Limits
from interlingua.wires.base import Choice, Json
from interlingua.wires.openai_responses.event_types import ANNOTATION_ADDED, FUNCTION_ARGUMENTS, TextKind
from interlingua.wires.streaming.text_digest import TextDigest

__all__ = [
    "CUSTOM_INPUT_PREFIX",
    "WHOLE_ITEM",
    "CallState",
    "EventSequence",
    "ItemIndex",
    "ItemState",
    "PartKey",
    "UntranslatedLog",
]

PartKey: TypeAlias = tuple[str, int]
"""A part of an item: the field that lists the parts, and the index in it."""
WHOLE_ITEM: PartKey = ("", 0)
"""Part key of the arguments of a call, which has no parts."""
CUSTOM_INPUT_PREFIX, CUSTOM_INPUT_SUFFIX = '{"input":"', '"}'
"""Text before and after the input of a custom tool that turns it into the arguments of a function."""
_ANNOTATIONS_LABEL = "annotations of a text"
MAX_UNTRANSLATED_KINDS = 100
"""Number of kinds of untranslated content that are reported: an upstream may send new ones without end."""
_IGNORED_EVENTS = ("ping", "keepalive")
"""Event types without content."""


class EventSequence:
    """Sequence numbers of the events of one stream. `last`: the number of the event that was read last."""

    __slots__ = ("last",)

    def __init__(self) -> None:
        self.last = -1

    def advance(self, number: object) -> bool:
        """Take the number of the next event. Returns: whether it is a number, and greater than the last one."""
        if not isinstance(number, int):
            return False
        is_next = number > self.last
        self.last = number
        return is_next


class CallState:
    """State of a started call. `args` is None for a custom tool, whose input is not JSON."""

    __slots__ = ("args", "key")

    def __init__(self, key: int, text_kind: TextKind, limits: Limits, arguments: ArgumentsPolicy) -> None:
        self.key = key
        repairs = arguments == "repair"
        self.args = (
            ArgumentsStream(limits.held, limits.blanks, repairs=repairs) if text_kind is FUNCTION_ARGUMENTS else None
        )

    def end(self, truncated: bool, choice: Choice) -> None:
        if truncated or (self.args is not None and self.args.unfinished):
            if self.args is not None:
                if remainder := self.args.flush():
                    choice.events.append(ev.ArgsDelta(self.key, remainder))
                self._report_notes(self.args, choice)
            choice.events.append(ev.Finding("cut-short", "the reply ended inside a call: it is incomplete"))
            choice.events.append(ev.CallEnd(self.key, complete=False))
            return
        if self.args is None:
            choice.events.append(ev.ArgsDelta(self.key, CUSTOM_INPUT_SUFFIX))
        else:
            if remainder := self.args.end():
                choice.events.append(ev.ArgsDelta(self.key, remainder))
                choice.exact = False
            self._report_notes(self.args, choice)
        choice.events.append(ev.CallEnd(self.key))

    def _report_notes(self, args: ArgumentsStream, choice: Choice) -> None:
        for finding_kind, message in args.notes:
            choice.report(finding_kind, message)


class ItemState:
    """State of one item.

    `initial_item` is the item as it was added. `pending_arguments` buffers the arguments of a call without a name.
    """

    __slots__ = (
        "_reported_kinds",
        "call",
        "call_id",
        "finished",
        "has_text",
        "id",
        "initial_item",
        "pending_arguments",
        "pending_chars",
        "text_digests",
        "type",
    )

    def __init__(self, raw_item: Json) -> None:
        self.type = str(raw_item.get("type"))
        self.id = raw_item.get("id")
        self.call_id = raw_item.get("call_id")
        self.initial_item = raw_item
        self.text_digests: dict[PartKey, TextDigest] = {}
        self.has_text = False
        """True if a part of the item has text."""
        self.pending_arguments: list[str] = []
        self.pending_chars = 0
        """Number of characters in `pending_arguments`."""
        self.call: CallState | None = None
        self.finished = False
        self._reported_kinds: set[str] = set()

    def add_text(self, part_key: PartKey, text: str) -> None:
        """Add text to a part: its length and checksum are kept."""
        self.text_digest(part_key).add(text)
        self.has_text = self.has_text or bool(text)

    def buffer_arguments(self, text: str) -> None:
        self.pending_arguments.append(text)
        self.pending_chars += len(text)

    def text_digest(self, part_key: PartKey) -> TextDigest:
        digest = self.text_digests.get(part_key)
        if digest is None:
            digest = self.text_digests[part_key] = TextDigest()
        return digest

    def report(self, finding_kind: str, message: str, choice: Choice) -> None:
        """Report a finding once per kind, because upstreams send the same item several times."""
        choice.exact = False
        if finding_kind not in self._reported_kinds:
            self._reported_kinds.add(finding_kind)
            choice.report(finding_kind, message)

    def arguments_as_text(self, arguments: Any, choice: Choice) -> str:
        message = "the arguments were sent as a JSON value, not as a string: converted to a string"
        self.report("arguments-as-value", message, choice)
        return write_json(arguments)

    def take_pending_arguments(self) -> str:
        """Return and clear the buffered arguments, and reset the digests of what was sent."""
        text = "".join(self.pending_arguments)
        if self.pending_arguments:
            self.pending_arguments, self.pending_chars, self.text_digests, self.has_text = [], 0, {}, False
        return text

    def has_any_id(self, ids: tuple[Any, ...]) -> bool:
        return any(isinstance(id, str) and id in (self.id, self.call_id) for id in ids)

    def is_same(self, raw_item: Json) -> bool:
        """Return whether `raw_item` is this item again, and not another item with the same index."""
        call_id = raw_item.get("call_id")
        if isinstance(call_id, str) and isinstance(self.call_id, str):
            return call_id == self.call_id
        return isinstance(self.id, str) and raw_item.get("id") == self.id


class ItemIndex:
    """All items in order, with lookup by index and by id.

    The index takes precedence, because some upstreams send a different id with every event. The final event has no
    indexes.
    """

    __slots__ = ("_by_id", "_by_index", "_unfinished", "items")

    def __init__(self) -> None:
        self.items: list[ItemState] = []
        self._by_index: dict[int, ItemState] = {}
        self._by_id: dict[str, ItemState] = {}
        self._unfinished: dict[str, list[ItemState]] = {}  # by type; finished ones are removed when they are found

    def add(self, raw_item: Json, index: Any) -> ItemState:
        """Add a new item. An item without an index gets its position in the list as index."""
        item = ItemState(raw_item)
        if isinstance(index, int):
            self._by_index[index] = item
        else:
            self._by_index.setdefault(len(self.items), item)
        self.items.append(item)
        self._unfinished.setdefault(item.type, []).append(item)
        for id in (raw_item.get("id"), raw_item.get("call_id")):
            if isinstance(id, str):
                self._by_id.setdefault(id, item)
        return item

    def has_index(self, index: int) -> bool:
        return index in self._by_index

    def get(self, index: int) -> ItemState | None:
        return self._by_index.get(index)

    def find(self, chunk: Json, item_type: str, ids: tuple[Any, ...]) -> ItemState | None:
        """Find an item by its index, unless another item has exactly this id."""
        index = chunk.get("output_index")
        same_id = self._find_by_ids(ids)
        if isinstance(index, int):
            same_index = self._by_index.get(index)
            return same_index if same_index is None or same_id is None or same_index.has_any_id(ids) else same_id
        if same_id is not None or any(isinstance(id, str) for id in ids):
            return same_id
        return self._last_unfinished(item_type)

    def find_in_output(self, position: int, raw_item: Json) -> ItemState | None:
        """Find an item of the final event by its id first, because upstreams may leave items out of that event."""
        ids = (raw_item.get("id"), raw_item.get("call_id"))
        same_id = self._find_by_ids(ids)
        same_index = self._by_index.get(position)
        if same_id is not None or same_index is None or same_index.type != str(raw_item.get("type")):
            return same_id
        both_have_call_ids = isinstance(same_index.call_id, str) and isinstance(raw_item.get("call_id"), str)
        return same_index if not both_have_call_ids else None

    def _last_unfinished(self, item_type: str) -> ItemState | None:
        items = self._unfinished.get(item_type, [])
        while items and (items[-1].finished or items[-1].type != item_type):
            items.pop()
        return items[-1] if items else None

    def _find_by_ids(self, ids: tuple[Any, ...]) -> ItemState | None:
        return next((self._by_id[id] for id in ids if isinstance(id, str) and id in self._by_id), None)


class UntranslatedLog:
    """Reports each kind of content that other wires cannot represent once."""

    __slots__ = ("_reported",)

    def __init__(self) -> None:
        self._reported: set[str] = set()

    def report(self, description: str) -> list[ev.Event]:
        if description in self._reported or len(self._reported) >= MAX_UNTRANSLATED_KINDS:
            return []
        self._reported.add(description)
        return [ev.Finding("not-translated", f"{description}: sent only to clients of this wire")]

    def report_event(self, event_type: Any) -> list[ev.Event]:
        if event_type in _IGNORED_EVENTS:
            return []
        return self.report(
            _ANNOTATIONS_LABEL if event_type == ANNOTATION_ADDED else f"an event of type {event_type!r:.60}"
        )

    def report_annotations(self, item: Json) -> list[ev.Event]:
        parts = map(as_dict, as_list(item.get("content")))
        return self.report(_ANNOTATIONS_LABEL) if any(part.get("annotations") for part in parts) else []
