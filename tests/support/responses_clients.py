"""Clients for a response's stream: a strict one of our own, which also reads as Codex does, and the official SDK.

All tell what they have heard in the form that `sdk` has for chat completions, so that the wires can be compared.
"""

from __future__ import annotations

import json
from typing import Any

from tests.support.sdk import Heard, Json, Said, client

STATUSES = {"response.completed": "completed", "response.incomplete": "incomplete", "response.failed": "failed"}
PARTS = {
    "output_text": ("content_index", "text"),
    "refusal": ("content_index", "refusal"),
    "summary_text": ("summary_index", "text"),
    "reasoning_text": ("content_index", "text"),
}
STEMS = {
    "response.output_text": ("output_text", "text"),
    "response.refusal": ("refusal", "refusal"),
    "response.reasoning_summary_text": ("summary_text", "text"),
    "response.reasoning_text": ("reasoning_text", "text"),
    "response.function_call_arguments": ("function_call", "arguments"),
    "response.custom_tool_call_input": ("custom_tool_call", "input"),
}


def frames(stream: bytes) -> list[Json]:
    """Every event. Its name stands twice, and is the same."""
    told = []
    for block in stream.decode().split("\n\n"):
        lines = dict(line.split(": ", 1) for line in block.split("\n") if line and not line.startswith(":"))
        if lines:
            told.append(json.loads(lines["data"]))
            assert lines["event"] == told[-1]["type"], block
    return told


# ── the strict one ────────────────────────────────────────────────────────────────────────────────────────────────


class _Listener:
    """Insists on the full order: one item after another, each begun, told and done."""

    def __init__(self) -> None:
        self.item: Json | None = None
        self.part: str | None = None
        self.text = ""
        self.parts: list[str] = []
        self.done: list[Json] = []
        self.count = 0
        self.end: Json | None = None

    def hear(self, frame: Json) -> None:
        assert self.end is None, f"after the end: {frame}"
        kind = frame["type"]
        stem, _, verb = kind.rpartition(".")
        if kind in STATUSES:
            self.end = frame
        elif stem in STEMS:
            self._hear_text(frame, *STEMS[stem], verb)
        elif stem in ("response.content_part", "response.reasoning_summary_part"):
            self._hear_part(frame, verb)
        elif kind == "response.output_item.added":
            self._hear_added(frame)
        else:
            assert kind == "response.output_item.done", frame
            self._hear_done(frame)

    def _hear_added(self, frame: Json) -> None:
        unfinished = self.item is not None and self.item["type"] in ("function_call", "custom_tool_call")
        assert self.item is None or unfinished, f"one item after another: {frame}"
        assert frame["output_index"] == self.count
        self.count += 1
        self.item, self.text, self.parts = frame["item"], "", []
        codex_item(self.item)
        assert self.item.get("status") in ("in_progress", None)

    def _hear_part(self, frame: Json, verb: str) -> None:
        self._same_item(frame)
        kind = frame["part"]["type"]
        position, field = PARTS[kind]
        assert frame[position] == len(self.parts)
        assert self.part == (None if verb == "added" else kind) or kind == "reasoning_text"  # which few begin
        if verb == "added":
            self.part, self.text = kind, ""
        else:
            self.parts.append(self.text)
            self.part = None
        assert frame["part"][field] == self.text

    def _hear_text(self, frame: Json, kind: str, field: str, verb: str) -> None:
        item = self._same_item(frame)
        assert kind in (self.part, item["type"]) or kind == "reasoning_text", frame
        if kind == "output_text":
            assert frame["logprobs"] == []
        if verb == "delta":
            assert frame["delta"], "an empty delta"
            self.text += frame["delta"]
        else:
            assert frame[field] == self.text

    def _hear_done(self, frame: Json) -> None:
        given = frame["item"]
        assert self.item is not None
        assert frame["output_index"] == self.count - 1
        assert self.part is None
        assert (given["type"], given["id"]) == (self.item["type"], self.item["id"])
        codex_item(given)
        assert said(given) == ("".join(self.parts) if self.parts else self.text), given
        assert given.get("status") in ("completed", "incomplete", None)
        self.done.append(given)
        self.item, self.text = None, ""

    def _same_item(self, frame: Json) -> Json:
        assert self.item is not None, f"outside of an item: {frame}"
        assert (frame["item_id"], frame["output_index"]) == (self.item["id"], self.count - 1)
        return self.item


