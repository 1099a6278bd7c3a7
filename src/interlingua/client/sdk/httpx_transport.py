"""A transport for an SDK's HTTP client that translates on the way. SDKs use httpx, or its successor httpx2."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator, Iterator
from contextlib import suppress
from functools import cache
from types import ModuleType
from typing import Any

from interlingua.client.sdk.session import Answer, Crossing, error_answer
from interlingua.client.sdk.upstream_config import Upstream, wire_at
from interlingua.errors import UsageError
from interlingua.events import Failure
from interlingua.upstreams.profile import MESSAGES

__all__ = ["async_transport", "self_closing", "transport"]

BROKEN = "the upstream broke off in the middle of its reply"
MISSING = 404


@cache
def transport(httpx: ModuleType) -> Any:
    """The class of a transport, for this httpx: it is made with who is asked, and the client that sends."""

    class Stream(httpx.SyncByteStream):  # type: ignore[misc, name-defined]
        def __init__(self, crossing: Crossing, response: Any) -> None:
            self._crossing, self._response = crossing, response

        def __iter__(self) -> Iterator[bytes]:
            broken = ""
            try:
                for data in self._response.iter_bytes():  # and not raw: some compress what they were asked not to
                    if sent := self._crossing.feed(data):
                        yield sent
            except httpx.RequestError as error:
                broken = f"{BROKEN}: {error}"
            yield self._crossing.close(broken)

        def close(self) -> None:
            self._crossing.leave()
            self._response.close()

    class Transport(httpx.BaseTransport):  # type: ignore[misc, name-defined]
        def __init__(self, upstream: Upstream, inner: Any) -> None:
            self._upstream, self._inner = upstream, inner

        def handle_request(self, request: Any) -> Any:
            upstream = self._upstream
            _must_be_for(httpx, upstream, request)
            wire = _wire_of(request)
            if wire is None:
                return _denied(httpx, upstream, request) or self._inner.send(
                    _beside(httpx, upstream, request), stream=True
                )
            crossing = Crossing(upstream, wire, request.read(), _query(request), int(time.time()))
            response = self._inner.send(_asked(httpx, crossing, request), stream=True)
            if _is_stream(crossing, response):
                return _streamed(httpx, crossing, response, Stream(crossing, response))
            return _answered(httpx, crossing, response, response.read())

        def close(self) -> None:
            self._inner.close()

    return Transport


@cache
def async_transport(httpx: ModuleType) -> Any:
    """The same, for a client with a loop."""

    class Stream(httpx.AsyncByteStream):  # type: ignore[misc, name-defined]
        def __init__(self, crossing: Crossing, response: Any) -> None:
            self._crossing, self._response = crossing, response

        async def __aiter__(self) -> AsyncIterator[bytes]:
            broken = ""
            try:
                async for data in self._response.aiter_bytes():
                    if sent := self._crossing.feed(data):
                        yield sent
            except httpx.RequestError as error:
                broken = f"{BROKEN}: {error}"
            yield self._crossing.close(broken)

        async def aclose(self) -> None:
            self._crossing.leave()
            await self._response.aclose()

    class AsyncTransport(httpx.AsyncBaseTransport):  # type: ignore[misc, name-defined]
        def __init__(self, upstream: Upstream, inner: Any) -> None:
            self._upstream, self._inner = upstream, inner

        async def handle_async_request(self, request: Any) -> Any:
            upstream = self._upstream
            _must_be_for(httpx, upstream, request)
            wire = _wire_of(request)
            if wire is None:
                return _denied(httpx, upstream, request) or await self._inner.send(
                    _beside(httpx, upstream, request), stream=True
                )
            crossing = Crossing(upstream, wire, await request.aread(), _query(request), int(time.time()))
            response = await self._inner.send(_asked(httpx, crossing, request), stream=True)
            if _is_stream(crossing, response):
                return _streamed(httpx, crossing, response, Stream(crossing, response))
            return _answered(httpx, crossing, response, await response.aread())

        async def aclose(self) -> None:
            await self._inner.aclose()

    return AsyncTransport


@cache
def self_closing(kind: type) -> type:
    """This HTTP client of an SDK, which lets go of its connections when nobody has it any more, as those do that the
    SDKs keep for themselves."""

    class SelfClosing(kind):  # type: ignore[misc]
        def __del__(self) -> None:
            with suppress(Exception):  # it may be half made, or the loop gone
                if self.is_closed:
                    return
                if hasattr(self, "aclose"):
                    asyncio.get_running_loop().create_task(self.aclose())
                else:
                    self.close()

    return SelfClosing


# ── the way there ─────────────────────────────────────────────────────────────────────────────────────────────────────


def _must_be_for(httpx: ModuleType, upstream: Upstream, request: Any) -> None:
    """Raises UsageError if the SDK was told another address since: its key is not for this upstream."""
    meant, asked = httpx.URL(upstream.url), request.url
    if (meant.scheme, meant.host, meant.port) != (asked.scheme, asked.host, asked.port):
        raise UsageError(
            f"this client is for {meant.scheme}://{meant.netloc.decode()}, and cannot ask {asked.scheme}://{asked.netloc.decode()}",
            "for another base_url make another client: interlingua.client.openai(base_url=…)",
        )


def _wire_of(request: Any) -> str | None:
    return wire_at(request.url.path) if request.method == "POST" else None


def _query(request: Any) -> str:
    return str(request.url.query.decode())


def _asked(httpx: ModuleType, crossing: Crossing, request: Any) -> Any:
    headers = crossing.headers(request.headers)
    return httpx.Request("POST", crossing.url, headers=headers, content=crossing.body, extensions=request.extensions)


def _beside(httpx: ModuleType, upstream: Upstream, request: Any) -> Any:
    """A request for something else than a reply: only where it goes is ours."""
    url = upstream.beside(request.url.path) + upstream.asked_with(_query(request))
    headers = upstream.keyed(request.headers)
    return httpx.Request(request.method, url, headers=headers, stream=request.stream, extensions=request.extensions)


# ── the way back ──────────────────────────────────────────────────────────────────────────────────────────────────────


def _denied(httpx: ModuleType, upstream: Upstream, request: Any) -> Any | None:
    """What the client hears of a request that makes no sense for this upstream."""
    why = upstream.cannot(request.url.path)
    return _response(httpx, error_answer(MESSAGES, MISSING, Failure(why)), []) if why else None


def _is_stream(crossing: Crossing, response: Any) -> bool:
    return crossing.passes_as_stream(response.status_code, response.headers.get("content-type", ""))


def _streamed(httpx: ModuleType, crossing: Crossing, response: Any, stream: Any) -> Any:
    headers = crossing.response_headers(response.headers.multi_items())
    headers.append(("content-type", response.headers["content-type"]))
    return httpx.Response(response.status_code, headers=headers, stream=stream)


def _answered(httpx: ModuleType, crossing: Crossing, response: Any, body: bytes) -> Any:
    answer = crossing.whole(response.status_code, response.headers.get("content-type", ""), body)
    return _response(httpx, answer, crossing.response_headers(response.headers.multi_items()))


def _response(httpx: ModuleType, answer: Answer, headers: list[tuple[str, str]]) -> Any:
    """As a stream, for only what is read by the client itself has its time taken."""
    said = [*headers, ("content-type", answer.type), ("content-length", str(len(answer.body)))]
    return httpx.Response(answer.status, headers=said, stream=httpx.ByteStream(answer.body))
