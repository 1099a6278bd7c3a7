"""Open brackets of a paragraph, in every cut."""

from __future__ import annotations

import pytest

from interlingua.parsing.open_brackets import BracketTracker
from tests.support.harness import cut_variants

ROWS = [
    ("", False),
    ("a } ] b", False),
    ("a {", True),
    ('{"a": [1, 2]', True),
    ('{"a": [1, 2]}', False),
    ('{"a": "}', True),
    ('{"a": "}"}', False),
    ('{"a": "\\"}"', True),
    ('{"a": "\\\\"}', False),
    ('{"a": "never closed\n}', False),
    ('"{', True),
    ("{\n  [1]\n", True),
    ("{\n \t\n", False),
    ("{\r\n\r\n", False),
    ("} {\nx\n", True),
]


@pytest.mark.parametrize(("text", "is_open"), ROWS)
def test_open_brackets(text: str, is_open: bool) -> None:
    for cut, pieces in [("whole", [text]), *(cut_variants(text) if text else ())]:
        tracker = BracketTracker()
        for piece in pieces:
            tracker.add(piece)
        assert tracker.is_open_before("") is is_open, cut


def test_whitespace_that_was_not_added() -> None:
    tracker = BracketTracker()
    tracker.add("{")
    assert tracker.is_open_before("\n  ")
    assert not tracker.is_open_before("\n\n")
    tracker.add("\n")
    assert not tracker.is_open_before(" \n")
    tracker.reset()
    assert not tracker.is_open_before("")
