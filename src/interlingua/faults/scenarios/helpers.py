"""Helpers and constants for defining scenarios."""

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
"""Longer than any timeout in the tests and checks."""
CHAT_ONLY = {"apis": (CHAT_PATH,)}
"""For faults that cannot occur in the other upstream APIs."""
INTRO_TEXT = "Let me see."
PARIS_ARGUMENTS = '{"city": "Paris"}'
WEATHER_CALL = ("get_weather", {"city": "Paris"})
"""Expected call, in all scenarios with one call."""


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
    """Return a scenario for a fault that can occur in a stream only."""
    return fault(row, name, description, expected, make_scripts, check, streams_only=True, **options)


def repeat_script(script: Callable[[ReplyWriter], Script]) -> ScriptFactory:
    """Use the same script for every request."""
    return lambda writer: [script(writer)]


def script_then_reply(script: Callable[[ReplyWriter], Script]) -> ScriptFactory:
    """Use this script for the first request, and a normal reply for all further ones."""
    return lambda writer: [script(writer), writer.fresh_copy().reply_script()]


def healthy_upstream(writer: ReplyWriter) -> list[Script]:
    """Return the script of an upstream without a fault, for faults of clients."""
    return [writer.reply_script()]
