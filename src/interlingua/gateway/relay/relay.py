"""Relay of one request: from the client to an upstream, and the reply back to the client."""

from __future__ import annotations

import asyncio
import re
import time
import traceback
from collections.abc import Awaitable, Callable, Mapping
from typing import TYPE_CHECKING, Any, ParamSpec, TypeVar
from uuid import uuid4

import msgspec
from aiohttp import web

from interlingua.common.jsontext.codec import encode_json, read_full_object
from interlingua.errors import BadRequest, InterlinguaError, UpstreamError
from interlingua.events import Usage
from interlingua.gateway.http.client_limits import CountedRequest, RateLimited
from interlingua.gateway.http.deadline import DeadlineExceeded, MovingDeadline
from interlingua.gateway.http.error_responses import (
    ShuttingDown,
    TooManyRequests,
    error_body,
    failures_header,
    native_error_body,
    retry_after_header,
    returned_headers,
)
from interlingua.gateway.http.event_stream import EventStream
from interlingua.gateway.http.field_origins import Origins, name_client_field
from interlingua.gateway.http.memory_budget import COPIES
from interlingua.gateway.http.request_body import RequestBody, read_body
from interlingua.gateway.http.response_stream import EarlyKeepAlive, ResponseStream
from interlingua.gateway.observability.exchange_record import ExchangeRecord
from interlingua.gateway.observability.tracing import NO_TRACE
from interlingua.gateway.observability.traffic_observers import ObserverGroup, TrafficObserver
from interlingua.gateway.relay.background_reply import start_in_background
from interlingua.gateway.relay.compaction import send_summary
from interlingua.gateway.relay.conversation_state import ConversationState, StatefulRequest
from interlingua.gateway.relay.failover import UpstreamAccess, UpstreamFailover
from interlingua.gateway.relay.server_tool_loop import ServerToolLoop
from interlingua.gateway.relay.server_tool_request import convert_earlier_calls, find_tools_to_run
from interlingua.gateway.relay.stream_forwarding import CLIENT, StreamForwarding
from interlingua.gateway.relay.upstream_reply import UpstreamReply
from interlingua.gateway.relay.upstream_request import ClientRequest
from interlingua.gateway.response_store.recording_stream import RecordingStream
from interlingua.gateway.response_store.stored_exchange import StoredExchange
from interlingua.gateway.routing.routes import Route
from interlingua.gateway.settings.descriptor_limit import EXHAUSTED_HINT
from interlingua.gateway.settings.redaction import Redactor
from interlingua.gateway.state import GatewayState
from interlingua.gateway.token_calibration import tokens_from_size
from interlingua.gateway.upstream.http_client import OutOfDescriptors, drain
from interlingua.translation.translator import Translator
from interlingua.translation.upstream_errors import UpstreamFailed
from interlingua.wires import get_wire

if TYPE_CHECKING:  # loaded only if the settings have a cassette
    from interlingua.gateway.cassettes.deck import CassetteDeck, Replay
    from interlingua.gateway.cassettes.recording import CassetteRecording

__all__ = ["Relay"]

ID_PREFIX = "req_"
"""Beginning of the id of a request. The rest is the id of its reply."""
CLIENT_CLOSED_STATUS = 499
"""Logged status of a request whose client disconnected before the end of the response."""
_HEADER_SAFE_ID = re.compile(r"[!-~]{1,200}")

P = ParamSpec("P")
T = TypeVar("T")


