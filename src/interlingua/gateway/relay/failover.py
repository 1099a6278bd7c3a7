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

from interlingua.common.jsontext.codec import read_values
from interlingua.errors import InterlinguaError
from interlingua.events import Finding
from interlingua.gateway.http.deadline import Patience, WaitedTooLong
from interlingua.gateway.observability.exchange_record import Exchange
from interlingua.gateway.observability.traffic_observers import Witness
from interlingua.gateway.relay.upstream_request import Prepared, Question, prepare, translator_for
from interlingua.gateway.routing.routes import Route
from interlingua.gateway.settings.schema import Settings
from interlingua.gateway.tokens.calibration import TokenCounts
from interlingua.gateway.upstream.errors import UpstreamFailed, failed
from interlingua.gateway.upstream.http_client import ask, broken_off, endpoint, headers_for, is_stream, read_whole
from interlingua.gateway.upstream.retry_policy import Restraints, pause
from interlingua.translation.translator__pipeline import Translator

__all__ = ["Answer", "Asker"]

PEEKED = 256 * 1024
"""How much of a stream is held back while it has said nothing yet."""
BLANK = b" \t\r\n\xef\xbb\xbf"
LOST, EMPTY = "call-withheld", "empty-turn"
"""Found where something is missing that another attempt may bring."""


class Answer(msgspec.Struct):
    """An upstream's reply that has begun. `first` is what the client is to be told already."""

    route: Route
    response: aiohttp.ClientResponse
    translator: Translator
    first: bytes
    whole: dict[str, Any] | None = None


