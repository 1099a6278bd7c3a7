"""CodeTracker: code spans and code blocks of Markdown, for every split of the text."""

from __future__ import annotations

import re

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from interlingua.parsing.code_spans import CodeTracker
from tests.support.budget import examples
from tests.support.growth import check_growth

ROWS: dict[str, bool] = {
    "text": False,
    "a `b": True,
    "a `b` c": False,
    "a ``b ` c": True,
    "a ``b ` c`` d": False,
    "a `b\nc": True,
    "a `b\n\nc": False,
    "a `b\n \t\nc": False,
    "a ```b\nc": True,
    "a ```b\nc``` d": False,
    "``` a ``` b": False,
    "```x": True,
    "```py\nx = 1": True,
    "```py\nx = 1\n\ny = 2": True,
    "```py\nx\n```\ny": False,
    "```py\nx\n``\ny": True,
    "```py\nx\n```` \ny": False,
    "````\n```\nx": True,
    "````\n```\n````\nx": False,
    "```\n```py\nx": True,
    "```\n~~~\nx": True,
    "```\nx ```\ny": True,
    "```\n``` x\ny": True,
    "  ```\nx": True,
    "   ```\nx\n  ```\ny": False,
    "    ```\nx": True,
    "    ```\nx\n\ny": False,
    "~~~\nx": True,
    "~~~ `a`\nx": True,
    "~~~\nx\n~~~\ny": False,
    "a ~~~ b\nc": False,
    "~~ a": False,
    "a `b\n```\nc": True,
    "a `b\n```\nc\n```\nd": False,
}


def ends_in_code(pieces: list[str], *, ask: bool = False) -> bool:
    tracker = CodeTracker()
    for piece in pieces:
        tracker.add(piece)
        if ask:
            assert tracker.in_code in (True, False)
    return tracker.in_code


@pytest.mark.parametrize("text", ROWS, ids=repr)
def test_rows_in_every_cut(text: str) -> None:
    for position in range(len(text)):
        pieces = [text[:position], text[position:]]
        assert ends_in_code(pieces) is ends_in_code(pieces, ask=True) is ROWS[text]
    assert ends_in_code(list(text), ask=True) is ROWS[text]


@pytest.mark.hypothesis
@settings(max_examples=examples(400))
@given(st.lists(st.sampled_from(["`", "``", "```", "~~~", "\n", "\n\n", " ", "   ", "a", "\t"]), max_size=30))
def test_split_does_not_matter(pieces: list[str]) -> None:
    text = "".join(pieces)
    assert ends_in_code(pieces, ask=True) is ends_in_code([text]) is ends_in_code(list(text), ask=True)


@pytest.mark.parametrize(
    ("before", "whitespace", "in_code"),
    [
        ("`", "", True),
        ("`a`", "", False),
        ("`a", "\n\n", False),
        ("```", "\n", True),
        ("```\na\n```", "", False),
        ("```\na\n```", "\n", False),
        ("```\na\n``", "", True),
        ("a", "\n", False),
    ],
)
def test_marker_after_a_delimiter(before: str, whitespace: str, in_code: bool) -> None:
    tracker = CodeTracker()
    tracker.add(before)
    assert tracker.is_in_code_before(whitespace) is in_code
    assert tracker.is_in_code_before(whitespace) is in_code, "nothing is added"


@pytest.mark.parametrize(
    ("before", "has_text"),
    [
        ("a", False),
        ("a `", False),
        ("a ` \n", False),
        ("a `b", True),
        ("a `b\n", True),
        ("a ``b ` c", True),
        ("a `` `", True),
        ("a ```xml\n", False),
        ("a ```xml ", True),
        ("a ```x y\n", True),
        ("```", False),
        ("```xml ", False),
        ("```x = ", True),
        ("```x = y\n\n ", False),
        ("```\n\na\n\n", True),
        ("```\na", True),
        ("````\n```", True),
        ("````\n~~\n", True),
        ("```\na\n```\n```\n", False),
        ("~~~ `\n", False),
        ("a `b` c `", False),
    ],
)
def test_text_before_a_marker_in_its_code(before: str, has_text: bool) -> None:
    for position in range(len(before)):
        tracker = CodeTracker()
        tracker.add(before[:position])
        assert tracker.in_code in (True, False)
        tracker.add(before[position:])
        assert tracker.has_text_before("") is has_text
        assert tracker.has_text_before("\n") in (True, False), "nothing is added"
        assert tracker.has_text_before("") is has_text


@pytest.mark.parametrize(
    ("before", "whitespace", "is_older"),
    [
        ("a `b", "", False),
        ("a `b", "\n", True),
        ("a ```b\n", " ", True),
        ("a `b\nc", "", False),
        ("a `b", "\n\n", False),
        ("```\na", "\n", False),
        ("a", "\n", False),
    ],
)
def test_marker_on_a_line_after_a_span(before: str, whitespace: str, is_older: bool) -> None:
    tracker = CodeTracker()
    tracker.add(before)
    assert tracker.follows_older_span(whitespace) is is_older


@pytest.mark.parametrize("code", ["`a`", "``a ` b``", "```\na\n```\n", "~~~\na\n~~~~\n", "  ```py\na\n   ```\n"])
def test_scan_stops_behind_the_closing_delimiter(code: str) -> None:
    match = re.match(r"[ `~]+", code)
    assert match
    tracker = CodeTracker()
    tracker.add(match.group())
    rest = code[match.end() :] + " and `more`"
    tracker.scan(rest[0])
    end = 1 + tracker.scan(rest[1:])
    assert match.group() + rest[:end] == code.rstrip("\n")
    assert not tracker.in_code


@pytest.mark.slow
@pytest.mark.parametrize("unit", ["a ` b\n", "```\n", "`" * 7 + " ", "~~~\nx\n", "text\n", "`a\n\n", " `" * 20 + "\n"])
@pytest.mark.parametrize("piece_chars", [1, 50, 10**9])
def test_linear_time(unit: str, piece_chars: int) -> None:
    def track(text: str) -> None:
        tracker = CodeTracker()
        for start in range(0, len(text), piece_chars):
            tracker.add(text[start : start + piece_chars])
            if start % 97 == 0:
                assert tracker.in_code in (True, False)
        assert tracker.in_code in (True, False)

    short = unit * (20_000 // len(unit))
    check_growth(track, short, short * 10, limit=25)
