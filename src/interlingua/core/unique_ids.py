"""Uniqueness of ids: random ids never repeat, but numbered ones (`call_0`, `chatcmpl-123`) do."""

from __future__ import annotations

import re

__all__ = ["is_unique"]

MIN_RANDOM_CHARS = 8
MIN_RANDOM_DIGITS = 12
_ALPHANUMERIC_RUN = re.compile(r"[A-Za-z0-9]+")


def is_unique(id: str, name: str = "") -> bool:
    """Return whether the id has a part that looks random. `name`: a tool name, which is not random.

    A wrong guess is harmless: a random id that is not recognised is only made longer.
    """
    runs = _ALPHANUMERIC_RUN.findall(id.replace(name, " ") if name else id)
    return any(_looks_random(run) for run in runs)


def _looks_random(run: str) -> bool:
    if run.isdigit():
        return len(run) >= MIN_RANDOM_DIGITS
    return len(run) >= MIN_RANDOM_CHARS and any(map(str.isdigit, run))
