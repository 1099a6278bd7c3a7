"""What one fault is: what an upstream does, what is right, and how it is told whether a gateway does it."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from enum import Enum
from typing import TypeAlias

from interlingua.faults.apis import APIS
from interlingua.faults.checker.trial import Trial
from interlingua.faults.upstream.reply_writers import ReplyWriter
from interlingua.faults.upstream.script import Script

__all__ = [
    "RUN_SEPARATOR",
    "FaultRow",
    "Scenario",
    "ScenarioCheck",
    "ScriptFactory",
    "TrialOutcome",
    "Verdict",
    "not_judged",
    "scenario_name_in",
]

RUN_SEPARATOR = "--"
"""What stands behind a scenario's name in a model's id begins a run of its own: `fault-01-reset-once--7`."""


class TrialOutcome(Enum):
    PASSED = "right"
    FAILED = "wrong"
    REFUSED = "refused"
    """The gateway took no such request, so that the fault was not met."""
    NOT_JUDGED = "not judged"
    """It cannot be told from outside."""


@dataclass(frozen=True)
class Verdict:
    outcome: TrialOutcome
    reason: str


ScenarioCheck: TypeAlias = Callable[[Trial], Verdict]
ScriptFactory: TypeAlias = Callable[[ReplyWriter], list[Script]]
"""The scripts for each time that a model is asked."""


@dataclass(frozen=True)
class Scenario:
    row: int
    name: str
    """The model's id, `fault-NN-…`."""
    description: str
    expected: str
    make_scripts: ScriptFactory
    check: ScenarioCheck
    apis: tuple[str, ...] = APIS
    """Those of upstreams that can do this."""
    streams_only: bool = False
    """An upstream can only do this in a stream: some gateways ask for a whole reply, and make a stream of it."""
    alone: bool = False
    """It is about much or about time: nothing else is played meanwhile."""


@dataclass(frozen=True)
class FaultRow:
    """A fault of the table, and all forms of it."""

    number: int
    title: str
    scenarios: list[Scenario]


_SCENARIO_NAME = re.compile(r"fault-\d\d-[a-z0-9-]*?(?=--|$)")


def scenario_name_in(model: str) -> str:
    """The scenario's name in a model's id, whatever a gateway has put before it, and without the run."""
    match = _SCENARIO_NAME.search(model)
    return match[0] if match else ""


def not_judged(reason: str) -> ScenarioCheck:
    """What nobody can tell who only sees what clients and upstreams see."""
    return lambda _: Verdict(TrialOutcome.NOT_JUDGED, reason)
