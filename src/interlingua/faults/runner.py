"""Plays the scenarios against a gateway, and says of each whether it did what is right."""

from __future__ import annotations

import secrets
import time
from collections.abc import Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass

from interlingua.errors import BadInput
from interlingua.faults.apis import api_for_path
from interlingua.faults.catalog import NO_FAULT
from interlingua.faults.checker import raw_client as client
from interlingua.faults.checker.scenario import Scenario, TrialOutcome, Verdict
from interlingua.faults.checker.trial import GatewayTarget, RequestRefused, Trial

__all__ = ["ScenarioResult", "check_baseline", "check_reachable", "run_scenarios", "wait_until_answering"]

RECOVERY_TIMEOUT_SECONDS = 60.0
"""How long is waited, in seconds, until a gateway answers again after what it was asked last."""


@dataclass(frozen=True)
class ScenarioResult:
    scenario: Scenario
    api: str
    verdict: Verdict


def check_reachable(target: GatewayTarget) -> None:
    """Both servers are there."""
    hints = {
        target.gateway: "start the gateway first, with the fault server as its upstream",
        target.fault_server: "start it with `interlingua faults serve`, or say with --faults where it is",
    }
    for url, hint in hints.items():
        try:
            client.connect(url, 5).close()
        except OSError as error:
            raise BadInput(f"cannot connect to {url}: {error.strerror or error}", hint) from error


def check_baseline(target: GatewayTarget, apis: Iterable[str]) -> None:
    """It passes on what is no fault, in at least one of these APIs: else no fault can be met."""
    verdicts = [_run_scenario(target, NO_FAULT, api) for api in apis]
    if any(verdict.outcome is TrialOutcome.PASSED for verdict in verdicts):
        return
    reasons = "; ".join(dict.fromkeys(verdict.reason for verdict in verdicts))
    hint = (
        f"its upstream must be {target.fault_server}/v1, where `interlingua faults serve` is;"
        " --model-prefix says what it wants before a model's id"
    )
    raise BadInput(f"the gateway does not pass on {NO_FAULT.name}: {reasons}", hint)


def run_scenarios(
    target: GatewayTarget, scenarios: Iterable[Scenario], apis: Iterable[str], jobs: int = 4
) -> Iterator[ScenarioResult]:
    """In the order of the scenarios, but for those that are played alone: these come last."""
    baselines = {api: _run_scenario(target, NO_FAULT, api) for api in apis}
    pairs = [(scenario, api) for scenario in scenarios for api in baselines]

    def run_pair(play: tuple[Scenario, str]) -> ScenarioResult:
        scenario, api = play
        if baselines[api].outcome is not TrialOutcome.PASSED:
            return ScenarioResult(
                scenario, api, Verdict(TrialOutcome.REFUSED, f"even without a fault: {baselines[api].reason}")
            )
        return ScenarioResult(scenario, api, _run_scenario(target, scenario, api))

    with ThreadPoolExecutor(jobs) as pool:
        yield from pool.map(run_pair, [play for play in pairs if not play[0].alone])
    for scenario, api in (play for play in pairs if play[0].alone):
        if baselines[api].outcome is TrialOutcome.PASSED and not wait_until_answering(
            target, api, RECOVERY_TIMEOUT_SECONDS
        ):
            why = f"it did not answer within {RECOVERY_TIMEOUT_SECONDS:.0f} s of what was asked before"
            yield ScenarioResult(scenario, api, Verdict(TrialOutcome.REFUSED, why))
        else:
            yield run_pair((scenario, api))


def wait_until_answering(target: GatewayTarget, api: str, seconds: float) -> bool:
    """It goes on, if need be after a while: no fault is judged by what another one has done."""
    deadline = time.monotonic() + seconds
    while _run_scenario(target, NO_FAULT, api).outcome is not TrialOutcome.PASSED:
        if time.monotonic() > deadline:
            return False
        time.sleep(0.5)
    return True


def _run_scenario(target: GatewayTarget, scenario: Scenario, api: str) -> Verdict:
    trial = Trial(target, api, scenario.name, secrets.token_hex(4))
    try:
        verdict = scenario.check(trial)
        requests = trial.upstream_requests()
    except RequestRefused as refusal:
        return Verdict(TrialOutcome.REFUSED, str(refusal))
    except (OSError, ValueError) as error:
        return Verdict(TrialOutcome.FAILED, f"the connection failed: {error}")
    apis = {api_for_path(request["path"]) for request in requests} - {None}
    if apis and not apis & set(scenario.apis):
        return Verdict(TrialOutcome.REFUSED, f"its upstream was asked for {apis.pop()}, which has no such fault")
    if scenario.streams_only and requests and not any(one["body"].get("stream") for one in requests):
        return Verdict(TrialOutcome.REFUSED, "its upstream was asked for a whole reply: the fault is one of streams")
    return verdict
