"""Web search as a tool of a request. Nothing is made up: a search that fails is an error to the model."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any
from urllib.parse import urlsplit

import msgspec

from interlingua.common.coerce import as_dict, as_list
from interlingua.gateway.server_tools.search_engine import SearchEngine, SearchFailed, UserLocation
from interlingua.gateway.server_tools.server_tool import (
    INVALID_INPUT,
    MAX_USES_EXCEEDED,
    UNAVAILABLE,
    Json,
    Outcome,
    ServerToolKind,
    ToolUses,
    text_parameter,
)

__all__ = ["DomainFilter", "WebSearchTool"]

MAX_QUERY_CHARS = 400
DESCRIPTION = "Search the web. The results have a title, a URL and an excerpt. Name the URLs that you use."


class DomainFilter(msgspec.Struct, frozen=True):
    """Domains that the client allows or blocks, with their subdomains. `example.com/docs` is a path in a domain."""

    allowed: tuple[str, ...] = ()
    blocked: tuple[str, ...] = ()

    @classmethod
    def read(cls, definition: Mapping[str, Any]) -> DomainFilter:
        """Read the filter in the definition of a tool, in either API."""
        filters = as_dict(definition.get("filters"))
        lists = (definition.get(f"{kind}_domains") or filters.get(f"{kind}_domains") for kind in ("allowed", "blocked"))
        return cls(*(tuple(str(domain).lower() for domain in as_list(domains)) for domains in lists))

    def accepts(self, url: str) -> bool:
        """Return whether a page with this URL may be used."""
        try:
            parts = urlsplit(url)
            place = (parts.hostname or "").lower() + parts.path
        except ValueError:
            return False
        is_allowed = not self.allowed or any(_is_inside(place, domain) for domain in self.allowed)
        return is_allowed and not any(_is_inside(place, domain) for domain in self.blocked)


def _is_inside(place: str, domain: str) -> bool:
    host, slash, path = domain.partition("/")
    place_host, _, place_path = place.partition("/")
    return (place_host == host or place_host.endswith(f".{host}")) and (not slash or place_path.startswith(path))


class WebSearchTool:
    """Web search of one request.

    Args:
        name: Name of the function for the model.
        engine: The search engine.
        max_results: Maximum number of results of a search.
        report: Called with the problem of a search that failed.
        definition: What the client wants: domains of the results, their amount, and the location of the user. The
            model gets the location, too, because most engines take none.
        max_uses: Maximum number of searches; 0: no maximum.
    """

    kind: ServerToolKind = "web_search"
    parameters = text_parameter("query", "The words to search for.")

    def __init__(
        self,
        name: str,
        engine: SearchEngine,
        max_results: int,
        report: Callable[[str], None],
        definition: Mapping[str, Any],
        max_uses: int = 0,
    ) -> None:
        self.name = name
        self._engine = engine
        self._max_results = max(1, max_results // 2) if definition.get("search_context_size") == "low" else max_results
        self._report = report
        self._domains = DomainFilter.read(definition)
        self._location = UserLocation.read(definition)
        self._uses = ToolUses(max_uses)
        self.description = DESCRIPTION + (f" The user is in {self._location}." if str(self._location) else "")

    async def run(self, arguments: Json) -> Outcome:
        query = arguments.get("query")
        if not isinstance(query, str) or not query.strip():
            return Outcome(error=INVALID_INPUT)
        if len(query) > MAX_QUERY_CHARS:
            return Outcome(error="query_too_long")
        if not self._engine.is_available:
            return Outcome(error=UNAVAILABLE)
        if not self._uses.add():
            return Outcome(error=MAX_USES_EXCEEDED)
        try:
            pages = await self._engine.search(query, self._max_results, self._location)
        except SearchFailed as error:
            self._report(str(error))
            return Outcome(error=UNAVAILABLE)
        return Outcome(pages=[page for page in pages if self._domains.accepts(page.url)][: self._max_results])
