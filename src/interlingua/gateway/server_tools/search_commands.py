"""Commands of Codex's own search tool: search, open a page, find a text in it, tell the time.

The outcome of each command is a text for the model, also if the command fails or is not available.
"""

from __future__ import annotations

import hmac
import re
from collections.abc import Awaitable, Callable
from datetime import UTC, datetime, timedelta
from functools import partial
from hashlib import sha256
from typing import Annotated, Any, TypeVar

import msgspec

from interlingua.common.coerce import as_dict, as_list
from interlingua.errors import BadRequest
from interlingua.gateway.server_tools.server_tool import UNAVAILABLE, Json, Outcome, Page
from interlingua.gateway.server_tools.web_access import WebAccess
from interlingua.gateway.server_tools.web_search import DomainFilter

__all__ = ["CommandOutcome", "PageReferences", "SearchCommands", "SearchRequest", "read_search_request"]

T = TypeVar("T")

MAX_COMMANDS = 16
"""Commands of one request that are run."""
MAX_FOUND_LINES = 30
REFERENCE_PURPOSE = b"references of found pages"
SIGNATURE_CHARS = 12
MORE_COMMANDS = "[{} more commands were not run: at most {} in one request]"
_UTC_OFFSET = re.compile(r"(?P<sign>[+-])(?P<hours>0?[0-9]|1[0-4])(?::?(?P<minutes>[0-5][0-9]))?", re.ASCII)


class PageReferences:
    """References to pages that a search has found: a signature and the URL.

    The model may open a page that was found, but not a URL of its own making. With the signature, the gateway need not
    store what it has found.

    Args:
        key: Secret of the client.
    """

    def __init__(self, key: bytes) -> None:
        self._key = hmac.digest(key, REFERENCE_PURPOSE, sha256)

    def write(self, url: str) -> str:
        return f"{self._sign(url)}:{url}"

    def read(self, reference: str) -> tuple[str, bool]:
        """Return the URL of a reference or of a plain URL, and whether a search has found it."""
        signature, _, url = reference.partition(":")
        is_found = hmac.compare_digest(_encode(signature), _encode(self._sign(url)))
        return (url, True) if is_found else (reference, False)

    def _sign(self, url: str) -> str:
        return hmac.digest(self._key, _encode(url), sha256).hex()[:SIGNATURE_CHARS]


def _encode(text: str) -> bytes:
    """Return the bytes of a text that may contain unpaired surrogates, as models write them."""
    return text.encode("utf-8", "surrogatepass")


class SearchQuery(msgspec.Struct, frozen=True):
    q: str = ""
    domains: list[str] | None = None


class PagePlace(msgspec.Struct, frozen=True):
    """Page to open or to search."""

    ref_id: str = ""
    lineno: int | None = None
    """First line to return."""
    pattern: str = ""
    """Text to find."""


class TimeZone(msgspec.Struct, frozen=True):
    utc_offset: str | None = None


class Filters(msgspec.Struct, frozen=True):
    allowed_domains: list[str] | None = None
    blocked_domains: list[str] | None = None


class SessionSettings(msgspec.Struct, frozen=True):
    filters: Filters | None = None
    external_web_access: bool | None = None
    """False if pages may not be opened."""
    search_context_size: str | None = None
    user_location: dict[str, Any] | None = None


class SearchRequest(msgspec.Struct, frozen=True):
    """The fields of a request that must have a certain type."""

    commands: dict[str, Any] | None = None
    settings: SessionSettings | None = None
    max_output_tokens: Annotated[int, msgspec.Meta(ge=1)] | None = None


class CommandOutcome(msgspec.Struct, frozen=True):
    """Outcome of a command: a text for the model, and the pages that it is about."""

    text: str
    pages: list[Page] = []


def read_search_request(body: Json) -> SearchRequest:
    """Return the request. Raises BadRequest if a field has a wrong type."""
    return _read(body, SearchRequest)


