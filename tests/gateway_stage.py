"""Clients of a gateway on real sockets, for all three APIs: what each has heard, in one form, and what the log tells.

with stage() as on:
    model = on.plays("cut", up.chat("Hel", finish=None, done=False))
    heard = on.ask(model, MESSAGES)
    heard.text, heard.calls, heard.error, heard.log["outcome"]
"""

from __future__ import annotations

import json
import urllib.error
import urllib.request
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

from tests import upstream_server as up
from tests.gateway_process import Running, running
from tests.upstream_server import Step, UpstreamServer

CHAT, MESSAGES, RESPONSES = "chat/completions", "messages", "responses"
APIS = (CHAT, MESSAGES, RESPONSES)
KEY = "sk-upstream-0123456789abcdef"
TOOL = {"name": "read", "description": "", "parameters": {"type": "object", "properties": {"path": {"type": "string"}}}}

UPSTREAM = """
  {name}:
    url: {url}
    api: {api}
    key: {key}
    timeouts: {{connect: 2, first_event: 1.2, idle: 1.2, total: 1.2}}
    retries: {{attempts: 2, backoff: 0.02, longest: 1, budget: 1}}"""
CONFIG = """
log: {{format: json}}
keepalive: 0.4
upstreams:{upstreams}
default: chat
models:
  messages-*: {{upstream: claude}}
  responses-*: {{upstream: responses}}
  whole-*: {{upstream: chat, delivery: whole}}
  nobody: {{upstream: nobody}}
  nobody-then-second: {{upstream: nobody, model: first, fallback: [second]}}
  first-then-second: {{upstream: chat, model: first, fallback: [second]}}
  busy-then-second: {{upstream: chat, model: 11-first, fallback: [second]}}
  second: {{upstream: other}}
"""
NOBODY = "http://127.0.0.1:9/v1"


@dataclass
class Heard:
    """What a client has understood. A call is its name and arguments."""

    status: int
    headers: dict[str, str]
    body: bytes
    text: str = ""
    calls: list[tuple[str, str]] = field(default_factory=list)
    """Those that the client would run."""
    open: tuple[str, str] | None = None
    """The one that was never closed."""
    stop: str = ""
    tokens: int = 0
    """Of the output."""
    error: str = ""
    error_type: str = ""
    error_code: str | None = None
    ended: bool = False
    """As a reply ends that is over."""
    log: dict[str, Any] = field(default_factory=dict)
    estimated: bool = False
    """Whether its usage is an estimate, as a finding tells that is not left in `log`: most upstreams here tell none."""


@dataclass
class Stage:
    upstream: UpstreamServer
    gateway: Running

    def plays(self, model: str, *scripts: Step | tuple[Step, ...]) -> str:
        """The upstream has these scripts for a model, one for each time that it is asked."""
        for script in scripts:
            self.upstream.add(model, *(script if isinstance(script, tuple) else (script,)))
        return model

    def ask(self, model: str, api: str = CHAT, stream: bool = True, **more: Any) -> Heard:
        body = {"model": model, "stream": stream, **asking(api), **more}
        request = urllib.request.Request(
            f"{self.gateway.base}/v1/{api}", json.dumps(body).encode(), {"content-type": "application/json"}
        )
        try:
            with urllib.request.urlopen(request, timeout=20) as response:
                heard = Heard(response.status, {k.lower(): v for k, v in response.headers.items()}, response.read())
        except urllib.error.HTTPError as error:
            heard = Heard(error.code, {k.lower(): v for k, v in error.headers.items()}, error.read())
        if "text/event-stream" in heard.headers["content-type"]:
            _STREAMS[api](heard)
        else:
            _BODIES[api](heard, json.loads(heard.body))
        heard.log = self.log(heard.headers["x-interlingua-id"])
        heard.estimated = heard.log["findings"].pop("usage-estimated", 0) == 1
        return heard

    def ask_all(self, model: str, stream: bool = True) -> dict[str, Heard]:
        """One client of each API, at the same time."""
        with ThreadPoolExecutor(len(APIS)) as pool:
            return dict(zip(APIS, pool.map(lambda api: self.ask(model, api, stream), APIS), strict=True))

    def log(self, id: str) -> dict[str, Any]:
        """The line of this request."""
        text = self.gateway.told(f'"message": "request", "id": "{id}"[^\n]*\n')
        told: dict[str, Any] = json.loads(next(line for line in text.splitlines() if f'"id": "{id}"' in line))
        return told


