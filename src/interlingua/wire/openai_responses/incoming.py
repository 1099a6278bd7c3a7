"""The items of a response as upstreams send them: what each event adds to what has been said.

An item may come in deltas, or whole when it is done, or both, and even only in the last event. Its text is said once.
Which item an event means is told by `output_index` first: some upstreams send another id with every event.
"""

from __future__ import annotations

from typing import Any

from interlingua import events as ev
from interlingua.args import Args
from interlingua.json_text import write_json
from interlingua.limits import Limits
from interlingua.tools import flat_name
from interlingua.wire.openai_responses.words import (
    ADDED,
    ARGUMENTS,
    BY_ITEM,
    BY_PART,
    BY_STEM,
    DONE,
    INPUT,
    NAME,
    REFUSAL,
    SUMMARY,
    TEXT,
    THOUGHT,
    Word,
    as_dict,
    as_list,
)
from interlingua.wire.wire import Choice, Json

__all__ = ["Items"]

_EVENTS: dict[Word, type[ev.TextDelta | ev.RefusalDelta | ev.ReasoningDelta]] = {
    TEXT: ev.TextDelta,
    REFUSAL: ev.RefusalDelta,
    SUMMARY: ev.ReasoningDelta,
    THOUGHT: ev.ReasoningDelta,
}
OPENER, CLOSER = '{"input":"', '"}'
"""What stands around the text of a custom tool, so that it is the arguments of a function."""


class _Call:
    """A call that has begun. The text of a custom tool is no JSON: it has no `args` to watch."""

    def __init__(self, key: int, word: Word, limits: Limits) -> None:
        self.key = key
        self.args = Args(limits.held) if word is ARGUMENTS else None


class _Item:
    """What is known of an item: how many characters have been said of each of its parts."""

    def __init__(self, type: str, id: Any) -> None:
        self.type = type
        self.id = id
        self.said: dict[tuple[str, int], int] = {}
        self.call: _Call | None = None
        self.over = False


