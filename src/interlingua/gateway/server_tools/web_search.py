"""Web search with the engine from the settings. Nothing is made up: a search that fails is an error to the model."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any
from urllib.parse import quote, urlsplit

import aiohttp
import msgspec
from yarl import URL

from interlingua.common.coerce import as_dict, as_list
from interlingua.common.jsontext.codec import encode_json, read_json
from interlingua.gateway.server_tools.server_tool import (
    INVALID_INPUT,
    MAX_USES_EXCEEDED,
    UNAVAILABLE,
    Json,
    Outcome,
    Page,
    ServerToolKind,
    ToolUses,
    text_parameter,
)
from interlingua.gateway.settings.schema import WebSearch
from interlingua.gateway.upstream.connector import proxy_for

__all__ = ["DomainFilter", "WebSearchTool"]

MAX_QUERY_CHARS = 400
MAX_RESPONSE_BYTES = 4 * 1024 * 1024
MAX_SNIPPET_CHARS = 4000
BRAVE_URL, TAVILY_URL = "https://api.search.brave.com/res/v1/web/search", "https://api.tavily.com/search"
_TEXT_FIELDS = ("content", "snippet", "description", "text")
_AGE_FIELDS = ("publishedDate", "published_date", "age", "date")


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
        settings: The search engine.
        session: Session for requests to it.
        report: Called with the problem of a search that failed.
        domains: Domains of the results that the client wants.
        max_uses: Maximum number of searches; 0: no maximum.
    """

    kind: ServerToolKind = "web_search"
    description = "Search the web. The results have a title, a URL and an excerpt. Name the URLs that you use."
    parameters = text_parameter("query", "The words to search for.")

    def __init__(
        self,
        name: str,
        settings: WebSearch,
        session: aiohttp.ClientSession,
        report: Callable[[str], None],
        domains: DomainFilter,
        max_uses: int = 0,
    ) -> None:
        self.name = name
        self._settings = settings
        self._session = session
        self._report = report
        self._domains = domains
        self._uses = ToolUses(max_uses)

    async def run(self, arguments: Json) -> Outcome:
        query = arguments.get("query")
        if not isinstance(query, str) or not query.strip():
            return Outcome(error=INVALID_INPUT)
        if len(query) > MAX_QUERY_CHARS:
            return Outcome(error="query_too_long")
        if self._settings.engine == "off":
            return Outcome(error=UNAVAILABLE)
        if not self._uses.add():
            return Outcome(error=MAX_USES_EXCEEDED)
        try:
            results = await self._search(query)
        except (aiohttp.ClientError, TimeoutError, OSError, ValueError) as error:
            # The text of the error may contain the URL, and with it a key.
            self._report(f"{type(error).__name__}" if not isinstance(error, ValueError) else str(error))
            return Outcome(error=UNAVAILABLE)
        pages = [page for page in map(_read_page, results) if page is not None and self._domains.accepts(page.url)]
        return Outcome(pages=pages[: self._settings.results])

    async def _search(self, query: str) -> Iterable[Json]:
        """Return the results of the search engine. Raises ValueError, or an error of aiohttp."""
        settings, key = self._settings, self._settings.key
        count = settings.results
        match settings.engine:
            case "searxng":
                url = URL(settings.url.rstrip("/") + "/search").with_query(q=query, format="json")
                body = await self._request("GET", url, {"authorization": f"Bearer {key}"} if key else {})
            case "brave":
                url = URL(settings.url or BRAVE_URL).with_query(q=query, count=str(count))
                body = await self._request("GET", url, {"x-subscription-token": key})
                body = as_dict(as_dict(body).get("web"))
            case "tavily":
                data = {"query": query, "max_results": count}
                headers = {"authorization": f"Bearer {key}", "content-type": "application/json"}
                body = await self._request("POST", URL(settings.url or TAVILY_URL), headers, encode_json(data))
            case _:
                url = URL(settings.url.replace("{query}", quote(query, safe="")), encoded=True)
                body = await self._request("GET", url, {"authorization": f"Bearer {key}"} if key else {})
        results = body if isinstance(body, list) else as_dict(body).get("results")
        if not isinstance(results, list):
            raise ValueError("the response of the search engine has no list of results")
        return map(as_dict, results)

    async def _request(self, method: str, url: URL, headers: Mapping[str, str], data: bytes | None = None) -> Any:
        """Return the JSON of a response."""
        async with self._session.request(
            method,
            url,
            data=data,
            headers={"accept": "application/json", **headers},
            proxy=proxy_for(url.scheme, url.host or ""),
            allow_redirects=False,
            timeout=aiohttp.ClientTimeout(total=self._settings.timeout),
        ) as response:
            if response.status != 200:
                raise ValueError(f"the search engine answered with status {response.status}")
            body = bytearray()
            async for piece in response.content.iter_any():
                body += piece
                if len(body) > MAX_RESPONSE_BYTES:
                    raise ValueError("the response of the search engine is too large")
        return read_json(bytes(body), object)


def _read_page(result: Json) -> Page | None:
    url = result.get("url") or result.get("link")
    if not isinstance(url, str) or not url.startswith(("http://", "https://")):
        return None
    texts = [text for field in _TEXT_FIELDS if isinstance(text := result.get(field), str) and text]
    age = next((str(result[field]) for field in _AGE_FIELDS if result.get(field)), "")
    return Page(url, str(result.get("title") or url), "\n".join(texts)[:MAX_SNIPPET_CHARS], age)
