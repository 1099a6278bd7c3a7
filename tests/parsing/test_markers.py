"""Marker sets: the search for the next marker."""

import re

import pytest

from interlingua.parsing.markers import compile_markers


@pytest.mark.parametrize(
    ("markers", "text", "pos", "end"),
    [
        (("\n", "\r\n"), "a\r\nb\nc", 0, 6),
        (("\n", "\r\n"), "a\r\nb\nc", 2, 6),
        (("\n", "\r\n"), "a\rb", 0, 3),
        (("\n", "\r\n"), "a\r\n", 0, 2),
        (("\n", "\r\n"), "", 0, 0),
        (("<a>", "\n<b>"), "> x > <b> \n<b> <a>", 0, 18),
        (("<a>", "\n<b>"), "> x > <b> \n<b> <a>", 11, 18),
        (("<a>", "\n<b>"), "> x > <b> \n<b> <a>", 11, 17),
    ],
)
def test_search_of_markers_with_one_last_character_equals_search_of_their_pattern(
    markers: tuple[str, ...], text: str, pos: int, end: int
) -> None:
    pattern = re.compile("|".join(map(re.escape, sorted(markers, key=len, reverse=True))))
    found, expected = compile_markers(*markers).search(text, pos, end), pattern.search(text, pos, end)
    assert (found and found.span()) == (expected and expected.span())
