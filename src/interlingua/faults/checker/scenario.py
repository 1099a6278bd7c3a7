"""Scenario: the script of the upstream, the expected behaviour, and the check."""

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
"""Separates the scenario name from the run id in a model id: `fault-01-reset-once--7`."""


class TrialOutcome(Enum):
    PASSED = "right"
    FAILED = "wrong"
    REFUSED = "refused"
    """The gateway did not accept the request, so the fault did not occur."""
    NOT_JUDGED = "not judged"
    """The result cannot be observed from outside."""


@dataclass(frozen=True)
class Verdict:
    outcome: TrialOutcome
    reason: str


ScenarioCheck: TypeAlias = Callable[[Trial], Verdict]
ScriptFactory: TypeAlias = Callable[[ReplyWriter], list[Script]]
"""Returns the scripts for the first, second, … request for a model."""


@dataclass(frozen=True)
class Scenario:
    row: int
    name: str
    """Model id, `fault-NN-…`."""
    description: str
    expected: str
    make_scripts: ScriptFactory
    check: ScenarioCheck
    apis: tuple[str, ...] = APIS
    """Upstream APIs in which this fault can occur."""
    streams_only: bool = False
    """The fault can occur in a stream only. Some gateways request a whole reply and convert it to a stream."""
    alone: bool = False
    """Do not run other scenarios at the same time, because this one uses much memory or measures time."""


@dataclass(frozen=True)
class FaultRow:
    """A fault and its scenarios."""

    number: int
    title: str
    scenarios: list[Scenario]


_SCENARIO_NAME = re.compile(r"fault-\d\d-[a-z0-9-]*?(?=--|$)")


def scenario_name_in(model: str) -> str:
    """Return the scenario name in a model id, without a gateway's prefix and the run id; "" if there is none."""
    match = _SCENARIO_NAME.search(model)
    return match[0] if match else ""


def not_judged(reason: str) -> ScenarioCheck:
    """Return a check for faults whose result neither clients nor upstreams can observe."""
    return lambda _: Verdict(TrialOutcome.NOT_JUDGED, reason)
