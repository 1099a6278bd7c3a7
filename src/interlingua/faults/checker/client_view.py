"""A response as the client understands it, in one format for all three APIs."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any

from interlingua.faults.apis import CHAT_PATH, MESSAGES_PATH, RESPONSES_PATH

__all__ = ["ClientView", "read_into_view"]


@dataclass
class ClientView:
    """Parsed response. A call is a pair of name and arguments."""

    status: int
    headers: dict[str, str]
    body: bytes
    text: str = ""
    thinking: str = ""
    calls: list[tuple[str, str]] = field(default_factory=list)
    """Closed calls, which the client would run."""
    ids: list[str] = field(default_factory=list)
    """Ids of these calls."""
    open_call: tuple[str, str] | None = None
    """The call that was never closed."""
    stop: str = ""
    output_tokens: int = 0
    error: str = ""
    error_type: str = ""
    error_code: str | None = None
    ended: bool = False
    """The reply has a regular end."""
    violations: list[str] = field(default_factory=list)
    """Violations of the API that clients can stumble over."""
    deviations: list[str] = field(default_factory=list)
    """Deviations from the API that no client minds."""

    @property
    def streamed(self) -> bool:
        return "text/event-stream" in self.headers.get("content-type", "")


def read_into_view(view: ClientView, api: str) -> ClientView:
    """Parse the body and fill the other fields."""
    try:
        if view.streamed:
            calls = _StreamedCalls(view)
            for event in _events(view):
                _EVENT_READERS[api](view, event, calls)
            calls.finish()
        else:
            _read_body(view, api)
    except (KeyError, TypeError, AttributeError, IndexError, ValueError) as error:
        view.violations.append(f"does not match the API: {type(error).__name__} {error}")
    return view


class _StreamedCalls:
    """Assembles the calls of a stream by index, as clients do."""

    def __init__(self, view: ClientView) -> None:
        self._view = view
        self._calls: dict[Any, list[str]] = {}
        self._closed: set[Any] = set()

    def begin(self, index: Any, id: str, name: str) -> None:
        self._calls.setdefault(index, [id, name, ""])

    def has(self, index: Any) -> bool:
        return index in self._calls

    def append(self, index: Any, args: str) -> None:
        self._calls[index][2] += args

    def close(self, index: Any) -> None:
        if index in self._calls:
            self._closed.add(index)

    def close_all(self) -> None:
        self._closed.update(self._calls)

    def finish(self) -> None:
        for index, (id, name, args) in self._calls.items():
            if index in self._closed:
                self._view.calls.append((name, args))
                self._view.ids.append(id)
            else:
                self._view.open_call = (name, args)


def _events(view: ClientView) -> Iterator[Any]:
    """Yield the data of each event. An event after an error or after the end is a violation."""
    body = view.body.decode("utf-8", "replace").replace("\r\n", "\n").replace("\r", "\n")
    if "\ufffd" in body and "\ufffd".encode() not in view.body:
        view.violations.append("bytes that are not UTF-8")
    if not body.endswith("\n\n"):
        view.violations.append(f"the last event is incomplete: {body[-80:]!r}")
    for block in body.split("\n\n"):
        data = "\n".join(line[5:].removeprefix(" ") for line in block.split("\n") if line.startswith("data:"))
        if not data:
            continue
        if (view.ended or view.error) and data != "[DONE]":
            view.violations.append(f"event after {'an error' if view.error else 'the end'}: {data[:80]}")
        if data == "[DONE]":
            yield data
            continue
        try:
            yield json.loads(data)
        except ValueError:
            view.violations.append(f"an event that is not JSON: {data[:80]!r}")


def _record_error(view: ClientView, error: Any) -> None:
    if not isinstance(error, dict):
        view.error = str(error)
        view.violations.append("an error that is not an object")
        return
    view.error, view.error_type = str(error.get("message") or error), error.get("type") or ""
    view.error_code = error.get("code")


def _read_chat_chunk(view: ClientView, chunk: Any, calls: _StreamedCalls) -> None:
    if chunk == "[DONE]":
        if view.error:
            view.deviations.append("[DONE] after an error")
        view.ended = not view.error
    elif "error" in chunk:
        _record_error(view, chunk["error"])
    else:
        view.output_tokens = (chunk.get("usage") or {}).get("completion_tokens", view.output_tokens)
        for choice in chunk["choices"]:
            _read_chat_choice(view, choice, calls)


def _read_chat_choice(view: ClientView, choice: dict[str, Any], calls: _StreamedCalls) -> None:
    delta = choice.get("delta") or {}
    view.text += delta.get("content") or ""
    view.thinking += delta.get("reasoning_content") or delta.get("reasoning") or ""
    for call in delta.get("tool_calls") or ():
        index, function = call.get("index", 0), call.get("function") or {}
        if not calls.has(index):
            calls.close_all()  # a new call ends the previous one
            calls.begin(index, call.get("id") or "", function.get("name") or "")
        calls.append(index, function.get("arguments") or "")
    if choice.get("finish_reason"):
        if view.stop:
            view.violations.append("two finish reasons")
        view.stop = choice["finish_reason"]
        calls.close_all()


def _read_messages_event(view: ClientView, event: Any, calls: _StreamedCalls) -> None:
    if event == "[DONE]":
        view.deviations.append("[DONE], which this API does not have")
        return
    match event["type"]:
        case "content_block_start" if event["content_block"]["type"] == "tool_use":
            calls.begin(event["index"], event["content_block"]["id"], event["content_block"]["name"])
        case "content_block_delta":
            delta = event["delta"]
            view.text += delta.get("text", "")
            view.thinking += delta.get("thinking", "")
            if delta["type"] == "input_json_delta":
                calls.append(event["index"], delta["partial_json"])
        case "content_block_stop":
            calls.close(event["index"])
        case "message_delta":
            view.stop = event["delta"].get("stop_reason") or ""
            view.output_tokens = event["usage"]["output_tokens"]
        case "message_stop":
            view.ended = True
        case "error":
            _record_error(view, event["error"])


def _read_responses_event(view: ClientView, event: Any, calls: _StreamedCalls) -> None:
    if event == "[DONE]":
        view.deviations.append("[DONE], which this API does not have")
        return
    match event["type"]:
        case "response.output_text.delta":
            view.text += event["delta"]
        case "response.reasoning_summary_text.delta" | "response.reasoning_text.delta":
            view.thinking += event["delta"]
        case "response.output_item.added" if event["item"]["type"] == "function_call":
            calls.begin(event["output_index"], event["item"]["call_id"], event["item"]["name"])
        case "response.function_call_arguments.delta":
            calls.append(event["output_index"], event["delta"])
        case "response.output_item.done":
            calls.close(event["output_index"])
        case "response.failed":
            if event["response"]["status"] != "failed":
                view.violations.append("response.failed with another status")
            _record_error(view, event["response"]["error"])
        case "error":
            _record_error(view, event.get("error") or event)
        case "response.completed" | "response.incomplete":
            view.ended, view.stop = True, event["response"]["status"]
            view.output_tokens = (event["response"].get("usage") or {}).get("output_tokens", 0)


# ── whole replies ─────────────────────────────────────────────────────────────────────────────────────────────────────


def _read_body(view: ClientView, api: str) -> None:
    try:
        body = json.loads(view.body)
    except ValueError:
        view.error = view.body[:200].decode("utf-8", "replace")
        view.violations.append(f"not JSON: {view.error[:60]!r}")
        return
    if body.get("error"):
        if (body.get("type") == "error") != (api == MESSAGES_PATH):
            view.deviations.append("an error that differs slightly from the API's format")
        _record_error(view, body["error"])
    elif view.status >= 400:
        view.error = str(body)[:200]
        view.violations.append("an error that does not have the API's format")
    else:
        view.ended = True
        _BODY_READERS[api](view, body)


def _read_chat_body(view: ClientView, body: dict[str, Any]) -> None:
    (choice,) = body["choices"]
    message = choice["message"]
    view.text, view.stop = message.get("content") or "", choice["finish_reason"]
    view.thinking = message.get("reasoning_content") or message.get("reasoning") or ""
    view.output_tokens = (body.get("usage") or {}).get("completion_tokens", 0)
    for call in message.get("tool_calls") or ():
        view.calls.append((call["function"]["name"], call["function"]["arguments"]))
        view.ids.append(call["id"])


def _read_messages_body(view: ClientView, body: dict[str, Any]) -> None:
    view.stop, view.output_tokens = body["stop_reason"], body["usage"]["output_tokens"]
    blocks = body["content"]
    view.text = "".join(block["text"] for block in blocks if block["type"] == "text")
    view.thinking = "".join(block["thinking"] for block in blocks if block["type"] == "thinking")
    for block in blocks:
        if block["type"] == "tool_use":
            view.calls.append((block["name"], json.dumps(block["input"])))
            view.ids.append(block["id"])


def _read_responses_body(view: ClientView, body: dict[str, Any]) -> None:
    view.stop, view.output_tokens = body["status"], (body.get("usage") or {}).get("output_tokens", 0)
    items = body["output"]
    view.text = "".join(part["text"] for item in items if item["type"] == "message" for part in item["content"])
    for item in items:
        if item["type"] == "function_call":
            view.calls.append((item["name"], item["arguments"]))
            view.ids.append(item["call_id"])


_EVENT_READERS: dict[str, Callable[[ClientView, Any, _StreamedCalls], None]] = {
    CHAT_PATH: _read_chat_chunk,
    MESSAGES_PATH: _read_messages_event,
    RESPONSES_PATH: _read_responses_event,
}
_BODY_READERS: dict[str, Callable[[ClientView, dict[str, Any]], None]] = {
    CHAT_PATH: _read_chat_body,
    MESSAGES_PATH: _read_messages_body,
    RESPONSES_PATH: _read_responses_body,
}
