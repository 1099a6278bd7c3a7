"""Re-exports of the scripted upstream in `interlingua.faults`, for tests."""

from __future__ import annotations

from interlingua.faults.upstream.chat_chunks import DONE, ROLE, call, call_delta, chat_stream, delta, event
from interlingua.faults.upstream.script import (
    ReceivedRequest,
    Script,
    Step,
    reset,
    send,
    send_chunked,
    send_headers,
    send_pieces,
    send_response,
    stream_response,
    stream_then_reset,
    wait,
    wait_for_event,
)
from interlingua.faults.upstream.server import UpstreamServer

__all__ = [
    "DONE",
    "ROLE",
    "ReceivedRequest",
    "Script",
    "Step",
    "UpstreamServer",
    "call",
    "call_delta",
    "chat_stream",
    "delta",
    "event",
    "reset",
    "send",
    "send_chunked",
    "send_headers",
    "send_pieces",
    "send_response",
    "stream_response",
    "stream_then_reset",
    "wait",
    "wait_for_event",
]