@contextmanager
def stage() -> Iterator[Stage]:
    upstream = UpstreamServer()
    try:
        with running(config=_config(upstream.url)) as gateway:
            yield Stage(upstream, gateway)
    finally:
        upstream.stop()


def _config(url: str) -> str:
    apis = {
        "chat": "openai-chat",
        "other": "openai-chat",
        "claude": "anthropic-messages",
        "responses": "openai-responses",
    }
    upstreams = [UPSTREAM.format(name=name, url=url, api=api, key=KEY) for name, api in apis.items()]
    nobody = UPSTREAM.format(name="nobody", url=NOBODY, api="openai-chat", key=KEY)
    return CONFIG.format(upstreams="".join([*upstreams, nobody]))


def asking(api: str) -> dict[str, Any]:
    """What each API wants in a request, and one tool."""
    if api == RESPONSES:
        return {"input": "hi", "tools": [{"type": "function", **TOOL}]}
    messages = [{"role": "user", "content": "hi"}]
    if api == CHAT:
        return {"messages": messages, "tools": [{"type": "function", "function": TOOL}]}
    tool = {"name": TOOL["name"], "input_schema": TOOL["parameters"]}
    return {"messages": messages, "max_tokens": 100, "tools": [tool]}


# ── what upstreams send ───────────────────────────────────────────────────────────────────────────────────────────


def call(args: str, index: int = 0, name: str | None = None) -> bytes:
    """A piece of a structured call of chat completions; its first one has the name."""
    function = {"name": name, "arguments": args} if name else {"arguments": args}
    begun = {"id": f"call_{index}", "type": "function"} if name else {}
    return up.delta(tool_calls=[{"index": index, **begun, "function": function}])


def chunked(data: bytes, end: bool = False) -> Step:
    """A stream in HTTP chunks. Without its end, whoever reads it can tell that it was cut."""
    ended = b"0\r\n\r\n" if end else b""
    head = b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\ntransfer-encoding: chunked\r\n\r\n"
    return up.send(head + b"%x\r\n%b\r\n" % (len(data), data) + ended)


def streamed(data: bytes) -> tuple[Step, ...]:
    """A stream that ends with its connection."""
    return up.head(), up.send(data)


def torn(data: bytes) -> tuple[Step, ...]:
    """The connection is reset behind this."""
    return chunked(data), up.wait(0.05), up.reset()


# ── what each API says ────────────────────────────────────────────────────────────────────────────────────────────


def _events(heard: Heard) -> Iterator[Any]:
    """The data of each event. Behind an error, or the end, there must be none."""
    body = heard.body.decode().replace("\r\n", "\n").replace("\r", "\n")
    assert body.endswith("\n\n"), body[-200:]
    for block in body.split("\n\n"):
        data = "".join(line.removeprefix("data:").strip() for line in block.split("\n") if line.startswith("data:"))
        if not data:
            continue
        assert not heard.ended, f"behind the end: {data}"
        assert not heard.error, f"behind an error: {data}"
        yield data if data == "[DONE]" else json.loads(data)


def _close(heard: Heard) -> None:
    if heard.open:
        heard.calls.append(heard.open)
        heard.open = None


def _fails(heard: Heard, error: dict[str, Any]) -> None:
    heard.error, heard.error_type = error["message"], error.get("type", "")
    heard.error_code = error.get("code")