class Asker:
    """Asks the upstreams of one exchange in turn."""

    def __init__(
        self,
        session: aiohttp.ClientSession,
        settings: Settings,
        question: Question,
        exchange: Exchange,
        witness: Witness | None,
        further: Mapping[str, str],
        tokens: TokenCounts,
        restraints: Restraints,
    ) -> None:
        self._session = session
        self._settings = settings
        self._question = question
        self._exchange = exchange
        self._witness = witness
        self._further = further  # headers for whoever is asked
        self._tokens = tokens
        self._restraints = restraints
        self._repeats = 1  # how often what was lost may be asked for again

    async def answer(self, routes: list[Route]) -> Answer:
        """The first upstream that begins to answer. Raises what the last one failed with.

        The question is asked but once: its body, which may be long, is not kept for as long as a stream lasts.
        """
        try:
            return await self._first_answer(routes)
        finally:
            self._question.body.clear()

    async def _first_answer(self, routes: list[Route]) -> Answer:
        last: UpstreamFailed | None = None
        for place, route in enumerate(routes):
            try:
                prepared = prepare(self._question, route, self._settings, self._tokens, self._exchange)
            except InterlinguaError:
                if last is None:
                    raise
                continue  # what the first could be asked, this one cannot
            try:
                return await self._ask_often(prepared, last=place + 1 == len(routes))
            except UpstreamFailed as error:
                last = error
                if not error.elsewhere and error.answered not in route.fallback_on:
                    raise
                if place + 1 < len(routes):
                    self._report("asked-again", f"{error}: {routes[place + 1].name} is asked in its place")
        assert last is not None, "there is always a route"
        raise last

    async def _ask_often(self, prepared: Prepared, *, last: bool) -> Answer:
        route, retries = prepared.route, prepared.route.upstream.retries
        restraint = self._restraints.of(route)
        self._name(route)
        restraint.begin()
        for attempt in range(1, retries.attempts + 1):
            final = attempt == retries.attempts or not restraint.has_more
            try:
                answer = await self._ask_once(prepared, last=last and final)
            except UpstreamFailed as error:
                restraint.failed(error)
                wait = pause(retries, attempt, error)
                if wait is None:
                    raise
                if not restraint.take_attempt():
                    self._report("not-asked-again", f"{error}: {route.name} fails too often to be asked again")
                    raise
                await asyncio.sleep(wait)
                if restraint.take_turn():  # others have found meanwhile that it answers nobody
                    self._report("not-asked-again", f"{error}: {route.model} of {route.name} is left alone")
                    raise
                self._report("asked-again", f"{error}: {route.name} is asked again")
            else:
                restraint.answered()
                return answer
        raise AssertionError("the last attempt returns or raises")

    def _name(self, route: Route) -> None:
        """Who is asked now."""
        exchange = self._exchange
        exchange.upstream, exchange.upstream_wire, exchange.upstream_model = route.name, route.upstream.api, route.model
        exchange.dialect, exchange.upstream_status = route.dialect_name, 0

    async def _ask_once(self, prepared: Prepared, *, last: bool) -> Answer:
        exchange, route, timeouts = self._exchange, prepared.route, prepared.route.timeouts
        exchange.attempts += 1
        exchange.upstream_status = 0
        try:
            with Patience() as patience:
                stream = self._question.stream
                what, seconds = ("first word", timeouts.first_event) if stream else ("reply", timeouts.total)
                patience.wait(f"its {what}", seconds)
                answer = await self._post(prepared)
                await self._begin(answer, patience, last)
        except WaitedTooLong as error:
            raise UpstreamFailed(f"{route.name}: {error}", 504) from error
        except UpstreamFailed as error:
            exchange.upstream_status = error.answered or exchange.upstream_status
            error.args = (f"{route.name}: {error}",)
            raise
        exchange.findings += prepared.findings
        return answer

    async def _post(self, prepared: Prepared) -> Answer:
        question, route, body = self._question, prepared.route, prepared.body
        url = endpoint(route.upstream, question.wire, question.query)
        headers = headers_for(route, question.wire, question.headers, question.own_key, question.stream)
        headers |= self._further
        if self._witness:
            self._witness.asked(str(url), headers, body)
        response = await ask(self._session, route, url, body, headers)
        self._exchange.upstream_status = response.status
        return Answer(route, response, translator_for(question, prepared, self._settings), b"")

    # ── the beginning of an answer ────────────────────────────────────────────────────────────────────────────────

    async def _begin(self, answer: Answer, patience: Patience, last: bool) -> None:
        """Reads the answer up to its first word, or all of it if the client wants it whole."""
        try:
            await (self._peek(answer, patience) if self._question.stream else self._read(answer))
            tally = answer.translator.tally
            if tally.failure is not None and not (self._question.stream and tally.spoken):
                raise failed(tally.failure)
            if not last and self._repeats and (spoilt := self._what_is_spoilt(answer)):
                self._repeats -= 1
                raise UpstreamFailed(spoilt)
        except BaseException:
            answer.response.close()
            raise

    async def _peek(self, answer: Answer, patience: Patience) -> None:
        """Where calls go out whole, or no thinking does, it may be long until there is a word for the client."""
        translator, tally = answer.translator, answer.translator.tally
        if not is_stream(answer.response):
            await self._peek_at_anything(answer)
        while not tally.spoken and not translator.ended and len(answer.first) < PEEKED:
            data = await self.read(answer)
            answer.first += translator.feed(data) if data else translator.close()
            if translator.begun:
                patience.wait("its next word", answer.route.timeouts.idle)

    async def _peek_at_anything(self, answer: Answer) -> None:
        """Some servers send a whole reply where a stream was asked for, and some call a stream something else."""
        data = await self.read(answer)
        while data.isspace():  # sent so that nobody takes the line for dead
            data = await self.read(answer)
        if data.lstrip(BLANK)[:1] not in (b"{", b"[", b"<"):
            answer.first += answer.translator.feed(data) if data else answer.translator.close()
            return
        rest = await read_whole(answer.response, self._settings.limits.reply)
        self._came(rest)
        body = _decoded(data + rest)
        self._report("whole-reply", "a whole reply where a stream was asked for: told as a stream")
        answer.first += answer.translator.stream(body)

    async def _read(self, answer: Answer) -> None:
        data = await read_whole(answer.response, self._settings.limits.reply)
        self._came(data)
        if is_stream(answer.response) or data.lstrip(BLANK).startswith((b"data:", b"event:", b":")):
            self._report("streamed-reply", "a stream where a whole reply was asked for: put together")
            answer.whole = answer.translator.fold(data)
        else:
            answer.whole = answer.translator.reply(_decoded(data))

    async def read(self, answer: Answer) -> bytes:
        """What has come since; nothing at the end."""
        try:
            data = await answer.response.content.readany()
        except (aiohttp.ClientError, OSError) as error:
            raise broken_off(error) from error
        self._came(data)
        return data

    def _came(self, data: bytes) -> None:
        self._exchange.reads += 1
        self._exchange.bytes_in += len(data)
        if self._witness:
            self._witness.received(data)

    def _what_is_spoilt(self, answer: Answer) -> str:
        """What another attempt may bring, in a reply of which nothing has gone out yet; "": all is well."""
        translator, route = answer.translator, answer.route
        if self._question.stream and not translator.ended:
            return ""
        found = {finding.kind for finding in translator.findings}
        if route.delivery == "whole" and LOST in found:
            return "it sent a call that is cut or not valid"
        return "it sent neither a text nor a call" if route.empty == "retry" and EMPTY in found else ""

    def _report(self, kind: str, message: str) -> None:
        self._exchange.findings.append(Finding(kind, message))


def _decoded(data: bytes) -> dict[str, Any]:
    body = read_values(data.decode("utf-8-sig", "replace"))
    if body is None:
        raise UpstreamFailed(f"what it sent is no reply: {data[:200].decode('utf-8', 'replace')!r}")
    return body
