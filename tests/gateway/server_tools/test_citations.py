"""Tests of the pages that a text names."""

from __future__ import annotations

import pytest

from interlingua.gateway.server_tools.citations import MAX_CITATIONS, find_citations
from interlingua.gateway.server_tools.server_tool import Page
from tests.support.growth import GrowthCase, check_case

URLS = ("https://e.com/a", "https://e.com/a/b", "https://e.com/", "https://e.com/x?q=1&r=2")
PAGES = [Page(url, "", "") for url in URLS]


@pytest.mark.parametrize(
    ("text", "cited"),
    [
        ("no page", []),
        ("See https://e.com/a.", [("https://e.com/a", "https://e.com/a")]),
        ("See https://e.com/a/b, or (https://e.com/a)", [("https://e.com/a/b",) * 2, ("https://e.com/a",) * 2]),
        ("Rain [as it says](https://e.com/a)!", [("[as it says](https://e.com/a)", "https://e.com/a")]),
        ("https://e.com/abc https://e.com/a?x https://e.com/a.html", []),
        ("at https://e.com now", [("https://e.com", "https://e.com/")]),
        ("at https://e.com/ now", [("https://e.com/", "https://e.com/")]),
        ("<https://e.com/x?q=1&r=2>", [("https://e.com/x?q=1&r=2",) * 2]),
        ("[a [b](https://e.com/a)", [("[b](https://e.com/a)", "https://e.com/a")]),
        ("wörter: https://e.com/a", [("https://e.com/a",) * 2]),
    ],
)
def test_pages_that_a_text_names(text: str, cited: list[tuple[str, str]]) -> None:
    found = find_citations(text, PAGES)
    assert [(text[citation.start : citation.end], citation.page.url) for citation in found] == cited


def test_citations_are_bounded() -> None:
    assert len(find_citations("https://e.com/a " * 1000, PAGES)) == MAX_CITATIONS


@pytest.mark.parametrize("piece", ["[aaaa", "[](", "https://e.com/a!!!", "[a](https://e.com/a"])
def test_time_grows_with_the_text(piece: str) -> None:
    text = "see https://e.com/a "
    check_case(GrowthCase(piece, lambda n: text + piece * n, lambda text: find_citations(text, PAGES)), 0.02)
