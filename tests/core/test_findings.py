"""Every kind of finding is known, and used."""

from __future__ import annotations

import re
from pathlib import Path

import interlingua
from interlingua.core.findings import FINDING_KINDS

SOURCE = Path(interlingua.__file__).parent
REPORTED = re.compile(
    r"""(?:report|_report|_report_once|Finding|notes\.append)\(\(?\s*(?:call, |placed, )?"([a-z0-9-]+)","""
)


def test_every_kind_is_listed_and_every_listed_kind_is_used() -> None:
    used = {kind for path in SOURCE.rglob("*.py") for kind in REPORTED.findall(path.read_text(encoding="utf-8"))}
    assert used == set(FINDING_KINDS)
