"""Two clients of Anthropic Messages: a strict reader of our own, and the official SDK as the reference.

Both return the same type of view, so that they can be compared.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

import anthropic
import httpx2

from tests.support.sdk import Json

LEGAL_ID = re.compile(r"[a-zA-Z0-9_-]+")
DELTA_FIELDS = {
    "text_delta": ("text", "text"),
    "thinking_delta": ("thinking", "thinking"),
    "signature_delta": ("thinking", "signature"),
    "input_json_delta": ("tool_use", "partial_json"),
}


@dataclass
class MessageView:
    """A client's view of a message. Blocks are as in a whole message, but `input` is JSON text."""

    id: str = ""
    model: str = ""
    blocks: list[Json] = field(default_factory=list)
    stop: str | None = None
    sequence: str | None = None
    usage: Json = field(default_factory=dict)
    error: tuple[str, str] | None = None
    done: bool = False

    def block_values(self, block_type: str, key: str) -> list[str]:
        return [block[key] for block in self.blocks if block["type"] == block_type]

    @property
    def text(self) -> str:
        return "".join(self.block_values("text", "text"))

    @property
    def thinking(self) -> str:
        return "".join(self.block_values("thinking", "thinking"))

    @property
    def calls(self) -> list[tuple[str, str, str]]:
        uses = [block for block in self.blocks if block["type"] == "tool_use"]
        return [(block["id"], block["name"], block["input"]) for block in uses]

    @property
    def block_types(self) -> list[str]:
        return [block["type"] for block in self.blocks]


# ── strict reader ─────────────────────────────────────────────────────────────────────────────────────────────────


def events(stream: bytes) -> Iterator[tuple[str, Json]]:
    """Yield the name and the data of each event."""
    text = stream.decode("utf-8").replace("\r\n", "\n").replace("\r", "\n")
    for block in text.split("\n\n"):
        lines = [line for line in block.split("\n") if line and not line.startswith(":")]
        if lines:
            names = [line.removeprefix("event:").strip() for line in lines if line.startswith("event:")]
            data = "\n".join(line.removeprefix("data:").strip() for line in lines if line.startswith("data:"))
            assert names, f"clients ignore an event without a name: {data}"
            yield names[-1], json.loads(data)


class StrictMessageReader:
    """Asserts everything that any known client relies on."""

    def __init__(self) -> None:
        self.view = MessageView()
        self.open_block: Json | None = None
        self.state = "fresh"

    def receive(self, name: str, data: Json) -> None:
        assert name == data["type"], (name, data)
        assert self.state not in ("over", "failed"), f"after the end: {data}"
        if name == "error":
            self.view.error = data["error"]["type"], data["error"]["message"]
            self.state = "failed"
        elif (handler := getattr(self, name, None)) is not None:  # unknown events are ignored, like a ping
            handler(data)

    def message_start(self, data: Json) -> None:
        assert self.state == "fresh", data
        message = data["message"]
        assert message["type"] == "message"
        assert message["role"] == "assistant"
        assert message["content"] == []
        assert message["stop_reason"] is None
        assert message["stop_sequence"] is None
        assert isinstance(message["usage"]["input_tokens"], int)
        assert isinstance(message["usage"]["output_tokens"], int)
        self.view.id, self.view.model, self.view.usage = message["id"], message["model"], dict(message["usage"])
        assert self.view.id
        self.state = "open"

    def content_block_start(self, data: Json) -> None:
        assert self.state == "open", data
        assert self.open_block is None, f"another block is open: {data}"
        assert data["index"] == len(self.view.blocks), f"index out of order: {data}"
        block = self.open_block = dict(data["content_block"])
        empty = {"text": ("text", ""), "thinking": ("thinking", ""), "tool_use": ("input", {})}
        if block["type"] in empty:
            key, empty_value = empty[block["type"]]
            assert block[key] == empty_value, f"clients ignore content in the start: {block}"
        if block["type"] == "tool_use":
            assert LEGAL_ID.fullmatch(block["id"]), block
            assert block["id"] not in self.view.block_values("tool_use", "id"), f"duplicate id: {block}"
            assert block["name"]
            block["input"] = ""
        self.view.blocks.append(block)

    def content_block_delta(self, data: Json) -> None:
        assert self.open_block is not None, data
        assert data["index"] == len(self.view.blocks) - 1, data
        delta = data["delta"]
        if delta["type"] not in DELTA_FIELDS or self.open_block["type"] not in ("text", "thinking", "tool_use"):
            self.open_block.setdefault("deltas", []).append(delta)
            return
        block_type, key = DELTA_FIELDS[delta["type"]]
        assert self.open_block["type"] == block_type, (self.open_block, delta)
        assert isinstance(delta[key], str)
        if block_type == "thinking":
            assert not self.open_block.get("signature"), "the signature is the last delta"
        target_key = "input" if key == "partial_json" else key
        self.open_block[target_key] = self.open_block.get(target_key, "") + delta[key]

    def content_block_stop(self, data: Json) -> None:
        assert self.open_block is not None, data
        assert data["index"] == len(self.view.blocks) - 1, data
        if self.open_block["type"] == "text":
            assert self.open_block["text"] or len(self.view.blocks) == 1, (
                "Claude Code prints nothing for an empty text block"
            )
        self.open_block = None

    def message_delta(self, data: Json) -> None:
        assert self.state in ("open", "stop sent"), data
        assert self.open_block is None, data
        assert isinstance(data["usage"]["output_tokens"], int), data
        assert self.view.stop in (None, data["delta"]["stop_reason"]), (
            "a second message_delta may only change the usage"
        )
        self.view.stop, self.view.sequence = data["delta"]["stop_reason"], data["delta"]["stop_sequence"]
        assert self.view.stop
        assert (self.view.sequence is not None) == (self.view.stop == "stop_sequence")
        assert self.view.stop != "tool_use" or self.view.calls
        self.view.usage |= {key: value for key, value in data["usage"].items() if value is not None}
        self.state = "stop sent"

    def message_stop(self, data: Json) -> None:  # noqa: ARG002
        assert self.state == "stop sent"
        self.view.done = True
        self.state = "over"


