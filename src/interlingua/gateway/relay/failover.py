"""From a client's request to an upstream that has begun to answer: whom to ask, how often, and when to give up.

Until the first word of a reply has gone to the client, nothing is decided: an upstream that fails is asked again, or
another one in its place. Behind that word, never: the client would hear it twice.
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from typing import Any

import aiohttp
import msgspec

from interlingua.common.jsontext.codec import read_full_object
from interlingua.errors import InterlinguaError
from interlingua.events import Finding
from interlingua.gateway.http.deadline import DeadlineExceeded, MovingDeadline
from interlingua.gateway.observability.exchange_record import ExchangeRecord
from interlingua.gateway.observability.traffic_observers import TrafficObserver
from interlingua.gateway.relay.upstream_request import (
    ClientRequest,
    UpstreamRequest,
    prepare_upstream_request,
    translator_for,
)
from interlingua.gateway.routing.routes import Route
from interlingua.gateway.settings.schema import Settings
from interlingua.gateway.tokens.calibration import EstimateCalibration
from interlingua.gateway.upstream.errors import UpstreamFailed, error_from_failure
from interlingua.gateway.upstream.http_client import (
    connection_lost,
    endpoint_url,
    headers_for,
    is_stream,
    read_full_body,
    send_request,
)
from interlingua.gateway.upstream.retry_policy import RetryPolicies, backoff
from interlingua.translation.translator import Translator

__all__ = ["UpstreamFailover", "UpstreamReply"]

MAX_PEEK_BYTES = 256 * 1024
"""How much of a stream is held back while it has said nothing yet."""
WHITESPACE_AND_BOM = b" \t\r\n\xef\xbb\xbf"
CALL_WITHHELD, EMPTY_TURN = "call-withheld", "empty-turn"
"""Found where something is missing that another attempt may bring."""


class UpstreamReply(msgspec.Struct):
    """An upstream's reply that has begun. `first` is what the client is to be told already."""

    route: Route
    response: aiohttp.ClientResponse
    translator: Translator
    initial_data: bytes
    body: dict[str, Any] | None = None


