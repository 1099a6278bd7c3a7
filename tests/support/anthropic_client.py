"""Two clients of Anthropic Messages: a strict one of our own, and the official SDK, the oracle.

Both tell what they have heard in the same form, so that they can be compared.
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

LEGAL = re.compile(r"[a-zA-Z0-9_-]+")
DELTAS = {
    "text_delta": ("text", "text"),
    "thinking_delta": ("thinking", "thinking"),
    "signature_delta": ("thinking", "signature"),
    "input_json_delta": ("tool_use", "partial_json"),
}


@dataclass
class Heard:
    """What a client has understood. Blocks are as in a whole message, but `input` is JSON text."""

    id: str = ""
    model: str = ""
    blocks: list[Json] = field(default_factory=list)
    stop: str | None = None
    sequence: str | None = None
    usage: Json = field(default_factory=dict)
    error: tuple[str, str] | None = None
    done: bool = False

    def of(self, kind: str, key: str) -> list[str]:
        return [block[key] for block in self.blocks if block["type"] == kind]

    @property
    def text(self) -> str:
        return "".join(self.of("text", "text"))

    @property
    def thinking(self) -> str:
        return "".join(self.of("thinking", "thinking"))

    @property
    def calls(self) -> list[tuple[str, str, str]]:
        uses = [block for block in self.blocks if block["type"] == "tool_use"]
        return [(block["id"], block["name"], block["input"]) for block in uses]

    @property
    def kinds(self) -> list[str]:
        return [block["type"] for block in self.blocks]


# ── the strict one ────────────────────────────────────────────────────────────────────────────────────────────────


def events(stream: bytes) -> Iterator[tuple[str, Json]]:
    """The name and the data of each event."""
    text = stream.decode("utf-8").replace("\r\n", "\n").replace("\r", "\n")
    for block in text.split("\n\n"):
        lines = [line for line in block.split("\n") if line and not line.startswith(":")]
        if lines:
            names = [line.removeprefix("event:").strip() for line in lines if line.startswith("event:")]
            data = "\n".join(line.removeprefix("data:").strip() for line in lines if line.startswith("data:"))
            assert names, f"clients look at nothing without a name: {data}"
            yield names[-1], json.loads(data)


class Strict:
    """Insists on everything that some client somewhere relies on."""

    def __init__(self) -> None:
        self.heard = Heard()
        self.open: Json | None = None
        self.state = "fresh"

    def hear(self, name: str, data: Json) -> None:
        assert name == data["type"], (name, data)
        assert self.state not in ("over", "failed"), f"after the end: {data}"
        if name == "error":
            self.heard.error = data["error"]["type"], data["error"]["message"]
            self.state = "failed"
        elif (hear := getattr(self, name, None)) is not None:  # what nobody knows is ignored, like a ping
            hear(data)

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
        self.heard.id, self.heard.model, self.heard.usage = message["id"], message["model"], dict(message["usage"])
        assert self.heard.id
        self.state = "open"

    def content_block_start(self, data: Json) -> None:
        assert self.state == "open", data
        assert self.open is None, f"one at a time: {data}"
        assert data["index"] == len(self.heard.blocks), f"in order: {data}"
        block = self.open = dict(data["content_block"])
        empty = {"text": ("text", ""), "thinking": ("thinking", ""), "tool_use": ("input", {})}
        if block["type"] in empty:
            key, nothing = empty[block["type"]]
            assert block[key] == nothing, f"clients do not look here: {block}"
        if block["type"] == "tool_use":
            assert LEGAL.fullmatch(block["id"]), block
            assert block["id"] not in self.heard.of("tool_use", "id"), f"an id twice: {block}"
            assert block["name"]
            block["input"] = ""
        self.heard.blocks.append(block)

    def content_block_delta(self, data: Json) -> None:
        assert self.open is not None, data
        assert data["index"] == len(self.heard.blocks) - 1, data
        delta = data["delta"]
        if delta["type"] not in DELTAS or self.open["type"] not in ("text", "thinking", "tool_use"):
            self.open.setdefault("deltas", []).append(delta)
            return
        kind, key = DELTAS[delta["type"]]
        assert self.open["type"] == kind, (self.open, delta)
        assert isinstance(delta[key], str)
        if kind == "thinking":
            assert not self.open.get("signature"), "the signature is the last delta"
        into = "input" if key == "partial_json" else key
        self.open[into] = self.open.get(into, "") + delta[key]

    def content_block_stop(self, data: Json) -> None:
        assert self.open is not None, data
        assert data["index"] == len(self.heard.blocks) - 1, data
        if self.open["type"] == "text":
            assert self.open["text"] or len(self.heard.blocks) == 1, "Claude Code prints nothing then"
        self.open = None

    def message_delta(self, data: Json) -> None:
        assert self.state in ("open", "told"), data
        assert self.open is None, data
        assert isinstance(data["usage"]["output_tokens"], int), data
        assert self.heard.stop in (None, data["delta"]["stop_reason"]), "once more with other usage, no more"
        self.heard.stop, self.heard.sequence = data["delta"]["stop_reason"], data["delta"]["stop_sequence"]
        assert self.heard.stop
        assert (self.heard.sequence is not None) == (self.heard.stop == "stop_sequence")
        assert self.heard.stop != "tool_use" or self.heard.calls
        self.heard.usage |= {key: value for key, value in data["usage"].items() if value is not None}
        self.state = "told"

    def message_stop(self, data: Json) -> None:  # noqa: ARG002
        assert self.state == "told"
        self.heard.done = True
        self.state = "over"


def listen(stream: bytes) -> Heard:
    client = Strict()
    for name, data in events(stream):
        client.hear(name, data)
    return client.heard


def check_args(heard: Heard) -> None:
    """Arguments are JSON, unless the reply was cut."""
    if heard.done and heard.stop != "max_tokens":
        for _, _, args in heard.calls:
            assert isinstance(json.loads(args or "{}"), dict), args


# ── the official one ──────────────────────────────────────────────────────────────────────────────────────────────


def client(stream: bytes) -> anthropic.Anthropic:
    def answer(_: httpx2.Request) -> httpx2.Response:
        return httpx2.Response(200, headers={"content-type": "text/event-stream"}, content=stream)

    http = httpx2.Client(transport=httpx2.MockTransport(answer))
    return anthropic.Anthropic(api_key="none", base_url="http://upstream.test", max_retries=0, http_client=http)


def accumulate(stream: bytes) -> Heard:
    """The `stream` helper of the SDK, and the message that it ends with."""
    asked: Any = {"model": "m", "max_tokens": 1, "messages": []}
    try:
        with client(stream).messages.stream(**asked) as helper:
            helper.until_done()
            message = helper.get_final_message()
    except anthropic.APIStatusError as error:
        body: Any = error.body
        return Heard(error=(body["error"]["type"], body["error"]["message"]))
    return of_message(json.loads(message.to_json(warnings=False)), done=True)


def of_message(message: Json, done: bool = False) -> Heard:
    """A whole message, as if it had been heard."""
    blocks = [dict(block) for block in message["content"]]
    for block in blocks:
        if block["type"] == "tool_use":
            block["input"] = json.dumps(block["input"])
    stop, sequence = message["stop_reason"], message.get("stop_sequence")
    usage = {key: value for key, value in message["usage"].items() if value is not None}
    return Heard(message["id"], message["model"], blocks, stop, sequence, usage, None, done)


def parsed(heard: Heard) -> Json:
    """For comparison: with arguments as values, and without what one of the clients leaves out."""
    blocks = []
    for block in heard.blocks:
        kept = {key: value for key, value in block.items() if value is not None and key not in ("deltas", "citations")}
        if block["type"] == "tool_use":
            kept["input"] = json.loads(block["input"] or "{}")
        elif block["type"] == "server_tool_use":
            del kept["input"]
        blocks.append(kept)
    return {**vars(heard), "blocks": blocks}
