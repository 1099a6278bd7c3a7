"""Registry of finding kinds: complete, and without unused kinds."""

from __future__ import annotations

import re
from pathlib import Path

import interlingua
from interlingua.core.finding_severity import _ERRORS, _WARNINGS, advice_for, severity_of
from interlingua.core.findings import FINDING_KINDS

SOURCE = Path(interlingua.__file__).parent
REPORTED = re.compile(
    r"""(?:report|report_count|_report|_report_once|Finding|notes\.append)\(\(?\s*(?:call, |placed, )?"([a-z0-9-]+)","""
)


def test_every_warning_and_error_has_advice() -> None:
    assert {*_ERRORS, *_WARNINGS} <= set(FINDING_KINDS)
    assert not {*_ERRORS} & {*_WARNINGS}
    for kind in FINDING_KINDS:
        assert bool(advice_for(kind)) == (severity_of(kind) != "info"), kind


def test_finding_kinds_match_their_use_in_the_source() -> None:
    used = {kind for path in SOURCE.rglob("*.py") for kind in REPORTED.findall(path.read_text(encoding="utf-8"))}
    assert used == set(FINDING_KINDS)