class UpstreamFailover:
    """Asks the upstreams of one exchange in turn."""

    def __init__(
        self,
        session: aiohttp.ClientSession,
        settings: Settings,
        client_request: ClientRequest,
        exchange: ExchangeRecord,
        observer: TrafficObserver | None,
        extra_headers: Mapping[str, str],
        calibration: EstimateCalibration,
        retry_policies: RetryPolicies,
    ) -> None:
        self._session = session
        self._settings = settings
        self._client_request = client_request
        self._exchange = exchange
        self._observer = observer
        self._extra_headers = extra_headers  # headers for whoever is asked
        self._calibration = calibration
        self._retry_policies = retry_policies
        self._repeats_left = 1  # how often what was lost may be asked for again

    async def open_reply(self, routes: list[Route]) -> UpstreamReply:
        """The first upstream that begins to answer. Raises what the last one failed with.

        The question is asked but once: its body, which may be long, is not kept for as long as a stream lasts.
        """
        try:
            return await self._try_routes(routes)
        finally:
            self._client_request.body.clear()

    async def _try_routes(self, routes: list[Route]) -> UpstreamReply:
        last_error: UpstreamFailed | None = None
        for index, route in enumerate(routes):
            try:
                upstream_request = prepare_upstream_request(
                    self._client_request, route, self._settings, self._calibration, self._exchange
                )
            except InterlinguaError:
                if last_error is None:
                    raise
                continue  # what the first could be asked, this one cannot
            try:
                return await self._send_with_retries(upstream_request, is_last_route=index + 1 == len(routes))
            except UpstreamFailed as error:
                last_error = error
                if not error.failover and error.upstream_status not in route.fallback_on:
                    raise
                if index + 1 < len(routes):
                    self._report("asked-again", f"{error}: {routes[index + 1].name} is asked in its place")
        assert last_error is not None, "there is always a route"
        raise last_error

    async def _send_with_retries(self, upstream_request: UpstreamRequest, *, is_last_route: bool) -> UpstreamReply:
        route, retries = upstream_request.route, upstream_request.route.upstream.retries
        retry_policy = self._retry_policies.for_route(route)
        self._record_route(route)
        retry_policy.start_request()
        for attempt in range(1, retries.attempts + 1):
            is_last_attempt = attempt == retries.attempts or not retry_policy.has_retry
            try:
                reply = await self._send_once(upstream_request, is_last=is_last_route and is_last_attempt)
            except UpstreamFailed as error:
                retry_policy.record_failure(error)
                delay = backoff(retries, attempt, error)
                if delay is None:
                    raise
                if not retry_policy.acquire_retry():
                    self._report("not-asked-again", f"{error}: {route.name} fails too often to be asked again")
                    raise
                await asyncio.sleep(delay)
                if retry_policy.acquire_probe():  # others have found meanwhile that it answers nobody
                    self._report("not-asked-again", f"{error}: {route.model} of {route.name} is left alone")
                    raise
                self._report("asked-again", f"{error}: {route.name} is asked again")
            else:
                retry_policy.record_success()
                return reply
        raise AssertionError("the last attempt returns or raises")

    def _record_route(self, route: Route) -> None:
        """Who is asked now."""
        exchange = self._exchange
        exchange.upstream, exchange.upstream_wire, exchange.upstream_model = route.name, route.upstream.api, route.model
        exchange.dialect, exchange.upstream_status = route.dialect_name, 0

    async def _send_once(self, upstream_request: UpstreamRequest, *, is_last: bool) -> UpstreamReply:
        exchange, route, timeouts = self._exchange, upstream_request.route, upstream_request.route.timeouts
        exchange.attempts += 1
        exchange.upstream_status = 0
        try:
            with MovingDeadline() as deadline:
                stream = self._client_request.stream
                operation, seconds = ("first word", timeouts.first_event) if stream else ("reply", timeouts.total)
                deadline.set_timeout(f"its {operation}", seconds)
                reply = await self._post(upstream_request)
                await self._read_start(reply, deadline, is_last)
        except DeadlineExceeded as error:
            raise UpstreamFailed(f"{route.name}: {error}", 504) from error
        except UpstreamFailed as error:
            exchange.upstream_status = error.upstream_status or exchange.upstream_status
            error.args = (f"{route.name}: {error}",)
            raise
        exchange.findings += upstream_request.findings
        return reply

    async def _post(self, upstream_request: UpstreamRequest) -> UpstreamReply:
        client_request, route, body = self._client_request, upstream_request.route, upstream_request.body
        url = endpoint_url(route.upstream, client_request.wire, client_request.query)
        headers = headers_for(
            route, client_request.wire, client_request.headers, client_request.passthrough_key, client_request.stream
        )
        headers |= self._extra_headers
        if self._observer:
            self._observer.on_upstream_request(str(url), headers, body)
        response = await send_request(self._session, route, url, body, headers)
        self._exchange.upstream_status = response.status
        return UpstreamReply(route, response, translator_for(client_request, upstream_request, self._settings), b"")

    # ── the beginning of an answer ────────────────────────────────────────────────────────────────────────────────

    async def _read_start(self, reply: UpstreamReply, deadline: MovingDeadline, is_last: bool) -> None:
        """Reads the answer up to its first word, or all of it if the client wants it whole."""
        try:
            await (self._peek(reply, deadline) if self._client_request.stream else self._read_complete(reply))
            stats = reply.translator.tally
            if stats.failure is not None and not (self._client_request.stream and stats.has_content):
                raise error_from_failure(stats.failure)
            if not is_last and self._repeats_left and (problem := self._retryable_problem(reply)):
                self._repeats_left -= 1
                raise UpstreamFailed(problem)
        except BaseException:
            reply.response.close()
            raise

    async def _peek(self, reply: UpstreamReply, deadline: MovingDeadline) -> None:
        """Where calls go out whole, or no thinking does, it may be long until there is a word for the client."""
        translator, stats = reply.translator, reply.translator.tally
        if not is_stream(reply.response):
            await self._peek_untyped(reply)
        while not stats.has_content and not translator.ended and len(reply.initial_data) < MAX_PEEK_BYTES:
            data = await self.read_chunk(reply)
            reply.initial_data += translator.feed(data) if data else translator.close()
            if translator.begun:
                deadline.set_timeout("its next word", reply.route.timeouts.idle)

    async def _peek_untyped(self, reply: UpstreamReply) -> None:
        """Some servers send a whole reply where a stream was asked for, and some call a stream something else."""
        data = await self.read_chunk(reply)
        while data.isspace():  # sent so that nobody takes the line for dead
            data = await self.read_chunk(reply)
        if data.lstrip(WHITESPACE_AND_BOM)[:1] not in (b"{", b"[", b"<"):
            reply.initial_data += reply.translator.feed(data) if data else reply.translator.close()
            return
        remainder = await read_full_body(reply.response, self._settings.limits.reply)
        self._record_received(remainder)
        body = _decode_reply(data + remainder)
        self._report("whole-reply", "a whole reply where a stream was asked for: told as a stream")
        reply.initial_data += reply.translator.stream(body)

    async def _read_complete(self, reply: UpstreamReply) -> None:
        data = await read_full_body(reply.response, self._settings.limits.reply)
        self._record_received(data)
        if is_stream(reply.response) or data.lstrip(WHITESPACE_AND_BOM).startswith((b"data:", b"event:", b":")):
            self._report("streamed-reply", "a stream where a whole reply was asked for: put together")
            reply.body = reply.translator.fold(data)
        else:
            reply.body = reply.translator.reply(_decode_reply(data))

    async def read_chunk(self, reply: UpstreamReply) -> bytes:
        """What has come since; nothing at the end."""
        try:
            data = await reply.response.content.readany()
        except (aiohttp.ClientError, OSError) as error:
            raise connection_lost(error) from error
        self._record_received(data)
        return data

    def _record_received(self, data: bytes) -> None:
        self._exchange.reads += 1
        self._exchange.bytes_in += len(data)
        if self._observer:
            self._observer.on_received(data)

    def _retryable_problem(self, reply: UpstreamReply) -> str:
        """What another attempt may bring, in a reply of which nothing has gone out yet; "": all is well."""
        translator, route = reply.translator, reply.route
        if self._client_request.stream and not translator.ended:
            return ""
        kinds = {finding.kind for finding in translator.findings}
        if route.delivery == "whole" and CALL_WITHHELD in kinds:
            return "it sent a call that is cut or not valid"
        return "it sent neither a text nor a call" if route.empty == "retry" and EMPTY_TURN in kinds else ""

    def _report(self, finding_kind: str, message: str) -> None:
        self._exchange.findings.append(Finding(finding_kind, message))


def _decode_reply(data: bytes) -> dict[str, Any]:
    body = read_full_object(data.decode("utf-8-sig", "replace"))
    if body is None:
        raise UpstreamFailed(f"what it sent is no reply: {data[:200].decode('utf-8', 'replace')!r}")
    return body
