"""Tests of docs/threat-model.md: every test that it names exists, and every row names one."""

from __future__ import annotations

import ast
import re
from functools import cache

import pytest

from tests.support.paths import ROOT

PAGE = (ROOT / "docs" / "threat-model.md").read_text("utf-8")
NAMED_TESTS = sorted(set(re.findall(r"`(tests/[\w/]+\.py)::(\w+)`", PAGE)))


@cache
def names_in(file: str) -> set[str]:
    tree = ast.parse((ROOT / file).read_text("utf-8"))
    return {node.name for node in tree.body if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)}


@pytest.mark.parametrize(("file", "test"), NAMED_TESTS, ids=[test for _, test in NAMED_TESTS])
def test_named_test_exists(file: str, test: str) -> None:
    assert test in names_in(file)


def test_every_row_names_a_test() -> None:
    tables = re.findall(r"^\|.*\| ?test \|\n\|[-|]+\|\n((?:\|.*\n)+)", PAGE, re.M)
    rows = [row for table in tables for row in table.splitlines()]
    assert len(rows) > 20
    assert [row for row in rows if not re.search(r"`tests/[\w/]+\.py::test_\w+` \|$", row)] == []


def test_all_test_names_have_a_path() -> None:
    assert len(re.findall(r"\btest_\w+", re.sub(r"tests/[\w/]+\.py", "", PAGE))) == len(re.findall(r"::test_\w+", PAGE))


def test_security_policy_reports_status() -> None:
    page = (ROOT / "SECURITY.md").read_text("utf-8")
    assert re.findall(r"^## (.+)$", page, re.M)[:2] == ["Reporting a vulnerability", "Status"]
    assert "docs/threat-model.md" in page
    assert "@" not in page, "no email address, which would have to be maintained"