class Items:
    """The items of one response. What an event says goes into the choice that it is read for."""

    def __init__(self, limits: Limits) -> None:
        self._limits = limits
        self._items: list[_Item] = []
        self._by_index: dict[int, _Item] = {}
        self._by_id: dict[str, _Item] = {}
        self.calls = 0

    def read(self, chunk: Json, choice: Choice) -> None:
        """An event that is about an item. Others say nothing."""
        kind = str(chunk.get("type"))
        stem, _, verb = kind.rpartition(".")
        if kind in (ADDED, DONE) and not isinstance(chunk.get("item"), dict):
            choice.report("bad-chunk", f"{kind} without an item: dropped")
        elif kind == ADDED:
            self._add(chunk, choice)
        elif kind == DONE:
            self._done(chunk, choice)
        elif stem in BY_STEM and verb in ("delta", "done"):
            self._speak(BY_STEM[stem], verb, chunk, choice)
        elif verb == "added" and (word := BY_PART.get(str(as_dict(chunk.get("part")).get("type")))):
            item = self._owner(chunk, word, choice)
            item.said.setdefault((word.parts, _position(chunk, word)), 0)

    def read_whole(self, given: Json, choice: Choice) -> None:
        """An item that nothing has been heard of."""
        item = self._new(given, None)
        _note_unknown(given, choice)
        self._begin(item, given, choice)
        self._rest(item, given, choice)
        self._end(item, given, choice)

    def unheard(self, output: list[Any]) -> list[Json]:
        """Those of the items in the last event that nothing has been heard of."""
        items = [(n, item) for n, item in enumerate(output) if isinstance(item, dict)]
        return [item for n, item in items if n not in self._by_index and not self._known(item)]

    @property
    def all_over(self) -> bool:
        return all(item.over for item in self._items)

    def __len__(self) -> int:
        return len(self._items)

    def finish(self, choice: Choice) -> None:
        """The upstream has stopped well: what it has left open is over."""
        for item in self._items:
            if not item.over:
                self._end(item, {}, choice)

    # ── which item ────────────────────────────────────────────────────────────────────────────────────────────────

    def _known(self, item: Json) -> bool:
        return any(isinstance(id, str) and id in self._by_id for id in (item.get("id"), item.get("call_id")))

    def _find(self, chunk: Json, type: str, ids: tuple[Any, ...]) -> _Item | None:
        index = chunk.get("output_index")
        if isinstance(index, int):
            return self._by_index.get(index)
        known = next((self._by_id[id] for id in ids if isinstance(id, str) and id in self._by_id), None)
        if known is not None or any(isinstance(id, str) for id in ids):
            return known
        return next((item for item in reversed(self._items) if item.type == type and not item.over), None)

    def _owner(self, chunk: Json, word: Word, choice: Choice) -> _Item:
        """The item that an event speaks of; a new one if it was never added."""
        item = self._find(chunk, word.item, (chunk.get("item_id"),))
        if item is None or item.type != word.item:
            choice.exact = False
            return self._new({"type": word.item, "id": chunk.get("item_id")}, chunk.get("output_index"))
        choice.exact &= chunk.get("item_id") == item.id and isinstance(chunk.get("output_index"), int)
        return item

    def _new(self, given: Json, index: Any) -> _Item:
        item = _Item(str(given.get("type")), given.get("id"))
        self._items.append(item)
        if isinstance(index, int):
            self._by_index[index] = item
        for id in (given.get("id"), given.get("call_id")):
            if isinstance(id, str):
                self._by_id.setdefault(id, item)
        return item

    # ── events ────────────────────────────────────────────────────────────────────────────────────────────────────

    def _add(self, chunk: Json, choice: Choice) -> None:
        given, index = chunk["item"], chunk.get("output_index")
        choice.exact &= isinstance(index, int) and index not in self._by_index and isinstance(given.get("id"), str)
        _note_unknown(given, choice)
        self._begin(self._new(given, index), given, choice)

    def _done(self, chunk: Json, choice: Choice) -> None:
        given = chunk["item"]
        item = self._find(chunk, str(given.get("type")), (given.get("id"), given.get("call_id")))
        if item is None or item.over:
            item = self._new(given, chunk.get("output_index"))
            _note_unknown(given, choice)
            choice.exact = False
        choice.exact &= given.get("id") == item.id and isinstance(chunk.get("output_index"), int)
        before = len(choice.events)
        self._begin(item, given, choice)
        self._rest(item, given, choice)
        choice.exact &= len(choice.events) == before
        self._end(item, given, choice)

    def _speak(self, word: Word, verb: str, chunk: Json, choice: Choice) -> None:
        item = self._owner(chunk, word, choice)
        text = chunk.get("delta" if verb == "delta" else word.field)
        if isinstance(text, dict) and word is ARGUMENTS:
            choice.report("arguments-as-value", "the arguments were sent as a value, not as text: written as text")
            text = write_json(text)
        if not isinstance(text, str):
            choice.report("bad-chunk", f"{chunk['type']} without its text: dropped")
            return
        key = (word.parts, _position(chunk, word))
        if verb == "done":
            before = len(choice.events)
            self._say_rest(item, word, key, text, choice)
            choice.exact &= len(choice.events) == before
        else:
            choice.exact &= not word.parts or word is THOUGHT or key in item.said
            self._say(item, word, key, text, choice)

    # ── what is said ──────────────────────────────────────────────────────────────────────────────────────────────

    def _begin(self, item: _Item, given: Json, choice: Choice) -> None:
        """Once more is known of an item: a call begins with its name."""
        item.type = str(given.get("type"))
        word = BY_ITEM.get(item.type)
        if word not in (ARGUMENTS, INPUT) or item.call is not None:
            return
        name, space, id = (given.get(field) for field in ("name", "namespace", "call_id"))
        if not isinstance(name, str) or not name:
            return
        if isinstance(space, str) and space:
            name = flat_name(space, name)
        if not isinstance(id, str) or not id:
            choice.report("no-id", f"a call of {name!r} without an id: it gets one")
            id = item.id if isinstance(item.id, str) else None
        item.call = _Call(self.calls, word, self._limits)
        choice.events.append(ev.CallStart(self.calls, id, name))
        if word is INPUT:
            choice.events.append(ev.ArgsDelta(self.calls, OPENER))
        self.calls += 1

    def _rest(self, item: _Item, given: Json, choice: Choice) -> None:
        """The item is whole: says what of it has not been said."""
        word = BY_ITEM.get(item.type)
        if word in (ARGUMENTS, INPUT):
            self._rest_of_call(item, word, given, choice)
            return
        for field in ("summary", "content") if word is SUMMARY else ("content",) if word else ():
            whole = given.get(field)
            parts = [{"type": word.part, word.field: whole}] if word and isinstance(whole, str) else as_list(whole)
            for n, part in enumerate(map(as_dict, parts)):
                spoken = BY_PART.get(str(part.get("type")))
                if spoken is not None and isinstance(part.get(spoken.field), str):
                    self._say_rest(item, spoken, (field, n), part[spoken.field], choice)

    def _rest_of_call(self, item: _Item, word: Word, given: Json, choice: Choice) -> None:
        whole = given.get(word.field)
        if whole is not None and not isinstance(whole, str):
            choice.report("arguments-as-value", "the arguments were sent as a value, not as text: written as text")
            whole = write_json(whole)
        if item.call is None:
            choice.report("call-without-name", f"a call without a name (id {item.id!r}): given out as text")
            choice.events += [ev.TextDelta(whole)] if whole else []
        elif whole:
            self._say_rest(item, word, ("", 0), whole, choice)

    def _say_rest(self, item: _Item, word: Word, key: tuple[str, int], whole: str, choice: Choice) -> None:
        """A text that is whole: it is said if none of it was."""
        if not item.said.get(key):
            self._say(item, word, key, whole, choice)

    def _say(self, item: _Item, word: Word, key: tuple[str, int], text: str, choice: Choice) -> None:
        if word not in _EVENTS:
            self._say_args(item, key, text, choice)
        elif text:
            # Parts of thinking are paragraphs, with a title each as a rule.
            apart = "\n\n" if word.item == "reasoning" and not item.said.get(key) and any(item.said.values()) else ""
            choice.events.append(_EVENTS[word](apart + text))
            item.said[key] = item.said.get(key, 0) + len(text)

    def _say_args(self, item: _Item, key: tuple[str, int], text: str, choice: Choice) -> None:
        if item.call is None or item.over:
            choice.exact = False  # its name is yet to come, and all the arguments with it
            return
        item.said[key] = item.said.get(key, 0) + len(text)
        if item.call.args is None:
            passed = write_json(text)[1:-1]
        else:
            passed, more = item.call.args.feed(text)
            choice.exact &= passed == text
            if more.strip():
                choice.report("after-arguments", f"more after the end of the arguments: dropped {more!r:.60}")
        if passed:
            choice.events.append(ev.ArgsDelta(item.call.key, passed))

    def _end(self, item: _Item, given: Json, choice: Choice) -> None:
        item.over = True
        if item.call is not None:
            self._end_call(item.call, given.get("status") == "incomplete", choice)
        sealed = given.get("encrypted_content")
        if item.type == "reasoning" and isinstance(sealed, str) and sealed:
            id = {"id": item.id} if isinstance(item.id, str) else {}
            choice.events.append(ev.Seal(NAME, {"encrypted_content": sealed, **id}))

    def _end_call(self, call: _Call, cut: bool, choice: Choice) -> None:
        if cut or (call.args is not None and call.args.unfinished):
            if call.args is not None and (rest := call.args.cut()):
                choice.events.append(ev.ArgsDelta(call.key, rest))
            choice.events.append(ev.Finding("cut-short", "the reply ended inside a call: it is incomplete"))
            choice.events.append(ev.CallEnd(call.key, complete=False))
            return
        if call.args is None:
            choice.events.append(ev.ArgsDelta(call.key, CLOSER))
        else:
            if rest := call.args.end():
                choice.events.append(ev.ArgsDelta(call.key, rest))
                choice.exact = False
            for kind, message in call.args.notes:
                choice.report(kind, message)
        choice.events.append(ev.CallEnd(call.key))


def _note_unknown(given: Json, choice: Choice) -> None:
    if given.get("type") not in BY_ITEM:
        message = f"an item of type {given.get('type')!r}: told only to clients of this wire"
        choice.events.append(ev.Finding("unknown-item", message))


def _position(chunk: Json, word: Word) -> int:
    position = chunk.get(word.position)
    return position if isinstance(position, int) else 0
