"""Web search outside of a reply: the commands of Codex's own search tool, `POST /v1/alpha/search`.

Codex offers the model one tool with many commands, and sends them here. It ends the turn at any error status, so the
outcome of each command is a text for the model, also if the command fails or is not available. Only fields of a wrong
type, which Codex never sends, are an error.
"""

from __future__ import annotations

import asyncio
import hmac
import re
from collections.abc import Awaitable, Callable
from contextlib import closing
from datetime import UTC, datetime, timedelta
from functools import partial
from hashlib import sha256
from typing import Annotated, Any, TypeVar

import msgspec
from aiohttp import web
from yarl import URL

from interlingua.common.coerce import as_dict, as_list
from interlingua.common.jsontext.codec import encode_json
from interlingua.errors import BadRequest
from interlingua.gateway.http.memory_budget import decoded_size
from interlingua.gateway.http.request_body import decode_body, read_body
from interlingua.gateway.routing.routes import Route
from interlingua.gateway.server_tools.request_tools import runs_web_search
from interlingua.gateway.server_tools.server_tool import UNAVAILABLE, Json, Outcome, Page
from interlingua.gateway.server_tools.web_access import WebAccess
from interlingua.gateway.server_tools.web_search import DomainFilter
from interlingua.gateway.state import GatewayState
from interlingua.gateway.upstream.http_client import headers_for, read_full_body, send_request
from interlingua.gateway.upstream.secret_filter import SecretFilter
from interlingua.translation.upstream_errors import UpstreamFailed
from interlingua.wires import get_wire

__all__ = ["PageReferences", "SearchEndpoint"]

T = TypeVar("T")

MAX_COMMANDS = 16
"""Commands of one request that are run."""
MAX_FOUND_LINES = 30
MAX_RESULT_SNIPPET_CHARS = 300
CHARS_PER_TOKEN = 4
MAX_OUTPUT_CHARS = 200_000
MAX_FORWARDED_BYTES = 4 * 1024 * 1024
FORWARD_TIMEOUT_SECONDS = 120.0
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
    search_context_size: str | None = None
    user_location: dict[str, Any] | None = None


class SearchRequest(msgspec.Struct, frozen=True):
    """Fields of a request that have a type."""

    commands: dict[str, Any] | None = None
    settings: SessionSettings | None = None
    max_output_tokens: Annotated[int, msgspec.Meta(ge=1)] | None = None


class CommandOutcome(msgspec.Struct, frozen=True):
    """Outcome of a command: a text for the model, and the pages that it is about."""

    text: str
    pages: list[Page] = []


