"""Clients for Responses streams: a strict reader of our own with the checks of Codex, and the official SDK.

All return the views that `sdk` defines for chat completions, so that the wires can be compared.
"""

from __future__ import annotations

import json
from typing import Any

from tests.support.sdk import ChoiceView, Json, StreamView, sdk_client

FINAL_STATUSES = {"response.completed": "completed", "response.incomplete": "incomplete", "response.failed": "failed"}
PART_FIELDS = {
    "output_text": ("content_index", "text"),
    "refusal": ("content_index", "refusal"),
    "summary_text": ("summary_index", "text"),
    "reasoning_text": ("content_index", "text"),
}
EVENT_PREFIXES = {
    "response.output_text": ("output_text", "text"),
    "response.refusal": ("refusal", "refusal"),
    "response.reasoning_summary_text": ("summary_text", "text"),
    "response.reasoning_text": ("reasoning_text", "text"),
    "response.function_call_arguments": ("function_call", "arguments"),
    "response.custom_tool_call_input": ("custom_tool_call", "input"),
}


def frames(stream: bytes) -> list[Json]:
    """Return all events. Asserts that the SSE event name equals the type in the data."""
    events = []
    for block in stream.decode().split("\n\n"):
        lines = dict(line.split(": ", 1) for line in block.split("\n") if line and not line.startswith(":"))
        if lines:
            events.append(json.loads(lines["data"]))
            assert lines["event"] == events[-1]["type"], block
    return events


# ── strict reader ─────────────────────────────────────────────────────────────────────────────────────────────────


class _StrictResponseReader:
    """Asserts the full order of events: one item after another, each with start, deltas and end."""

    def __init__(self) -> None:
        self.item: Json | None = None
        self.part: str | None = None
        self.text = ""
        self.parts: list[str] = []
        self.done: list[Json] = []
        self.count = 0
        self.end: Json | None = None

    def receive(self, frame: Json) -> None:
        assert self.end is None, f"after the end: {frame}"
        event_type = frame["type"]
        event_prefix, _, event_suffix = event_type.rpartition(".")
        if event_type in FINAL_STATUSES:
            self.end = frame
        elif event_prefix in EVENT_PREFIXES:
            self._receive_text(frame, *EVENT_PREFIXES[event_prefix], event_suffix)
        elif event_prefix in ("response.content_part", "response.reasoning_summary_part"):
            self._receive_part(frame, event_suffix)
        elif event_type == "response.output_item.added":
            self._receive_added(frame)
        else:
            assert event_type == "response.output_item.done", frame
            self._receive_done(frame)

    def _receive_added(self, frame: Json) -> None:
        unfinished = self.item is not None and self.item["type"] in ("function_call", "custom_tool_call")
        assert self.item is None or unfinished, f"another item is open: {frame}"
        assert frame["output_index"] == self.count
        self.count += 1
        self.item, self.text, self.parts = frame["item"], "", []
        check_codex_item(self.item)
        assert self.item.get("status") in ("in_progress", None)

    def _receive_part(self, frame: Json, event_suffix: str) -> None:
        self._current_item(frame)
        part_type = frame["part"]["type"]
        position, field = PART_FIELDS[part_type]
        assert frame[position] == len(self.parts)
        assert (
            self.part == (None if event_suffix == "added" else part_type) or part_type == "reasoning_text"
        )  # few upstreams send its part.added
        if event_suffix == "added":
            self.part, self.text = part_type, ""
        else:
            self.parts.append(self.text)
            self.part = None
        assert frame["part"][field] == self.text

    def _receive_text(self, frame: Json, part_type: str, field: str, event_suffix: str) -> None:
        item = self._current_item(frame)
        assert part_type in (self.part, item["type"]) or part_type == "reasoning_text", frame
        if part_type == "output_text":
            assert frame["logprobs"] == []
        if event_suffix == "delta":
            assert frame["delta"], "an empty delta"
            self.text += frame["delta"]
        else:
            assert frame[field] == self.text

    def _receive_done(self, frame: Json) -> None:
        item = frame["item"]
        assert self.item is not None
        assert frame["output_index"] == self.count - 1
        assert self.part is None
        assert (item["type"], item["id"]) == (self.item["type"], self.item["id"])
        check_codex_item(item)
        assert item_text(item) == ("".join(self.parts) if self.parts else self.text), item
        assert item.get("status") in ("completed", "incomplete", None)
        self.done.append(item)
        self.item, self.text = None, ""

    def _current_item(self, frame: Json) -> Json:
        assert self.item is not None, f"outside of an item: {frame}"
        assert (frame["item_id"], frame["output_index"]) == (self.item["id"], self.count - 1)
        return self.item


