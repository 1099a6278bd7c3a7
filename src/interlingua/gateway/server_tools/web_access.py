"""Access to the web for the tools of one request."""

from __future__ import annotations

from collections.abc import Callable
from functools import cached_property
from typing import Any

from interlingua.common.jsontext.codec import encode_json
from interlingua.gateway.server_tools.search_engine import SearchEngine
from interlingua.gateway.server_tools.server_tool import Json, Outcome, ServerTool
from interlingua.gateway.server_tools.web_fetch import WebFetchTool
from interlingua.gateway.server_tools.web_search import DomainFilter, WebSearchTool
from interlingua.gateway.settings.schema import WebFetch

__all__ = ["WebAccess"]


class WebAccess:
    """Creates the tools of one request that use the web, and knows which URLs they may fetch.

    Args:
        engine: The search engine.
        max_results: Maximum number of results of a search.
        fetch: Settings of fetching.
        report: Called with the problem of a search that failed.
        given_texts: Returns what the user and tools have written in the conversation.
    """

    def __init__(
        self,
        engine: SearchEngine,
        max_results: int,
        fetch: WebFetch,
        report: Callable[[str], None],
        given_texts: Callable[[], Any],
    ) -> None:
        self._engine = engine
        self._max_results = max_results
        self._fetch = fetch
        self._report = report
        self._given_texts = given_texts
        self._found_texts: list[str] = []  # of pages that were found or fetched

    def search_tool(self, name: str, definition: Json, max_uses: int = 0) -> ServerTool:
        """Return the search that the client has defined."""
        tool = WebSearchTool(name, self._engine, self._max_results, self._report, definition, max_uses)
        return _RecordedTool(tool, self._record)

    def fetch_tool(self, name: str, definition: Json, max_uses: int, max_tokens: int) -> ServerTool:
        """Return the fetching of pages that the client has defined."""
        domains = DomainFilter.read(definition)
        tool = WebFetchTool(name, self._fetch, self._is_known, domains, max_uses, max_tokens)
        return _RecordedTool(tool, self._record)

    def allow(self, url: str) -> None:
        """Let a page be fetched that an earlier search has found."""
        self._found_texts.append(url)

    def _record(self, outcome: Outcome) -> None:
        self._found_texts += [f"{page.url}\n{page.text}" for page in outcome.pages]

    def _is_known(self, url: str) -> bool:
        """Return whether a URL is in the conversation or in a result, and not only in a text of the model."""
        data = url.encode("utf-8", "surrogatepass")
        return data in self._given_json or any(url in text for text in self._found_texts)

    @cached_property
    def _given_json(self) -> bytes:
        return encode_json(self._given_texts())


class _RecordedTool:
    """A tool whose outcomes are recorded."""

    def __init__(self, tool: ServerTool, record: Callable[[Outcome], None]) -> None:
        self.kind, self.name = tool.kind, tool.name
        self.description, self.parameters = tool.description, tool.parameters
        self._tool = tool
        self._record = record

    async def run(self, arguments: Json) -> Outcome:
        outcome = await self._tool.run(arguments)
        self._record(outcome)
        return outcome
