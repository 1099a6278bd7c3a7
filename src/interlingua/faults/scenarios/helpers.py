"""How the scenarios of a row are written down."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from interlingua.faults.apis import CHAT_PATH
from interlingua.faults.checker.scenario import Check, Playing, Scenario
from interlingua.faults.upstream.reply_writers import Voice
from interlingua.faults.upstream.script import Script

__all__ = ["IN_CHAT", "LONG", "PARIS", "SAID", "WEATHER", "always", "fault", "good", "once", "stream_fault"]

LONG = 300
"""Longer than anybody waits here, in seconds."""
IN_CHAT = {"apis": (CHAT_PATH,)}
"""Upstreams of other APIs cannot do this."""
SAID = "Let me see."
PARIS = '{"city": "Paris"}'
WEATHER = ("get_weather", {"city": "Paris"})
"""The call that is meant wherever there is one."""


def fault(row: int, name: str, happens: str, right: str, plays: Playing, check: Check, **more: Any) -> Scenario:
    return Scenario(row, f"fault-{row:02}-{name}", happens, right, plays, check, **more)


def stream_fault(row: int, name: str, happens: str, right: str, plays: Playing, check: Check, **more: Any) -> Scenario:
    """What an upstream can only do in a stream."""
    return fault(row, name, happens, right, plays, check, streams_only=True, **more)


def always(script: Callable[[Voice], Script]) -> Playing:
    """The same, however often it is asked."""
    return lambda say: [script(say)]


def once(script: Callable[[Voice], Script]) -> Playing:
    """This the first time, and whoever asks again gets a reply."""
    return lambda say: [script(say), say.again().reply()]


def good(say: Voice) -> list[Script]:
    """Nothing is wrong with the upstream: the client is the fault."""
    return [say.reply()]
