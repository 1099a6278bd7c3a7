"""Faults that can be mixed into a recorded reply: those of the upstream that do not need a reply of their own."""

from __future__ import annotations

from interlingua.cassettes.recorded_exchange import RecordedExchange
from interlingua.errors import UsageError, suggestion_hint
from interlingua.faults.apis import APIS
from interlingua.faults.catalog import SCENARIOS
from interlingua.faults.checker.scenario import Scenario
from interlingua.faults.scenarios.helpers import healthy_upstream
from interlingua.faults.upstream.recorded_reply import RecordedReplyWriter
from interlingua.faults.upstream.script import Script
from interlingua.parsing.dialect import Dialect

__all__ = ["RECORDED_FAULTS", "fault_scripts", "find_fault"]

OWN_REPLIES = frozenset({"ten-megabytes", "tiny-pieces", "evil-pattern"})
"""Faults that are in the content of the reply."""
CLIENT_ROWS = (19, 20)
"""Faults of clients whose upstream is slow."""


def _short_name(scenario: Scenario) -> str:
    return scenario.name.removeprefix(f"fault-{scenario.row:02}-")


RECORDED_FAULTS: dict[str, Scenario] = {
    _short_name(scenario): scenario
    for scenario in SCENARIOS
    if scenario.apis == APIS  # the faults of one API only are in the content of its chunks
    and scenario.make_scripts is not healthy_upstream
    and scenario.row not in CLIENT_ROWS
    and _short_name(scenario) not in OWN_REPLIES
}
"""The faults by name, without the number."""


def _hint(name: str) -> str:
    hint = suggestion_hint(name, RECORDED_FAULTS)
    return hint if hint.startswith("did you mean") else "see `interlingua faults list --recorded`"


def find_fault(name: str) -> Scenario:
    """Return the fault of this name, with or without its number. Raises UsageError."""
    found = RECORDED_FAULTS.get(name) or next((one for one in RECORDED_FAULTS.values() if one.name == name), None)
    if found is None:
        raise UsageError(f"no fault for recorded replies is called {name!r}", _hint(name))
    return found


def fault_scripts(fault: Scenario, exchange: RecordedExchange, dialect: Dialect, *, stream: bool) -> list[Script]:
    """Return the scripts for the first, second, … request of a client that gets this recording with this fault.

    Args:
        fault: The fault.
        exchange: The recording.
        dialect: The dialect of its model.
        stream: Whether the upstream is asked for a stream.

    Raises:
        UsageError: The fault cannot occur in this recording.
    """
    writer = RecordedReplyWriter(exchange, dialect)
    writer.is_streaming = stream
    scripts = fault.make_scripts(writer)
    name = _short_name(fault)
    if writer.lacks_call and "call" in name.split("-"):
        raise UsageError(f"{name!r} occurs in a call, and the recorded reply has none", "choose another fault")
    return scripts