class SearchCommands:
    """Runs the commands of one request.

    Args:
        request: The request.
        settings: Its settings as the client sent them, which also define the tools that access the web.
        access: Access to the web.
        references: References to pages.
    """

    def __init__(self, request: SearchRequest, settings: Json, access: WebAccess, references: PageReferences) -> None:
        self._commands = request.commands or {}
        self._may_open = request.settings is None or request.settings.external_web_access is not False
        self._settings = settings
        self._access = access
        self._references = references

    def run(self) -> list[Awaitable[CommandOutcome]]:
        """Return the outcomes of all commands, in the order of the request.

        Raises:
            BadRequest: A command has a field of a wrong type.
        """
        commands = [run for name, operations in self._commands.items() for run in self._read_command(name, operations)]
        outcomes = [run() for run in commands[:MAX_COMMANDS]]
        if left_out := len(commands) - len(outcomes):
            outcomes.append(_text_outcome(MORE_COMMANDS.format(left_out, MAX_COMMANDS)))
        return outcomes

    def _read_command(self, name: str, operations: Any) -> list[Callable[[], Awaitable[CommandOutcome]]]:
        """Return the functions that run the operations of a command."""
        path = f"commands.{name}"
        match name:
            case "search_query":
                return [partial(self._search, query) for query in _read_list(operations, SearchQuery, path)]
            case "open" | "find":
                run = self._open if name == "open" else self._find
                return [partial(run, place) for place in _read_list(operations, PagePlace, path)]
            case "time":
                return [partial(_current_time, zone) for zone in _read_list(operations, TimeZone, path)]
            case _:
                refusal = f"[{name} is not available on this server]"
                return [partial(_text_outcome, refusal)] * len(as_list(operations))

    async def _search(self, search: SearchQuery) -> CommandOutcome:
        query, wanted = search.q, DomainFilter.read({"allowed_domains": search.domains})
        outcome = await self._access.search_tool("search_query", self._settings).run({"query": query})
        title = f"# Results of the search: {query}"
        if outcome.error:
            return CommandOutcome(f"{title}\n\n{_describe_error('search_query', outcome.error)}")
        pages = [page for page in outcome.pages if wanted.accepts(page.url)]
        return CommandOutcome("\n\n".join([title, *map(self._describe, pages)]) if pages else f"{title}\n\nnone", pages)

    def _describe(self, page: Page) -> str:
        reference = f"ref_id: {self._references.write(page.url)}"
        return "\n".join(filter(None, (f"## {page.title}", page.url, reference, page.age, page.text)))

    async def _open(self, place: PagePlace) -> CommandOutcome:
        url, outcome = await self._fetch(place.ref_id)
        if outcome.error:
            return CommandOutcome(f"# {url}\n\n{_describe_error('open', outcome.error)}")
        (page,), first = outcome.pages, place.lineno or 1
        lines = [f"L{number}: {text}" for number, text in _numbered_lines(page) if number >= first]
        return CommandOutcome("\n".join([self._describe(_without_text(page)), "", *lines]), [page])

    async def _find(self, place: PagePlace) -> CommandOutcome:
        url, outcome = await self._fetch(place.ref_id)
        if outcome.error:
            return CommandOutcome(f"# {url}\n\n{_describe_error('find', outcome.error)}")
        (page,), wanted = outcome.pages, place.pattern.lower()
        lines = [f"L{number}: {text}" for number, text in _numbered_lines(page) if wanted in text.lower()]
        found = "\n".join(lines[:MAX_FOUND_LINES]) or "none"
        return CommandOutcome(
            f"{self._describe(_without_text(page))}\n\nLines with {place.pattern!r}:\n{found}", [page]
        )

    async def _fetch(self, reference: str) -> tuple[str, Outcome]:
        """Fetch the page that a command names. Returns its URL, and the outcome."""
        url, is_found = self._references.read(reference)
        if not self._may_open:
            return url, Outcome(error="external_web_access is false: only searches are allowed")
        if is_found:
            self._access.allow(url)
        filters = {"filters": as_dict(self._settings.get("filters"))}
        return url, await self._access.fetch_tool("open", filters, 0, 0).run({"url": url})


def _numbered_lines(page: Page) -> list[tuple[int, str]]:
    return list(enumerate(page.text.splitlines(), 1))


def _without_text(page: Page) -> Page:
    return msgspec.structs.replace(page, text="")


def _describe_error(command: str, error: str) -> str:
    explanation = f"{UNAVAILABLE}: this server has no access to the web" if error == UNAVAILABLE else error
    return f"[{command} failed: {explanation}]"


async def _text_outcome(text: str) -> CommandOutcome:
    return CommandOutcome(text)


async def _current_time(zone: TimeZone) -> CommandOutcome:
    offset = zone.utc_offset or "+00:00"
    match = _UTC_OFFSET.fullmatch(offset)
    if match is None:
        return CommandOutcome(f"[time failed: {offset[:20]!r} is no UTC offset such as +03:00]")
    difference = timedelta(hours=int(match["hours"]), minutes=int(match["minutes"] or 0))
    now = datetime.now(UTC) + (-difference if match["sign"] == "-" else difference)
    return CommandOutcome(f"The time at UTC{offset} is {now:%Y-%m-%d %H:%M:%S}.")


def _read(value: Any, type_: type[T], path: str = "") -> T:
    """Return the value with its type. Raises BadRequest."""
    try:
        return msgspec.convert(value, type_)
    except msgspec.ValidationError as error:
        problem, _, place = str(error).partition(" - at `$")
        raise BadRequest((path + place.rstrip("`")).lstrip("."), problem) from None
    except UnicodeEncodeError:  # msgspec tries to convert such a text to the type
        raise BadRequest(path, "a text with an unpaired surrogate, where another type is expected") from None


def _read_list(value: Any, item_type: type[T], path: str) -> list[T]:
    return _read([] if value is None else value, list[item_type], path)  # type: ignore[valid-type]
