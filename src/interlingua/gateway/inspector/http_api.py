"""HTTP API of the inspector: the page's files, lists and analyses as JSON, live changes as server-sent events."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Iterator
from importlib import resources
from typing import Any, TypeVar

import msgspec
from aiohttp import web

from interlingua.captures.capture_replay import NoReply
from interlingua.errors import BadRequest, InterlinguaError
from interlingua.gateway.inspector.analyses import Analyses
from interlingua.gateway.inspector.exchange_export import EXPORTS, export_exchange
from interlingua.gateway.inspector.exchange_source import ExchangeSource
from interlingua.inspection.what_if import Changes

__all__ = ["BASE_PATH", "PAGE_HEADERS", "Handler", "make_inspector_app"]

BASE_PATH = "/inspector"
CONTENT_SECURITY_POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; connect-src 'self'; "
    "base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
)
"""The page runs its own scripts only, loads nothing from elsewhere, and is not shown inside another page. Images of
conversations are `data:` URLs."""
PAGE_HEADERS = {
    "content-security-policy": CONTENT_SECURITY_POLICY,
    "x-content-type-options": "nosniff",
    "referrer-policy": "no-referrer",
    "cross-origin-opener-policy": "same-origin",
    "cross-origin-resource-policy": "same-origin",
    "cache-control": "no-store",
}
PAGE_TYPES = {".html": "text/html", ".css": "text/css", ".js": "text/javascript", ".svg": "image/svg+xml"}
PROBLEM_HEADER = "x-inspector-problem"
"""Header of responses that have a problem instead of data."""
MIN_UPDATE_SECONDS = 0.25
"""Shortest time between two messages with changes: a page has no use for more."""
DEFAULT_GATEWAY_URL = "http://127.0.0.1:8484"
"""URL in commands of captures whose gateway is not known."""
MAX_SEARCH_CHARS = 500
MAX_CONCURRENT_ANALYSES = 4

Handler = Callable[[web.Request], Awaitable[web.StreamResponse]]
T = TypeVar("T")


def make_inspector_app(
    source: ExchangeSource, analyses: Analyses, guard: Callable[[web.Request], None] | None = None
) -> web.Application:
    """Return the application.

    Args:
        source: The exchanges.
        analyses: Their analyses.
        guard: Raises InterlinguaError for a request that is not allowed. None: the caller has checked it.
    """
    endpoints = _Endpoints(source, analyses)
    app = web.Application()
    app.on_response_prepare.append(_set_headers)

    def add(path: str, handler: Handler, check: Callable[[web.Request], None] | None = guard) -> None:
        app.router.add_get(BASE_PATH + path, _report_errors(handler, check))

    add("", endpoints.redirect)
    add("/", endpoints.page)
    add("/page/{file:(?:lib/|views/)?[a-z_]+\\.(?:css|js|svg)}", endpoints.page_file)
    add("/api/info", endpoints.info)
    add("/api/exchanges", endpoints.exchanges)
    add("/api/search", endpoints.search)
    add("/api/changes", endpoints.changes)
    add("/api/sessions", endpoints.sessions)
    add("/api/numbers", endpoints.numbers)
    add("/api/exchanges/{id}", endpoints.detail)
    add("/api/exchanges/{id}/reply", endpoints.reply)
    add("/api/exchanges/{id}/request", endpoints.request)
    add("/api/exchanges/{id}/cache", endpoints.cache)
    add("/api/exchanges/{id}/thread-cache", endpoints.thread_cache)
    add("/api/exchanges/{id}/waterfall", endpoints.waterfall)
    add("/api/exchanges/{id}/what-if", endpoints.what_if)
    add("/api/exchanges/{id}/export/{format}", endpoints.export)
    return app


async def _set_headers(_: web.Request, response: web.StreamResponse) -> None:
    response.headers.update(PAGE_HEADERS)


def _report_errors(handler: Handler, guard: Callable[[web.Request], None] | None) -> Handler:
    """Wrap a handler so that its errors become JSON."""

    async def handle(request: web.Request) -> web.StreamResponse:
        try:
            if guard is not None:
                guard(request)
            return await handler(request)
        except InterlinguaError as error:
            body = {"error": str(error), "hint": error.hint}
            # A request that never got a reply is no failure of this API: browsers would report the status as an error.
            status = 200 if isinstance(error, NoReply) else getattr(error, "status", 400)
            response = _json_response(msgspec.json.encode(body), status)
            response.headers[PROBLEM_HEADER] = "true"
            return response
        except ConnectionError:  # the page is gone
            return web.Response()

    return handle


class _Endpoints:
    """Handlers of one application. Analyses run in threads, so that the feed of the workers is read meanwhile."""

    def __init__(self, source: ExchangeSource, analyses: Analyses) -> None:
        self._source = source
        self._analyses = analyses
        self._slots = asyncio.Semaphore(MAX_CONCURRENT_ANALYSES)

    async def _run(self, function: Callable[..., T], *args: Any) -> T:
        async with self._slots:
            return await asyncio.to_thread(function, *args)

    async def _encoded(self, function: Callable[..., Any], *args: Any) -> web.Response:
        """Return the result of a function as JSON."""
        return _json_response(await self._run(lambda: _encode_json(function(*args))))

    # ── the page ──────────────────────────────────────────────────────────────────────────────────────────────────────

    async def redirect(self, _: web.Request) -> web.Response:
        return web.Response(status=308, headers={"location": f"{BASE_PATH}/"})

    async def page(self, _: web.Request) -> web.Response:
        return await self._file("index.html")

    async def page_file(self, request: web.Request) -> web.Response:
        return await self._file(request.match_info["file"])

    async def _file(self, name: str) -> web.Response:
        file = resources.files("interlingua.gateway.inspector") / "page" / name
        if not file.is_file():
            return web.Response(status=404, text="no such file\n")
        suffix = name[name.rindex(".") :]
        return web.Response(body=file.read_bytes(), content_type=PAGE_TYPES[suffix], charset="utf-8")

    # ── lists ─────────────────────────────────────────────────────────────────────────────────────────────────────────

    async def info(self, _: web.Request) -> web.Response:
        return await self._encoded(self._analyses.info)

    async def exchanges(self, _: web.Request) -> web.Response:
        version = self._source.changes.version
        summaries = await self._run(self._analyses.list_summaries)
        listed = {"version": version, "exchanges": summaries, "problems": self._analyses.problems}
        return _json_response(_encode_json(listed))

    async def search(self, request: web.Request) -> web.Response:
        """Search all exchanges, or those that have changed since the version `since`."""
        text = request.query.get("text", "")[:MAX_SEARCH_CHARS]
        since = request.query.get("since", "")
        ids = self._source.changes.since(_read_number(since))[0] if since else None
        return await self._encoded(self._analyses.search, text, ids)

    async def sessions(self, _: web.Request) -> web.Response:
        return await self._encoded(self._analyses.list_sessions)

    async def numbers(self, request: web.Request) -> web.Response:
        names = ("model", "upstream_model", "upstream", "client", "key", "status", "outcome", "finding")
        filters = {name: request.query[name] for name in names if request.query.get(name)}
        return await self._encoded(self._analyses.numbers, filters)

    async def changes(self, request: web.Request) -> web.StreamResponse:
        """Send changes as server-sent events. A page that reads slowly gets fewer of them, and slows nothing down."""
        version = _read_number(request.query.get("version", "0"))
        response = web.StreamResponse(headers={"content-type": "text/event-stream"})
        await response.prepare(request)
        log = self._source.changes
        await response.write(b": connected\n\n")
        while True:
            await log.wait(version)
            changed, removed = log.since(version)
            is_new, version = log.version > version, log.version
            summaries = await self._run(self._analyses.summaries_of, changed)
            problems = self._analyses.problems
            change = {"version": version, "changed": summaries, "removed": removed, "problems": problems}
            await response.write(b"data: " + _encode_json(change) + b"\n\n" if is_new else b": waiting\n\n")
            await asyncio.sleep(MIN_UPDATE_SECONDS)

    # ── one exchange ──────────────────────────────────────────────────────────────────────────────────────────────────

    async def detail(self, request: web.Request) -> web.Response:
        return await self._encoded(self._analyses.detail, request.match_info["id"])

    async def request(self, request: web.Request) -> web.Response:
        return await self._encoded(self._analyses.request, request.match_info["id"])

    async def cache(self, request: web.Request) -> web.Response:
        return await self._encoded(self._analyses.cache, request.match_info["id"])

    async def thread_cache(self, request: web.Request) -> web.Response:
        return await self._encoded(self._analyses.thread_cache, request.match_info["id"])

    async def waterfall(self, request: web.Request) -> web.Response:
        return await self._encoded(self._analyses.waterfall, request.match_info["id"])

    async def what_if(self, request: web.Request) -> web.Response:
        return await self._encoded(self._analyses.what_if, request.match_info["id"], _read_changes(request))

    async def reply(self, request: web.Request) -> web.StreamResponse:
        """Send the timeline line by line, as it is computed."""
        lines = self._analyses.reply(request.match_info["id"], _read_changes(request))
        first = await self._run(next, lines)  # raises if there is no reply
        response = web.StreamResponse(headers={"content-type": "application/x-ndjson"})
        await response.prepare(request)
        await response.write(first)
        while block := await self._run(_take_lines, lines):
            await response.write(block)
        await response.write_eof()
        return response

    async def export(self, request: web.Request) -> web.Response:
        format = request.match_info["format"]
        if format not in EXPORTS:
            raise BadRequest("format", f"should be one of {', '.join(EXPORTS)}", "")
        base_url = f"{request.scheme}://{request.host}" if self._source.is_live else DEFAULT_GATEWAY_URL
        export = await self._run(
            export_exchange, self._analyses, request.match_info["id"], format, dict(request.query), base_url
        )
        headers = {"content-disposition": f'attachment; filename="{export.file_name}"'}
        return web.Response(body=export.data, content_type=export.content_type, charset="utf-8", headers=headers)


def _take_lines(lines: Iterator[bytes], max_bytes: int = 256 * 1024) -> bytes:
    """Return the next lines as one block; b"" at the end."""
    block: list[bytes] = []
    size = 0
    for line in lines:
        block.append(line)
        size += len(line)
        if size >= max_bytes:
            break
    return b"".join(block)


def _read_changes(request: web.Request) -> Changes:
    """Return the changes in the query of a request. Raises BadRequest."""
    names = Changes.__struct_fields__
    fields = {name: value for name, value in request.query.items() if name in names and (value or name == "prefill")}
    try:
        return msgspec.convert(fields, Changes)
    except msgspec.ValidationError as error:
        raise BadRequest("query", str(error), "see the options under “What if”") from None


def _read_number(text: str) -> int:
    return int(text) if text.isascii() and text.isdigit() and len(text) < 16 else 0


def _encode_json(value: Any) -> bytes:
    return msgspec.json.encode(value)


def _json_response(body: bytes, status: int = 200) -> web.Response:
    return web.Response(status=status, body=body, content_type="application/json", charset="utf-8")
