"""Short fuzz run of every path with generated requests. `make fuzz` runs longer."""

from __future__ import annotations

import re

import pytest

pytest.importorskip("schemathesis", reason="generates requests from the OpenAPI document")

from fuzz import api

SECONDS = 25
"""On a busy machine, much of this time passes before the first request."""


@pytest.mark.slow
def test_generated_requests_get_responses_as_in_the_openapi_document() -> None:
    run = api.run_schemathesis(SECONDS, seed=1)
    assert run.returncode == 0, (run.stdout + run.stderr)[-6000:]
    assert re.search(r"^ +[1-9]\d* generated", run.stdout, re.M), run.stdout[-2000:]
