"""What a client has understood of an answer, in one form for all three APIs."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any

from interlingua.faults.apis import CHAT_PATH, MESSAGES_PATH, RESPONSES_PATH

__all__ = ["Heard", "hear"]


@dataclass
class Heard:
    """A call is its name and arguments."""

    status: int
    headers: dict[str, str]
    body: bytes
    text: str = ""
    thinking: str = ""
    calls: list[tuple[str, str]] = field(default_factory=list)
    """Those that the client would run."""
    ids: list[str] = field(default_factory=list)
    """Theirs."""
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
    odd: list[str] = field(default_factory=list)
    """What its API does not allow."""
    loose: list[str] = field(default_factory=list)
    """What its API does not have either, and no client minds."""

    @property
    def streamed(self) -> bool:
        return "text/event-stream" in self.headers.get("content-type", "")


def hear(heard: Heard, api: str) -> Heard:
    """Reads the body into the rest."""
    try:
        if heard.streamed:
            calls = _Calls(heard)
            for event in _events(heard):
                _STREAMS[api](heard, event, calls)
            calls.over()
        else:
            _body(heard, api)
    except (KeyError, TypeError, AttributeError, IndexError, ValueError) as error:
        heard.odd.append(f"cannot be read as its API: {type(error).__name__} {error}")
    return heard


class _Calls:
    """The calls of a stream, put together by their place as clients do."""

    def __init__(self, heard: Heard) -> None:
        self._heard = heard
        self._begun: dict[Any, list[str]] = {}
        self._closed: set[Any] = set()

    def begin(self, place: Any, id: str, name: str) -> None:
        self._begun.setdefault(place, [id, name, ""])

    def knows(self, place: Any) -> bool:
        return place in self._begun

    def more(self, place: Any, args: str) -> None:
        self._begun[place][2] += args

    def close(self, place: Any) -> None:
        if place in self._begun:
            self._closed.add(place)

    def close_all(self) -> None:
        self._closed.update(self._begun)

    def over(self) -> None:
        for place, (id, name, args) in self._begun.items():
            if place in self._closed:
                self._heard.calls.append((name, args))
                self._heard.ids.append(id)
            else:
                self._heard.open = (name, args)


def _events(heard: Heard) -> Iterator[Any]:
    """The data of each event. Behind an error, or the end, there must be none."""
    body = heard.body.decode("utf-8", "replace").replace("\r\n", "\n").replace("\r", "\n")
    if "\ufffd" in body and "\ufffd".encode() not in heard.body:
        heard.odd.append("bytes that are not UTF-8")
    if not body.endswith("\n\n"):
        heard.odd.append(f"the last event is not over: {body[-80:]!r}")
    for block in body.split("\n\n"):
        data = "\n".join(line[5:].removeprefix(" ") for line in block.split("\n") if line.startswith("data:"))
        if not data:
            continue
        if (heard.ended or heard.error) and data != "[DONE]":
            heard.odd.append(f"behind {'an error' if heard.error else 'the end'}: {data[:80]}")
        if data == "[DONE]":
            yield data
            continue
        try:
            yield json.loads(data)
        except ValueError:
            heard.odd.append(f"an event that is no JSON: {data[:80]!r}")


def _fails(heard: Heard, error: Any) -> None:
    if not isinstance(error, dict):
        heard.error = str(error)
        heard.odd.append("an error that is no object")
        return
    heard.error, heard.error_type = str(error.get("message") or error), error.get("type") or ""
    heard.error_code = error.get("code")


def _hear_chat(heard: Heard, chunk: Any, calls: _Calls) -> None:
    if chunk == "[DONE]":
        if heard.error:
            heard.loose.append("[DONE] behind an error")
        heard.ended = not heard.error
    elif "error" in chunk:
        _fails(heard, chunk["error"])
    else:
        heard.tokens = (chunk.get("usage") or {}).get("completion_tokens", heard.tokens)
        for choice in chunk["choices"]:
            _hear_choice(heard, choice, calls)


def _hear_choice(heard: Heard, choice: dict[str, Any], calls: _Calls) -> None:
    delta = choice.get("delta") or {}
    heard.text += delta.get("content") or ""
    heard.thinking += delta.get("reasoning_content") or delta.get("reasoning") or ""
    for call in delta.get("tool_calls") or ():
        place, function = call.get("index", 0), call.get("function") or {}
        if not calls.knows(place):
            calls.close_all()  # whatever comes before another one is whole
            calls.begin(place, call.get("id") or "", function.get("name") or "")
        calls.more(place, function.get("arguments") or "")
    if choice.get("finish_reason"):
        if heard.stop:
            heard.odd.append("a finish reason twice")
        heard.stop = choice["finish_reason"]
        calls.close_all()


def _hear_messages(heard: Heard, event: Any, calls: _Calls) -> None:
    if event == "[DONE]":
        heard.loose.append("[DONE], which this API does not have")
        return
    match event["type"]:
        case "content_block_start" if event["content_block"]["type"] == "tool_use":
            calls.begin(event["index"], event["content_block"]["id"], event["content_block"]["name"])
        case "content_block_delta":
            delta = event["delta"]
            heard.text += delta.get("text", "")
            heard.thinking += delta.get("thinking", "")
            if delta["type"] == "input_json_delta":
                calls.more(event["index"], delta["partial_json"])
        case "content_block_stop":
            calls.close(event["index"])
        case "message_delta":
            heard.stop = event["delta"].get("stop_reason") or ""
            heard.tokens = event["usage"]["output_tokens"]
        case "message_stop":
            heard.ended = True
        case "error":
            _fails(heard, event["error"])


def _hear_responses(heard: Heard, event: Any, calls: _Calls) -> None:
    if event == "[DONE]":
        heard.loose.append("[DONE], which this API does not have")
        return
    match event["type"]:
        case "response.output_text.delta":
            heard.text += event["delta"]
        case "response.reasoning_summary_text.delta" | "response.reasoning_text.delta":
            heard.thinking += event["delta"]
        case "response.output_item.added" if event["item"]["type"] == "function_call":
            calls.begin(event["output_index"], event["item"]["call_id"], event["item"]["name"])
        case "response.function_call_arguments.delta":
            calls.more(event["output_index"], event["delta"])
        case "response.output_item.done":
            calls.close(event["output_index"])
        case "response.failed":
            if event["response"]["status"] != "failed":
                heard.odd.append("response.failed with another status")
            _fails(heard, event["response"]["error"])
        case "error":
            _fails(heard, event.get("error") or event)
        case "response.completed" | "response.incomplete":
            heard.ended, heard.stop = True, event["response"]["status"]
            heard.tokens = (event["response"].get("usage") or {}).get("output_tokens", 0)


# ── whole ones ────────────────────────────────────────────────────────────────────────────────────────────────────


def _body(heard: Heard, api: str) -> None:
    try:
        body = json.loads(heard.body)
    except ValueError:
        heard.error = heard.body[:200].decode("utf-8", "replace")
        heard.odd.append(f"no JSON: {heard.error[:60]!r}")
        return
    if body.get("error"):
        if (body.get("type") == "error") != (api == MESSAGES_PATH):
            heard.loose.append("an error that is not quite as its API's")
        _fails(heard, body["error"])
    elif heard.status >= 400:
        heard.error = str(body)[:200]
        heard.odd.append("an error that is not written as its API's")
    else:
        heard.ended = True
        _BODIES[api](heard, body)


def _chat_body(heard: Heard, body: dict[str, Any]) -> None:
    (choice,) = body["choices"]
    message = choice["message"]
    heard.text, heard.stop = message.get("content") or "", choice["finish_reason"]
    heard.thinking = message.get("reasoning_content") or message.get("reasoning") or ""
    heard.tokens = (body.get("usage") or {}).get("completion_tokens", 0)
    for call in message.get("tool_calls") or ():
        heard.calls.append((call["function"]["name"], call["function"]["arguments"]))
        heard.ids.append(call["id"])


def _message_body(heard: Heard, body: dict[str, Any]) -> None:
    heard.stop, heard.tokens = body["stop_reason"], body["usage"]["output_tokens"]
    blocks = body["content"]
    heard.text = "".join(block["text"] for block in blocks if block["type"] == "text")
    heard.thinking = "".join(block["thinking"] for block in blocks if block["type"] == "thinking")
    for block in blocks:
        if block["type"] == "tool_use":
            heard.calls.append((block["name"], json.dumps(block["input"])))
            heard.ids.append(block["id"])


def _response_body(heard: Heard, body: dict[str, Any]) -> None:
    heard.stop, heard.tokens = body["status"], (body.get("usage") or {}).get("output_tokens", 0)
    items = body["output"]
    heard.text = "".join(part["text"] for item in items if item["type"] == "message" for part in item["content"])
    for item in items:
        if item["type"] == "function_call":
            heard.calls.append((item["name"], item["arguments"]))
            heard.ids.append(item["call_id"])


_STREAMS: dict[str, Callable[[Heard, Any, _Calls], None]] = {
    CHAT_PATH: _hear_chat,
    MESSAGES_PATH: _hear_messages,
    RESPONSES_PATH: _hear_responses,
}
_BODIES: dict[str, Callable[[Heard, dict[str, Any]], None]] = {
    CHAT_PATH: _chat_body,
    MESSAGES_PATH: _message_body,
    RESPONSES_PATH: _response_body,
}
