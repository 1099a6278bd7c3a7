"""One request passing through: from the client's bytes to an upstream's, and back."""

from __future__ import annotations

import asyncio
import time
import traceback
from collections.abc import Awaitable, Mapping
from typing import Any, TypeVar
from uuid import uuid4

from aiohttp import web

from interlingua.common.jsontext.codec import encode_json
from interlingua.errors import BadRequest, InterlinguaError
from interlingua.gateway.http.deadline import Patience, WaitedTooLong
from interlingua.gateway.http.error_responses import Stopping, TooBusy, error_body
from interlingua.gateway.http.request_body__bodies import decoded, read_body
from interlingua.gateway.http.response_stream import COMMENT, PING, ClientStream, KeepAlive
from interlingua.gateway.observability.exchange_record import Exchange
from interlingua.gateway.observability.tracing import Trace
from interlingua.gateway.observability.traffic_observers import Witness
from interlingua.gateway.relay.failover import Answer, Asker
from interlingua.gateway.relay.upstream_request import Question
from interlingua.gateway.routing.routes import Route
from interlingua.gateway.settings.redaction import Redactor
from interlingua.gateway.state import Gateway
from interlingua.gateway.upstream.errors import UpstreamFailed
from interlingua.gateway.upstream.http_client import let_end
from interlingua.translation.translator__pipeline import Translator
from interlingua.upstreams.profile import MESSAGES
from interlingua.wires.error_types import error_type

__all__ = ["Relay"]

AFTERWARDS = 5.0
"""How long an upstream may take to close its stream once it has said all."""
CLIENT = "the client"
"""Who is waited for while something is sent."""
LEFT = 499
"""What logs call the status of a request whose client did not wait for all of the answer."""

T = TypeVar("T")