class Relay:
    """Handles one client request from its first byte to the end of the response.

    Args:
        gateway: The gateway.
        request: The HTTP request.
        wire: The client's wire.
        stream: Where the request comes from and the events go, if that is not the HTTP request itself.
        counted_request: The request as the client's limits count it, if it is counted already.
        compacts: The client wants a summary of the conversation instead of a reply.
        whole: The relay of the client's own request, if this is one of several requests in its place.
    """

    __slots__ = (
        "_body_size",
        "_changes",
        "_compacts",
        "_config",
        "_counted_request",
        "_event_stream",
        "_exchange",
        "_gateway",
        "_memory",
        "_observer",
        "_part",
        "_recording",
        "_reply",
        "_request",
        "_stored_exchange",
        "_stream",
        "_successor",
        "_task",
        "_trace",
        "_used_by_parts",
        "_whole",
        "_wire",
    )

    def __init__(
        self,
        gateway: GatewayState,
        request: web.Request,
        wire: str,
        stream: EventStream | None = None,
        counted_request: CountedRequest | None = None,
        *,
        compacts: bool = False,
        whole: Relay | None = None,
    ) -> None:
        self._gateway = gateway
        self._config = gateway.config
        self._request = request
        self._wire = wire
        self._exchange = ExchangeRecord(
            id=f"{ID_PREFIX}{uuid4().hex}", path=request.path, wire=wire, started=time.monotonic()
        )
        self._compacts = compacts
        self._event_stream = stream
        self._stream: ResponseStream = stream or ResponseStream(request)
        self._reply: UpstreamReply | None = None
        self._observer: TrafficObserver | None = None
        self._recording: CassetteRecording | None = None  # None if the exchange is not recorded
        self._counted_request = counted_request  # None if there are no limits per client
        self._stored_exchange: StoredExchange | None = None  # None if the response is not stored
        self._body_size = 0  # size of the client's body in bytes
        self._memory = gateway.memory_budget.open_share()
        self._trace = NO_TRACE
        self._changes: tuple[Origins, ...] = stream.changes if stream is not None else ()
        self._task: asyncio.Task[object] | None = None
        self._whole = whole
        self._part: Relay | None = None  # that is running
        self._used_by_parts = 0  # tokens of the parts that have ended
        self._successor: Relay | None = None  # that is counted and logged instead

    @property
    def buffered_chars(self) -> int:
        if self._part is not None:
            return self._part.buffered_chars
        return len(self._reply.translator.held) if self._reply else 0

    @property
    def _log_id(self) -> str:
        """Id of the client's request in the log."""
        return (self._whole or self._successor or self)._exchange.id

    @property
    def _conversation_field(self) -> str:
        return get_wire(self._wire).TRAITS.conversation_field

    @property
    def _redactor(self) -> Redactor:
        return self._config.redactor.with_credentials(self._request.headers)

    def stop(self) -> None:
        if self._task is not None and self._exchange.ended is None:
            self._exchange.outcome = "stopped"
            self._task.cancel()

    def cancel(self) -> None:
        """End the reply without an error, because no client waits for it any more."""
        if self._task is not None and self._exchange.ended is None:
            self._task.cancel()

    async def run(self) -> web.StreamResponse:
        """Handle the request of a relay that was created with other arguments than those of `handle`."""
        return await Relay.handle(self._gateway, self._wire, self._request, self)

    @staticmethod
    async def compact(gateway: GatewayState, wire: str, request: web.Request) -> web.StreamResponse:
        """Handle a request for a summary of a conversation."""
        return await Relay(gateway, request, wire, compacts=True).run()

    @staticmethod
    async def handle(
        gateway: GatewayState, wire: str, request: web.Request, relay: Relay | None = None
    ) -> web.StreamResponse:
        """Handle a request, and return the response. Each function that awaits this one adds memory to all streams."""
        relay = relay or Relay(gateway, request, wire)
        relay._begin()
        try:
            return await relay._respond_to_request()
        except asyncio.CancelledError:
            relay._exchange.outcome, relay._exchange.status = "client-left", CLIENT_CLOSED_STATUS
            raise
        except (ConnectionError, DeadlineExceeded) as error:
            relay._exchange.outcome, relay._exchange.status = "client-left", CLIENT_CLOSED_STATUS
            if isinstance(error, DeadlineExceeded):
                relay._exchange.error = f"{error} to read what was sent (limits.send)"
            return relay._abort_connection()
        finally:
            relay._end()

    def _begin(self) -> None:
        self._task = asyncio.current_task()
        if self._whole is None:
            self._gateway.active_requests.add(self)

    def _end(self) -> None:
        try:
            if self._counted_request is not None:
                self._counted_request.end(self._used_tokens())
            self._memory.close()
            self._record_exchange()
        finally:  # last, so that for other workers a request that is no longer active is counted as finished
            if self._whole is None:
                self._gateway.active_requests.remove(self)
            else:
                self._whole._end_part(self)

    def _end_part(self, part: Relay) -> None:
        self._part = None
        self._used_by_parts += part._used_tokens()
        self._exchange.add_round(part._exchange)

    async def _respond_to_request(self) -> web.StreamResponse:
        """Send the reply of an upstream, or an error."""
        exchange = self._exchange
        try:
            return await self._send_reply_to(*await self._receive_request())
        except InterlinguaError as error:
            if isinstance(error, UpstreamError):
                exchange.outcome = "upstream-failed"
            elif exchange.outcome == "ok":  # else a round has failed
                exchange.outcome = "refused" if self._stream.response is None else "cut-off"
            if isinstance(error, RateLimited):
                self._gateway.metrics.record_rate_limited(error.limit)
            elif isinstance(error, OutOfDescriptors):
                self._gateway.log.error("out of file descriptors", id=self._log_id, hint=EXHAUSTED_HINT)
            return await self._fail(error)
        except asyncio.CancelledError:
            if exchange.outcome != "stopped" or self._task is None:
                raise
            self._task.uncancel()
            return await self._fail(ShuttingDown())
        except (ConnectionError, DeadlineExceeded):
            raise
        except Exception:  # noqa: BLE001
            exchange.outcome = "broken"
            self._gateway.log.error("internal gateway error", id=self._log_id, trace=traceback.format_exc())
            return await self._fail(InterlinguaError(f"internal gateway error; see {self._log_id} in its log"))

    async def _send_reply_to(self, client_request: ClientRequest, routes: list[Route]) -> web.StreamResponse:
        """Send the reply of an upstream, or one that is composed of several."""
        if self._compacts:
            return await send_summary(self, client_request)
        if self._stored_exchange is not None and client_request.body.get("background") is True:
            start_task = self._gateway.run_in_background
            return await start_in_background(self, client_request, self._stored_exchange, start_task)
        settings, replay = self._config.settings, await self._find_replay(client_request)
        if replay is None and (
            tools := await find_tools_to_run(
                self._gateway, settings, client_request, routes[0], self._exchange, self._memory
            )
        ):
            body = await client_request.body.decode_in_thread(
                client_request.client_id, self._gateway.work_threads, self._memory
            )
            return await ServerToolLoop(self, client_request, body, tools, settings.limits.seals).run()
        failover, routes = self._open_failover(client_request, routes, replay)
        if self._exchange.stream:
            return await self._relay_stream(failover, routes)
        return await self._relay_complete(failover, routes)

    # ── from the client ───────────────────────────────────────────────────────────────────────────────────────────

    async def _receive_request(self) -> tuple[ClientRequest, list[Route]]:
        """Check and read the client's request; return it, and the routes to try."""
        settings, headers = self._config.settings, self._request.headers
        self._config.authenticator.check_origin(headers)
        client_id = self._config.authenticator.check_key(headers)
        self._exchange.client = self._config.authenticator.client_name(client_id)
        self._observer = self._gateway.observer_for(self._config, self._exchange)
        is_counted = self._whole is not None or self._counted_request is not None
        self._trace = self._gateway.tracer.begin(headers) if self._whole is None else self._whole._trace
        if not is_counted:
            self._admit(client_id)
        state = self._conversation_state()
        body = await self._read_request_body(client_id, state)
        client_request = self._client_request(body, client_id)
        routes = self._config.routes.find(client_request.model, self._wire)
        if state is not None:
            client_request = self._take_state(await state.resolve(client_request, routes))
        origins = await convert_earlier_calls(
            self._gateway, settings.limits.seals, client_request, routes[0], self._memory
        )
        self._add_origins(origins)
        if self._counted_request is not None and not is_counted:
            await self._count_client_request(self._counted_request, client_request)
        return client_request, routes

    def _admit(self, client_id: str) -> None:
        """Count the request. Raises an error if the gateway or the client has no place for it."""
        if not self._gateway.ready:
            raise ShuttingDown()
        self._check_active_requests()
        settings = self._config.settings
        limited_client = client_id if settings.keys else ""
        self._counted_request = self._gateway.client_limiter.begin(limited_client, settings.client_limits)

    def _check_active_requests(self) -> None:
        """Raise TooManyRequests if all workers, or this one, already handle as many requests as they may."""
        active_requests = self._gateway.active_requests
        for number, limit in (
            (active_requests.total, self._config.settings.limits.streams),
            (len(active_requests), self._config.worker_limits.streams),
        ):
            if number > limit:
                raise TooManyRequests(
                    f"the gateway already handles {limit} requests (limits.streams)", "retry in a second"
                )

    def _upstream_access(self) -> UpstreamAccess:
        gateway = self._gateway
        assert gateway.session is not None, "the session is opened before the gateway listens"
        return UpstreamAccess(
            session=gateway.session,
            settings=self._config.settings,
            calibration=gateway.token_calibration,
            retry_policies=gateway.retry_policies,
            failing_models=gateway.failing_models,
            redactor=self._config.redactor,
            capabilities=gateway.capabilities,
            server_probes=gateway.server_probes,
            work_threads=gateway.work_threads,
            request_cache=gateway.request_cache,
        )

    async def _count_client_request(self, counted: CountedRequest, client_request: ClientRequest) -> None:
        """Count the stream and the expected tokens of the request. Raises RateLimited if it is over a limit."""
        limits, calibration = self._config.settings.client_limits, self._gateway.token_calibration
        client_id, work_threads = client_request.client_id, self._gateway.work_threads
        if client_request.stream:
            counted.begin_stream(limits)
        if limits.tokens_per_minute:
            body = await client_request.body.decode_in_thread(client_id, work_threads, self._memory)
            tokens = await work_threads.run(
                client_id, self._body_size, calibration.count, body, "", client_request.model
            )
            counted.reserve_tokens(tokens, limits)

    def _conversation_state(self) -> ConversationState | None:
        """Return the state of conversations in the client's API; None if it has none."""
        api = get_wire(self._wire).HTTP_API
        if not api.stores_replies and not api.compact_path:
            return None
        return ConversationState(
            self._gateway, self._config, api, self._memory, self._exchange.id, compacts=self._compacts
        )

    def _take_state(self, resolved: StatefulRequest) -> ClientRequest:
        """Prepare to store the response, or to summarise the conversation. Returns the request."""
        client_request, stored_exchange = resolved.client_request, resolved.stored_exchange
        self._body_size = client_request.body_size
        self._compacts, self._stored_exchange = resolved.compacts, stored_exchange
        self._add_origins(resolved.origins)
        if stored_exchange is not None and client_request.body.get("background") is not True:
            if self._event_stream is None:
                self._stream = RecordingStream(self._request, stored_exchange.save)
            else:
                self._event_stream.save = stored_exchange.save
        return client_request

    def _add_origins(self, origins: Origins) -> None:
        """Record the origins of the items in a conversation, if it was changed."""
        if origins:
            self._changes = (*self._changes, origins)

    async def _read_request_body(self, client_id: str, state: ConversationState | None) -> RequestBody:
        limits = self._config.settings.limits
        if self._event_stream is None:
            data = await read_body(self._request, limits, self._memory)
        else:
            data = self._event_stream.take_body()
        self._body_size, work_threads = len(data), self._gateway.work_threads
        self._memory.resize(COPIES * len(data))
        if self._observer:
            self._observer.on_request(self._request.headers, data)
        body = RequestBody(data, limits, self._conversation_field)
        await work_threads.scan(client_id, len(data), body.scan)
        if body.undecoded is None or (
            state is not None and await work_threads.scan(client_id, len(data), state.may_concern, body)
        ):
            await body.decode_in_thread(client_id, work_threads, self._memory)
        return body

    def _client_request(self, body: RequestBody, client_id: str) -> ClientRequest:
        model = body.get("model")
        if not isinstance(model, str) or not model:
            received = "nothing" if model is None else f"{model!r:.60}"
            raise BadRequest("model", f"expected a model id, got {received}", f"for example: {self._example_model()}")
        self._exchange.model, self._exchange.stream = model, body.get("stream") is True
        return ClientRequest(
            wire=self._wire,
            body=body,
            model=model,
            stream=self._exchange.stream,
            headers=self._request.headers,
            query=self._request.query_string,
            created=int(time.time()),
            body_size=self._body_size,
            seal_key=self._config.seal_key_for(client_id),
            client_id=client_id,
            passthrough_key=self._config.authenticator.passthrough_key(self._request.headers),
            reply_id=(self._event_stream and self._event_stream.reply_id) or self._exchange.id.removeprefix(ID_PREFIX),
            echo=self._event_stream.echo if self._event_stream is not None else {},
            trace_headers=self._trace.headers,
        )

    def _example_model(self) -> str:
        return next(iter(self._config.routes.model_ids()), "kimi-k2")

    # ── recorded exchanges ────────────────────────────────────────────────────────────────────────────────────────

    async def _find_replay(self, client_request: ClientRequest) -> Replay | None:
        """Return the recording that answers the request; None if there is none, or if nothing is replayed."""
        cassettes = self._gateway.cassettes
        if cassettes is None:
            return None
        body = await client_request.body.decode_in_thread(
            client_request.client_id, self._gateway.work_threads, self._memory
        )
        return await cassettes.find(self._wire, body, self._request.headers, self._config.redactor)

    def _open_failover(
        self, client_request: ClientRequest, routes: list[Route], replay: Replay | None
    ) -> tuple[UpstreamFailover, list[Route]]:
        """Return what sends the request, and the routes to try: one with the recorded reply, if it is replayed.

        Raises:
            CassetteMiss: Only recorded replies are sent, and there is none.
        """
        access = self._upstream_access()
        if replay is not None:
            client_request, routes = _as_recorded(client_request, replay), [replay.route]
            access = msgspec.structs.replace(access, session=replay.session or access.session)
        elif self._gateway.cassettes is not None:
            recording = self._start_recording(self._gateway.cassettes, client_request)
            client_request = msgspec.structs.replace(client_request, clock=recording.clock)
        return UpstreamFailover(access, client_request, self._exchange, self._observer, self._memory), routes

    def _start_recording(self, cassettes: CassetteDeck, client_request: ClientRequest) -> CassetteRecording:
        """Record the exchange. Raises CassetteMiss if only recorded replies are sent."""
        self._recording = recording = cassettes.start_recording(
            wire=self._wire,
            body=client_request.body.decode(),
            headers=self._request.headers,
            redactor=self._config.redactor,
            reply_id=client_request.reply_id,
            created=client_request.created,
            exchange_id=self._exchange.id,
        )
        observers = [observer for observer in (self._observer, recording) if observer is not None]
        self._observer = ObserverGroup(*observers)
        return recording

    # ── to the client ─────────────────────────────────────────────────────────────────────────────────────────────

    async def _relay_complete(self, failover: UpstreamFailover, routes: list[Route]) -> web.StreamResponse:
        self._reply = reply = await failover.open_reply(routes)
        if self._recording is not None:
            self._recording.on_reply(reply.route, reply.content_type, reply.input_tokens)
        self._memory.resize(len(reply.initial_data))
        reply.response.release()
        self._exchange.first_byte = time.monotonic()
        if self._stored_exchange is not None:
            data, owner = reply.initial_data, self._stored_exchange.owner
            response = await self._gateway.work_threads.run(owner, len(data), read_full_object, data)
            await self._stored_exchange.save(response or {})
        return await self.respond(200, reply.initial_data, self._findings_header(reply.translator))

    async def _relay_stream(self, failover: UpstreamFailover, routes: list[Route]) -> web.StreamResponse:
        async with EarlyKeepAlive(self._stream, self._config.settings.keepalive, self._headers):
            self._reply = reply = await failover.open_reply(routes)
        if self._recording is not None:
            self._recording.on_reply(reply.route, reply.content_type, reply.input_tokens)
        self._exchange.status, self._exchange.first_byte = 200, time.monotonic()
        self._stream.headers |= self._headers()
        reply.returned_headers = {}  # release the memory while the stream lasts
        settings = self._config.settings
        try:
            last_frames = await StreamForwarding(reply, self._stream, self._send, self._memory, settings).run()
            failure = reply.translator.tally.failure
            if failure is not None:
                self._record_broken_stream(failover, reply, failure.message)
            response = await self._send_last(last_frames)
        except BaseException:
            reply.discard()
            raise
        if failure is not None:
            reply.discard()
        elif not reply.response.content.at_eof():
            self._gateway.run_in_background(drain(reply.response))
        return response

    def _record_broken_stream(self, failover: UpstreamFailover, reply: UpstreamReply, message: str) -> None:
        """Record that the upstream failed after the client received the beginning of the reply."""
        self._exchange.outcome, self._exchange.error = "upstream-failed", self._redactor.redact_text(message)
        failover.record_broken_stream(reply, message)

    async def _send(self, data: bytes) -> None:
        if data:
            await self._stream.write(await self._output(data))

    async def _send_last(self, last_frames: bytes) -> web.StreamResponse:
        """End the stream. The last frames and the end of the response are one write."""
        data = await self._output(last_frames) if last_frames else b""
        return await self._with_send_timeout(self._stream.end(data))

    async def _output(self, data: bytes) -> bytes:
        """Return the data that is sent to the client, and show it to the observer."""
        if self._reply is not None and self._reply.translator.tally.failure is not None:
            # An upstream may quote the API key in its error.
            data = await self._gateway.work_threads.run(self._exchange.id, len(data), self._redactor.redact_bytes, data)
        if self._observer:
            self._observer.on_sent(data)
        return data

    # ── failures ──────────────────────────────────────────────────────────────────────────────────────────────────

    async def _fail(self, error: InterlinguaError) -> web.StreamResponse:
        """Send the error: as an error response, or as the last frame of a stream that has already started."""
        if self._recording is not None:
            self._recording.on_failure(error)
        if isinstance(error, BadRequest):
            name_client_field(error, self._conversation_field, self._changes)
        self._exchange.error = self._redactor.redact_text(error.log_message)
        if isinstance(error, UpstreamFailed):
            error.redact(self._redactor.redact_text)
        if self._stream.response is None:
            returned = returned_headers(getattr(error, "headers", {}), self._wire, self._exchange.upstream_wire)
            headers = {**self._redact_headers(returned), **retry_after_header(error)}
            return await self.respond(error.status, self._error_body(error), headers)
        self._exchange.status = 200
        translator = self._reply.translator if self._reply else Translator(target=self._wire)
        code = getattr(error, "code", "") or None
        final_frames = translator.abort(str(error), get_wire(self._wire).HTTP_API.error_type(error.status), code)
        unsent = self._reply.take_unsent() if self._reply else b""
        return await self._send_last(unsent + final_frames)

    def _error_body(self, error: InterlinguaError) -> bytes:
        """Return the body of an error response: the upstream's own if it is of the client's wire."""
        is_same_wire = self._exchange.upstream_wire == self._wire
        native = native_error_body(self._wire, error) if is_same_wire else b""
        return self._redactor.redact_bytes(native) if native else error_body(self._wire, error, self._log_id)

    def _abort_connection(self) -> web.StreamResponse:
        """Abort the connection of a client that cannot be reached. The returned response is never sent."""
        self._stream.abort()
        return self._stream.response or web.Response(status=CLIENT_CLOSED_STATUS)

    def _used_tokens(self) -> int:
        """Return the tokens of this request for the client's limit, estimated if the upstream has not reported them.

        A client that disconnects before the end of a reply has used tokens, too.
        """
        input_tokens = tokens_from_size(self._body_size)
        if self._exchange.rounds:
            return self._used_by_parts
        if self._reply is None:
            return input_tokens if self._exchange.outcome == "client-left" and self._exchange.attempts else 0
        stats = self._reply.translator.tally
        if stats.usage is None:
            return input_tokens + stats.estimated_tokens
        is_complete = self._exchange.outcome == "ok"
        return stats.usage.input + max(stats.usage.output, 0 if is_complete else stats.estimated_tokens)

    # ── responses ─────────────────────────────────────────────────────────────────────────────────────────────────

    # The public methods of this part are those of `ClientSide`, for replies that are composed of other requests.

    @property
    def request(self) -> web.Request:
        return self._request

    @property
    def exchange(self) -> ExchangeRecord:
        return self._exchange

    @property
    def has_begun(self) -> bool:
        return self._stream.response is not None

    async def work_on(
        self, client_request: ClientRequest, function: Callable[P, T], *args: P.args, **kwargs: P.kwargs
    ) -> T:
        client_id, size = client_request.client_id, client_request.body_size
        return await self._gateway.work_threads.run(client_id, size, function, *args, **kwargs)

    def relay_to(self, stream: EventStream) -> Relay:
        stream.changes = (*self._changes, *stream.changes)
        self._part = Relay(self._gateway, self._request, self._wire, stream, whole=self)
        return self._part

    def hand_over_to(self, stream: EventStream) -> Relay:
        counted_request, self._counted_request = self._counted_request, None
        stream.changes = (*self._changes, *stream.changes)
        self._successor = Relay(self._gateway, self._request, self._wire, stream, counted_request)
        return self._successor

    def early_keepalive(self) -> EarlyKeepAlive:
        return EarlyKeepAlive(self._stream, self._config.settings.keepalive, self._headers)

    async def send_frames(self, frames: bytes) -> None:
        if self._exchange.first_byte is None:
            self._exchange.status, self._exchange.first_byte = 200, time.monotonic()
            self._stream.headers |= self._headers() if self._stream.response is None else {}
        await self._with_send_timeout(self._send(frames))

    async def end_stream(self) -> web.StreamResponse:
        self._exchange.status = 200
        return await self._send_last(b"")

    async def send_reply(self, reply: dict[str, Any]) -> web.StreamResponse:
        self._exchange.first_byte = time.monotonic()
        if self._stored_exchange is not None:
            await self._stored_exchange.save(reply)
        return await self.respond(200, encode_json(reply), self._findings_header())

    async def respond(self, status: int, body: bytes, headers: Mapping[str, str]) -> web.StreamResponse:
        """Send a complete response and wait until it is written; the client may disconnect until then."""
        self._exchange.status = status
        if self._observer:
            self._observer.on_sent(body)
        return await self._with_send_timeout(self._stream.respond(status, body, {**self._headers(), **headers}))

    async def _with_send_timeout(self, operation: Awaitable[T]) -> T:
        """Await a write to the client, with `limits.send` as timeout for clients that do not read."""
        with MovingDeadline() as deadline:
            deadline.set_timeout(CLIENT, self._config.settings.limits.send)
            return await operation

    def _headers(self) -> dict[str, str]:
        """Return the response headers with the exchange id (SDKs show it in errors), upstream and dialect.

        The upstream's own id of the reply is known if its stream began before the first keep-alive was sent.
        """
        if self._part is not None:
            return {**self._part._headers(), **self._id_headers()}
        exchange, headers = self._exchange, self._id_headers()
        if exchange.upstream:
            headers |= {"x-interlingua-upstream": exchange.upstream, "x-interlingua-dialect": exchange.dialect}
        if exchange.failed_attempts:
            headers["x-interlingua-failed"] = failures_header(exchange.failed_attempts)
        if self._reply is not None:
            headers |= self._redact_headers(self._reply.returned_headers)
        upstream_id = self._reply.translator.tally.upstream_id if self._reply else exchange.upstream_id
        if _HEADER_SAFE_ID.fullmatch(upstream_id):
            headers["x-interlingua-upstream-id"] = upstream_id
        return headers

    def _id_headers(self) -> dict[str, str]:
        return dict.fromkeys(("x-interlingua-id", "request-id", "x-request-id"), self._log_id)

    def _redact_headers(self, headers: Mapping[str, str]) -> dict[str, str]:
        return {name: self._redactor.redact_text(value) for name, value in headers.items()}

    def _findings_header(self, translator: Translator | None = None) -> dict[str, str]:
        reply_findings = translator.findings if translator is not None else []
        kinds = dict.fromkeys(finding.kind for finding in (*self._exchange.findings, *reply_findings))
        return {"x-interlingua-findings": ", ".join(kinds)} if kinds else {}

    def _record_exchange(self) -> None:
        exchange = self._exchange
        exchange.ended = time.monotonic()
        exchange.bytes_out = self._stream.bytes_sent
        if self._reply is not None:
            translator = self._reply.translator
            exchange.findings += translator.findings
            stats = translator.tally
            exchange.calls, exchange.usage, exchange.upstream_id = stats.calls, stats.usage, stats.upstream_id
            if exchange.outcome == "ok":
                self._record_complete_reply(self._reply.route, stats.usage)
            exchange.stop_reason = stats.stop.reason if stats.stop else None
            if translator.dialect is not None:
                exchange.dialect = translator.dialect.name
        if self._whole is None:
            self._trace.end(exchange)
            if self._successor is None:
                self._gateway.metrics.end(exchange)
                self._gateway.log.request(exchange)
        if self._observer:
            self._observer.on_finish(exchange)

    def _record_complete_reply(self, route: Route, usage: Usage | None) -> None:
        self._gateway.failing_models.record_success(route.name, route.model)
        if usage is not None:
            self._gateway.token_calibration.record_usage(
                self._exchange.estimated_tokens, usage, route.name, route.model
            )


def _as_recorded(client_request: ClientRequest, replay: Replay) -> ClientRequest:
    """Return the request with the ids and times of the recording, so that its reply has the same."""
    reply = replay.exchange.reply
    return msgspec.structs.replace(
        client_request,
        reply_id=replay.reply_id or client_request.reply_id,
        created=reply.created or client_request.created,
        clock=lambda: reply.completed,
        input_tokens=reply.input_tokens,
    )
