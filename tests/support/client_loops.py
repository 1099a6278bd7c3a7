"""Tool loops of real clients through the gateway: the calls requested from the demo model, and the expected results."""

from __future__ import annotations

import json
import os
import socket
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from interlingua.captures.capture_format import (
    ClientRequestLine,
    EndLine,
    UpstreamRequestLine,
    read_capture,
)
from interlingua.dialects.registry import get_dialect
from tests.support.gateway_process import run_gateway

Json = dict[str, Any]
Calls = list[tuple[str, Json]]

DIALECTS = ("kimi_k2", "qwen3_coder", "deepseek_v31", "hermes")
KEY = "any"

# ── requested calls ───────────────────────────────────────────────────────────────────────────────────────────────

STEPS: list[Calls] = [
    [
        ("note", {"title": "São Paulo, “東京” & 🚀", "text": 'two\nlines: it\'s "quoted"', "tags": ["a b", "é"]}),
        ("add", {"a": 2, "b": 40.5}),
    ],
    [
        ("note", {"title": "C:\\temp\\new", "text": '<b>&amp;</b>\n\t{"json": [1, null]} \\n `${x}`', "tags": []}),
        ("clock", {}),
    ],
]
"""Calls of each turn."""
PROMPT = "Please do " + ", then ".join(
    " and ".join(f"{name}({json.dumps(args, ensure_ascii=False) if args else ''})" for name, args in step)
    for step in STEPS
)
"""The same calls in the prompt language of the demo model."""
SCHEMAS: dict[str, Json] = {
    "note": {
        "title": {"type": "string"},
        "text": {"type": "string"},
        "tags": {"type": "array", "items": {"type": "string"}},
    },
    "add": {"a": {"type": "integer"}, "b": {"type": "number"}},
    "clock": {},
}
for _name, _properties in SCHEMAS.items():
    SCHEMAS[_name] = {
        "type": "object",
        "properties": _properties,
        "required": list(_properties),
        "additionalProperties": False,
    }


class Notebook:
    """The tools, and a record of the arguments that they received."""

    def __init__(self) -> None:
        self.received: Calls = []

    def note(self, title: str, text: str, tags: list[str]) -> str:
        """Writes something down."""
        return self._record("note", {"title": title, "text": text, "tags": tags})

    def add(self, a: int, b: float) -> str:
        """Adds two numbers."""
        return self._record("add", {"a": a, "b": b})

    def clock(self) -> str:
        """Tells the time."""
        return self._record("clock", {})

    def run(self, name: str, args: str | object) -> str:
        """Run a call, for loops written by hand."""
        tools: dict[str, Callable[..., str]] = {"note": self.note, "add": self.add, "clock": self.clock}
        arguments = json.loads(args) if isinstance(args, str) else args
        assert isinstance(arguments, dict)
        return tools[name](**arguments)

    def _record(self, name: str, args: Json) -> str:
        self.received.append((name, args))
        return result_of(name, args)


def result_of(name: str, args: Json) -> str:
    return f"{name} ✓ {args.get('title', '')!s:.20} {len(json.dumps(args))}"


# ── expected results ──────────────────────────────────────────────────────────────────────────────────────────────


@dataclass
class RecordedExchange:
    """One request, as the client sent it and as the upstream received it."""

    wire: str
    status: int
    body: Json
    upstream_body: Json


def check_tool_loop(
    session: GatewaySession, notebook: Notebook, final_text: str, dialect: str, keeps_thinking: bool
) -> None:
    """Assert that the tools received the requested arguments, and the model the results under the right ids."""
    checked = 0
    for step in STEPS:  # clients may run the calls of one turn in any order
        assert sorted(notebook.received[checked : checked + len(step)], key=repr) == sorted(step, key=repr)
        checked += len(step)
    assert len(notebook.received) == checked
    exchanges = session.wait_for_exchanges(len(STEPS) + 1)
    expected_calls = [call for step in STEPS for call in step]
    last = exchanges[-1]
    for body, wire in ((last.body, last.wire), (last.upstream_body, "openai-chat")):
        history = HISTORY_READERS[wire](body)
        assert [(name, json.loads(args)) for _, name, args in history.calls] == expected_calls
        ids = [id for id, _, _ in history.calls]
        assert len(set(ids)) == len(ids)
        assert history.results == {id: result_of(*call) for id, call in zip(ids, expected_calls, strict=True)}
        if keeps_thinking:
            assert history.thinking == expected_thinking(dialect)
    assert final_text.startswith("Done."), final_text
    for name, args in STEPS[-1]:
        assert " ".join(result_of(name, args).split()) in final_text


def expected_thinking(dialect: str) -> list[str]:
    """Return the reasoning of the demo model before its calls."""
    if not get_dialect(dialect).thinking:
        return []
    return [f"I will call {' and '.join(name for name, _ in step)}." for step in STEPS]


@dataclass
class RequestHistory:
    """Conversation in a request. A call is (id, name, arguments)."""

    calls: list[tuple[str, str, str]] = field(default_factory=list)
    results: dict[str, str] = field(default_factory=dict)
    thinking: list[str] = field(default_factory=list)


