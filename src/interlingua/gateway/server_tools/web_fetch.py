"""Fetching of web pages, guarded: only public addresses, at every redirect, with limits on size, time and type.

A page is fetched only if its URL is in the conversation or in a search result, as the Messages API defines it. So a
hostile page cannot make the model send data away in a URL of its own.
"""

from __future__ import annotations

import asyncio
import re
import socket
from collections.abc import Callable, Collection, Container, Iterator
from html import unescape
from ipaddress import IPv4Address, IPv6Address, IPv6Network, ip_address

import aiohttp
from aiohttp.abc import AbstractResolver, ResolveResult
from aiohttp.resolver import ThreadedResolver
from yarl import URL

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
from interlingua.gateway.server_tools.web_search import DomainFilter
from interlingua.gateway.settings.schema import WebFetch

__all__ = ["PublicResolver", "WebFetchTool", "is_public"]

MAX_URL_CHARS = 250
MAX_REDIRECTS = 5
MAX_PAGE_CHARS = 100_000
"""Text of a page for the model, if the client sets no limit."""
CHARS_PER_TOKEN = 4
TEXT_TYPES = ("text/", "application/json", "application/xml", "application/xhtml+xml")
_HEADERS = {"accept": "text/*, */*;q=0.1", "accept-encoding": "identity"}
_REDIRECT_STATUSES = (301, 302, 303, 307, 308)
_EMBEDDED_IPV4 = (
    IPv6Network("64:ff9b::/96"),
    IPv6Network("64:ff9b:1::/48"),
    IPv6Network("2002::/16"),
    IPv6Network("2001::/32"),
)
"""IPv6 addresses that lead to an IPv4 address, which may be private."""


class FetchRefused(Exception):
    """A page that is not fetched. `code` is an error code of the Messages API."""

    def __init__(self, code: str) -> None:
        super().__init__(code)
        self.code = code


def is_public(address: str) -> bool:
    """Return whether this IP address is on the public internet."""
    try:
        ip: IPv4Address | IPv6Address = ip_address(address.partition("%")[0])
    except ValueError:
        return False
    if isinstance(ip, IPv6Address):
        if ip.ipv4_mapped is not None:
            ip = ip.ipv4_mapped
        elif any(ip in network for network in _EMBEDDED_IPV4):
            return False
    return ip.is_global and not (ip.is_multicast or ip.is_reserved or ip.is_unspecified)


class PublicResolver(AbstractResolver):
    """Resolver that refuses host names with any private address. The connection uses the addresses that it checked."""

    def __init__(self, private: Container[str]) -> None:
        self._private = private
        self._resolver = ThreadedResolver()

    async def resolve(
        self, host: str, port: int = 0, family: socket.AddressFamily = socket.AF_UNSPEC
    ) -> list[ResolveResult]:
        results = await self._resolver.resolve(host, port, family)
        if host.lower() not in self._private and not all(is_public(result["host"]) for result in results):
            raise FetchRefused("url_not_allowed")
        return results

    async def close(self) -> None:
        await self._resolver.close()


