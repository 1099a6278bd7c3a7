"""The search engine from the settings: a service, any server with a JSON API, or a command of the operator."""

from __future__ import annotations

import asyncio
import os
import signal
from collections.abc import Mapping
from contextlib import suppress
from typing import Any
from urllib.parse import quote

import aiohttp
import msgspec
from yarl import URL

from interlingua.common.coerce import as_dict
from interlingua.common.jsontext.codec import encode_json, read_json
from interlingua.gateway.server_tools.server_tool import Json, Page
from interlingua.gateway.settings.schema import WebSearch
from interlingua.gateway.upstream.connector import proxy_for

__all__ = ["MAX_COMMANDS", "SearchEngine", "SearchFailed", "UserLocation"]

MAX_RESPONSE_BYTES = 4 * 1024 * 1024
MAX_ERROR_CHARS = 200
MAX_LOCATION_CHARS = 100
MAX_SNIPPET_CHARS = 4000
MAX_COMMANDS = 8
"""Commands that run at the same time in a process of the gateway. Further searches wait, within their timeout."""
BRAVE_URL, TAVILY_URL = "https://api.search.brave.com/res/v1/web/search", "https://api.tavily.com/search"
KEY_VARIABLE = "SEARCH_KEY"
INHERITED_VARIABLES = (
    *("PATH", "HOME", "LANG", "LC_ALL", "TMPDIR", "TZ", "SSL_CERT_FILE", "SSL_CERT_DIR"),
    *("HTTP_PROXY", "HTTPS_PROXY", "NO_PROXY", "http_proxy", "https_proxy", "no_proxy"),
)
"""Variables of the gateway that a command gets. Others may contain keys of upstreams."""
_TEXT_FIELDS = ("content", "snippet", "description", "text", "abstract")
_AGE_FIELDS = ("publishedDate", "published_date", "age", "date")


class UserLocation(msgspec.Struct, frozen=True):
    """Approximate location of the user, as the client states it. Fields may be empty."""

    city: str = ""
    region: str = ""
    country: str = ""
    """Two letters (ISO 3166-1)."""
    timezone: str = ""

    @classmethod
    def read(cls, definition: Mapping[str, Any]) -> UserLocation:
        """Read the location in the definition of a search, in either API."""
        given = as_dict(definition.get("user_location"))
        values = (given.get(name) for name in cls.__struct_fields__)
        return cls(
            *(" ".join(value.split())[:MAX_LOCATION_CHARS] if isinstance(value, str) else "" for value in values)
        )

    def __str__(self) -> str:
        place = ", ".join(filter(None, (self.city, self.region, self.country)))
        return f"{place} (time zone {self.timezone})".lstrip() if self.timezone else place


class SearchFailed(Exception):
    """A search that failed. The message is for the log: it never contains a URL, which may have a key."""