class Relay:
    def __init__(self, gateway: Gateway, request: web.Request, wire: str) -> None:
        self._gateway = gateway
        self._setup = gateway.setup
        self._request = request
        self._wire = wire
        self._exchange = Exchange(id=f"req_{uuid4().hex}", path=request.path, wire=wire, started=time.monotonic())
        self._stream = ClientStream(request)
        self._answer: Answer | None = None
        self._witness: Witness | None = None
        self._size = 0  # of the client's body
        self._trace = Trace()
        self._task: asyncio.Task[web.StreamResponse] | None = None

    @property
    def held(self) -> int:
        return len(self._answer.translator.held) if self._answer else 0

    @property
    def _redactor(self) -> Redactor:
        return self._setup.redactor.with_credentials(self._request.headers)

    def stop(self) -> None:
        if self._task is not None and self._exchange.ended is None:
            self._exchange.outcome = "stopped"
            self._task.cancel()

    async def run(self) -> web.StreamResponse:
        """In a task of its own. Whatever waits for a token is woken through all that wait for it, one by one: so they
        should be few, and those in front of us are many."""
        self._task = asyncio.create_task(self._run())
        return await self._task

    async def _run(self) -> web.StreamResponse:
        gateway, exchange = self._gateway, self._exchange
        gateway.open.add(self)
        gateway.metrics.begin(exchange)
        try:
            return await self._answered()
        except asyncio.CancelledError:
            exchange.outcome, exchange.status = "client-left", LEFT
            raise
        except (ConnectionError, WaitedTooLong):
            exchange.outcome, exchange.status = "client-left", LEFT
            return self._hang_up()
        finally:
            gateway.open.discard(self)
            self._account()

    async def _answered(self) -> web.StreamResponse:
        exchange = self._exchange
        try:
            asker, routes = await self._asker()
            return await (self._pass_stream(asker, routes) if exchange.stream else self._pass_whole(asker, routes))
        except InterlinguaError as error:
            exchange.outcome = "upstream-failed" if isinstance(error, UpstreamFailed) else "refused"
            return await self._fail(error)
        except asyncio.CancelledError:
            if exchange.outcome != "stopped" or self._task is None:
                raise
            self._task.uncancel()
            return await self._fail(Stopping())
        except (ConnectionError, WaitedTooLong):
            raise
        except Exception:  # noqa: BLE001
            exchange.outcome = "broken"
            self._gateway.log.error("a fault of the gateway", id=exchange.id, trace=traceback.format_exc())
            return await self._fail(InterlinguaError(f"a fault of the gateway: {exchange.id} in its log"))

    # ── from the client ───────────────────────────────────────────────────────────────────────────────────────────

    async def _asker(self) -> tuple[Asker, list[Route]]:
        """Whoever asks what the client asks, and whom."""
        settings, headers = self._setup.settings, self._request.headers
        self._setup.access.check_origin(headers)
        self._setup.access.check_key(headers)
        self._witness = self._gateway.witness(self._setup, self._exchange)
        self._trace = self._gateway.tracer.begin(headers)
        if not self._gateway.ready:
            raise Stopping()
        if len(self._gateway.open) > settings.limits.streams:
            raise TooBusy(f"{settings.limits.streams} requests are under way", "try again in a second")
        body = await self._body()
        question = self._question(body)
        routes = self._setup.routes.find(question.model)
        session = self._gateway.session
        assert session is not None, "the gateway is connected before it listens"
        told, restraints, tokens = self._trace.headers, self._gateway.restraints, self._gateway.tokens
        asker = Asker(session, settings, question, self._exchange, self._witness, told, tokens, restraints)
        return asker, routes

    async def _body(self) -> dict[str, Any]:
        data = await read_body(self._request, self._setup.settings.limits)
        if self._witness:
            self._witness.request(self._request.headers, data)
        self._size = len(data)
        return self._gateway.shared.body(decoded(data))

    def _question(self, body: dict[str, Any]) -> Question:
        model = body.get("model")
        if not isinstance(model, str) or not model:
            came = "nothing came" if model is None else f"{model!r:.60} came"
            raise BadRequest("model", f"the id of a model is expected, and {came}", f"for example: {self._example()}")
        self._exchange.model, self._exchange.stream = model, body.get("stream") is True
        return Question(
            wire=self._wire,
            body=body,
            model=model,
            stream=self._exchange.stream,
            headers=self._request.headers,
            query=self._request.query_string,
            created=int(time.time()),
            size=self._size,
            seal_key=self._setup.seal_key,
            own_key=self._setup.access.own_key(self._request.headers),
        )

    def _example(self) -> str:
        return next(iter(self._setup.routes.ids()), "kimi-k2")

    # ── to the client ─────────────────────────────────────────────────────────────────────────────────────────────

    async def _pass_whole(self, asker: Asker, routes: list[Route]) -> web.StreamResponse:
        self._answer = answer = await asker.answer(routes)
        answer.response.release()
        body = encode_json(answer.whole)
        self._exchange.first_byte = time.monotonic()
        return await self._respond(200, body, self._findings_header(answer.translator))

    async def _pass_stream(self, asker: Asker, routes: list[Route]) -> web.StreamResponse:
        seconds, sign = self._setup.settings.keepalive, PING if self._wire == MESSAGES else COMMENT
        async with KeepAlive(self._stream, seconds, self._headers):
            self._answer = answer = await asker.answer(routes)
        try:
            async with KeepAlive(self._stream, seconds, self._headers, sign):
                await self._pump(asker, answer)
            response = await self._patiently(self._stream.end())
        except BaseException:
            answer.response.close()
            raise
        if answer.translator.tally.failure is not None:
            answer.response.close()  # whatever still comes is for nobody
        elif not answer.response.content.at_eof():
            self._gateway.afterwards(let_end(answer.response))
        return response

    async def _pump(self, asker: Asker, answer: Answer) -> None:
        """Each read of the upstream becomes one write to the client, and no read is made before that write is done."""
        translator, tally = answer.translator, answer.translator.tally
        idle, send = answer.route.timeouts.idle, self._setup.settings.limits.send
        self._exchange.status, self._exchange.first_byte = 200, time.monotonic()
        self._stream.headers |= self._headers()
        await self._patiently(self._send(answer.first))
        answer.first = b""  # not held for as long as the stream lasts
        try:
            with Patience() as patience:
                while not translator.ended:
                    patience.wait("the upstream's next word", idle if tally.stop is None else min(AFTERWARDS, idle))
                    data = await asker.read(answer)
                    if out := translator.feed(data) if data else translator.close():
                        patience.wait(CLIENT, send)
                        await (self._send(out) if self._witness or tally.failure else self._stream.write(out))
        except UpstreamFailed as error:
            await self._patiently(self._send(translator.abort(f"{answer.route.name}: {error}")))
        except WaitedTooLong as error:
            if error.what == CLIENT:
                raise
            last = translator.abort(f"{answer.route.name}: {error}", "timeout_error")
            await self._patiently(self._send(last))
        if (failure := tally.failure) is not None:
            self._exchange.outcome, self._exchange.error = "upstream-failed", self._redactor.text(failure.message)

    async def _send(self, data: bytes) -> None:
        if self._answer is not None and self._answer.translator.tally.failure is not None:
            data = self._redactor.data(data)  # an upstream may quote the key it was shown
        if data:
            if self._witness:
                self._witness.sent(data)
            await self._stream.write(data)

    # ── failures ──────────────────────────────────────────────────────────────────────────────────────────────────

    async def _fail(self, error: InterlinguaError) -> web.StreamResponse:
        """A response of its own, or the last frame of a stream that has begun."""
        self._exchange.error = self._redactor.text(str(error))
        if isinstance(error, UpstreamFailed):
            error.args = (self._exchange.error,)
        if self._stream.response is None:
            body = error_body(self._wire, error, self._exchange.id)
            return await self._respond(error.status, body, _waiting(error))
        self._exchange.status = 200
        translator = self._answer.translator if self._answer else Translator(target=self._wire)
        code = getattr(error, "code", "") or None
        last = translator.abort(str(error), error_type(self._wire, error.status), code)
        await self._patiently(self._send(last))
        return await self._patiently(self._stream.end())

    def _hang_up(self) -> web.StreamResponse:
        """The client cannot be told anything. What is returned goes nowhere."""
        if self._request.transport is not None:
            self._request.transport.abort()
        return self._stream.response or web.Response(status=LEFT)

    # ── responses ─────────────────────────────────────────────────────────────────────────────────────────────────

    async def _respond(self, status: int, body: bytes, headers: Mapping[str, str]) -> web.StreamResponse:
        """A whole response, sent to its end: until then its client may leave."""
        self._exchange.status = status
        if self._witness:
            self._witness.sent(body)
        self._stream.bytes += len(body)
        told = {**self._headers(), **headers}
        response = web.Response(status=status, body=body, content_type="application/json", headers=told)
        await response.prepare(self._request)
        await self._patiently(response.write_eof())
        return response

    async def _patiently(self, sending: Awaitable[T]) -> T:
        """A client that does not read is not waited for without end."""
        with Patience() as patience:
            patience.wait(CLIENT, self._setup.settings.limits.send)
            return await sending

    def _headers(self) -> dict[str, str]:
        """What a client may want to know, and what its SDK shows in an error."""
        exchange = self._exchange
        headers = dict.fromkeys(("x-interlingua-id", "request-id", "x-request-id"), exchange.id)
        if exchange.upstream:
            headers |= {"x-interlingua-upstream": exchange.upstream, "x-interlingua-dialect": exchange.dialect}
        return headers

    def _findings_header(self, translator: Translator) -> dict[str, str]:
        kinds = dict.fromkeys(one.kind for one in (*self._exchange.findings, *translator.findings))
        return {"x-interlingua-findings": ", ".join(kinds)} if kinds else {}

    def _account(self) -> None:
        exchange = self._exchange
        exchange.ended = time.monotonic()
        exchange.bytes_out = self._stream.bytes
        if self._answer is not None:
            translator = self._answer.translator
            exchange.findings += translator.findings
            tally = translator.tally
            exchange.calls, exchange.usage = tally.calls, tally.usage
            if tally.usage is not None and exchange.outcome == "ok":
                route = self._answer.route
                self._gateway.tokens.compare(exchange.expected, tally.usage, route.name, route.model)
            exchange.stop_reason = tally.stop.reason if tally.stop else None
            if translator.dialect is not None:
                exchange.dialect = translator.dialect.name
        self._trace.end(exchange)
        self._gateway.metrics.end(exchange)
        self._gateway.log.request(exchange)
        if self._witness:
            self._witness.finish(exchange)


def _waiting(error: InterlinguaError) -> dict[str, str]:
    wait = getattr(error, "retry_after", None)
    return {} if wait is None else {"retry-after": str(max(1, round(wait)))}
