"""A client of the gateway that is nothing but a socket: it can read slowly, leave early, and send what no SDK would."""

from __future__ import annotations

import json
import socket
from dataclasses import dataclass
from typing import Any

from tests.gateway_process import Running

CHAT, MESSAGES, RESPONSES = "chat/completions", "messages", "responses"
WIRES = [CHAT, MESSAGES, RESPONSES]
TOOL = {"type": "object", "properties": {"city": {"type": "string"}, "n": {"type": "integer"}}}


@dataclass
class Got:
    status: int
    headers: list[tuple[str, str]]
    body: bytes

    @property
    def json(self) -> Any:
        return json.loads(self.body)

    @property
    def events(self) -> list[Any]:
        """The data of each event; [DONE] is text."""
        lines = [line[5:].strip() for line in self.body.split(b"\n") if line.startswith(b"data:")]
        return [json.loads(line) if line != b"[DONE]" else "[DONE]" for line in lines]

    def header(self, name: str) -> str | None:
        return next((value for key, value in self.headers if key == name), None)


def body_for(wire: str, model: str, stream: bool = True, **more: Any) -> dict[str, Any]:
    """The least that this wire asks with."""
    user = [{"role": "user", "content": "hi"}]
    said: dict[str, Any] = {"input": "hi"} if wire == RESPONSES else {"messages": user}
    return {"model": model, "stream": stream, **said, **({"max_tokens": 100} if wire == MESSAGES else {}), **more}


def offered(wire: str, name: str = "get_weather", schema: dict[str, Any] | None = None) -> dict[str, Any]:
    """The field `tools` of a request, with one tool."""
    if wire == MESSAGES:
        return {"tools": [{"name": name, "input_schema": schema or TOOL}]}
    function = {"name": name, "parameters": schema or TOOL}
    return {"tools": [{"type": "function", **(function if wire == RESPONSES else {"function": function})}]}


def connect(gateway: Running, seconds: float = 20) -> socket.socket:
    host, port = gateway.base.removeprefix("http://").rsplit(":", 1)
    return socket.create_connection((host, int(port)), seconds)


def request(
    path: str, body: bytes | None = None, headers: dict[str, str] | None = None, method: str = "POST", length: str = ""
) -> bytes:
    """The bytes of a request. A header with an empty value is left out."""
    given = {"host": "127.0.0.1", "content-type": "application/json", "connection": "close", **(headers or {})}
    if body is not None:
        given.setdefault("content-length", length or str(len(body)))
    lines = [f"{method} {path} HTTP/1.1", *(f"{name}: {value}" for name, value in given.items() if value)]
    return "\r\n".join([*lines, "", ""]).encode() + (body or b"")


def begin(gateway: Running, wire: str, model: str, stream: bool = True, **more: Any) -> socket.socket:
    """A connection on which the request has been sent, and nothing was read."""
    sock = connect(gateway)
    sock.sendall(request(f"/v1/{wire}", json.dumps(body_for(wire, model, stream, **more)).encode()))
    return sock


def finish(sock: socket.socket) -> Got:
    """All that comes on this connection."""
    data = bytearray()
    with sock:
        while piece := sock.recv(1 << 20):
            data += piece
    return parsed(bytes(data))


def parsed(data: bytes) -> Got:
    head, _, body = data.partition(b"\r\n\r\n")
    first, *lines = head.decode("latin-1").split("\r\n")
    headers = [(name.lower(), value.strip()) for name, _, value in (line.partition(":") for line in lines)]
    if ("transfer-encoding", "chunked") in headers:
        body = _unchunked(body)
    return Got(int(first.split()[1]), headers, body)


def _unchunked(data: bytes) -> bytes:
    pieces: list[bytes] = []
    at = 0
    while at < len(data):
        end = data.index(b"\r\n", at)
        size = int(data[at:end], 16)
        if not size:
            return b"".join(pieces)
        pieces.append(data[end + 2 : end + 2 + size])
        at = end + 2 + size + 2
    raise AssertionError(f"a body that breaks off after {len(data)} bytes: {data[-200:]!r}")


