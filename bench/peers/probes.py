"""Single requests to a gateway that show what it can do."""

from __future__ import annotations

import http.client
import json
from dataclasses import dataclass

import interlingua as il
from bench.traffic import PATHS, small_request

__all__ = ["Reply", "ask", "check_reply", "count_argument_events", "counts_tokens", "opens_websocket"]

TIMEOUT_SECONDS = 20.0
TOOL = "write"
"""Name of the tool in the calls of `bench.traffic`."""
UPGRADE = {
    "connection": "upgrade",
    "upgrade": "websocket",
    "sec-websocket-version": "13",
    "sec-websocket-key": "AAAAAAAAAAAAAAAAAAAAAA==",
}


@dataclass(frozen=True)
class Reply:
    status: int
    body: bytes

    @property
    def error(self) -> str:
        return f"HTTP {self.status} {self.body[:100].decode(errors='replace')}".strip()


def ask(port: int, path: str, wire: str, model: str) -> Reply:
    """Send a short request to a path and read the whole reply."""
    return _send(port, "POST", path, json.dumps(small_request(wire, model)).encode())


def check_reply(reply: Reply, wire: str) -> str:
    """Return why the reply is not the call of the upstream's script, in the format of this API; "" if it is."""
    if reply.status != 200:
        return reply.error
    # `standard` parses no text of the model: only calls that the gateway has sent as calls count.
    received = il.Accumulator(wire, dialect="standard")
    received.add(reply.body)
    received.close()
    if not received.finished:
        return "not a complete reply"
    if [call.name for call in received.calls if call.complete] != [TOOL]:
        return "the call is text" if received.text else "no call"
    return ""


def count_argument_events(reply: Reply, wire: str) -> int:
    """Return the number of events that have a part of the arguments of a call."""
    mark = {
        "openai-chat": b'"arguments":"',
        "anthropic-messages": b'"input_json_delta"',
        "openai-responses": b'"response.function_call_arguments.delta"',
    }[wire]
    data = (line.replace(b'": ', b'":') for line in reply.body.splitlines() if line.startswith(b"data:"))
    return sum(mark in line for line in data) if reply.status == 200 else 0


def counts_tokens(port: int, model: str) -> str:
    """Return why `/v1/messages/count_tokens` does not work; "" if it does."""
    wire = "anthropic-messages"
    body = small_request(wire, model)
    body = {name: body[name] for name in ("model", "messages", "tools")}
    reply = _send(port, "POST", f"{PATHS[wire]}/count_tokens", json.dumps(body).encode())
    return "" if reply.status == 200 and b"input_tokens" in reply.body else f"HTTP {reply.status}"


def opens_websocket(port: int) -> str:
    """Return why `/v1/responses` is not a WebSocket; "" if it is."""
    reply = _send(port, "GET", PATHS["openai-responses"], None, UPGRADE)
    return "" if reply.status == 101 else f"HTTP {reply.status}"


def _send(port: int, method: str, path: str, body: bytes | None, headers: dict[str, str] | None = None) -> Reply:
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=TIMEOUT_SECONDS)
    # LiteLLM opens a WebSocket only for a client with a key, also if no key is configured.
    usual = {"content-type": "application/json", "anthropic-version": "2023-06-01", "authorization": "Bearer sk-any"}
    try:
        connection.request(method, path, body, headers={**usual, **(headers or {})})
        response = connection.getresponse()
        return Reply(response.status, b"" if response.status == 101 else response.read())
    except http.client.HTTPException as error:
        raise RuntimeError(f"{path}: {error!r}") from None
    finally:
        connection.close()
