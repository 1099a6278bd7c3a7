"""Retries and failover: send a client request to upstreams until one of them starts a reply.

Until the first content of a reply is sent to the client, a failed request can be retried or sent to another upstream.
After that it never is: the client would receive the beginning of the reply twice.
"""

from __future__ import annotations

import asyncio
from contextlib import suppress

import aiohttp
import msgspec
from aiohttp.hdrs import CONTENT_TYPE

from interlingua.errors import InterlinguaError, UpstreamError
from interlingua.events import Finding
from interlingua.gateway.aiohttp_internals import release_metadata, replace_queues, take_before_error
from interlingua.gateway.http.deadline import DeadlineExceeded, MovingDeadline
from interlingua.gateway.http.error_responses import TooLarge, returned_headers
from interlingua.gateway.http.memory_budget import COPIES, MemoryShare, decoded_size
from interlingua.gateway.observability.exchange_record import ExchangeRecord, FailedAttempt
from interlingua.gateway.observability.failing_models import CIRCUIT_OPEN, FailingModels
from interlingua.gateway.observability.traffic_observers import TrafficObserver
from interlingua.gateway.relay.upstream_request import ClientRequest, RequestPreparation, UpstreamRequest
from interlingua.gateway.routing.routes import Route
from interlingua.gateway.settings.redaction import Redactor
from interlingua.gateway.settings.schema import Settings
from interlingua.gateway.token_calibration import EstimateCalibration
from interlingua.gateway.upstream.capabilities import CapabilityMemory, corrected_route
from interlingua.gateway.upstream.http_client import (
    broken_reply,
    endpoint_url,
    headers_for,
    send_request,
)
from interlingua.gateway.upstream.retry_policy import RetryPolicies, backoff
from interlingua.gateway.upstream.secret_filter import SecretFilter
from interlingua.gateway.upstream.server_probe import ServerProbes
from interlingua.gateway.work_threads import MAX_UNQUEUED_BYTES, WorkThreads
from interlingua.translation.exchange import ReplyReceiver
from interlingua.translation.request_cache import RequestCache
from interlingua.translation.translator import Translator
from interlingua.translation.upstream_errors import UpstreamFailed, error_from_failure
from interlingua.upstreams.refusals import Refusal, RefusalKind, recognize_refusal

__all__ = ["UpstreamAccess", "UpstreamFailover", "UpstreamReply", "carried_over_bytes"]

MAX_PEEK_BYTES = 256 * 1024
"""Maximum number of bytes buffered for the client while a stream has no content yet."""
LONG_REPLY_BYTES = 128 * 1024
"""Size of the text of a reply from which on the end of a part of it, which some wires repeat, is not short work."""
TIMEOUT_STATUS = 504
BROKEN_STREAM = "stream"
"""Kind of a failed attempt whose reply broke off or is not complete."""
CALL_WITHHELD, EMPTY_TURN = "call-withheld", "empty-turn"
"""Kinds of findings for incomplete replies that a retry may complete."""


class MalformedCall(Exception):
    """A call that the model has written wrong, before anything was sent to the client.

    It is no failure of the upstream, so neither another upstream nor the circuit breaker would help.
    """


class UpstreamAccess(msgspec.Struct, frozen=True):
    """Session, settings and policies that all requests of a gateway share to reach upstreams."""

    session: aiohttp.ClientSession
    settings: Settings
    calibration: EstimateCalibration
    retry_policies: RetryPolicies
    failing_models: FailingModels
    redactor: Redactor
    capabilities: CapabilityMemory
    server_probes: ServerProbes
    work_threads: WorkThreads
    request_cache: RequestCache


class UpstreamReply(msgspec.Struct):
    """Reply of an upstream that has started."""

    route: Route
    response: aiohttp.ClientResponse
    receiver: ReplyReceiver
    secret_filter: SecretFilter
    returned_headers: dict[str, str]
    """Headers of the response that the client gets."""
    content_type: str = ""
    input_tokens: int = 0
    """Estimated input tokens that are reported to the client."""
    initial_data: bytes = b""
    """Translated data to send to the client first: the beginning of a stream, or a whole reply."""
    unsent: bytes = b""
    """Translated data that must be redacted before it is sent: an error of the upstream in the middle of a stream."""

    @property
    def translator(self) -> Translator:
        return self.receiver.translator

    def take_unsent(self) -> bytes:
        data, self.unsent = self.unsent, b""
        return data

    def discard(self) -> None:
        """Close the connection of a reply whose rest is not needed, and free its memory."""
        self.response.close()
        self.translator.release()


