"""Requests by chance for every path, for some seconds. `make fuzz` asks for longer."""

from __future__ import annotations

import re

import pytest

pytest.importorskip("schemathesis", reason="asks the gateway what its description allows, and what it does not")

from fuzz import api

SECONDS = 25
"""Many of them are gone before the first request on a machine that is busy."""


def test_whatever_is_asked_is_answered_as_described() -> None:
    run = api.tried(SECONDS, seed=1)
    assert run.returncode == 0, (run.stdout + run.stderr)[-6000:]
    assert re.search(r"^ +[1-9]\d* generated", run.stdout, re.M), run.stdout[-2000:]