def read_strict(stream: bytes) -> MessageView:
    reader = StrictMessageReader()
    for name, data in events(stream):
        reader.receive(name, data)
    return reader.view


def check_args(view: MessageView) -> None:
    """Assert that arguments are JSON, unless the reply was truncated."""
    if view.done and view.stop != "max_tokens":
        for _, _, args in view.calls:
            assert isinstance(json.loads(args or "{}"), dict), args


# ── official SDK ──────────────────────────────────────────────────────────────────────────────────────────────────


def sdk_client(stream: bytes) -> anthropic.Anthropic:
    def respond(_: httpx2.Request) -> httpx2.Response:
        return httpx2.Response(200, headers={"content-type": "text/event-stream"}, content=stream)

    http = httpx2.Client(transport=httpx2.MockTransport(respond))
    return anthropic.Anthropic(api_key="none", base_url="http://upstream.test", max_retries=0, http_client=http)


def accumulate(stream: bytes) -> MessageView:
    """Read the stream with the `stream` helper of the SDK, and return its final message."""
    request: Any = {"model": "m", "max_tokens": 1, "messages": []}
    try:
        with sdk_client(stream).messages.stream(**request) as helper:
            helper.until_done()
            message = helper.get_final_message()
    except anthropic.APIStatusError as error:
        body: Any = error.body
        return MessageView(error=(body["error"]["type"], body["error"]["message"]))
    return view_of_message(json.loads(message.to_json(warnings=False)), done=True)


def view_of_message(message: Json, done: bool = False) -> MessageView:
    """Return the view of a whole message."""
    blocks = [dict(block) for block in message["content"]]
    for block in blocks:
        if block["type"] == "tool_use":
            block["input"] = json.dumps(block["input"])
    stop, sequence = message["stop_reason"], message.get("stop_sequence")
    usage = {key: value for key, value in message["usage"].items() if value is not None}
    return MessageView(message["id"], message["model"], blocks, stop, sequence, usage, None, done)


def comparable(view: MessageView) -> Json:
    """Return the view for comparison: parsed arguments, without fields that one of the clients omits."""
    blocks = []
    for block in view.blocks:
        fields = {
            key: value for key, value in block.items() if value is not None and key not in ("deltas", "citations")
        }
        if block["type"] == "tool_use":
            fields["input"] = json.loads(block["input"] or "{}")
        elif block["type"] == "server_tool_use":
            del fields["input"]
        blocks.append(fields)
    return {**vars(view), "blocks": blocks}
