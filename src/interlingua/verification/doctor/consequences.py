"""Consequences: checks that cannot succeed because an earlier one has failed."""

from __future__ import annotations

import msgspec

from interlingua.verification.doctor.call_checks import RIGHT_CALL
from interlingua.verification.doctor.check import CheckResult, skipped_result
from interlingua.verification.doctor.feature_checks import short_name
from interlingua.wires import WIRES

__all__ = ["without_consequences"]

_NEED_STREAMED_CALLS = frozenset({"parallel calls", *(f"API {short_name(wire)}" for wire in WIRES)})
_NEED_WHOLE_CALLS = frozenset({"tool_choice", "thinking replay"})
_NEED_CALLS = _NEED_STREAMED_CALLS | _NEED_WHOLE_CALLS
"""Checks that cannot succeed if the model's calls do not arrive."""


def without_consequences(checks: list[CheckResult]) -> list[CheckResult]:
    """Return the checks. Those that cannot succeed say so instead of repeating the problem of an earlier one.

    Args:
        checks: The checks of a model, in the order of the report. The first one is of a simple request.
    """
    calls = [check for check in checks if check.check.startswith("tool call")]
    if any(check.status == "ok" for check in calls):
        return _without_consequences_of_one_mode(checks)
    is_any_recovered = any(check.status == "odd" for check in calls)
    if checks[0].status == "wrong" and not is_any_recovered:
        return _without_any_reply(checks)
    if not calls:
        return checks
    needs_calls, reason = _NEED_CALLS | {"special tokens"}, "not judged, because calls do not work; see above"
    if all(check.status == "odd" for check in calls):  # then Interlingua needs the special tokens
        needs_calls, reason = _NEED_CALLS, "not judged, because calls are right only with Interlingua; see above"
    return _skip(checks, needs_calls, reason)


def _without_consequences_of_one_mode(checks: list[CheckResult]) -> list[CheckResult]:
    """Return the checks if calls work in streams only, or in whole replies only."""
    for name, place, dependent in (
        ("tool call, stream", "in streams", _NEED_STREAMED_CALLS),
        ("tool call, whole", "in whole replies", _NEED_WHOLE_CALLS | {"special tokens"}),
    ):
        if any(check.check == name and check.status != "ok" for check in checks):
            checks = _skip(checks, dependent, f"not judged, because calls do not work {place}; see above")
    return checks


def _skip(checks: list[CheckResult], names: frozenset[str], reason: str) -> list[CheckResult]:
    """Return the checks. Those with these names that are odd or wrong are skipped for this reason."""
    return [
        skipped_result(check.check, reason) if check.check in names and check.status in ("odd", "wrong") else check
        for check in checks
    ]


def _without_any_reply(checks: list[CheckResult]) -> list[CheckResult]:
    """Return the checks if not even a simple request works: of the others, only another API that works counts."""
    first, *others = checks
    working = [check for check in others if check.message == RIGHT_CALL]
    if working:
        wires = {f"API {short_name(wire)}": wire for wire in WIRES}
        first = msgspec.structs.replace(first, fix=f"use --api {wires[working[0].check]}, which works")
    reason = "not judged, because a simple request fails; see above"
    return [first, *(check if check in working else skipped_result(check.check, reason) for check in others)]
