"""Lookahead: pattern sequences are recognised without consuming text."""

from __future__ import annotations

import pytest

from interlingua.parsing.lookahead import Lookahead, literal_sequence

LOOKAHEAD = Lookahead(
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
def test_decision_on_any_prefix_equals_the_final_decision(text: str, word: str | None) -> None:
    assert LOOKAHEAD.find_word(text, 0, len(text), ("key",))[0] == word
    results = [LOOKAHEAD.find_word(text[:end], 0, end, ("key",)) for end in range(len(text))]
    decided = [result for result, undecided in results if not undecided]
    assert set(decided) <= {word}


def test_decision_is_made_as_early_as_possible() -> None:
    assert LOOKAHEAD.find_word("k", 0, 1, ("key",)) == (None, True)
    assert LOOKAHEAD.find_word("x", 0, 1, ("key",)) == (None, False)
    assert LOOKAHEAD.find_word("x", 0, 1, None) == (None, True)
    assert LOOKAHEAD.find_word("x=>", 0, 3, None) == ("x", False)
