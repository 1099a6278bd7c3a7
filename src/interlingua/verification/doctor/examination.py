"""Examination of one upstream: all checks, in parallel, within a time limit."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable, Coroutine
from typing import Any

import msgspec

from interlingua.errors import InterlinguaError
from interlingua.gateway.routing.routes import Route
from interlingua.verification.doctor.call_checks import (
    RATE_LIMIT_HINT,
    check_calls,
    check_choices,
    check_parallel,
    check_special_tokens,
    check_stream,
    check_template,
)
from interlingua.verification.doctor.check import CheckResult, UpstreamReport, skipped_result, wrong_result
from interlingua.verification.doctor.consequences import without_consequences
from interlingua.verification.doctor.feature_checks import (
    check_api,
    check_images,
    check_structured_output,
    check_system_message,
    check_thinking_replay,
    other_apis,
    short_name,
)
from interlingua.verification.doctor.probe import Probe
from interlingua.verification.doctor.server_checks import LOG_HINT, check_server
from interlingua.verification.probing.sender import Sender
from interlingua.verification.run.polite_sender import RATE_LIMIT_STATUSES, AdaptiveLimit, PoliteSender, RetryPolicy
from interlingua.verification.target import find_target

__all__ = ["examine"]

FIRST_CHECK = "stream"
RATE_LIMIT_ATTEMPTS = 3
"""A limit on parallel requests says nothing about the model. Other errors are what the doctor looks for."""
Check = Callable[[Probe], Awaitable[CheckResult | list[CheckResult]]]


def _checks(api: str) -> list[tuple[str, Check]]:
    """Return the checks of a model, in the order of the report. The first ones matter most and start first."""
    checks: list[tuple[str, Check]] = [
        (FIRST_CHECK, check_stream),
        ("system message", check_system_message),
        ("tool call", check_calls),
        ("tools in prompt", check_template),
        ("special tokens", check_special_tokens),
        ("tool_choice", check_choices),
        ("parallel calls", check_parallel),
        ("thinking replay", check_thinking_replay),
        ("images", check_images),
        ("structured output", check_structured_output),
    ]
    return checks + [(f"API {short_name(wire)}", _api_check(wire)) for wire in other_apis(api)]


def _api_check(wire: str) -> Check:
    async def check(probe: Probe) -> CheckResult:
        return await check_api(probe, wire)

    return check


async def examine(
    sender: Sender,
    route: Route,
    *,
    seconds: float,
    parallel: int,
    route_to: Callable[[str], Route] | None = None,
) -> UpstreamReport:
    """Check one upstream and a model of it.

    Args:
        sender: Sends the requests.
        route: The upstream and the model.
        seconds: Time limit for all checks together.
        parallel: Largest number of parallel requests.
        route_to: Returns the route to a model, if `route` names none. Then the only model of the server is checked.
    """
    start = time.monotonic()
    deadline = start + seconds
    policy = RetryPolicy(attempts=RATE_LIMIT_ATTEMPTS, statuses=RATE_LIMIT_STATUSES, max_delay_seconds=seconds)
    limited = PoliteSender(sender, AdaptiveLimit(parallel), policy)
    try:
        target = await asyncio.wait_for(find_target(limited, route), seconds)
    except TimeoutError:
        checks = [wrong_result("reachable", f"no answer within {seconds:g} s", LOG_HINT)]
        return _report(route, "", checks, start, limited, 0)
    model = route.model
    if route_to is not None:
        model = target.facts.models[0] if len(target.facts.models) == 1 else ""
        target = msgspec.structs.replace(target, route=route_to(model))
    checks = check_server(target.facts, target.route, model)
    if not model or any(check.status == "wrong" for check in checks):
        return _report(route, model, checks, start, limited, 0)
    probe = Probe(limited, target)
    found = await _run_checks(probe, limited, _checks(route.upstream.api), deadline, seconds)
    checks += without_consequences(found)
    return _report(route, model, checks, start, limited, probe.tokens)


def _timed_out(name: str, seconds: float, rate_limited: int) -> CheckResult:
    """Return the result of a check that took too long. Without a first reply, the model does not work at all.

    Args:
        name: Name of the check.
        seconds: The time limit.
        rate_limited: Number of responses with a rate limit.
    """
    message = f"no complete answer within {seconds:g} s"
    if name != FIRST_CHECK:
        return skipped_result(name, message)
    if rate_limited:
        return wrong_result(name, f"{message}: the server limits requests (status 429)", RATE_LIMIT_HINT)
    return wrong_result(name, message, "give a slow model more time with --timeout, or look at the server's log")


def _report(
    route: Route, model: str, checks: list[CheckResult], start: float, sender: PoliteSender, tokens: int
) -> UpstreamReport:
    return UpstreamReport(
        name=route.name,
        url=route.upstream.url,
        api=route.upstream.api,
        model=model,
        checks=tuple(checks),
        seconds=round(time.monotonic() - start, 2),
        requests=sender.requests,
        tokens=tokens,
    )


async def _run_checks(
    probe: Probe, sender: PoliteSender, checks: list[tuple[str, Check]], deadline: float, seconds: float
) -> list[CheckResult]:
    """Run all checks at once, and return their results in order."""

    async def run(name: str, check: Check) -> list[CheckResult]:
        try:
            async with asyncio.timeout_at(asyncio.get_running_loop().time() + deadline - time.monotonic()):
                found = await check(probe)
        except TimeoutError:
            found = _timed_out(name, seconds, sender.rate_limited)
        except InterlinguaError as error:
            found = skipped_result(name, f"the request cannot be written for this API: {error}")
        return found if isinstance(found, list) else [found]

    coroutines: list[Coroutine[Any, Any, list[CheckResult]]] = [run(name, check) for name, check in checks]
    return [result for results in await asyncio.gather(*coroutines) for result in results]
