"""Reader for the output items of a response: converts each event to the neutral events that it adds.

An item may arrive in deltas, or whole in `output_item.added`, in `output_item.done` or in the final event, or in
several of these. Its text is emitted once: a whole text adds only the remainder that its deltas left out.
"""

from __future__ import annotations

from typing import Any

from interlingua import events as ev
from interlingua.common.coerce import as_dict, as_list
from interlingua.common.jsontext.codec import encode_json, write_json
from interlingua.core.options import ArgumentsPolicy, Limits
from interlingua.core.text_forwarder import TextForwarder
from interlingua.core.tools import qualified_name
from interlingua.wires.base import Choice, Json
from interlingua.wires.openai_responses.event_types import (
    CUSTOM_TOOL_INPUT,
    FUNCTION_ARGUMENTS,
    ITEM_ADDED,
    ITEM_DONE,
    KIND_BY_EVENT_PREFIX,
    KIND_BY_ITEM_TYPE,
    KIND_BY_PART_TYPE,
    NAME,
    OUTPUT_TEXT,
    REASONING_SUMMARY,
    REASONING_TEXT,
    REFUSAL,
    TextKind,
    text_kind_of,
)
from interlingua.wires.openai_responses.item_state import (
    CUSTOM_INPUT_PREFIX,
    WHOLE_ITEM,
    CallState,
    ItemIndex,
    ItemState,
    PartKey,
    UntranslatedLog,
)
from interlingua.wires.streaming.text_digest import TextDigest

__all__ = ["ItemReader"]

_DELTA_EVENTS: dict[TextKind, type[ev.TextDelta | ev.RefusalDelta | ev.ReasoningDelta]] = {
    OUTPUT_TEXT: ev.TextDelta,
    REFUSAL: ev.RefusalDelta,
    REASONING_SUMMARY: ev.ReasoningDelta,
    REASONING_TEXT: ev.ReasoningDelta,
}
EMPTY_ARGUMENTS = ("", "{}")
"""Arguments that are not worth a finding when they are dropped."""


