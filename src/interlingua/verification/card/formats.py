"""Numbers in words: shares, intervals, times, tokens and money."""

from __future__ import annotations

from typing import Literal, TypeAlias

from interlingua.verification.attribution import CAUSES
from interlingua.verification.probing.request_writer import RequestSettings
from interlingua.verification.run.metrics import Latency, Rate

__all__ = [
    "CAUSE_NAMES",
    "describe_settings",
    "format_dollars",
    "format_interval",
    "format_median",
    "format_seconds",
    "format_share",
    "format_tokens",
    "grade",
    "sentence",
]

Grade: TypeAlias = Literal["good", "fair", "bad", "faint"]
GOOD_SHARE, FAIR_SHARE = 0.95, 0.8

CAUSE_NAMES = {cause: cause.replace("-", " ") for cause in CAUSES}


def sentence(text: str) -> str:
    return f"{text[:1].upper()}{text[1:]}."


def describe_settings(settings: RequestSettings) -> str:
    """Return the settings of a run that differ from those of its samples; "" if there are none."""
    values = {name: getattr(settings, name) for name in ("temperature", "seed", "max_tokens")}
    return ", ".join(f"{name} {value:g}" for name, value in values.items() if value is not None)


def grade(share: float | None) -> Grade:
    """Return how good a share is: the role of its colour."""
    if share is None:
        return "faint"
    return "good" if share >= GOOD_SHARE else "fair" if share >= FAIR_SHARE else "bad"


def format_share(share: float | None) -> str:
    """Return a share in percent. 100 % means all, and 0 % none."""
    if share is None:
        return "–"
    percent = 100 * share
    if percent in (0.0, 100.0):
        return f"{percent:.0f} %"
    return f"{min(max(percent, 0.1), 99.9):.1f} %"


def format_interval(rate: Rate) -> str:
    low, high = rate.interval
    return f"{100 * low:.0f}–{100 * high:.0f} %"


def format_seconds(seconds: float) -> str:
    if seconds < 1:
        return f"{1000 * seconds:.0f} ms"
    return f"{seconds:.1f} s" if seconds < 100 else f"{seconds / 60:.0f} min"


def format_median(times: Latency) -> str:
    return format_seconds(times.p50) if times.count else "–"


def format_tokens(count: int) -> str:
    if count < 10_000:
        return f"{count:,}"
    return f"{count / 1000:.0f}k" if count < 1_000_000 else f"{count / 1e6:.1f}M"


def format_dollars(dollars: float) -> str:
    return f"${dollars:.2f}" if dollars >= 0.1 else f"${dollars:.4f}"
