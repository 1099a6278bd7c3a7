"""The items of a response as upstreams send them: what each event adds to what has been said.

An item may come in deltas, or whole when it is added, when it is done or in the last event, or several of these.
Its text is said once: a whole adds what its deltas have left out.
"""

from __future__ import annotations

from typing import Any

from interlingua import events as ev
from interlingua.common.coerce import as_dict, as_list
from interlingua.common.jsontext.codec import write_json
from interlingua.core.options__limits import Limits
from interlingua.core.tools import flat_name
from interlingua.wires.base import Choice, Json
from interlingua.wires.openai_responses.event_types import (
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
    word_of,
)
from interlingua.wires.openai_responses.fast_delta import WHOLE, UsualDelta
from interlingua.wires.openai_responses.item_state import OPENER, Call, Heard, Register, Untold

__all__ = ["Items"]

_EVENTS: dict[Word, type[ev.TextDelta | ev.RefusalDelta | ev.ReasoningDelta]] = {
    TEXT: ev.TextDelta,
    REFUSAL: ev.RefusalDelta,
    SUMMARY: ev.ReasoningDelta,
    THOUGHT: ev.ReasoningDelta,
}
NOTHING = ("", "{}")
"""Arguments that need not be told."""


class Items:
    """The items of one response. What an event says goes into the choice that it is read for."""

    def __init__(self, limits: Limits) -> None:
        self._limits = limits
        self._known = Register()
        self._untold = Untold()
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
            self._owner(chunk, word, choice).at((word.parts, _position(chunk, word)))

    def more(self, delta: UsualDelta, choice: Choice) -> bool:
        """`read` for a delta of an item that is known by index and id alike. False, and nothing has happened, if it is
        not."""
        word, item = delta.word, self._known.at(delta.output_index)
        if item is None or item.id != delta.item_id or item.type != word.item:
            return False
        self._say_more(item, word, delta.part(word), delta.delta, choice)
        return True

    def read_last(self, output: list[Any], choice: Choice) -> None:
        """The items as the last event tells them: says what of them has not been said."""
        for n, given in enumerate(output):
            if not isinstance(given, dict):
                continue
            item = self._known.in_output(n, given)
            if item is None:
                item = self._new(given, None, choice)
                self._begin(item, given, choice)
                self._rest(item, given, choice)
            else:
                self._add_rest(item, given, choice)
            if not item.over and given.get("status") != "in_progress":
                self._end(item, given, choice)

    def note_event(self, chunk: Json) -> list[ev.Event]:
        """An event that other wires have no word for, unless it is about an item of which that has been said."""
        item = self._known.find(chunk, "", (chunk.get("item_id"),))
        return self._untold.note_event(chunk.get("type")) if item is None or item.type in BY_ITEM else []

    @property
    def all_over(self) -> bool:
        return all(item.over for item in self._known.items)

    def __len__(self) -> int:
        return len(self._known.items)

    def finish(self, choice: Choice) -> None:
        """The upstream has stopped well: what it has left open is over."""
        for item in self._known.items:
            if not item.over:
                self._end(item, {}, choice)

    # ── which item ────────────────────────────────────────────────────────────────────────────────────────────────

    def _owner(self, chunk: Json, word: Word, choice: Choice) -> Heard:
        """The item that an event speaks of; a new one if it was never added."""
        item = self._known.find(chunk, word.item, (chunk.get("item_id"),))
        if item is None or item.type != word.item:
            choice.exact = False
            return self._new({"type": word.item, "id": chunk.get("item_id")}, chunk.get("output_index"), choice)
        choice.exact &= chunk.get("item_id") == item.id and isinstance(chunk.get("output_index"), int)
        return item

    def _new(self, given: Json, index: Any, choice: Choice) -> Heard:
        """An item that nothing has been heard of, at the index that comes next."""
        following = len(self)
        if isinstance(index, int) and self._known.holds(index):
            choice.report("shared-index", f"another item on index {index}: taken as an item of its own")
        elif isinstance(index, int) and index != following:
            choice.report("renumbered", f"an item on index {index} where {following} comes next: renumbered")
        if word_of(given) is None:
            choice.events += self._untold.note(f"an item of type {given.get('type')!r:.60}")
        return self._known.add(given, index)

    # ── events ────────────────────────────────────────────────────────────────────────────────────────────────────

    def _add(self, chunk: Json, choice: Choice) -> None:
        given, index = chunk["item"], chunk.get("output_index")
        before = self._known.find(chunk, str(given.get("type")), (given.get("id"), given.get("call_id")))
        if before is not None and before.is_same(given) and word_of(given):
            choice.report("repeated-item", f"an item that is added again (id {given.get('id')!r}): taken once")
            return
        choice.exact &= isinstance(index, int) and not self._known.holds(index) and isinstance(given.get("id"), str)
        item = self._new(given, index, choice)
        self._begin(item, given, choice)
        word = word_of(given)
        choice.exact &= word is None or not given.get(word.parts or word.field)  # its text is told by deltas
        choice.exact &= word not in (ARGUMENTS, INPUT) or item.call is not None

    def _done(self, chunk: Json, choice: Choice) -> None:
        given = chunk["item"]
        item = self._known.find(chunk, str(given.get("type")), (given.get("id"), given.get("call_id")))
        if item is not None and item.over and item.is_same(given) and word_of(given):
            choice.report("repeated-item", f"an item that is done twice (id {given.get('id')!r}): taken once")
            return
        if item is None or item.over:
            item = self._new(given, chunk.get("output_index"), choice)
            choice.exact = False
        choice.exact &= given.get("id") == item.id and isinstance(chunk.get("output_index"), int)
        self._add_rest(item, given, choice)
        self._end(item, given, choice)

    def _speak(self, word: Word, verb: str, chunk: Json, choice: Choice) -> None:
        item = self._owner(chunk, word, choice)
        text = chunk.get("delta" if verb == "delta" else word.field)
        if isinstance(text, dict) and word is ARGUMENTS:
            text = item.as_text(text, choice)
        if not isinstance(text, str):
            choice.report("bad-chunk", f"{chunk['type']} without its text: dropped")
            return
        key = (word.parts, _position(chunk, word))
        if verb == "done":
            item.first = {**item.first, **{field: chunk[field] for field in ("name", "call_id") if chunk.get(field)}}
            before = len(choice.events)
            self._say_rest(item, word, key, text, choice)
            choice.exact &= len(choice.events) == before
        else:
            self._say_more(item, word, key, text, choice)

    # ── what is said ──────────────────────────────────────────────────────────────────────────────────────────────

    def _begin(self, item: Heard, given: Json, choice: Choice) -> None:
        """Once more is known of an item: a call begins with its name, and says what has waited for it."""
        item.type = str(given.get("type", item.type))
        word = BY_ITEM.get(item.type)
        if word not in (ARGUMENTS, INPUT) or item.call is not None or item.over:
            return
        name, space, id = (given.get(field) for field in ("name", "namespace", "call_id"))
        if not isinstance(name, str) or not name:
            return
        if isinstance(space, str) and space:
            name = flat_name(space, name)
        if not isinstance(id, str) or not id:
            choice.report("no-id", f"a call of {name!r} without an id: it gets one")
            id = item.id if isinstance(item.id, str) else None
        item.call_id = id
        item.call = Call(self.calls, word, self._limits)
        choice.events.append(ev.CallStart(self.calls, id, name))
        if word is INPUT:
            choice.events.append(ev.ArgsDelta(self.calls, OPENER))
        self.calls += 1
        if text := item.take_waiting():
            self._say_args(item, WHOLE, text, choice)

    def _rest(self, item: Heard, given: Json, choice: Choice) -> None:
        """The item is whole: says what of it has not been said."""
        word = BY_ITEM.get(item.type)
        if word in (ARGUMENTS, INPUT):
            whole = given.get(word.field)
            if whole is not None and not isinstance(whole, str):
                whole = item.as_text(whole, choice)
            self._say_rest(item, word, WHOLE, whole or "", choice)
            return
        for field in ("summary", "content") if word is SUMMARY else ("content",) if word else ():
            whole = given.get(field)
            parts = [{"type": word.part, word.field: whole}] if word and isinstance(whole, str) else as_list(whole)
            for n, part in enumerate(map(as_dict, parts)):
                spoken = BY_PART.get(str(part.get("type")))
                if spoken is not None and isinstance(part.get(spoken.field), str):
                    self._say_rest(item, spoken, (field, n), part[spoken.field], choice)

    def _add_rest(self, item: Heard, given: Json, choice: Choice) -> None:
        """The same for an item that has been heard of: only where nothing is left to say may the event pass."""
        before = len(choice.events)
        self._begin(item, given, choice)
        self._rest(item, given, choice)
        choice.exact &= len(choice.events) == before

    def _say_rest(self, item: Heard, word: Word, key: tuple[str, int], whole: str, choice: Choice) -> None:
        """A text that is whole: what was said is the beginning of it, or the upstream contradicts itself."""
        rest = item.at(key).rest(whole) if key in item.told else whole
        if not whole:
            choice.exact &= rest is not None
        elif rest is None:
            item.report(
                "changed-text", f"a {word.field} sent whole does not begin with its deltas: these count", choice
            )
        elif rest:
            self._say(item, word, key, rest, choice)

    def _say_more(self, item: Heard, word: Word, key: tuple[str, int], text: str, choice: Choice) -> None:
        choice.exact &= not word.parts or word is THOUGHT or key in item.told
        self._say(item, word, key, text, choice)

    def _say(self, item: Heard, word: Word, key: tuple[str, int], text: str, choice: Choice) -> None:
        event = _EVENTS.get(word)
        if event is None:
            self._say_args(item, key, text, choice)
        elif text:
            told = item.at(key)
            # Parts of thinking are paragraphs, with a title each as a rule.
            apart = "\n\n" if word.item == "reasoning" and not told.size and item.speaks else ""
            choice.events.append(event(apart + text))
            told.add(text)

    def _say_args(self, item: Heard, key: tuple[str, int], text: str, choice: Choice) -> None:
        if item.over:
            if text.strip() not in NOTHING:
                choice.report("no-such-call", f"arguments for a call that is over: dropped {text!r:.60}")
            return
        if item.call is None:
            self._wait(item, key, text, choice)
            return
        if item.call.args is not None:
            passed, more = item.call.args.feed(text)
            choice.exact &= passed == text
        else:
            passed, more = write_json(text)[1:-1], ""
        item.at(key).add(text[: len(text) - len(more)] if more else text)
        if more and more.strip():
            choice.report("after-arguments", f"more after the end of the arguments: dropped {more!r:.60}")
        if passed:
            choice.events.append(ev.ArgsDelta(item.call.key, passed))

    def _wait(self, item: Heard, key: tuple[str, int], text: str, choice: Choice) -> None:
        """The name of the call is yet to come."""
        choice.exact = False
        item.waiting.append(text)
        item.at(key).add(text)
        limit = self._limits.held
        if sum(map(len, item.waiting)) <= limit:
            return
        message = f"a call without a name: longer than {limit:,} characters"
        if self._limits.over == "error":
            choice.events.append(ev.Failure(message))
        else:
            choice.report("over-limit", f"{message}; given out as text")
            choice.events.append(ev.TextDelta(item.take_waiting()))

    def _end(self, item: Heard, given: Json, choice: Choice) -> None:
        """The item is over. What stood in it when it was added counts if nothing else came."""
        self._begin(item, item.first, choice)
        if not item.speaks:
            self._rest(item, item.first, choice)
        if item.call is not None:
            item.call.end(given.get("status") == "incomplete", choice)
        elif BY_ITEM.get(item.type) in (ARGUMENTS, INPUT):
            choice.report("call-without-name", f"a call without a name (id {item.id!r}): given out as text")
            if text := item.take_waiting():
                choice.events.append(ev.TextDelta(text))
        item.over = True
        choice.events += self._untold.note_annotations(given)
        sealed = given.get("encrypted_content")
        if item.type == "reasoning" and isinstance(sealed, str) and sealed:
            id = {"id": item.id} if isinstance(item.id, str) else {}
            choice.events.append(ev.Seal(NAME, {"encrypted_content": sealed, **id}))


def _position(chunk: Json, word: Word) -> int:
    position = chunk.get(word.position)
    return position if isinstance(position, int) else 0