class SearchEngine:
    """Searches with the engine from the settings.

    Args:
        settings: The settings.
        session: Session for requests to the engine.
        command_slots: Limits the number of commands that run at the same time.
    """

    def __init__(self, settings: WebSearch, session: aiohttp.ClientSession, command_slots: asyncio.Semaphore) -> None:
        self._settings = settings
        self._session = session
        self._command_slots = command_slots

    @property
    def is_available(self) -> bool:
        return self._settings.engine != "off"

    async def search(self, query: str, max_results: int, location: UserLocation) -> list[Page]:
        """Return the pages that the engine finds, best first. There may be more. Raises SearchFailed."""
        try:
            async with asyncio.timeout(self._settings.timeout):
                body = await self._ask(query, max_results, location)
        except TimeoutError as error:
            raise SearchFailed(f"no answer within {self._settings.timeout:g} s") from error
        except (aiohttp.ClientError, OSError, ValueError) as error:
            raise SearchFailed(type(error).__name__) from error
        results = body if isinstance(body, list) else as_dict(body).get("results")
        if not isinstance(results, list):
            raise SearchFailed("the answer of the search engine has no list of results")
        return [page for page in map(_read_page, map(as_dict, results)) if page is not None]

    async def _ask(self, query: str, max_results: int, location: UserLocation) -> Any:
        settings, key = self._settings, self._settings.key
        bearer = {"authorization": f"Bearer {key}"} if key else {}
        match settings.engine:
            case "searxng":
                url = URL(settings.url.rstrip("/") + "/search").with_query(q=query, format="json")
                return await self._request("GET", url, bearer)
            case "brave":
                url = URL(settings.url or BRAVE_URL).with_query(q=query, count=str(max_results))
                body = await self._request("GET", url, {"x-subscription-token": key, **_brave_headers(location)})
                return as_dict(body).get("web")
            case "tavily":
                data = encode_json({"query": query, "max_results": max_results})
                url = URL(settings.url or TAVILY_URL)
                return await self._request("POST", url, {**bearer, "content-type": "application/json"}, data)
            case "command":
                async with self._command_slots:
                    return await self._run_command(query)
            case _:
                url = URL(settings.url.replace("{query}", quote(query, safe="")), encoded=True)
                return await self._request("GET", url, bearer)

    async def _request(self, method: str, url: URL, headers: Mapping[str, str], data: bytes | None = None) -> Any:
        """Return the JSON of a response."""
        async with self._session.request(
            method,
            url,
            data=data,
            headers={"accept": "application/json", **headers},
            proxy=proxy_for(url.scheme, url.host or ""),
            allow_redirects=False,
            timeout=aiohttp.ClientTimeout(total=None),
        ) as response:
            if response.status != 200:
                raise SearchFailed(f"the search engine answered with status {response.status}")
            return read_json(await _read_limited(response.content), object)

    async def _run_command(self, query: str) -> Any:
        """Return the JSON that the command writes. It runs without a shell, and all that it has started is ended."""
        # A query that begins with a dash could be taken for an option.
        argv = [argument.replace("{query}", query.lstrip("- ")) for argument in self._settings.command]
        process = await asyncio.create_subprocess_exec(
            *argv,
            env=_command_environment(self._settings.key),
            stdin=asyncio.subprocess.DEVNULL,
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.PIPE,
            start_new_session=True,
        )
        stdout, stderr = process.stdout, process.stderr
        assert stdout is not None, "a pipe"
        assert stderr is not None, "a pipe"
        try:
            output, errors = await asyncio.gather(_read_limited(stdout), _read_limited(stderr))
            status = await process.wait()
        finally:
            with suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)
            process._transport.close()  # type: ignore[attr-defined]  # otherwise pipes with unread data stay open
            await process.wait()
        if status != 0:
            reason = " ".join(errors.decode("utf-8", "replace").split())[:MAX_ERROR_CHARS]
            raise SearchFailed(f"the command ended with status {status}: {reason}")
        return read_json(output, object)


async def _read_limited(stream: aiohttp.StreamReader | asyncio.StreamReader) -> bytes:
    body = bytearray()
    while piece := await stream.read(64 * 1024):
        body += piece
        if len(body) > MAX_RESPONSE_BYTES:
            raise SearchFailed("the answer of the search engine is too large")
    return bytes(body)


def _command_environment(key: str) -> dict[str, str]:
    inherited = {name: os.environ[name] for name in INHERITED_VARIABLES if name in os.environ}
    return inherited | ({KEY_VARIABLE: key} if key else {})


def _brave_headers(location: UserLocation) -> dict[str, str]:
    """Return the headers with the location of the user. Values that a header cannot have are left out."""
    values = {
        "x-loc-city": location.city,
        "x-loc-state-name": location.region,
        "x-loc-country": location.country,
        "x-loc-timezone": location.timezone,
    }
    return {name: value for name, value in values.items() if value and value.isascii() and value.isprintable()}


def _read_page(result: Json) -> Page | None:
    url = result.get("url") or result.get("link")
    if not isinstance(url, str) or not url.startswith(("http://", "https://")):
        return None
    texts = [text for field in _TEXT_FIELDS if isinstance(text := result.get(field), str) and text]
    age = next((str(result[field]) for field in _AGE_FIELDS if result.get(field)), "")
    return Page(url, str(result.get("title") or url), "\n".join(texts)[:MAX_SNIPPET_CHARS], age)