def _hear_chat(heard: Heard) -> None:
    for chunk in _events(heard):
        if chunk == "[DONE]":
            heard.ended = True
        elif "error" in chunk:
            _fails(heard, chunk["error"])
        else:
            heard.tokens = (chunk.get("usage") or {}).get("completion_tokens", heard.tokens)
            for choice in chunk["choices"]:
                _hear_choice(heard, choice)


def _hear_choice(heard: Heard, choice: dict[str, Any]) -> None:
    heard.text += choice["delta"].get("content") or ""
    for call in choice["delta"].get("tool_calls") or ():
        if call.get("id"):
            _close(heard)
            heard.open = (call["function"]["name"], "")
        assert heard.open
        heard.open = (heard.open[0], heard.open[1] + call["function"].get("arguments", ""))
    if choice["finish_reason"]:
        assert not heard.stop, "a finish reason twice"
        heard.stop = choice["finish_reason"]
        _close(heard)


def _hear_messages(heard: Heard) -> None:
    for event in _events(heard):
        match event["type"]:
            case "content_block_start" if event["content_block"]["type"] == "tool_use":
                heard.open = (event["content_block"]["name"], "")
            case "content_block_delta":
                delta = event["delta"]
                heard.text += delta.get("text", "")
                if heard.open:
                    heard.open = (heard.open[0], heard.open[1] + delta.get("partial_json", ""))
            case "content_block_stop":
                _close(heard)
            case "message_delta":
                heard.stop = event["delta"]["stop_reason"]
                heard.tokens = event["usage"]["output_tokens"]
            case "message_stop":
                heard.ended = True
            case "error":
                _fails(heard, event["error"])


def _hear_responses(heard: Heard) -> None:
    for event in _events(heard):
        match event["type"]:
            case "response.output_text.delta":
                heard.text += event["delta"]
            case "response.output_item.added" if event["item"]["type"] == "function_call":
                heard.open = (event["item"]["name"], "")
            case "response.function_call_arguments.delta":
                assert heard.open
                heard.open = (heard.open[0], heard.open[1] + event["delta"])
            case "response.output_item.done":
                _close(heard)
            case "response.failed":
                assert event["response"]["status"] == "failed"
                _fails(heard, event["response"]["error"])
            case "response.completed" | "response.incomplete":
                heard.ended, heard.stop = True, event["response"]["status"]
                heard.tokens = (event["response"]["usage"] or {}).get("output_tokens", 0)


def _chat_body(heard: Heard, body: dict[str, Any]) -> None:
    if "error" in body:
        _fails(heard, body["error"])
        return
    (choice,) = body["choices"]
    message = choice["message"]
    heard.text, heard.stop, heard.ended = message.get("content") or "", choice["finish_reason"], True
    functions = [call["function"] for call in message.get("tool_calls") or ()]
    heard.calls = [(function["name"], function["arguments"]) for function in functions]


def _message_body(heard: Heard, body: dict[str, Any]) -> None:
    if body["type"] == "error":
        _fails(heard, body["error"])
        return
    heard.ended, heard.stop = True, body["stop_reason"]
    heard.text = "".join(block["text"] for block in body["content"] if block["type"] == "text")
    heard.calls = [(one["name"], json.dumps(one["input"])) for one in body["content"] if one["type"] == "tool_use"]


def _response_body(heard: Heard, body: dict[str, Any]) -> None:
    if body.get("error"):
        _fails(heard, body["error"])
        return
    heard.ended, heard.stop = True, body["status"]
    items = body["output"]
    heard.text = "".join(part["text"] for item in items if item["type"] == "message" for part in item["content"])
    heard.calls = [(item["name"], item["arguments"]) for item in items if item["type"] == "function_call"]


_STREAMS: dict[str, Callable[[Heard], None]] = {
    CHAT: _hear_chat,
    MESSAGES: _hear_messages,
    RESPONSES: _hear_responses,
}
_BODIES: dict[str, Callable[[Heard, dict[str, Any]], None]] = {
    CHAT: _chat_body,
    MESSAGES: _message_body,
    RESPONSES: _response_body,
}
