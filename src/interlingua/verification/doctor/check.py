"""Result of a check: ok, odd or wrong, and what to do about it."""

from __future__ import annotations

from typing import Literal, TypeAlias

import msgspec

__all__ = ["CheckResult", "Status", "UpstreamReport", "odd_result", "ok_result", "skipped_result", "wrong_result"]

Status: TypeAlias = Literal["ok", "odd", "wrong", "skipped"]
"""ok: works. odd: works with Interlingua, or needs a look. wrong: does not work. skipped: was not checked."""


class CheckResult(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    check: str
    """Name of the check."""
    status: Status
    message: str
    fix: str = ""
    """Setting or flag that helps; "" if nothing has to be done."""


class UpstreamReport(msgspec.Struct, frozen=True, kw_only=True):
    """All checks of one model at one upstream."""

    name: str
    """Name of the upstream in the settings."""
    url: str
    api: str
    model: str
    """Model id; "" if only the upstream was checked."""
    checks: tuple[CheckResult, ...]
    seconds: float = 0.0
    requests: int = 0
    tokens: int = 0

    def count(self, status: Status) -> int:
        return sum(check.status == status for check in self.checks)


def ok_result(check: str, message: str, fix: str = "") -> CheckResult:
    return CheckResult(check=check, status="ok", message=message, fix=fix)


def odd_result(check: str, message: str, fix: str = "") -> CheckResult:
    return CheckResult(check=check, status="odd", message=message, fix=fix)


def wrong_result(check: str, message: str, fix: str = "") -> CheckResult:
    return CheckResult(check=check, status="wrong", message=message, fix=fix)


def skipped_result(check: str, message: str) -> CheckResult:
    return CheckResult(check=check, status="skipped", message=message)
