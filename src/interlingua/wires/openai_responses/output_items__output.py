"""The items that a client has been told of: which are open, where they stand, and what they hold.

Items begin and end here. Where the upstream tells them itself they are followed, so that they can be told on from any
event.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

from interlingua.common.coerce import as_dict
from interlingua.wires.base import Json
from interlingua.wires.openai_responses.event_types import (
    ADDED,
    ANNOTATED,
    ARGUMENTS,
    DONE,
    INPUT,
    SUMMARY,
    THOUGHT,
    UNDERSTOOD,
    WORDS,
    Word,
    word_of,
)
from interlingua.wires.openai_responses.output_items__items import Frame, Item
from interlingua.wires.openai_responses.response_object import made_id

__all__ = ["Output"]

_CALLS = (ARGUMENTS, INPUT)
_WRITTEN = {"id", "type", "status", "call_id", "name", "namespace", "encrypted_content", "content", "summary"}
_WRITTEN |= {word.field for word in WORDS}


class Output:
    """The output of one response. `seal` says what is to vouch for thinking, when its item ends."""

    def __init__(self, seal: Callable[[Item], Json]) -> None:
        self._seal = seal
        self._items: dict[int, Json] = {}
        self._open: list[Item] = []
        self._places: dict[int, int] = {}  # where the upstream's items stand
        self._template: Json = {}  # the item that the upstream has begun, and we have not

    @property
    def finished(self) -> list[Json]:
        """The items that are over, in their order."""
        unfinished = {item.index for item in self._open}
        return [self._items[index] for index in sorted(self._items) if index not in unfinished]

    def speaking(self, word: Word) -> Item | None:
        """The open item that text of this kind goes on in."""
        item = self._open[-1] if self._open else None
        return item if item and (item.word is word or {item.word, word} == {SUMMARY, THOUGHT}) else None

    def call(self) -> Item:
        """The call that is open."""
        return next(item for item in self._open if item.word in _CALLS)

    def start(self, word: Word, fields: Json, seed: str) -> Item:
        """A new item, behind all others. It is like the one that the upstream has begun, if it is of its type."""
        like, self._template = (self._template, {}) if self._template.get("type") == word.item else ({}, self._template)
        index = max(self._items, default=-1) + 1
        beside = {key: value for key, value in like.items() if key not in _WRITTEN}
        id = like.get("id") or made_id(word.prefix, f"{seed}/{index}")
        empty: Json = {"summary": []} if word.item == "reasoning" else {}
        empty[word.parts or word.field] = [] if word.parts else ""
        item = Item(word, index, {"type": word.item, "id": id, **beside, **fields, **empty})
        self._open.append(item)
        self._items[index] = item.body
        return item

    def end(self, item: Item, status: str) -> Iterator[Frame]:
        self._open.remove(item)
        if item.word.item == "reasoning" and "encrypted_content" not in item.body:
            item.body |= self._seal(item)
        yield from item.end(status)

    def cut(self, item: Item) -> None:
        """The item is over and not done: no frame says so."""
        self._open.remove(item)
        item.settle("incomplete")

    def close(self, status: str) -> Iterator[Frame]:
        """Ends what is open."""
        for item in list(self._open):
            yield from self.end(item, status)

    # ── an upstream of this wire ──────────────────────────────────────────────────────────────────────────────────

    def follow(self, chunk: Json) -> None:
        """An event that passes as it came."""
        index, kind = chunk.get("output_index"), str(chunk.get("type"))
        if not isinstance(index, int):
            return
        self._places[index] = index
        if kind in (ADDED, DONE):
            given = as_dict(chunk.get("item"))
            item = Item.passed(index, given) if kind == ADDED else None
            self._items[index] = item.body if item else given
            self._open = [other for other in self._open if other.index != index] + ([item] if item else [])
        else:
            for item in self._open:
                if item.index == index:
                    item.follow(kind, chunk)

    def learn(self, like: Json) -> Iterator[Frame]:
        """An event that is told anew: an item that begins ends the text before it, and is the model for ours."""
        if like.get("type") == ADDED:
            given = as_dict(like.get("item"))
            if not any(item.word in _CALLS for item in self._open):
                yield from self.close("completed")
            self._template = given if word_of(given) else {}

    def place(self, like: Json, item: Item) -> None:
        """What the upstream says of this item of its own is about ours."""
        if isinstance(index := like.get("output_index"), int):
            self._places[index] = item.index

    def forward(self, like: Json) -> Iterator[Frame]:
        """What the upstream says that no event tells: it goes on under our numbers."""
        kind, index, given = str(like.get("type")), like.get("output_index"), as_dict(like.get("item"))
        if word_of(given) or (kind in UNDERSTOOD and kind not in (ADDED, DONE)):
            return
        fields = {key: value for key, value in like.items() if key != "type"}
        if isinstance(index, int):
            if kind in (ADDED, DONE):
                self._items[self._places.setdefault(index, max(self._items, default=-1) + 1)] = given
            fields["output_index"] = self._places.get(index, index)
            for item in self._open:
                if item.index == fields["output_index"] and "item_id" in like:
                    fields["item_id"] = item.id
                    if kind == ANNOTATED:
                        item.follow(kind, like)
        yield kind, fields
