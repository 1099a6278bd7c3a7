"""Runner: run scenarios against a gateway and yield a verdict for each."""

from __future__ import annotations

import secrets
import time
from collections.abc import Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass

from interlingua.errors import BadInput
from interlingua.faults.apis import api_for_path
from interlingua.faults.catalog import NO_FAULT
from interlingua.faults.checker import raw_client
from interlingua.faults.checker.scenario import Scenario, TrialOutcome, Verdict
from interlingua.faults.checker.trial import GatewayTarget, RequestRefused, Trial

__all__ = ["ScenarioResult", "check_baseline", "check_reachable", "run_scenarios", "wait_until_answering"]

RECOVERY_TIMEOUT_SECONDS = 60.0
"""Maximum time for the gateway to recover after a scenario."""


@dataclass(frozen=True)
class ScenarioResult:
    scenario: Scenario
    api: str
    verdict: Verdict


def check_reachable(target: GatewayTarget) -> None:
    """Raise `BadInput` if the gateway or the fault server accepts no connection."""
    hints = {
        target.gateway: "start the gateway first, with the fault server as its upstream",
        target.fault_server: "start it with `interlingua faults serve`, or set its URL with --faults",
    }
    for url, hint in hints.items():
        try:
            raw_client.connect(url, 5).close()
        except OSError as error:
            raise BadInput(f"cannot connect to {url}: {error.strerror or error}", hint) from error


def check_baseline(target: GatewayTarget, apis: Iterable[str]) -> None:
    """Raise `BadInput` if the gateway does not pass the baseline in at least one of these APIs."""
    verdicts = [_run_scenario(target, NO_FAULT, api) for api in apis]
    if any(verdict.outcome is TrialOutcome.PASSED for verdict in verdicts):
        return
    reasons = "; ".join(dict.fromkeys(verdict.reason for verdict in verdicts))
    hint = (
        f"its upstream must be the fault server at {target.fault_server}/v1;"
        " if it requires a prefix before model ids, set --model-prefix"
    )
    raise BadInput(f"the gateway fails even {NO_FAULT.name}: {reasons}", hint)


def run_scenarios(
    target: GatewayTarget, scenarios: Iterable[Scenario], apis: Iterable[str], jobs: int = 4
) -> Iterator[ScenarioResult]:
    """Run the scenarios and yield the results, in order. Scenarios that must run alone come last."""
    baselines = {api: _run_scenario(target, NO_FAULT, api) for api in apis}
    pairs = [(scenario, api) for scenario in scenarios for api in baselines]

    def run_pair(pair: tuple[Scenario, str]) -> ScenarioResult:
        scenario, api = pair
        if baselines[api].outcome is not TrialOutcome.PASSED:
            return ScenarioResult(
                scenario, api, Verdict(TrialOutcome.REFUSED, f"fails even without a fault: {baselines[api].reason}")
            )
        return ScenarioResult(scenario, api, _run_scenario(target, scenario, api))

    with ThreadPoolExecutor(jobs) as pool:
        yield from pool.map(run_pair, [pair for pair in pairs if not pair[0].alone])
    for scenario, api in (pair for pair in pairs if pair[0].alone):
        if baselines[api].outcome is TrialOutcome.PASSED and not wait_until_answering(
            target, api, RECOVERY_TIMEOUT_SECONDS
        ):
            why = f"the gateway did not recover from the previous scenario within {RECOVERY_TIMEOUT_SECONDS:.0f} s"
            yield ScenarioResult(scenario, api, Verdict(TrialOutcome.REFUSED, why))
        else:
            yield run_pair((scenario, api))


def wait_until_answering(target: GatewayTarget, api: str, seconds: float) -> bool:
    """Wait until the gateway passes the baseline, so that a scenario does not affect the next one.

    Returns whether it did within this time.
    """
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
        return Verdict(
            TrialOutcome.REFUSED, f"the gateway used the API {apis.pop()} upstream, which does not have this fault"
        )
    if scenario.streams_only and requests and not any(request["body"].get("stream") for request in requests):
        return Verdict(TrialOutcome.REFUSED, "the gateway requested a whole reply upstream; this fault needs a stream")
    return verdict