class ItemReader:
    """Reads the items of one response. Neutral events are appended to the choice that is passed in."""

    __slots__ = ("_arguments_policy", "_items", "_kept_chars", "_limits", "_untranslated", "call_count")

    def __init__(self, limits: Limits, arguments: ArgumentsPolicy) -> None:
        self._limits = limits
        self._arguments_policy = arguments
        self._items = ItemIndex()
        self._kept_chars = 0  # in the items as they were added
        self._untranslated = UntranslatedLog()
        self.call_count = 0

    def read(self, chunk: Json, choice: Choice) -> None:
        """Read an event about an item. Other events are ignored."""
        event_type = str(chunk.get("type"))
        event_prefix, _, event_suffix = event_type.rpartition(".")
        if event_type in (ITEM_ADDED, ITEM_DONE) and not isinstance(chunk.get("item"), dict):
            choice.report("bad-chunk", f"{event_type} has no item: dropped")
        elif event_type == ITEM_ADDED:
            self._read_item_added(chunk, choice)
        elif event_type == ITEM_DONE:
            self._read_item_done(chunk, choice)
        elif event_prefix in KIND_BY_EVENT_PREFIX and event_suffix in ("delta", "done"):
            self._read_text_event(KIND_BY_EVENT_PREFIX[event_prefix], event_suffix, chunk, choice)
        elif event_suffix == "added" and (
            text_kind := KIND_BY_PART_TYPE.get(str(as_dict(chunk.get("part")).get("type")))
        ):
            part_key = text_kind.parts_field, _part_index(chunk, text_kind)
            item = self._item_for_event(chunk, text_kind, choice)
            item.text_digest(part_key)
            self._check_part_count(item, choice)

    def append_text(
        self, index: int, item_id: str, text_kind: TextKind, part_key: PartKey, text: str, choice: Choice
    ) -> bool:
        """Fast path of `read` for a delta of an item whose index and id both match.

        Returns: False, with the state unchanged, if no such item is open.
        """
        item = self._items.get(index)
        if item is None or item.id != item_id or item.type != text_kind.item_type:
            return False
        if len(item.text_digests) > self._limits.calls:  # `read` reports it
            return False
        self._emit_delta(item, text_kind, part_key, text, choice)
        return True

    def arguments_forwarder(self, index: int) -> TextForwarder | None:
        """Return a function for more arguments that `append_text` would append unchanged: it scans them, but does not
        add them to the text of the item. None if no call of a function is open on this index."""
        item = self._items.get(index)
        if item is None or item.finished or item.call is None or item.call.args is None:
            return None
        return item.call.args.scanner.skip_string_texts

    def text_digest(self, index: int, part_key: PartKey) -> TextDigest:
        """Return the digest of the text so far of a part that has text."""
        item = self._items.get(index)
        assert item is not None, "the item has text"
        return item.text_digest(part_key)

    def read_output(self, output: list[Any], choice: Choice) -> None:
        """Read the `output` of the final event and emit what the earlier events left out."""
        for index, raw_item in enumerate(output):
            if not isinstance(raw_item, dict):
                continue
            if len(self) > self._limits.calls:  # reported when the last item was added
                break
            item = self._items.find_in_output(index, raw_item)
            if item is None:
                item = self._add_item(raw_item, None, choice)
                self._start_call(item, raw_item, choice)
                self._emit_missing_text(item, raw_item, choice)
            else:
                self._complete_item(item, raw_item, choice)
            if not item.finished and raw_item.get("status") != "in_progress":
                self._finish_item(item, raw_item, choice)

    def report_untranslated(self, chunk: Json) -> list[ev.Event]:
        """Report an event that other wires cannot represent, unless its item has been reported already."""
        item = self._items.find(chunk, "", (chunk.get("item_id"),))
        return (
            self._untranslated.report_event(chunk.get("type")) if item is None or item.type in KIND_BY_ITEM_TYPE else []
        )

    @property
    def all_finished(self) -> bool:
        return all(item.finished for item in self._items.items)

    def __len__(self) -> int:
        return len(self._items.items)

    def finish_open_items(self, choice: Choice) -> None:
        """End the items that the upstream left open in a completed response."""
        for item in self._items.items:
            if not item.finished:
                self._finish_item(item, {}, choice)

    # ── finding the item ──────────────────────────────────────────────────────────────────────────────────────────

    def _item_for_event(self, chunk: Json, text_kind: TextKind, choice: Choice) -> ItemState:
        """Return the item that an event belongs to. An item that was never added is created."""
        item = self._items.find(chunk, text_kind.item_type, (chunk.get("item_id"),))
        if item is None or item.type != text_kind.item_type:
            choice.exact = False
            return self._add_item(
                {"type": text_kind.item_type, "id": chunk.get("item_id")}, chunk.get("output_index"), choice
            )
        choice.exact &= chunk.get("item_id") == item.id and isinstance(chunk.get("output_index"), int)
        return item

    def _add_item(self, raw_item: Json, index: Any, choice: Choice) -> ItemState:
        """Add a new item at the next index."""
        next_index = len(self)
        if isinstance(index, int) and self._items.has_index(index):
            choice.report("shared-index", f"index {index} already belongs to another item: read as a separate item")
        elif isinstance(index, int) and index != next_index:
            choice.report("renumbered", f"an item has index {index} instead of {next_index}: renumbered")
        if text_kind_of(raw_item) is None:
            choice.events += self._untranslated.report(f"an item of type {raw_item.get('type')!r:.60}")
        if next_index >= self._limits.calls:
            self._fail(f"more than {self._limits.calls:,} items (limits.calls)", choice)
        self._kept_chars += len(encode_json(raw_item))
        if self._kept_chars > self._limits.text:
            self._fail(f"items of more than {self._limits.text:,} characters (limits.text)", choice)
        return self._items.add(raw_item, index)

    def _check_part_count(self, item: ItemState, choice: Choice) -> None:
        if len(item.text_digests) > self._limits.calls:
            self._fail(f"an item of more than {self._limits.calls:,} parts (limits.calls)", choice)

    def _fail(self, problem: str, choice: Choice) -> None:
        choice.events.append(ev.Failure(f"the upstream sent {problem}"))
        choice.exact = False

    # ── events ────────────────────────────────────────────────────────────────────────────────────────────────────

    def _read_item_added(self, chunk: Json, choice: Choice) -> None:
        raw_item, index = chunk["item"], chunk.get("output_index")
        existing = self._items.find(chunk, str(raw_item.get("type")), (raw_item.get("id"), raw_item.get("call_id")))
        if existing is not None and existing.is_same(raw_item) and text_kind_of(raw_item):
            choice.report("repeated-item", f"the item with id {raw_item.get('id')!r} was added twice: read once")
            return
        choice.exact &= (
            isinstance(index, int) and not self._items.has_index(index) and isinstance(raw_item.get("id"), str)
        )
        item = self._add_item(raw_item, index, choice)
        self._start_call(item, raw_item, choice)
        text_kind = text_kind_of(raw_item)
        choice.exact &= text_kind is None or not raw_item.get(
            text_kind.parts_field or text_kind.text_field
        )  # its text belongs in deltas
        choice.exact &= text_kind not in (FUNCTION_ARGUMENTS, CUSTOM_TOOL_INPUT) or item.call is not None

    def _read_item_done(self, chunk: Json, choice: Choice) -> None:
        raw_item = chunk["item"]
        item = self._items.find(chunk, str(raw_item.get("type")), (raw_item.get("id"), raw_item.get("call_id")))
        if item is not None and item.finished and item.is_same(raw_item) and text_kind_of(raw_item):
            choice.report("repeated-item", f"the item with id {raw_item.get('id')!r} was done twice: read once")
            return
        if item is None or item.finished:
            item = self._add_item(raw_item, chunk.get("output_index"), choice)
            choice.exact = False
        choice.exact &= raw_item.get("id") == item.id and isinstance(chunk.get("output_index"), int)
        self._complete_item(item, raw_item, choice)
        self._finish_item(item, raw_item, choice)

    def _read_text_event(self, text_kind: TextKind, event_suffix: str, chunk: Json, choice: Choice) -> None:
        item = self._item_for_event(chunk, text_kind, choice)
        text = chunk.get("delta" if event_suffix == "delta" else text_kind.text_field)
        if isinstance(text, dict) and text_kind is FUNCTION_ARGUMENTS:
            text = item.arguments_as_text(text, choice)
        if not isinstance(text, str):
            choice.report("bad-chunk", f"{chunk['type']} has no text: dropped")
            return
        part_key = (text_kind.parts_field, _part_index(chunk, text_kind))
        if event_suffix == "done":
            item.initial_item = {
                **item.initial_item,
                **{field: chunk[field] for field in ("name", "call_id") if chunk.get(field)},
            }
            event_count = len(choice.events)
            self._emit_remainder(item, text_kind, part_key, text, choice)
            choice.exact &= len(choice.events) == event_count
        else:
            self._emit_delta(item, text_kind, part_key, text, choice)
        self._check_part_count(item, choice)

    # ── emitting events ───────────────────────────────────────────────────────────────────────────────────────────

    def _start_call(self, item: ItemState, raw_item: Json, choice: Choice) -> None:
        """Start the call as soon as its name is known, and emit the arguments that were buffered until then."""
        item.type = str(raw_item.get("type", item.type))
        text_kind = KIND_BY_ITEM_TYPE.get(item.type)
        if text_kind not in (FUNCTION_ARGUMENTS, CUSTOM_TOOL_INPUT) or item.call is not None or item.finished:
            return
        name, namespace, id = (raw_item.get(field) for field in ("name", "namespace", "call_id"))
        if not isinstance(name, str) or not name:
            return
        if isinstance(namespace, str) and namespace:
            name = qualified_name(namespace, name)
        if not isinstance(id, str) or not id:
            choice.report("no-id", f"a call of {name!r} has no id: one is generated")
            id = item.id if isinstance(item.id, str) else None
        item.call_id = id
        item.call = CallState(self.call_count, text_kind, self._limits, self._arguments_policy)
        choice.events.append(ev.CallStart(self.call_count, id, name))
        if text_kind is CUSTOM_TOOL_INPUT:
            choice.events.append(ev.ArgsDelta(self.call_count, CUSTOM_INPUT_PREFIX))
        self.call_count += 1
        if text := item.take_pending_arguments():
            self._emit_arguments(item, WHOLE_ITEM, text, choice)

    def _emit_missing_text(self, item: ItemState, raw_item: Json, choice: Choice) -> None:
        """Emit the text of a whole item that its deltas left out."""
        text_kind = KIND_BY_ITEM_TYPE.get(item.type)
        if text_kind in (FUNCTION_ARGUMENTS, CUSTOM_TOOL_INPUT):
            content = raw_item.get(text_kind.text_field)
            if content is not None and not isinstance(content, str):
                content = item.arguments_as_text(content, choice)
            self._emit_remainder(item, text_kind, WHOLE_ITEM, content or "", choice)
            return
        for field in ("summary", "content") if text_kind is REASONING_SUMMARY else ("content",) if text_kind else ():
            content = raw_item.get(field)
            parts = (
                [{"type": text_kind.part_type, text_kind.text_field: content}]
                if text_kind and isinstance(content, str)
                else as_list(content)
            )
            for part_index, part in enumerate(map(as_dict, parts)):
                part_kind = KIND_BY_PART_TYPE.get(str(part.get("type")))
                if part_kind is not None and isinstance(part.get(part_kind.text_field), str):
                    self._emit_remainder(item, part_kind, (field, part_index), part[part_kind.text_field], choice)

    def _complete_item(self, item: ItemState, raw_item: Json, choice: Choice) -> None:
        """Like `_emit_missing_text`, for an item seen before. The event is exact only if nothing was missing."""
        event_count = len(choice.events)
        self._start_call(item, raw_item, choice)
        self._emit_missing_text(item, raw_item, choice)
        choice.exact &= len(choice.events) == event_count

    def _emit_remainder(
        self, item: ItemState, text_kind: TextKind, part_key: PartKey, full_text: str, choice: Choice
    ) -> None:
        """Emit the part of a whole text that has not been sent. Report a text that does not start with its deltas."""
        remainder = item.text_digest(part_key).remainder(full_text) if part_key in item.text_digests else full_text
        if not full_text:
            choice.exact &= remainder is not None
        elif remainder is None:
            item.report(
                "changed-text",
                f"the complete `{text_kind.text_field}` does not begin with its deltas: the deltas are used",
                choice,
            )
        elif remainder:
            self._emit_text(item, text_kind, part_key, remainder, choice)

    def _emit_delta(self, item: ItemState, text_kind: TextKind, part_key: PartKey, text: str, choice: Choice) -> None:
        choice.exact &= not text_kind.parts_field or text_kind is REASONING_TEXT or part_key in item.text_digests
        self._emit_text(item, text_kind, part_key, text, choice)

    def _emit_text(self, item: ItemState, text_kind: TextKind, part_key: PartKey, text: str, choice: Choice) -> None:
        event_class = _DELTA_EVENTS.get(text_kind)
        if event_class is None:
            self._emit_arguments(item, part_key, text, choice)
        elif text:
            is_new_part = not item.text_digest(part_key).size
            # Parts of a reasoning item are paragraphs, usually with a title each.
            separator = "\n\n" if text_kind.item_type == "reasoning" and is_new_part and item.has_text else ""
            choice.events.append(event_class(separator + text))
            item.add_text(part_key, text)

    def _emit_arguments(self, item: ItemState, part_key: PartKey, text: str, choice: Choice) -> None:
        if item.finished:
            if text.strip() not in EMPTY_ARGUMENTS:
                choice.report("no-such-call", f"arguments for a call that has ended: dropped {text!r:.60}")
            return
        if item.call is None:
            self._buffer_arguments(item, part_key, text, choice)
            return
        runaway = False
        if item.call.args is not None:
            accepted, surplus = item.call.args.feed(text)
            runaway = item.call.args.runaway
            choice.exact &= accepted == text
        else:
            accepted, surplus = write_json(text)[1:-1], ""
        item.add_text(part_key, text[: len(text) - len(surplus)] if surplus else text)
        if surplus and surplus.strip():
            choice.report("after-arguments", f"text after the end of the arguments: dropped {surplus!r:.60}")
        if accepted or runaway:
            choice.events.append(ev.ArgsDelta(item.call.key, accepted, runaway))

    def _buffer_arguments(self, item: ItemState, part_key: PartKey, text: str, choice: Choice) -> None:
        """Buffer arguments until the name of the call arrives."""
        choice.exact = False
        item.buffer_arguments(text)
        item.add_text(part_key, text)
        limit = self._limits.held
        if item.pending_chars <= limit:
            return
        message = f"a call without a name is longer than {limit:,} characters"
        if self._limits.over == "error":
            choice.events.append(ev.Failure(message))
        else:
            choice.report("over-limit", f"{message}: sent as text")
            choice.events.append(ev.TextDelta(item.take_pending_arguments()))

    def _finish_item(self, item: ItemState, raw_item: Json, choice: Choice) -> None:
        """End the item. The content that it had when it was added is used if no other content arrived."""
        self._start_call(item, item.initial_item, choice)
        if not item.has_text:
            self._emit_missing_text(item, item.initial_item, choice)
        if item.call is not None:
            item.call.end(raw_item.get("status") == "incomplete", choice)
        elif KIND_BY_ITEM_TYPE.get(item.type) in (FUNCTION_ARGUMENTS, CUSTOM_TOOL_INPUT):
            choice.report("call-without-name", f"a call has no name (id {item.id!r}): sent as text")
            if text := item.take_pending_arguments():
                choice.events.append(ev.TextDelta(text))
        item.finished = True
        choice.events += self._untranslated.report_annotations(raw_item)
        encrypted_content = raw_item.get("encrypted_content")
        if item.type == "reasoning" and isinstance(encrypted_content, str) and encrypted_content:
            id = {"id": item.id} if isinstance(item.id, str) else {}
            choice.events.append(ev.Seal(NAME, {"encrypted_content": encrypted_content, **id}))


def _part_index(chunk: Json, text_kind: TextKind) -> int:
    index = chunk.get(text_kind.part_index_field)
    return index if isinstance(index, int) else 0