class UpstreamFailover:
    """Sends the request of one exchange to its upstreams in turn."""

    __slots__ = (
        "_calibration",
        "_capabilities",
        "_client_request",
        "_failing_models",
        "_incomplete_retries_left",
        "_memory",
        "_observer",
        "_record",
        "_redactor",
        "_request_cache",
        "_retry_policies",
        "_server_probes",
        "_session",
        "_settings",
        "_work_threads",
    )

    def __init__(
        self,
        access: UpstreamAccess,
        client_request: ClientRequest,
        record: ExchangeRecord,
        observer: TrafficObserver | None,
        memory: MemoryShare,
    ) -> None:
        self._session = access.session
        self._settings = access.settings
        self._calibration = access.calibration
        self._retry_policies = access.retry_policies
        self._failing_models = access.failing_models
        self._redactor = access.redactor
        self._capabilities = access.capabilities
        self._server_probes = access.server_probes
        self._work_threads = access.work_threads
        self._request_cache = access.request_cache
        self._client_request = client_request
        self._record = record
        self._observer = observer
        self._memory = memory
        self._incomplete_retries_left = 1  # retries left for incomplete replies

    async def open_reply(self, routes: list[Route]) -> UpstreamReply:
        """Return the reply of the first upstream that starts one. Raises the error of the last upstream otherwise.

        Can be called once: the request body, which may be large, is released afterwards and not kept while the reply
        is streamed.
        """
        try:
            return await self._try_routes(routes)
        finally:
            self._client_request.body.clear()

    async def _try_routes(self, routes: list[Route]) -> UpstreamReply:
        """Try the routes in order. No error is kept in a variable: its traceback would keep this frame in a cycle."""
        remaining = list(routes)
        upstream_request = await self._prepare(remaining.pop(0))
        while True:
            try:
                return await self._send_with_retries(upstream_request, is_last_route=not remaining)
            except UpstreamFailed as error:
                if not error.failover and error.upstream_status not in upstream_request.route.fallback_on:
                    raise
                next_request = await self._prepare_next(remaining)
                if next_request is None:
                    raise
                self._report("asked-again", f"{error}; failing over to {next_request.route.name}")
                upstream_request = next_request

    async def _prepare(self, route: Route) -> UpstreamRequest:
        """Translate the request for this upstream, with what is known about its model.

        Raises:
            InterlinguaError: The request cannot be translated.
        """
        client_request = self._client_request
        described = await self._server_probes.describe(
            self._session, route, client_request.headers, client_request.passthrough_key
        )
        return await self._translate_request(self._capabilities.apply(described, client_request.client_id))

    async def _translate_request(self, route: Route) -> UpstreamRequest:
        client_request = self._client_request
        preparation = RequestPreparation(
            client_request, route, self._settings, self._calibration, self._record, self._request_cache
        )
        upstream_request = await self._continue_earlier(preparation)
        if upstream_request is None:
            client_id, size = client_request.client_id, client_request.body_size
            await client_request.body.decode_in_thread(client_id, self._work_threads, self._memory)
            upstream_request = await self._work_threads.run(client_id, size, preparation.run_whole)
        if tokens := upstream_request.truncated_tokens:
            message = f"about {tokens} tokens for a context of {route.window}: {route.name} removes the beginning"
            self._report("prompt-truncated", message)
            self._capabilities.report_truncation(route)
        # It can be larger than the client's, because sealed thinking is unpacked.
        self._memory.resize(max(self._memory.size, 2 * len(upstream_request.exchange.body)))
        return upstream_request

    async def _continue_earlier(self, preparation: RequestPreparation) -> UpstreamRequest | None:
        """Translate a request with the help of earlier ones. None if it has to be translated as a whole."""
        client_id, body_size = self._client_request.client_id, self._client_request.body_size
        translation = await self._work_threads.scan(client_id, body_size, preparation.plan)
        if translation is None:
            return None
        new_json = translation.new_json
        if translation.max_value_count > self._settings.limits.values:
            await self._work_threads.scan(client_id, body_size, self._client_request.body.check_value_count)
        new_size = await self._work_threads.run(client_id, len(new_json), decoded_size, new_json)
        known_bytes = body_size - len(new_json)
        self._memory.resize(max(self._memory.size, COPIES * known_bytes + new_size))
        return await self._work_threads.run(client_id, len(new_json), preparation.run, translation)

    async def _prepare_next(self, remaining: list[Route]) -> UpstreamRequest | None:
        """Return the request for the next route that it can be translated for; None if there is none."""
        while remaining:
            with suppress(InterlinguaError):
                return await self._prepare(remaining.pop(0))
        return None

    async def _send_with_retries(self, upstream_request: UpstreamRequest, *, is_last_route: bool) -> UpstreamReply:
        route, retries = upstream_request.route, upstream_request.route.upstream.retries
        retry_policy = self._retry_policies.for_route(route, self._client_request.client_id)
        self._record_route(route)
        try:
            retry_policy.start_request()
        except UpstreamFailed as error:
            self._record_failure(route, CIRCUIT_OPEN, str(error))
            raise
        for attempt in range(1, retries.attempts + 1):
            is_last_attempt = attempt == retries.attempts or not retry_policy.has_retry
            try:
                reply = await self._send_corrected(upstream_request, is_last=is_last_route and is_last_attempt)
            except UpstreamFailed as error:
                retry_policy.record_failure(error)
                self._record_failure(route, _failure_kind(error, self._record.upstream_status), str(error))
                delay = backoff(retries, attempt, error)
                if delay is None:
                    raise
                if not retry_policy.acquire_retry():
                    self._report("not-asked-again", f"{error}; no retry: the retry budget of {route.name} is used up")
                    raise
                await asyncio.sleep(delay)
                if retry_policy.acquire_probe():  # failures of other requests have opened the circuit meanwhile
                    message = f"{error}; no retry: the circuit breaker of {route.model} at {route.name} is open"
                    self._report("not-asked-again", message)
                    raise
                self._report("asked-again", f"{error}; retrying {route.name}")
            else:
                retry_policy.record_success()
                return reply
        raise AssertionError("the last attempt returns or raises")

    async def _send_corrected(self, upstream_request: UpstreamRequest, *, is_last: bool) -> UpstreamReply:
        """Send the request. If the upstream refuses something that the request can do without, send it without that.
        If the model writes a call wrong, send the request again and constrain the model.

        Each kind of refusal is corrected once per request, and so is a malformed call. They are no failures of the
        upstream, so they count neither for the circuit breaker nor for the retry budget.
        """
        corrected_kinds: set[RefusalKind] = set()
        while True:
            try:
                return await self._send_once(upstream_request, is_last=is_last)
            except UpstreamFailed as error:
                refusal = recognize_refusal(error.upstream_status, str(error))
                if refusal is None or refusal.kind in corrected_kinds:
                    raise
                corrected_kinds.add(refusal.kind)
                corrected = await self._correct(upstream_request.route, refusal)
                if corrected is None:
                    raise
                self._report("refusal-corrected", f"{error}; sent again without what was refused ({refusal.kind})")
                upstream_request = corrected
            except MalformedCall as error:
                upstream_request = await self._constrain(upstream_request)
                how = "constrained" if upstream_request.exchange.constraint else "unchanged"
                self._report("call-asked-again", f"{error}; sent again to {upstream_request.route.name}, {how}")

    async def _correct(self, route: Route, refusal: Refusal) -> UpstreamRequest | None:
        """Return the request without what the upstream refused, and remember it; None if no change can help."""
        client_request, calibration = self._client_request, self._calibration
        self._capabilities.learn(route, client_request.client_id, refusal)
        body = await client_request.body.decode_in_thread(client_request.client_id, self._work_threads, self._memory)
        corrected = await self._work_threads.run(
            client_request.client_id,
            client_request.body_size,
            corrected_route,
            route,
            refusal,
            lambda: calibration.count(body, route.name, route.model),
        )
        return None if corrected is None else await self._translate_request(corrected)

    async def _constrain(self, upstream_request: UpstreamRequest) -> UpstreamRequest:
        """Return the request with a constraint of the model, if that is allowed and possible."""
        route = upstream_request.route
        if route.strict == "off" or route.profile.constraint == "none" or upstream_request.exchange.constraint:
            return upstream_request
        return await self._translate_request(msgspec.structs.replace(route, strict="always"))

    def _record_route(self, route: Route) -> None:
        """Record the current upstream in the exchange record."""
        record = self._record
        record.upstream, record.upstream_wire, record.upstream_model = route.name, route.upstream.api, route.model
        record.dialect, record.upstream_status = route.dialect_name, 0

    def _record_failure(self, route: Route, kind: str, message: str) -> None:
        """Record a failed attempt in the exchange record, and for the status of the gateway."""
        redactor = self._redactor.with_credentials(self._client_request.headers)
        attempt = FailedAttempt(
            upstream=route.name,
            model=route.model,
            kind=kind,
            reason=redactor.redact_text(message.removeprefix(f"{route.name}: ")),
        )
        self._record.failed_attempts.append(attempt)
        self._failing_models.record_failure(attempt)

    async def _send_once(self, upstream_request: UpstreamRequest, *, is_last: bool) -> UpstreamReply:
        record, route, timeouts = self._record, upstream_request.route, upstream_request.route.timeouts
        held_before = self._memory.size
        record.attempts += 1
        record.upstream_status = 0
        record.constraint = upstream_request.exchange.constraint
        try:
            with MovingDeadline() as deadline:
                if self._client_request.stream:
                    deadline.set_timeout("the first event", timeouts.first_event)
                    deadline.set_final_timeout("the stream", timeouts.stream)
                else:
                    deadline.set_final_timeout("the reply", timeouts.total)
                reply = await self._post(upstream_request)
                await self._read_start(reply, deadline, is_last)
        except DeadlineExceeded as error:
            self._memory.resize(held_before)
            raise UpstreamFailed(f"{route.name}: {error}", TIMEOUT_STATUS) from error
        except MalformedCall:
            self._memory.resize(held_before)
            raise
        except UpstreamFailed as error:
            self._memory.resize(held_before)
            record.upstream_status = error.upstream_status or record.upstream_status
            error.args = (f"{route.name}: {error}",)
            raise
        record.findings += upstream_request.exchange.findings
        return reply

    async def _post(self, upstream_request: UpstreamRequest) -> UpstreamReply:
        client_request, route, body = self._client_request, upstream_request.route, upstream_request.exchange.body
        url = endpoint_url(route.upstream, client_request.wire, client_request.query)
        headers = headers_for(
            route, client_request.wire, client_request.headers, client_request.passthrough_key, client_request.stream
        )
        headers |= client_request.trace_headers
        if self._observer:
            self._observer.on_upstream_request(str(url), headers, body, upstream_request.facts())
        response = await send_request(self._session, route, url, body, headers, self._observer)
        self._record.upstream_status = response.status
        content_type = response.headers.get(CONTENT_TYPE, "")
        receiver = upstream_request.receive(content_type, self._settings.limits.reply)
        if (dialect := receiver.translator.dialect) is not None:
            self._record.dialect = dialect.name
        headers_for_client = returned_headers(response.headers, client_request.wire, route.upstream.api)
        release_metadata(response)
        replace_queues(response.content)
        secret_filter = SecretFilter(route.upstream, self._report_redacted_key)
        return UpstreamReply(
            route, response, receiver, secret_filter, headers_for_client, content_type, upstream_request.input_tokens
        )

    def _report_redacted_key(self) -> None:
        message = f"the reply of {self._record.upstream} contains a key that the gateway sent to it: replaced by ***"
        self._report("key-redacted", message)

    def record_broken_stream(self, reply: UpstreamReply, message: str) -> None:
        """Record that the upstream failed after the client received the beginning of the reply."""
        self._record_failure(reply.route, BROKEN_STREAM, message)

    # ── start of a reply ──────────────────────────────────────────────────────────────────────────────────────────

    async def _read_start(self, reply: UpstreamReply, deadline: MovingDeadline, is_last: bool) -> None:
        """Read a stream up to its first content, or a complete reply to its end."""
        try:
            if reply.translator.dialect is not None:
                await self._work_threads.compile(self._client_request.client_id, reply.translator.dialect)
            await (
                self._read_until_content(reply, deadline) if self._client_request.stream else self._read_complete(reply)
            )
            self._record.findings += reply.receiver.findings
            if reply.receiver.failed_early and (failure := reply.translator.tally.failure):
                raise error_from_failure(failure)
            if self._incomplete_retries_left:
                self._check_complete(reply, is_last)
        except BaseException:
            reply.discard()
            raise

    async def _read_until_content(self, reply: UpstreamReply, deadline: MovingDeadline) -> None:
        """Read the stream until there is content for the client.

        This can take long if calls are delivered whole or reasoning is not delivered.
        """
        translator, stats = reply.translator, reply.translator.tally
        while not stats.has_content and not translator.ended and len(reply.initial_data) < MAX_PEEK_BYTES:
            data = await self.read(reply)
            self._count_memory(len(data) if reply.receiver.is_streaming else decoded_size(data))
            reply.initial_data += await self.translate(reply, data)
            if translator.begun:
                deadline.set_timeout("the next event", reply.route.timeouts.idle)

    async def _read_complete(self, reply: UpstreamReply) -> None:
        while data := await self.read(reply):
            self._count_memory(decoded_size(data))
            await self.translate(reply, data)
            if len(data) > MAX_UNQUEUED_BYTES:  # decompressed data arrives without a wait
                await self._work_threads.wait_for_turn()
        reply.initial_data = await self.translate(reply, b"")

    def _count_memory(self, size: int) -> None:
        """Count a part of the reply. Raises OutOfMemory, or UpstreamFailed if the reply alone exceeds the budget."""
        try:
            self._memory.grow(size)
        except TooLarge as error:
            raise UpstreamFailed(f"the upstream's reply is too large: {error}", retryable=False) from error

    async def translate(self, reply: UpstreamReply, data: bytes) -> bytes:
        """Return the output for the next data of a response, or for its end (b"").

        Raises:
            UpstreamFailed: The reply is too large.
        """
        receiver = reply.receiver
        if data and not receiver.is_streaming:
            return _receive(receiver, data)  # it is buffered
        translator = reply.translator
        size = len(data) + carried_over_bytes(translator) if data else receiver.pending_bytes + translator.held_bytes
        return await self._work_threads.parse(self._client_request.client_id, size, _receive, receiver, data)

    async def abort(self, reply: UpstreamReply, message: str, type: str = "api_error") -> bytes:
        """Return the last output for a stream that was cut off."""
        translator, client_id = reply.translator, self._client_request.client_id
        return await self._work_threads.parse(client_id, translator.held_bytes, translator.abort, message, type)

    async def read(self, reply: UpstreamReply) -> bytes:
        """Return the next bytes of the response, without the upstream's key; b"" at its end.

        Raises:
            UpstreamFailed: The connection is lost.
        """
        while True:
            try:
                data = take_before_error(reply.response.content) or await reply.response.content.readany()
            except (aiohttp.ClientError, OSError) as error:
                raise broken_reply(error) from error
            if not data:
                return reply.secret_filter.flush()
            self.record_received(data)
            if data := reply.secret_filter.feed(data):
                return data

    def record_received(self, data: bytes) -> None:
        """Record data of the response, as it was received."""
        record = self._record
        record.reads += 1
        record.bytes_in += len(data)
        if self._observer is not None:
            self._observer.on_received(data)

    def _check_complete(self, reply: UpstreamReply, is_last: bool) -> None:
        """Check an ended reply for problems that a retry may solve. The request has one such retry.

        Raises:
            MalformedCall: A call is truncated or invalid.
            UpstreamFailed: The reply is empty.
        """
        translator, route = reply.translator, reply.route
        if self._client_request.stream and not translator.ended:
            return
        kinds = {finding.kind for finding in translator.findings}
        if route.delivery == "whole" and CALL_WITHHELD in kinds:
            self._incomplete_retries_left -= 1
            raise MalformedCall(f"{route.name}: the model returned a truncated or invalid tool call")
        if route.empty == "retry" and EMPTY_TURN in kinds and not is_last:
            self._incomplete_retries_left -= 1
            raise UpstreamFailed("the upstream returned an empty reply (no text, no tool call)")

    def _report(self, finding_kind: str, message: str) -> None:
        self._record.findings.append(Finding(finding_kind, message))


def _failure_kind(error: UpstreamFailed, response_status: int) -> str:
    """Return the kind of a failed attempt. `response_status` is that of the upstream's response; 0 without one."""
    if error.upstream_status:
        return str(error.upstream_status)
    if error.unreachable:
        return "unreachable"
    if error.status == TIMEOUT_STATUS:
        return "timeout"
    return BROKEN_STREAM if response_status else "no-answer"


def carried_over_bytes(translator: Translator) -> int:
    """Return the size of what is translated together with the next data of a stream, however short that is."""
    size = translator.pending_bytes
    if translator.tally.content_bytes > LONG_REPLY_BYTES:
        size += translator.held_bytes  # the end of a part of the reply repeats its text
    return size


def _receive(receiver: ReplyReceiver, data: bytes) -> bytes:
    try:
        return receiver.feed(data) if data else receiver.close()
    except UpstreamError as error:  # too large
        raise UpstreamFailed(str(error), retryable=False) from error