class SearchEndpoint:
    """Handler of the endpoint for clients of one wire."""

    def __init__(self, gateway: GatewayState, wire: str) -> None:
        self._gateway = gateway
        self._wire = wire

    async def handle(self, request: web.Request) -> web.StreamResponse:
        config, work_threads = self._gateway.config, self._gateway.work_threads
        config.authenticator.check_origin(request.headers)
        client_id = config.authenticator.check_key(request.headers)
        limited_client, limits = client_id if config.settings.keys else "", config.settings.limits
        counted_request = self._gateway.client_limiter.begin(limited_client, config.settings.client_limits)
        try:
            with closing(self._gateway.memory_budget.open_share()) as memory:
                data = await read_body(request, limits, memory)
                memory.resize(await work_threads.run(client_id, len(data), decoded_size, data))
                body = await work_threads.run(client_id, len(data), decode_body, data, limits)
                route = self._upstream_with_search(body.get("model"))
                if route is not None:
                    if route.model != body["model"]:
                        data = await work_threads.run(client_id, len(data), encode_json, {**body, "model": route.model})
                    reply = await self._forward(data, route, request)
                else:
                    references = PageReferences(config.seal_key_for(client_id))
                    reply = encode_json(await self._run(body, references))
        finally:
            if counted_request is not None:
                counted_request.end(tokens=0)
        return web.Response(body=reply, content_type="application/json")

    def _upstream_with_search(self, model: Any) -> Route | None:
        """Return the route to an upstream that searches itself; None if the gateway searches."""
        config = self._gateway.config
        if config.settings.web_search.engine != "off" or not isinstance(model, str):
            return None
        route = config.routes.find(model)[0]
        return route if route.upstream.api == self._wire and runs_web_search(self._wire, route.profile) else None

    async def _forward(self, body: bytes, route: Route, request: web.Request) -> bytes:
        """Send the request to an upstream, and return its reply. Raises UpstreamFailed."""
        session, key = self._gateway.session, self._gateway.config.authenticator.passthrough_key(request.headers)
        assert session is not None, "the session is opened before the gateway listens"
        api = get_wire(self._wire).HTTP_API
        url = URL(api.base_url(route.upstream.url) + api.search_path, encoded=True)
        headers = headers_for(route, self._wire, request.headers, key, stream=False)
        try:
            async with asyncio.timeout(FORWARD_TIMEOUT_SECONDS):
                async with await send_request(session, route, url, body, headers) as response:
                    reply = await read_full_body(response, MAX_FORWARDED_BYTES)
        except TimeoutError:
            raise UpstreamFailed(
                f"{route.name}: the search took longer than {FORWARD_TIMEOUT_SECONDS:g} s", 504
            ) from None
        except UpstreamFailed as error:
            redactor = self._gateway.config.redactor.with_credentials(request.headers)
            error.args, error.code = (redactor.redact_text(str(error)),), redactor.redact_text(error.code)
            raise
        secret_filter = SecretFilter(route.upstream)
        return secret_filter.feed(reply) + secret_filter.flush()

    async def _run(self, body: Json, references: PageReferences) -> Json:
        request = _read(body, SearchRequest)
        runner = _CommandRunner(self._web_access(body), body, references)
        outcomes = await asyncio.gather(*runner.start(request.commands or {}))
        text = "\n\n".join(outcome.text for outcome in outcomes) or "[no command]"
        max_chars = CHARS_PER_TOKEN * (request.max_output_tokens or MAX_OUTPUT_CHARS)
        results = [_result_object(page, references) for outcome in outcomes for page in outcome.pages]
        return {"encrypted_output": None, "output": text[: min(max_chars, MAX_OUTPUT_CHARS)], "results": results}

    def _web_access(self, body: Json) -> WebAccess:
        settings, log = self._gateway.config.settings, self._gateway.log
        given = body.get("input")
        user_messages = [item for item in map(as_dict, as_list(given)) if item.get("role") == "user"]
        return WebAccess(
            self._gateway.search_engine(settings.web_search),
            settings.web_search.results,
            settings.web_fetch,
            lambda problem: log.error("web search failed", problem=problem),
            lambda: given if isinstance(given, str) else user_messages,
        )


class _CommandRunner:
    """Runs the commands of one request.

    Args:
        access: Access to the web.
        body: The request.
        references: References to pages.
    """

    def __init__(self, access: WebAccess, body: Json, references: PageReferences) -> None:
        self._access = access
        self._references = references
        settings = as_dict(body.get("settings"))
        self._settings = settings
        self._filters = as_dict(settings.get("filters"))
        self._may_open = settings.get("external_web_access") is not False

    def start(self, commands: Json) -> list[Awaitable[CommandOutcome]]:
        """Return the outcomes of all commands, in the order of the request.

        Raises:
            BadRequest: A command has a field of a wrong type.
        """
        pending = [start for name, operations in commands.items() for start in self._read_command(name, operations)]
        started = [start() for start in pending[:MAX_COMMANDS]]
        if left_out := len(pending) - len(started):
            started.append(_state(MORE_COMMANDS.format(left_out, MAX_COMMANDS)))
        return started

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
                return [partial(_tell_time, zone) for zone in _read_list(operations, TimeZone, path)]
            case _:
                return [partial(_state, f"[{name} is not available on this server]")] * len(as_list(operations))

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
        return url, await self._access.fetch_tool("open", {"filters": self._filters}, 0, 0).run({"url": url})


def _numbered_lines(page: Page) -> list[tuple[int, str]]:
    return list(enumerate(page.text.splitlines(), 1))


def _without_text(page: Page) -> Page:
    return msgspec.structs.replace(page, text="")


def _describe_error(command: str, error: str) -> str:
    explanation = f"{UNAVAILABLE}: this server has no access to the web" if error == UNAVAILABLE else error
    return f"[{command} failed: {explanation}]"


async def _state(text: str) -> CommandOutcome:
    return CommandOutcome(text)


async def _tell_time(zone: TimeZone) -> CommandOutcome:
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


def _result_object(page: Page, references: PageReferences) -> dict[str, Any]:
    fields = {"ref_id": references.write(page.url), "url": page.url, "title": page.title}
    return {"type": "text_result", **fields, "snippet": page.text[:MAX_RESULT_SNIPPET_CHARS]}
