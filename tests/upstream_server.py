"""The scripted upstream of `interlingua.faults`, under the one name that tests know it by."""

from __future__ import annotations

from interlingua.faults.chat_events import DONE, ROLE, call, call_delta, chat, delta, event
from interlingua.faults.script import (
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
from interlingua.faults.server import UpstreamServer

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
