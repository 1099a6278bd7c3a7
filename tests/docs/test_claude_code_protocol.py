"""Tests of docs/clients/claude-code-protocol.md: every row names a test that exists, and every test is named."""

from __future__ import annotations

import ast
import re
from functools import cache

from tests.support.paths import ROOT

PAGE = (ROOT / "docs" / "clients" / "claude-code-protocol.md").read_text("utf-8")
DEFAULT_FILE = "tests/gateway/clients/test_claude_code_protocol.py"
ROWS = [row for row in re.findall(r"^\|.*\|$", PAGE, re.M) if not re.search(r"^\|[-|]+\|$|\| test \|$", row)]


@cache
def names_in(file: str) -> set[str]:
    tree = ast.parse((ROOT / file).read_text("utf-8"))
    return {node.name for node in tree.body if isinstance(node, ast.FunctionDef) and node.name.startswith("test_")}


def test_every_row_names_a_test_that_exists() -> None:
    assert len(ROWS) > 20
    for row in ROWS:
        named = re.search(r"`(?:(tests/[\w/]+\.py)::)?(test_\w+)` \|$", row)
        assert named, row
        assert named[2] in names_in(named[1] or DEFAULT_FILE), row


def test_tests_of_the_protocol_are_named() -> None:
    assert [test for test in names_in(DEFAULT_FILE) if f"`{test}`" not in PAGE] == []
