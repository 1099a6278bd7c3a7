"""What stands next, told before any of it is read."""

from __future__ import annotations

import pytest

from interlingua.parsing.lookahead import Lookahead, literal_sequence

AHEAD = Lookahead(
    (r"\s*+", r"(\w++)", *literal_sequence("=>")), (r"\s*+", *literal_sequence("<a>"), r"(\w++)", r"[;.]")
)


@pytest.mark.parametrize(
    ("text", "word"),
    [
        ("key=>", "key"),
        (" key=> and more", "key"),
        ("<a>key;", "key"),
        ("key =>", None),
        ("key=;", None),
        ("<a>=>", None),
        ("other=>", None),
        ("kex=>", None),
        ("", None),
    ],
)
def test_is_told_at_every_length_and_never_otherwise(text: str, word: str | None) -> None:
    assert AHEAD.find_word(text, 0, len(text), ("key",))[0] == word
    verdicts = [AHEAD.find_word(text[:end], 0, end, ("key",)) for end in range(len(text))]
    decided = [found for found, undecided in verdicts if not undecided]
    assert set(decided) <= {word}


def test_is_told_as_soon_as_it_can_be() -> None:
    assert AHEAD.find_word("k", 0, 1, ("key",)) == (None, True)
    assert AHEAD.find_word("x", 0, 1, ("key",)) == (None, False)
    assert AHEAD.find_word("x", 0, 1, None) == (None, True)
    assert AHEAD.find_word("x=>", 0, 3, None) == ("x", False)
