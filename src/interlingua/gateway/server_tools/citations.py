"""Citations: the pages of a web search that the model names in its text."""

from __future__ import annotations

import re
from collections.abc import Iterable

import msgspec

from interlingua.gateway.server_tools.server_tool import Page

__all__ = ["Citation", "find_citations"]

MAX_CITATIONS = 100
"""Citations of one text."""
_AFTER_URL = r"(?![\w%&=#?/-]|[.,;:!~*+@'()]+\w)"
"""A longer URL does not name the page. Punctuation may follow a URL, but not as a part of it."""
_LINK_TITLE = r"\[[^\[\]\n]{0,300}\]\("


class Citation(msgspec.Struct, frozen=True):
    """A page, and the place in the text that names it."""

    page: Page
    start: int
    end: int


def find_citations(text: str, pages: Iterable[Page]) -> list[Citation]:
    """Return the places of a text that name one of these pages: a Markdown link with its URL, or the URL alone."""
    by_url: dict[str, Page] = {}
    for page in pages:
        for url in (page.url, page.url.rstrip("/")):
            by_url.setdefault(url, page)
    named = [url for url in by_url if url in text]
    if not named:
        return []
    # One pattern for all URLs, the longest first: so a text is scanned once, and no URL is found inside another.
    urls = "|".join(re.escape(url) for url in sorted(named, key=len, reverse=True))
    pattern = re.compile(rf"{_LINK_TITLE}(?P<linked>{urls})/?\)|(?P<bare>{urls})/?{_AFTER_URL}")
    citations: list[Citation] = []
    for match in pattern.finditer(text):
        citations.append(Citation(by_url[match["linked"] or match["bare"]], *match.span()))
        if len(citations) == MAX_CITATIONS:
            break
    return citations
