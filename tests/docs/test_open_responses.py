"""Tests of docs/clients/open-responses.md: the table names each behaviour that is tested, and no other."""

from __future__ import annotations

import re

from tests.gateway.api.test_open_responses import ON_HTTP, OTHERS
from tests.support.paths import ROOT

ROW = re.compile(r"^\|.*\| `(\w+)` \|$", re.M)


def test_page_names_each_behaviour() -> None:
    suite, _, others = (ROOT / "docs" / "clients" / "open-responses.md").read_text("utf-8").partition("Behaviours of")
    assert len(ROW.findall(suite)) == 17
    named = {*ROW.findall(suite), *ROW.findall(others)}
    assert named == {behaviour.__name__ for behaviour in (*ON_HTTP, *OTHERS)}