def _chat_history(body: Json) -> RequestHistory:
    history = RequestHistory()
    for message in body["messages"]:
        for call in message.get("tool_calls") or ():
            history.calls.append((call["id"], call["function"]["name"], call["function"]["arguments"]))
        if message["role"] == "tool":
            assert message["tool_call_id"] not in history.results
            history.results[message["tool_call_id"]] = _text(message["content"])
        if message.get("reasoning_content"):
            history.thinking.append(message["reasoning_content"])
    return history


def _messages_history(body: Json) -> RequestHistory:
    history = RequestHistory()
    for message in body["messages"]:
        for block in message["content"] if isinstance(message["content"], list) else ():
            match block["type"]:
                case "tool_use":
                    history.calls.append((block["id"], block["name"], json.dumps(block["input"])))
                case "tool_result":
                    assert block["tool_use_id"] not in history.results
                    history.results[block["tool_use_id"]] = _text(block["content"])
                case "thinking":
                    history.thinking.append(block["thinking"])
    return history


def _responses_history(body: Json) -> RequestHistory:
    history = RequestHistory()
    for item in body["input"]:
        match item.get("type"):
            case "function_call":
                history.calls.append((item["call_id"], item["name"], item["arguments"]))
            case "function_call_output":
                assert item["call_id"] not in history.results
                history.results[item["call_id"]] = _text(item["output"])
            case "reasoning":
                history.thinking += [_text(item.get("content") or item.get("summary") or "")]
    return history


HISTORY_READERS: dict[str, Callable[[Json], RequestHistory]] = {
    "openai-chat": _chat_history,
    "anthropic-messages": _messages_history,
    "openai-responses": _responses_history,
}


def _text(content: str | list[Json]) -> str:
    return content if isinstance(content, str) else "".join(part["text"] for part in content)


# ── the gateway ───────────────────────────────────────────────────────────────────────────────────────────────────

TELEMETRY_OFF = {
    "ANONYMIZED_TELEMETRY": "false",
    "DO_NOT_TRACK": "1",
    "LANGCHAIN_TRACING_V2": "false",
    "LANGSMITH_TRACING": "false",
    "NO_PROXY": "*",
    "OPENAI_AGENTS_DISABLE_TRACING": "1",
    "OTEL_SDK_DISABLED": "true",
}
"""Variables that disable telemetry in the client libraries."""


CAPTURE_TIME_FORMAT = "%Y%m%dT%H%M%S%fZ"
"""Start of the name of a capture: the time of its request."""


class GatewaySession:
    """A gateway with the demo model, and the captured requests of one client.

    The time of the request tells them from those of earlier clients, whose captures may be written later.
    """

    def __init__(self, base: str, captures: Path) -> None:
        self.base = base
        self._captures = captures
        self._began_at = datetime.now(UTC).strftime(CAPTURE_TIME_FORMAT)

    def wait_for_exchanges(self, count: int) -> list[RecordedExchange]:
        """Wait for exactly `count` successful exchanges. A capture is complete shortly after its reply."""
        deadline = time.monotonic() + 10
        while len(exchanges := self.exchanges(200)) < count:
            assert time.monotonic() < deadline, f"{len(exchanges)} of {count} exchanges were captured"
            time.sleep(0.005)
        assert len(exchanges) == count
        return exchanges

    def exchanges(self, status: int) -> list[RecordedExchange]:
        """Return the exchanges with this status."""
        paths = sorted(path for path in self._captures.glob("*.jsonl") if path.name >= self._began_at)
        return [exchange for exchange in map(_read_exchange, paths) if exchange.status == status]


def _read_exchange(path: Path) -> RecordedExchange:
    captured = read_capture(path)
    [request], [end] = captured.lines_of(ClientRequestLine), captured.lines_of(EndLine)
    upstream_requests = captured.lines_of(UpstreamRequestLine)
    body = json.loads(upstream_requests[-1].data) if upstream_requests else {}
    return RecordedExchange(request.wire, end.exchange["status"], json.loads(request.data), body)


@contextmanager
def demo_gateway() -> Iterator[tuple[str, Path]]:
    """Run a gateway with the demo model. Yields its base URL and the folder of its captures."""
    with run_gateway("--demo", "--capture", "captures", INTERLINGUA_DEMO_PACE="0") as gateway:
        yield gateway.base, gateway.folder / "captures"
        assert gateway.stop() == 0


@contextmanager
def block_external_connections(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Refuse connections to anything but loopback, and fail the test even if the client hides the error."""
    blocked: list[object] = []
    connect = socket.socket.connect

    def guarded_connect(self: socket.socket, address: Any) -> None:
        if self.family != socket.AF_UNIX and str(address[0]) not in ("127.0.0.1", "::1"):
            blocked.append(address)
            raise ConnectionRefusedError(f"no network in tests: {address}")
        connect(self, address)

    for name, value in TELEMETRY_OFF.items():
        monkeypatch.setenv(name, value)
    for name in [
        name for name in os.environ if name.startswith(("OPENAI_", "ANTHROPIC_")) and name not in TELEMETRY_OFF
    ]:
        monkeypatch.delenv(name)
    monkeypatch.setattr(socket.socket, "connect", guarded_connect)
    yield
    assert blocked == []
