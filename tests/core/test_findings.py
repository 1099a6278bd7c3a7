"""Registry of finding kinds: complete, and without unused kinds."""

from __future__ import annotations

import re
from pathlib import Path

import interlingua
from interlingua.core.findings import FINDING_KINDS

SOURCE = Path(interlingua.__file__).parent
REPORTED = re.compile(
    r"""(?:report|report_count|_report|_report_once|Finding|notes\.append)\(\(?\s*(?:call, |placed, )?"([a-z0-9-]+)","""
)


def test_finding_kinds_match_their_use_in_the_source() -> None:
    used = {kind for path in SOURCE.rglob("*.py") for kind in REPORTED.findall(path.read_text(encoding="utf-8"))}
    assert used == set(FINDING_KINDS)
