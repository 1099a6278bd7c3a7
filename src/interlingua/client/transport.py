"""A transport for an SDK's HTTP client that translates on the way. SDKs use httpx, or its successor httpx2."""

from __future__ import annotations

import time
from collections.abc import AsyncIterator, Iterator
from functools import cache
from types import ModuleType
from typing import Any

from interlingua.client.crossing import Crossing, Upstream, wire_at

__all__ = ["async_transport", "transport"]

BROKEN = "the upstream broke off in the middle of its reply"


@cache
def transport(httpx: ModuleType) -> Any:
    """The class of a transport, for this httpx: it is made with who is asked, and the client that sends."""

    class Stream(httpx.SyncByteStream):  # type: ignore[misc, name-defined]
        def __init__(self, crossing: Crossing, response: Any) -> None:
            self._crossing, self._response = crossing, response

        def __iter__(self) -> Iterator[bytes]:
            broken = ""
            try:
                for data in self._response.iter_raw():
                    if sent := self._crossing.feed(data):
                        yield sent
            except httpx.TransportError as error:
                broken = f"{BROKEN}: {error}"
            yield self._crossing.close(broken)

        def close(self) -> None:
            self._crossing.leave()
            self._response.close()

    class Transport(httpx.BaseTransport):  # type: ignore[misc, name-defined]
        def __init__(self, upstream: Upstream, inner: Any) -> None:
            self._upstream, self._inner = upstream, inner

        def handle_request(self, request: Any) -> Any:
            wire = _wire_of(request)
            if wire is None:
                return self._inner.send(request, stream=True)
            crossing = Crossing(self._upstream, wire, request.read(), int(time.time()))
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
                async for data in self._response.aiter_raw():
                    if sent := self._crossing.feed(data):
                        yield sent
            except httpx.TransportError as error:
                broken = f"{BROKEN}: {error}"
            yield self._crossing.close(broken)

        async def aclose(self) -> None:
            self._crossing.leave()
            await self._response.aclose()

    class AsyncTransport(httpx.AsyncBaseTransport):  # type: ignore[misc, name-defined]
        def __init__(self, upstream: Upstream, inner: Any) -> None:
            self._upstream, self._inner = upstream, inner

        async def handle_async_request(self, request: Any) -> Any:
            wire = _wire_of(request)
            if wire is None:
                return await self._inner.send(request, stream=True)
            crossing = Crossing(self._upstream, wire, await request.aread(), int(time.time()))
            response = await self._inner.send(_asked(httpx, crossing, request), stream=True)
            if _is_stream(crossing, response):
                return _streamed(httpx, crossing, response, Stream(crossing, response))
            return _answered(httpx, crossing, response, await response.aread())

        async def aclose(self) -> None:
            await self._inner.aclose()

    return AsyncTransport


def _wire_of(request: Any) -> str | None:
    return wire_at(request.url.path) if request.method == "POST" else None


def _asked(httpx: ModuleType, crossing: Crossing, request: Any) -> Any:
    headers = crossing.headers(request.headers)
    return httpx.Request("POST", crossing.url, headers=headers, content=crossing.body, extensions=request.extensions)


def _is_stream(crossing: Crossing, response: Any) -> bool:
    return crossing.passes_as_stream(response.status_code, response.headers.get("content-type", ""))


def _streamed(httpx: ModuleType, crossing: Crossing, response: Any, stream: Any) -> Any:
    headers = crossing.response_headers(response.headers.multi_items(), response.headers["content-type"])
    return httpx.Response(response.status_code, headers=headers, stream=stream)


def _answered(httpx: ModuleType, crossing: Crossing, response: Any, body: bytes) -> Any:
    sent, type = crossing.whole(response.status_code, response.headers.get("content-type", ""), body)
    headers = crossing.response_headers(response.headers.multi_items(), type)
    return httpx.Response(response.status_code, headers=headers, content=sent)
