"""The scripted upstream of `interlingua.faults`, under the one name that tests know it by."""

from __future__ import annotations

from interlingua.faults.upstream.chat_chunks import DONE, ROLE, call, call_delta, chat, delta, event
from interlingua.faults.upstream.script import (
    Asked,
    Script,
    Step,
    answer,
    chunked,
    each,
    head,
    reset,
    send,
    streamed,
    torn,
    until,
    wait,
)
from interlingua.faults.upstream.server import UpstreamServer

__all__ = [
    "DONE",
    "ROLE",
    "Asked",
    "Script",
    "Step",
    "UpstreamServer",
    "answer",
    "call",
    "call_delta",
    "chat",
    "chunked",
    "delta",
    "each",
    "event",
    "head",
    "reset",
    "send",
    "streamed",
    "torn",
    "until",
    "wait",
]