def ask(gateway: Running, wire: str, model: str, stream: bool = True, **more: Any) -> Got:
    return finish(begin(gateway, wire, model, stream, **more))


def send(gateway: Running, data: bytes) -> Got:
    """The answer to these bytes."""
    sock = connect(gateway)
    sock.sendall(data)
    return finish(sock)


def get(gateway: Running, path: str, **headers: str) -> Got:
    return send(gateway, request(path, headers={k.replace("_", "-"): v for k, v in headers.items()}, method="GET"))


def text_of(got: Got, wire: str) -> str:
    """What the model said in this reply, whole or streamed."""
    if str(got.header("content-type")).startswith("application/json"):
        return _whole_text(got.json, wire)
    events = [event for event in got.events if event != "[DONE]"]
    if wire == CHAT:
        return "".join(c["delta"].get("content") or "" for event in events for c in event.get("choices", []))
    kind = "content_block_delta" if wire == MESSAGES else "response.output_text.delta"
    deltas = [event["delta"] for event in events if event["type"] == kind]
    return "".join(d if isinstance(d, str) else d.get("text", "") for d in deltas)


def _whole_text(body: Any, wire: str) -> str:
    if wire == CHAT:
        return body["choices"][0]["message"]["content"] or ""
    if wire == MESSAGES:
        return "".join(block.get("text", "") for block in body["content"])
    return "".join(part.get("text", "") for item in body["output"] for part in item.get("content", []))


def calls_of(got: Got, wire: str) -> list[tuple[str, str]]:
    """Name and arguments of each call in a streamed reply, or one that is whole."""
    return [(name, args) for _, name, args in whole_calls_of(got, wire)]


def whole_calls_of(got: Got, wire: str) -> list[tuple[str, str, str]]:
    """The id of each, too."""
    events = [event for event in got.events if event != "[DONE]"]
    if not events:
        return _calls_in_body(got.json, wire)
    if wire == CHAT:
        return _chat_calls([c for event in events for c in event.get("choices", [])])
    if wire == RESPONSES:
        items = [event["item"] for event in events if event["type"] == "response.output_item.done"]
        return [(i["call_id"], i["name"], i["arguments"]) for i in items if i["type"] == "function_call"]
    blocks: dict[int, list[str]] = {}
    for event in events:
        if event["type"] == "content_block_start" and event["content_block"]["type"] == "tool_use":
            blocks[event["index"]] = [event["content_block"]["id"], event["content_block"]["name"], ""]
        elif event["type"] == "content_block_delta" and event["delta"]["type"] == "input_json_delta":
            blocks[event["index"]][2] += event["delta"]["partial_json"]
    return [(id, name, args) for id, name, args in blocks.values()]


def _chat_calls(choices: list[Any]) -> list[tuple[str, str, str]]:
    found: dict[int, tuple[str, str, list[str]]] = {}
    for choice in choices:
        for call in choice["delta"].get("tool_calls", []):
            function = call["function"]
            _, _, args = found.setdefault(call["index"], (call.get("id", ""), function.get("name", ""), []))
            args.append(function.get("arguments", ""))
    return [(id, name, "".join(args)) for id, name, args in found.values()]


def _calls_in_body(body: Any, wire: str) -> list[tuple[str, str, str]]:
    if wire == CHAT:
        calls = body["choices"][0]["message"].get("tool_calls", [])
        return [(c["id"], c["function"]["name"], c["function"]["arguments"]) for c in calls]
    if wire == MESSAGES:
        blocks = [block for block in body["content"] if block["type"] == "tool_use"]
        return [(b["id"], b["name"], json.dumps(b["input"])) for b in blocks]
    return [(i["call_id"], i["name"], i["arguments"]) for i in body["output"] if i["type"] == "function_call"]
