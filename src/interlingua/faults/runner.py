"""Plays the scenarios against a gateway, and says of each whether it did what is right."""

from __future__ import annotations

import secrets
import time
from collections.abc import Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass

from interlingua.errors import BadInput
from interlingua.faults.apis import api_of
from interlingua.faults.catalog import NONE
from interlingua.faults.checker import raw_client as client
from interlingua.faults.checker.scenario import Outcome, Scenario, Verdict
from interlingua.faults.checker.trial import Play, Refused, Target

__all__ = ["Judged", "answers", "check", "passes_on", "reachable"]

RECOVERY = 60.0
"""How long is waited, in seconds, until a gateway answers again after what it was asked last."""


@dataclass(frozen=True)
class Judged:
    scenario: Scenario
    api: str
    verdict: Verdict


def reachable(target: Target) -> None:
    """Both servers are there."""
    hints = {
        target.gateway: "start the gateway first, with the fault server as its upstream",
        target.faults: "start it with `interlingua faults serve`, or say with --faults where it is",
    }
    for url, hint in hints.items():
        try:
            client.connect(url, 5).close()
        except OSError as error:
            raise BadInput(f"cannot connect to {url}: {error.strerror or error}", hint) from error


def passes_on(target: Target, apis: Iterable[str]) -> None:
    """It passes on what is no fault, in at least one of these APIs: else no fault can be met."""
    verdicts = [_judged(target, NONE, api) for api in apis]
    if any(verdict.outcome is Outcome.RIGHT for verdict in verdicts):
        return
    told = "; ".join(dict.fromkeys(verdict.why for verdict in verdicts))
    hint = (
        f"its upstream must be {target.faults}/v1, where `interlingua faults serve` is;"
        " --model-prefix says what it wants before a model's id"
    )
    raise BadInput(f"the gateway does not pass on {NONE.name}: {told}", hint)


def check(target: Target, scenarios: Iterable[Scenario], apis: Iterable[str], jobs: int = 4) -> Iterator[Judged]:
    """In the order of the scenarios, but for those that are played alone: these come last."""
    taken = {api: _judged(target, NONE, api) for api in apis}
    plays = [(scenario, api) for scenario in scenarios for api in taken]

    def judge(play: tuple[Scenario, str]) -> Judged:
        scenario, api = play
        if taken[api].outcome is not Outcome.RIGHT:
            return Judged(scenario, api, Verdict(Outcome.REFUSED, f"even without a fault: {taken[api].why}"))
        return Judged(scenario, api, _judged(target, scenario, api))

    with ThreadPoolExecutor(jobs) as pool:
        yield from pool.map(judge, [play for play in plays if not play[0].alone])
    for scenario, api in (play for play in plays if play[0].alone):
        if taken[api].outcome is Outcome.RIGHT and not answers(target, api, RECOVERY):
            why = f"it did not answer within {RECOVERY:.0f} s of what was asked before"
            yield Judged(scenario, api, Verdict(Outcome.REFUSED, why))
        else:
            yield judge((scenario, api))


def answers(target: Target, api: str, seconds: float) -> bool:
    """It goes on, if need be after a while: no fault is judged by what another one has done."""
    until = time.monotonic() + seconds
    while _judged(target, NONE, api).outcome is not Outcome.RIGHT:
        if time.monotonic() > until:
            return False
        time.sleep(0.5)
    return True


def _judged(target: Target, scenario: Scenario, api: str) -> Verdict:
    play = Play(target, api, scenario.name, secrets.token_hex(4))
    try:
        verdict = scenario.check(play)
        seen = play.seen()
    except Refused as why:
        return Verdict(Outcome.REFUSED, str(why))
    except (OSError, ValueError) as error:
        return Verdict(Outcome.WRONG, f"the connection failed: {error}")
    asked = {api_of(one["path"]) for one in seen} - {None}
    if asked and not asked & set(scenario.apis):
        return Verdict(Outcome.REFUSED, f"its upstream was asked for {asked.pop()}, which has no such fault")
    if scenario.streams_only and seen and not any(one["body"].get("stream") for one in seen):
        return Verdict(Outcome.REFUSED, "its upstream was asked for a whole reply: the fault is one of streams")
    return verdict
