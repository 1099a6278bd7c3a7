"""One item of a response as clients get it: the frames that begin it, tell its text and end it.

A frame is the type of an event and its fields, but for the sequence number. Those of deltas are written at once.
"""

from __future__ import annotations

from collections.abc import Iterator
from enum import Enum
from typing import TypeAlias

from interlingua.common.coerce import as_dict, as_list
from interlingua.common.jsontext.codec import encode_json
from interlingua.wires.base import Json
from interlingua.wires.openai_responses.custom_tool_text import Freeform
from interlingua.wires.openai_responses.event_types import (
    ADDED,
    ANNOTATED,
    ARGUMENTS,
    BY_ITEM,
    BY_PART,
    BY_STEM,
    DONE,
    INPUT,
    TEXT,
    Word,
)

__all__ = ["Frame", "Item"]

Frame: TypeAlias = tuple[str, Json] | bytes
"""The bytes are a frame that is written but for its number."""


class _Stage(Enum):
    BEGUN = "no part is open"
    SPEAKING = "a part is open"
    SPOKEN = "its text is told, the part is still open"


_SPEAKING = _Stage.SPEAKING  # it is asked for with every token, and an Enum is slow to answer


class Item:
    """An item in the making. `body` is what is known of it; it is whole once it has ended."""

    def __init__(self, word: Word, index: int, body: Json) -> None:
        self.word = word
        self.index = index
        self.body = body
        self.freeform = Freeform() if word is INPUT else None
        self._parts: list[Json] = []
        self._texts: list[str] = []
        self._annotations: list[object] = []  # of the last part, too
        self._template: tuple[tuple[Word, int], bytes, bytes] | None = None  # of its deltas, by part
        self._stage = _Stage.BEGUN if word.parts else _Stage.SPEAKING

    @property
    def id(self) -> str:
        return str(self.body.get("id"))

    @property
    def text(self) -> str:
        """What has been said of its last part."""
        return "".join(self._texts)

    def begin(self) -> Frame:
        return ADDED, {"output_index": self.index, "item": {**self.body, **self._status("in_progress")}}

    def say(self, text: str, logprobs: object = None) -> Iterator[Frame]:
        word = self.word
        if self._stage is _Stage.BEGUN:
            self._stage = _Stage.SPEAKING
            yield f"{word.around}.added", {**self._place(), "part": self._part("")}
        if logprobs:
            self._texts.append(text)
            yield f"{word.stem}.delta", {**self._place(), "delta": text, **self._logprobs(logprobs)}
        else:
            yield self.say_more(text)

    @property
    def is_speaking(self) -> bool:
        """Whether a part is open, so that `say_more` may follow."""
        return self._stage is _SPEAKING

    def say_more(self, text: str) -> bytes:
        """Nearly all frames are such. What stands before the text is the same for all of a part, and is kept."""
        self._texts.append(text)
        at = (self.word, len(self._parts))
        if self._template is None or self._template[0] != at:
            kind = f"{self.word.stem}.delta"
            head = encode_json({"type": kind, **self._place()})[:-1]
            tail = b',"logprobs":[]' if self.word is TEXT else b""
            self._template = at, b'event: %b\ndata: %b,"delta":' % (kind.encode(), head), tail
        _, before, behind = self._template
        return before + encode_json(text) + behind

    def end(self, status: str) -> Iterator[Frame]:
        word, text = self.word, self.text
        if self._stage is _Stage.SPEAKING:
            name = {"name": self.body["name"]} if word is ARGUMENTS else {}
            yield f"{word.stem}.done", {**self._place(), word.field: text, **name, **self._logprobs(None)}
        if self._stage is not _Stage.BEGUN and word.parts:
            yield f"{word.around}.done", {**self._place(), "part": self._part(text)}
        self.settle(status)
        yield DONE, {"output_index": self.index, "item": self.body}

    def settle(self, status: str) -> None:
        """The body is to hold all that was said."""
        word = self.word
        if not word.parts:
            self.body[word.field] = self.text
        elif self._stage is not _Stage.BEGUN:
            self._parts.append(self._part(self.text))
        if word.parts:
            self.body[word.parts] = self._parts
        self.body |= self._status(status)

    def _place(self) -> Json:
        position = {self.word.position: len(self._parts)} if self.word.parts else {}
        return {"item_id": self.id, "output_index": self.index, **position}

    def _part(self, text: str) -> Json:
        beside: Json = {"annotations": self._annotations, "logprobs": []} if self.word is TEXT else {}
        return {"type": self.word.part, self.word.field: text, **beside}

    def _logprobs(self, given: object) -> Json:
        return {"logprobs": given if isinstance(given, list) else []} if self.word is TEXT else {}

    def _status(self, status: str) -> Json:
        """Thinking has none: upstreams refuse it when it comes back with one."""
        return {} if self.word.item == "reasoning" else {"status": status}

    # ── an item that the upstream itself tells ────────────────────────────────────────────────────────────────────

    @classmethod
    def passed(cls, index: int, given: Json) -> Item | None:
        """An item that the upstream has begun; None if it is of a type that we never write."""
        word = BY_ITEM.get(str(given.get("type")))
        if word is None:
            return None
        item = cls(word, index, dict(given))
        item.freeform = Freeform.inside() if word is INPUT else None
        item._parts = list(as_list(given.get(word.parts)))
        return item

    def follow(self, kind: str, chunk: Json) -> None:
        """What the upstream says of it, so that we can go on from there."""
        stem, _, verb = kind.rpartition(".")
        if verb == "delta" and stem in BY_STEM:
            self.word, self._stage = BY_STEM[stem], _SPEAKING
            self._texts.append(str(chunk.get("delta")))
            return
        part = as_dict(chunk.get("part"))
        if kind.endswith("part.added"):
            self.word = BY_PART.get(str(part.get("type")), self.word)
            self._stage, self._texts, self._annotations = _Stage.SPEAKING, [], []
        elif kind.endswith("part.done"):
            self._parts.append(part)
            self._stage, self._texts, self._annotations = _Stage.BEGUN, [], []
        elif kind == ANNOTATED:
            self._annotations.append(chunk.get("annotation"))
        elif stem in BY_STEM:
            self._stage = _Stage.SPOKEN
