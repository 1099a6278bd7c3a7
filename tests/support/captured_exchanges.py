"""Captured exchanges, made without a gateway: a request is translated as the gateway does, and a reply is played."""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from typing import Any

from interlingua.captures.capture_format import (
    AnsweredLine,
    CapturedExchange,
    CaptureLine,
    ClientRequestLine,
    EndLine,
    FindingsLine,
    ReceivedLine,
    RouteFacts,
    SentLine,
    UpstreamRequestLine,
    encode_data_fields,
)
from interlingua.core.options import Options
from interlingua.translation.exchange import Exchange, UpstreamTarget
from interlingua.upstreams import get_profile
from interlingua.wires import get_wire

__all__ = ["DONE", "capture_exchange", "chat_chunk", "chat_stream", "failed_attempt"]

DONE = b"data: [DONE]\n\n"
START_TIME = "2026-03-04T05:06:07.000000+00:00"


def chat_chunk(delta: dict[str, Any], finish: str | None = None, model: str = "kimi-k2", **more: Any) -> bytes:
    choice = {"index": 0, "delta": delta, "finish_reason": finish}
    envelope = {"id": "c1", "object": "chat.completion.chunk", "created": 1, "model": model, "choices": [choice]}
    return f"data: {json.dumps({**envelope, **more}, ensure_ascii=False)}\n\n".encode()


def chat_stream(
    pieces: Iterable[str], field: str = "content", finish: str = "stop", usage: dict[str, Any] | None = None
) -> list[bytes]:
    """Return a stream of chat completions with one chunk per piece, and the usage if there is one."""
    chunks = [chat_chunk({"role": "assistant", "content": ""}), *(chat_chunk({field: piece}) for piece in pieces)]
    last = chat_chunk({}, finish, usage=usage) if usage else chat_chunk({}, finish)
    return [*chunks, last, DONE]


def failed_attempt(upstream: str, status: int, at: float) -> list[CaptureLine]:
    """Return the lines of an attempt that an upstream refused."""
    route = RouteFacts(upstream=upstream, wire="openai-chat", model="kimi-k2")
    error = json.dumps({"error": {"message": f"{upstream} is overloaded"}})
    return [
        UpstreamRequestLine(at=at, url=f"https://{upstream}/v1/chat/completions", headers={}, route=route, text="{}"),
        AnsweredLine(at=at + 0.1, status=status, connect_seconds=0.05),
        ReceivedLine(at=at + 0.2, text=error),
    ]


def capture_exchange(
    body: dict[str, Any],
    reads: Sequence[bytes],
    *,
    id: str = "req_0123456789abcdef0123456789abcdef",
    time: str = START_TIME,
    wire: str = "openai-chat",
    upstream_wire: str = "openai-chat",
    profile: str = "any",
    model: str = "kimi-k2",
    dialect: str = "auto",
    upstream_body: bytes | None = None,
    headers: dict[str, str] | None = None,
    before: Iterable[CaptureLine] = (),
    start: float = 0.01,
    first_byte: float = 0.3,
    pace: float = 0.02,
    options: dict[str, Any] | None = None,
    **summary: Any,
) -> CapturedExchange:
    """Return the capture of an exchange in which the upstream sent these reads.

    Args:
        body: The client's request.
        reads: What the upstream sent, read by read.
        id, time: Id and start of the exchange.
        wire, upstream_wire: The two APIs.
        profile, model, dialect: The route.
        upstream_body: What the upstream received, if that is not the translation of the request.
        headers: Headers of the client.
        before: Lines of earlier attempts.
        start, first_byte, pace: Times of the last attempt, its first read, and between two reads.
        options: Options of the route, such as `delivery`.
        summary: Further fields of the end line.
    """
    route = RouteFacts(
        upstream="local", wire=upstream_wire, model=model, profile=profile, dialect=dialect, **(options or {})
    )
    target = UpstreamTarget(api=upstream_wire, profile=get_profile(profile), name="local", model=model, dialect=dialect)
    exchange = Exchange(wire, body, target, Options(reply_id=id.removeprefix("req_"), created=1, **(options or {})))
    is_stream = body.get("stream") is True
    content_type = "text/event-stream" if is_stream else "application/json"
    receiver = exchange.receive(content_type)
    lines: list[CaptureLine] = [
        ClientRequestLine(
            at=0.0,
            id=id,
            time=time,
            path=get_wire(wire).HTTP_API.path,
            wire=wire,
            headers={"user-agent": "test/1.0", **(headers or {})},
            **encode_data_fields(json.dumps(body, ensure_ascii=False).encode()),
        ),
        *before,
        UpstreamRequestLine(
            at=start,
            url="http://localhost:8000/v1/chat/completions",
            headers={"authorization": "***"},
            route=route,
            **encode_data_fields(exchange.body if upstream_body is None else upstream_body),
        ),
        AnsweredLine(at=first_byte - 0.05, status=200, headers={"content-type": content_type}, connect_seconds=0.02),
    ]
    at = first_byte
    sent_bytes = 0
    for data in (*reads, b""):
        if data:
            lines.append(ReceivedLine(at=at, **encode_data_fields(data)))
        output = receiver.feed(data) if data else receiver.close()
        if output:
            lines.append(SentLine(at=at, **encode_data_fields(output)))
        sent_bytes += len(output)
        at = round(at + pace, 6)
    findings = [*exchange.findings, *receiver.findings, *receiver.translator.findings]
    if findings:
        lines.append(FindingsLine(at=at, findings=findings))
    tally = receiver.translator.tally
    usage = tally.usage
    end: dict[str, Any] = {
        "id": id,
        "path": get_wire(wire).HTTP_API.path,
        "wire": wire,
        "model": body.get("model", ""),
        "stream": is_stream,
        "upstream": "local",
        "upstream_wire": upstream_wire,
        "upstream_model": model,
        "dialect": receiver.translator.dialect.name if receiver.translator.dialect else "",
        "attempts": 1 + sum(isinstance(line, UpstreamRequestLine) for line in before),
        "upstream_status": 200,
        "status": 200,
        "outcome": "ok",
        "error": "",
        "calls": tally.calls,
        "bytes_in": sum(map(len, reads)),
        "bytes_out": sent_bytes,
        "stop_reason": tally.stop.reason if tally.stop else None,
        "first_byte_seconds": first_byte,
        "seconds": at,
        "tokens": {name: getattr(usage, name) for name in ("input", "output", "cached", "reasoning")} if usage else {},
        "findings": {finding.kind: 1 for finding in findings},
        **summary,
    }
    lines.append(EndLine(at=at, exchange=end))
    return CapturedExchange(lines)
