"""What one fault is: what an upstream does, what is right, and how it is told whether a gateway does it."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from enum import Enum
from typing import TypeAlias

from interlingua.faults.apis import APIS
from interlingua.faults.checker.trial import Play
from interlingua.faults.upstream.reply_writers import Voice
from interlingua.faults.upstream.script import Script

__all__ = ["RUN", "Check", "Outcome", "Playing", "Row", "Scenario", "Verdict", "name_in", "outside"]

RUN = "--"
"""What stands behind a scenario's name in a model's id begins a run of its own: `fault-01-reset-once--7`."""


class Outcome(Enum):
    RIGHT = "right"
    WRONG = "wrong"
    REFUSED = "refused"
    """The gateway took no such request, so that the fault was not met."""
    UNJUDGED = "not judged"
    """It cannot be told from outside."""


@dataclass(frozen=True)
class Verdict:
    outcome: Outcome
    why: str


Check: TypeAlias = Callable[[Play], Verdict]
Playing: TypeAlias = Callable[[Voice], list[Script]]
"""The scripts for each time that a model is asked."""


@dataclass(frozen=True)
class Scenario:
    row: int
    name: str
    """The model's id, `fault-NN-…`."""
    happens: str
    right: str
    plays: Playing
    check: Check
    apis: tuple[str, ...] = APIS
    """Those of upstreams that can do this."""
    streams_only: bool = False
    """An upstream can only do this in a stream: some gateways ask for a whole reply, and make a stream of it."""
    alone: bool = False
    """It is about much or about time: nothing else is played meanwhile."""


@dataclass(frozen=True)
class Row:
    """A fault of the table, and all forms of it."""

    number: int
    fault: str
    scenarios: list[Scenario]


_NAME = re.compile(r"fault-\d\d-[a-z0-9-]*?(?=--|$)")


def name_in(model: str) -> str:
    """The scenario's name in a model's id, whatever a gateway has put before it, and without the run."""
    found = _NAME.search(model)
    return found[0] if found else ""


def outside(why: str) -> Check:
    """What nobody can tell who only sees what clients and upstreams see."""
    return lambda _: Verdict(Outcome.UNJUDGED, why)