def listen(stream: bytes) -> Heard:
    """Insists on everything that some client somewhere relies on."""
    told = frames(stream)
    assert [frame["sequence_number"] for frame in told] == list(range(len(told)))
    assert [frame["type"] for frame in told[:2]] == ["response.created", "response.in_progress"]
    assert all(frame["response"]["status"] == "in_progress" for frame in told[:2])
    listener = _Listener()
    for frame in told[2:]:
        listener.hear(frame)
    assert listener.end is not None, "no end"
    response = listener.end["response"]
    assert response["status"] == STATUSES[listener.end["type"]]
    assert len({frame["response"]["id"] for frame in told if "response" in frame}) == 1
    heard = hear_response(response)
    if heard.error is None:
        cut = [item for item in response["output"] if item not in listener.done]
        assert [item for item in response["output"] if item not in cut] == listener.done
        assert all(item["status"] == "incomplete" for item in cut), cut
        assert listener.item is None or cut
    return heard


def hear_response(response: Json) -> Heard:
    """What a response says as a whole."""
    assert response["object"] == "response"
    heard = Heard(usage=response["usage"], error=(response["error"] or {}).get("message"))
    heard.done = heard.error is None
    one = Said()
    for item in response["output"]:
        if item["type"] == "reasoning":
            one.reasoning += said(item)
        elif item["type"] == "message":
            refused = item["content"] and item["content"][0]["type"] == "refusal"
            one.refusal += said(item) if refused else ""
            one.text += "" if refused else said(item)
        else:
            one.calls.append((item["call_id"], item["name"], said(item)))
    details = response["incomplete_details"]
    one.finish = _finish(details["reason"]) if details else "tool_calls" if one.calls else "stop"
    if heard.error is None:
        heard.choices[0] = one
        assert set(response["usage"]) >= {"input_tokens", "output_tokens", "total_tokens"}
    return heard


def _finish(reason: str | None) -> str:
    return "content_filter" if reason == "content_filter" else "length"


def said(item: Json) -> str:
    """The text of an item."""
    parts = [*item.get("summary", ()), *item.get("content", ())]
    text = "".join(part.get("text") or part.get("refusal") or "" for part in parts)
    return text + str(item.get("arguments") or item.get("input") or "")


def codex_item(item: Json) -> None:
    """What Codex takes as a ResponseItem, with the types that it insists on."""
    needs: dict[str, dict[str, type]] = {
        "message": {"role": str, "content": list},
        "reasoning": {"id": str, "summary": list},
        "function_call": {"name": str, "arguments": str, "call_id": str},
        "custom_tool_call": {"name": str, "input": str, "call_id": str},
    }
    assert isinstance(item["id"], str)
    for field, kind in needs[item["type"]].items():
        assert isinstance(item[field], kind), item
    kinds = [part["type"] for part in item.get("content", ())]
    assert "refusal" not in kinds or kinds == ["refusal"], "Codex drops a message that holds a refusal"


# ── the official one ──────────────────────────────────────────────────────────────────────────────────────────────


def iterate(stream: bytes) -> Heard:
    """`create(stream=True)`, and a loop as every tutorial has it."""
    heard, one = Heard(), Said()
    for event in client(stream).responses.create(model="m", input="x", stream=True):
        if event.type == "response.output_text.delta":
            one.text += event.delta
        elif event.type in ("response.reasoning_summary_text.delta", "response.reasoning_text.delta"):
            one.reasoning += event.delta
        elif event.type == "response.refusal.delta":
            one.refusal += event.delta
        elif event.type == "response.output_item.done" and event.item.type == "function_call":
            one.calls.append((event.item.call_id, event.item.name, event.item.arguments))
        elif event.type == "response.output_item.done" and event.item.type == "custom_tool_call":
            one.calls.append((event.item.call_id, event.item.name, event.item.input))
        elif event.type == "response.failed" and event.response.error:
            heard.error = event.response.error.message
        elif event.type in ("response.completed", "response.incomplete"):
            heard.done = True
            details = event.response.incomplete_details
            one.finish = _finish(details.reason) if details else "tool_calls" if one.calls else "stop"
    heard.choices[0] = one
    return heard


def accumulate(stream: bytes, offered: list[Json]) -> Heard:
    """The `stream` helper, which keeps a response of its own."""
    tools: Any = offered
    with client(stream).responses.stream(model="m", input="x", tools=tools) as helper:
        helper.until_done()
        response = helper.get_final_response()
    heard = hear_response({"error": None, "incomplete_details": None, **response.to_dict()})
    assert response.output_text == "".join(
        part.text
        for item in response.output
        if item.type == "message"
        for part in item.content
        if part.type == "output_text"
    )
    return heard