def read_strict(stream: bytes) -> StreamView:
    """Read a stream and assert everything that any known client relies on."""
    events = frames(stream)
    assert [frame["sequence_number"] for frame in events] == list(range(len(events)))
    assert [frame["type"] for frame in events[:2]] == ["response.created", "response.in_progress"]
    assert all(frame["response"]["status"] == "in_progress" for frame in events[:2])
    reader = _StrictResponseReader()
    for frame in events[2:]:
        reader.receive(frame)
    assert reader.end is not None, "the stream has no final event"
    response = reader.end["response"]
    assert response["status"] == FINAL_STATUSES[reader.end["type"]]
    assert len({frame["response"]["id"] for frame in events if "response" in frame}) == 1
    view = view_of_response(response)
    if view.error is None:
        unfinished = [item for item in response["output"] if item not in reader.done]
        assert [item for item in response["output"] if item not in unfinished] == reader.done
        assert all(item["status"] == "incomplete" for item in unfinished), unfinished
        assert reader.item is None or unfinished
    return view


def view_of_response(response: Json) -> StreamView:
    """Return the view of a whole response."""
    assert response["object"] == "response"
    view = StreamView(usage=response["usage"], error=(response["error"] or {}).get("message"))
    view.done = view.error is None
    choice_view = ChoiceView()
    for item in response["output"]:
        if item["type"] == "reasoning":
            choice_view.reasoning += item_text(item)
        elif item["type"] == "message":
            refused = item["content"] and item["content"][0]["type"] == "refusal"
            choice_view.refusal += item_text(item) if refused else ""
            choice_view.text += "" if refused else item_text(item)
        else:
            choice_view.calls.append((item["call_id"], item["name"], item_text(item)))
    details = response["incomplete_details"]
    choice_view.finish = _finish_reason(details["reason"]) if details else "tool_calls" if choice_view.calls else "stop"
    if view.error is None:
        view.choices[0] = choice_view
        assert set(response["usage"]) >= {"input_tokens", "output_tokens", "total_tokens"}
    return view


def _finish_reason(reason: str | None) -> str:
    return "content_filter" if reason == "content_filter" else "length"


def item_text(item: Json) -> str:
    """Return the text of an item."""
    parts = [*item.get("summary", ()), *item.get("content", ())]
    text = "".join(part.get("text") or part.get("refusal") or "" for part in parts)
    return text + str(item.get("arguments") or item.get("input") or "")


def check_codex_item(item: Json) -> None:
    """Assert the fields and types that Codex requires of a ResponseItem."""
    required: dict[str, dict[str, type]] = {
        "message": {"role": str, "content": list},
        "reasoning": {"id": str, "summary": list},
        "function_call": {"name": str, "arguments": str, "call_id": str},
        "custom_tool_call": {"name": str, "input": str, "call_id": str},
    }
    assert isinstance(item["id"], str)
    for field, field_type in required[item["type"]].items():
        assert isinstance(item[field], field_type), item
    part_types = [part["type"] for part in item.get("content", ())]
    assert "refusal" not in part_types or part_types == ["refusal"], "Codex drops a message that holds a refusal"


# ── official SDK ──────────────────────────────────────────────────────────────────────────────────────────────────


def iterate(stream: bytes) -> StreamView:
    """Read with `create(stream=True)` and a simple loop, as in tutorials."""
    view, choice_view = StreamView(), ChoiceView()
    for event in sdk_client(stream).responses.create(model="m", input="x", stream=True):
        if event.type == "response.output_text.delta":
            choice_view.text += event.delta
        elif event.type in ("response.reasoning_summary_text.delta", "response.reasoning_text.delta"):
            choice_view.reasoning += event.delta
        elif event.type == "response.refusal.delta":
            choice_view.refusal += event.delta
        elif event.type == "response.output_item.done" and event.item.type == "function_call":
            choice_view.calls.append((event.item.call_id, event.item.name, event.item.arguments))
        elif event.type == "response.output_item.done" and event.item.type == "custom_tool_call":
            choice_view.calls.append((event.item.call_id, event.item.name, event.item.input))
        elif event.type == "response.failed" and event.response.error:
            view.error = event.response.error.message
        elif event.type in ("response.completed", "response.incomplete"):
            view.done = True
            details = event.response.incomplete_details
            choice_view.finish = (
                _finish_reason(details.reason) if details else "tool_calls" if choice_view.calls else "stop"
            )
    view.choices[0] = choice_view
    return view


def accumulate(stream: bytes, tool_definitions: list[Json]) -> StreamView:
    """Read with the `stream` helper, which accumulates the response."""
    tools: Any = tool_definitions
    with sdk_client(stream).responses.stream(model="m", input="x", tools=tools) as helper:
        helper.until_done()
        response = helper.get_final_response()
    view = view_of_response({"error": None, "incomplete_details": None, **response.to_dict()})
    assert response.output_text == "".join(
        part.text
        for item in response.output
        if item.type == "message"
        for part in item.content
        if part.type == "output_text"
    )
    return view
