"""Consequences: checks that cannot succeed because an earlier one has failed."""

from __future__ import annotations

import msgspec

from interlingua.verification.doctor.call_checks import RIGHT_CALL
from interlingua.verification.doctor.check import CheckResult, skipped
from interlingua.verification.doctor.feature_checks import short_name
from interlingua.wires import WIRES

__all__ = ["without_consequences"]

_NEED_CALLS = frozenset(
    {
        "tool_choice",
        "parallel calls",
        "thinking replay",
        *(f"API {short_name(wire)}" for wire in WIRES),
    }
)
"""Checks that cannot succeed if the model's calls do not arrive."""


def without_consequences(checks: list[CheckResult]) -> list[CheckResult]:
    """Return the checks. Those that cannot succeed say so instead of repeating the problem of an earlier one.

    Args:
        checks: The checks of a model, in the order of the report. The first one is of a simple request.
    """
    calls = [check for check in checks if check.check.startswith("tool call")]
    if any(check.status == "ok" for check in calls):
        return checks
    is_any_recovered = any(check.status == "odd" for check in calls)
    if checks[0].status == "wrong" and not is_any_recovered:
        return _without_any_reply(checks)
    if not calls:
        return checks
    needs_calls, reason = _NEED_CALLS | {"special tokens"}, "not judged, because calls do not work; see above"
    if all(check.status == "odd" for check in calls):  # then Interlingua needs the special tokens
        needs_calls, reason = _NEED_CALLS, "not judged, because the server does not parse calls; see above"
    return [
        skipped(check.check, reason) if check.check in needs_calls and check.status in ("odd", "wrong") else check
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
    return [first, *(check if check in working else skipped(check.check, reason) for check in others)]