class WebFetchTool:
    """Fetching of pages for one request.

    Args:
        name: Name of the function for the model.
        settings: The settings.
        is_known: Returns whether a URL is in the conversation.
        domains: Domains that the client wants.
        max_uses: Maximum number of pages; 0: no maximum.
        max_tokens: Maximum length of a page for the model; 0: the gateway's own.
    """

    kind: ServerToolKind = "web_fetch"
    description = "Fetch the text of a web page whose URL is in the conversation or in a search result."
    parameters = text_parameter("url", "The URL of the page.")

    def __init__(
        self,
        name: str,
        settings: WebFetch,
        is_known: Callable[[str], bool],
        domains: DomainFilter,
        max_uses: int = 0,
        max_tokens: int = 0,
    ) -> None:
        self.name = name
        self._settings = settings
        self._private: Collection[str] = {host.lower() for host in settings.private}
        self._is_known = is_known
        self._domains = domains
        self._uses = ToolUses(max_uses)
        self._max_chars = min(CHARS_PER_TOKEN * max_tokens, MAX_PAGE_CHARS) if max_tokens else MAX_PAGE_CHARS

    async def run(self, arguments: Json) -> Outcome:
        url = arguments.get("url")
        if not isinstance(url, str) or not url:
            return Outcome(error=INVALID_INPUT)
        if not self._settings.enabled:
            return Outcome(error=UNAVAILABLE)
        if len(url) > MAX_URL_CHARS:
            return Outcome(error="url_too_long")
        if not self._is_known(url):
            return Outcome(error="url_not_in_prior_context")
        if not self._uses.add():
            return Outcome(error=MAX_USES_EXCEEDED)
        try:
            async with asyncio.timeout(self._settings.timeout):
                return Outcome(pages=[await self._fetch(url)])
        except FetchRefused as refused:
            return Outcome(error=refused.code)
        except (aiohttp.ClientError, TimeoutError, OSError, ValueError):
            return Outcome(error="url_not_accessible")

    async def _fetch(self, address: str) -> Page:
        """Return a page, after redirects. No proxy is used: it would resolve names itself, unchecked."""
        url = URL(address)
        connector = aiohttp.TCPConnector(resolver=PublicResolver(self._private), use_dns_cache=False)
        jar = aiohttp.DummyCookieJar()
        async with aiohttp.ClientSession(connector=connector, cookie_jar=jar, trust_env=False) as session:
            for _ in range(MAX_REDIRECTS + 1):
                self._check(url)
                async with session.get(url, allow_redirects=False, headers=_HEADERS) as response:
                    location = response.headers.get("location")
                    if response.status not in _REDIRECT_STATUSES or not location:
                        return await self._read(url, response)
                    url = url.join(URL(location))
        raise FetchRefused("url_not_accessible")

    def _check(self, url: URL) -> None:
        """Raise FetchRefused if the URL is not one that may be fetched. Names are checked when they are resolved."""
        host = (url.host or "").lower()
        if url.scheme not in ("http", "https") or not host or url.user is not None:
            raise FetchRefused("url_not_allowed")
        if not self._domains.accepts(str(url)):
            raise FetchRefused("url_not_allowed")
        is_address = host.replace(".", "").isdecimal() or ":" in host  # the resolver is not asked about these
        if is_address and host not in self._private and not is_public(host):
            raise FetchRefused("url_not_allowed")

    async def _read(self, url: URL, response: aiohttp.ClientResponse) -> Page:
        if response.status != 200:
            raise FetchRefused("url_not_accessible")
        if not response.content_type.startswith(TEXT_TYPES):
            raise FetchRefused("unsupported_content_type")
        body = bytearray()
        async for piece in response.content.iter_any():
            body += piece
            if len(body) > self._settings.size:
                raise FetchRefused("content_too_large")
        try:
            text = body.decode(response.charset or "utf-8", "replace")
        except LookupError:  # an unknown charset
            text = body.decode("utf-8", "replace")
        title = ""
        if "html" in response.content_type:
            title, text = await asyncio.to_thread(read_html, text)
        return Page(str(url), title or str(url), text[: self._max_chars])


_TAG = re.compile(r"<(/?)([a-zA-Z][a-zA-Z0-9]*)")
_HIDDEN_TAGS = ("script", "style", "noscript", "template", "svg")
_INLINE_TAGS = ("a", "abbr", "b", "code", "em", "i", "kbd", "mark", "q", "s", "small", "span", "strong", "sub", "u")


def read_html(document: str) -> tuple[str, str]:
    """Return the title and the text of an HTML document, with a line for each block.

    The time is linear in the size of the document, which the standard parser of HTML does not guarantee.
    """
    texts = list(_html_texts(document))
    title = " ".join("".join(text for text, is_title in texts if is_title).split())
    lines = "".join(text for text, is_title in texts if not is_title).splitlines()
    return title, "\n".join(line for line in (" ".join(line.split()) for line in lines) if line)


def _html_texts(document: str) -> Iterator[tuple[str, bool]]:
    """Yield the texts between tags, with line ends for blocks, and whether each is a part of the title."""
    position, is_title = 0, False
    while (start := document.find("<", position)) >= 0:
        yield unescape(document[position:start]), is_title
        if document.startswith("<!--", start):
            position = _end_of(document, "-->", start)
            continue
        tag = _TAG.match(document, start)
        if tag is None and not document.startswith(("<!", "<?"), start):
            yield "<", is_title
            position = start + 1
            continue
        position = _end_of(document, ">", start)
        name = tag[2].lower() if tag is not None else ""
        is_title = tag is not None and name == "title" and not tag[1]
        if tag is not None and not tag[1] and name in _HIDDEN_TAGS:
            closer = _CLOSERS[name].search(document, position)
            position = closer.end() if closer is not None else len(document)
        if name not in _INLINE_TAGS:
            yield "\n", False
    yield unescape(document[position:]), is_title


def _end_of(document: str, mark: str, start: int) -> int:
    """Return the position after the next mark, or the end of the document."""
    end = document.find(mark, start)
    return end + len(mark) if end >= 0 else len(document)


_CLOSERS = {name: re.compile(rf"</{name}[^>]*>", re.I) for name in _HIDDEN_TAGS}
