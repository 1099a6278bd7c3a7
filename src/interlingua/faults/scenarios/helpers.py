"""How the scenarios of a row are written down."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from interlingua.faults.apis import CHAT_PATH
from interlingua.faults.checker.scenario import Scenario, ScenarioCheck, ScriptFactory
from interlingua.faults.upstream.reply_writers import ReplyWriter
from interlingua.faults.upstream.script import Script

__all__ = [
    "CHAT_ONLY",
    "INTRO_TEXT",
    "PARIS_ARGUMENTS",
    "STALL_SECONDS",
    "WEATHER_CALL",
    "fault",
    "healthy_upstream",
    "repeat_script",
    "script_then_reply",
    "stream_fault",
]

STALL_SECONDS = 300
"""Longer than anybody waits here, in seconds."""
CHAT_ONLY = {"apis": (CHAT_PATH,)}
"""Upstreams of other APIs cannot do this."""
INTRO_TEXT = "Let me see."
PARIS_ARGUMENTS = '{"city": "Paris"}'
WEATHER_CALL = ("get_weather", {"city": "Paris"})
"""The call that is meant wherever there is one."""


def fault(
    row: int,
    name: str,
    description: str,
    expected: str,
    make_scripts: ScriptFactory,
    check: ScenarioCheck,
    **options: Any,
) -> Scenario:
    return Scenario(row, f"fault-{row:02}-{name}", description, expected, make_scripts, check, **options)


def stream_fault(
    row: int,
    name: str,
    description: str,
    expected: str,
    make_scripts: ScriptFactory,
    check: ScenarioCheck,
    **options: Any,
) -> Scenario:
    """What an upstream can only do in a stream."""
    return fault(row, name, description, expected, make_scripts, check, streams_only=True, **options)


def repeat_script(script: Callable[[ReplyWriter], Script]) -> ScriptFactory:
    """The same, however often it is asked."""
    return lambda writer: [script(writer)]


def script_then_reply(script: Callable[[ReplyWriter], Script]) -> ScriptFactory:
    """This the first time, and whoever asks again gets a reply."""
    return lambda writer: [script(writer), writer.fresh_copy().reply_script()]


def healthy_upstream(writer: ReplyWriter) -> list[Script]:
    """Nothing is wrong with the upstream: the client is the fault."""
    return [writer.reply_script()]
