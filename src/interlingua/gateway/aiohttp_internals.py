"""Private attributes and methods of aiohttp that the gateway uses, all in this module.

aiohttp has no public equivalent for them and may change them in any release. `pyproject.toml` allows only releases with
which `tests/gateway/test_aiohttp_internals.py` passes, which has a test for each attribute, and later patch releases.
"""

from __future__ import annotations

import asyncio
import gc
from functools import partial
from typing import Any, Protocol, TypeVar

import aiohttp
from aiohttp import web
from aiohttp.abc import AbstractStreamWriter
from aiohttp.client_proto import ResponseHandler
from aiohttp.client_reqrep import RequestInfo
from aiohttp.http import HttpRequestParser, RawRequestMessage
from aiohttp.http_exceptions import HttpProcessingError
from aiohttp.http_writer import StreamWriter
from aiohttp.streams import EmptyStreamReader
from multidict import CIMultiDict, CIMultiDictProxy
from yarl import URL

from interlingua.gateway.chunk_framing import unframe_chunk

__all__ = [
    "BodyReceiver",
    "EventStreamResponse",
    "SmallQueue",
    "UpstreamConnection",
    "UpstreamConnector",
    "UpstreamResponse",
    "buffered_size",
    "current_request",
    "is_chunked",
    "is_idle",
    "release_metadata",
    "release_raw_headers",
    "release_request_parser",
    "release_response_headers",
    "replace_queues",
    "request_count",
    "restore_parser",
    "stop_keepalive_timer",
    "take_before_error",
    "take_buffered",
    "upstream_connection",
]

MAX_INTERIM_RESPONSES = 100
NO_HEADERS: CIMultiDictProxy[str] = CIMultiDictProxy(CIMultiDict())
SENT_HEADERS: CIMultiDict[str] = CIMultiDict()
NO_REQUEST_INFO = RequestInfo(URL(), "", NO_HEADERS, URL())

# CPython stores the attributes of an object compactly if its class got to know them early: an attribute that only the
# fiftieth writer has takes 400 bytes more, and so it does in all writers after it.
StreamWriter.__new__(StreamWriter).chunked = True

T = TypeVar("T")


class SmallQueue(list[T]):
    """Queue that is empty most of the time, instead of a `deque`, which takes 760 bytes even then."""

    __slots__ = ()

    def popleft(self) -> T:
        return self.pop(0)


def replace_queues(content: aiohttp.StreamReader) -> None:
    """Save the memory of the queues of a body, which are empty most of the time."""
    if isinstance(content, EmptyStreamReader):  # all messages without a body share it
        return
    content._buffer = SmallQueue(content._buffer)  # type: ignore[assignment]
    content._http_chunk_splits = SmallQueue(content._http_chunk_splits or ())  # type: ignore[assignment]


def release_metadata(response: aiohttp.ClientResponse) -> None:
    """Release the headers of a response and of its request, which aiohttp would keep as long as the body lasts."""
    response._headers, response._raw_headers, response._request_info = NO_HEADERS, (), NO_REQUEST_INFO
    response._cache.clear()
    connection = upstream_connection(response)
    if connection is not None and connection._parser is not None:
        _release_parsed_headers(connection._parser)


def _release_parsed_headers(parser: object) -> None:
    """Release the headers that the parser of a connection keeps until the next response, in two lists of pairs.

    The attributes of the compiled parser cannot be read in Python, but the garbage collector knows the lists.
    """
    for value in gc.get_referents(parser):
        if type(value) is list and value and isinstance(value[0], tuple) and isinstance(value[0][0], str | bytes):
            value.clear()


def release_raw_headers(connection: web.RequestHandler) -> None:
    """Release the second copy of the headers, as bytes, of the requests that wait for their handler."""
    for position, (message, body) in enumerate(connection._messages):
        if isinstance(message, RawRequestMessage):
            connection._messages[position] = message._replace(raw_headers=()), body


def release_response_headers(response: web.StreamResponse) -> None:
    """Release the headers of a response to a client, which are sent."""
    response._headers = SENT_HEADERS


def release_request_parser(request: web.BaseRequest) -> None:
    """Release the parser that has read a request, with the headers that it keeps, and the cached values of the request.

    Only for connections that call `restore_parser`. If the parser has read the beginning of another request, which
    hardly any client sends before the response, the connection is closed after the response.
    """
    request._cache.clear()
    connection = request._protocol
    parser = connection._parser
    if parser is None or connection._messages or connection._upgraded:
        return
    try:
        has_unfinished_request = parser.feed_eof() is not None
    except (HttpProcessingError, ValueError):
        has_unfinished_request = True
    if has_unfinished_request:
        connection.close()
    connection._parser = None


def restore_parser(connection: web.RequestHandler) -> None:
    """Create the parser of a connection again if it was released, as aiohttp creates it."""
    if connection._parser is None:
        connection._parser = HttpRequestParser(
            connection,
            connection._loop,
            connection._read_bufsize,
            max_line_size=connection.max_line_size,
            max_field_size=connection.max_field_size,
            max_headers=connection.max_headers,
            payload_exception=web.RequestPayloadError,
            auto_decompress=False,
            max_msg_queue_size=connection._max_msg_queue_size,
        )


def stop_keepalive_timer(connection: web.RequestHandler) -> None:
    """Stop the timer that closes an idle connection. aiohttp starts it again after the next response."""
    if connection._keepalive_handle is not None:
        connection._keepalive_handle.cancel()
        connection._keepalive_handle = None


def request_count(connection: web.RequestHandler) -> int:
    """Return the number of requests of which the connection has received the headers.

    The timeout for request headers ends when this number grows: aiohttp has no callback for complete headers.
    """
    return connection._request_count


def is_idle(connection: web.RequestHandler) -> bool:
    """Return whether the connection waits for the headers of a request.

    Data on an idle connection starts the timeout for request headers. Other data belongs to the body of a request.
    """
    waiter = connection._waiter
    return waiter is not None and not waiter.done()


def current_request(connection: web.RequestHandler) -> web.BaseRequest | None:
    """Return the request that a handler is processing.

    A client that closes its sending side gets an error response to this request: aiohttp ignores the event.
    """
    return connection._current_request


class EventStreamResponse(web.StreamResponse):
    """Response whose headers are sent together with its first data: in one system call, and one packet."""

    _send_headers_immediately = False


def is_chunked(writer: AbstractStreamWriter) -> bool:
    """Return whether the body of a response is sent in chunks."""
    assert isinstance(writer, StreamWriter), "the writer of an HTTP/1 response"
    return writer.chunked


def buffered_size(content: aiohttp.StreamReader) -> int:
    """Return the number of bytes of a body that have arrived and are not read yet."""
    return content._size


def take_buffered(content: aiohttp.StreamReader, max_size: int) -> bytes | None:
    """Take all that has arrived of a body: what `content.read_nowait` returns, in a quarter of the time.

    None if more than `max_size` bytes have arrived, or if the body has ended or failed. `max_size` must be below the
    size at which aiohttp pauses the connection, because it is not resumed here.
    """
    if content._eof or content._exception is not None or content._size > max_size:
        return None
    pieces = content._buffer
    if content._buffer_offset:
        return content.read_nowait()
    if len(pieces) == 1:
        data = pieces.pop()
    else:
        data = b"".join(pieces)
        pieces.clear()
    content._size = 0
    content._cursor += len(data)
    if content._http_chunk_splits:
        content._http_chunk_splits.clear()
    return data


def take_before_error(content: aiohttp.StreamReader) -> bytes:
    """Take what has arrived of a body before it failed; b"" if it has not failed. `readany` would raise the error."""
    if content._exception is None or not content._buffer:
        return b""
    data = b"".join(content._buffer)[content._buffer_offset :]
    content._buffer.clear()
    content._size = content._buffer_offset = 0
    return data


def upstream_connection(response: aiohttp.ClientResponse) -> UpstreamConnection | None:
    """Return the connection that a body is received from; None if it has been received completely."""
    protocol = response.connection.protocol if response.connection is not None else None
    return protocol if isinstance(protocol, UpstreamConnection) else None


def _has_added_chunk(body: aiohttp.StreamReader, added_size: int, data: bytes) -> bool:
    """Return whether the parser has read `data` as just one chunk, and added its content to the body unchanged.

    Then the parser waits for the size of the next chunk. It can do without whole chunks from then on: they do not
    change its state. This is false for bodies that are not chunked, or compressed.
    """
    content = unframe_chunk(data)
    return content is not None and added_size == len(content) and bool(body._buffer) and body._buffer[-1] == content


class BodyReceiver(Protocol):
    """Receiver of the body of a response, while no task waits for it in `content.readany`."""

    def receive_chunk(self, content: bytes) -> bool:
        """Take the content of a chunk instead of aiohttp's parser, if a read is just one chunk. Return False to leave
        the chunk to the parser."""
        ...

    def receive_progress(self) -> None:
        """Handle what aiohttp has read, or the end or failure of the connection."""
        ...


class UpstreamConnection(ResponseHandler):
    """Connection to an upstream that is reused only if the upstream sent nothing but the requested responses.

    aiohttp takes a response that arrives on an idle connection for the response to the next request, which may be of
    another client.

    aiohttp parses any number of interim responses (status 1xx) before the response, without a pause. More than
    `MAX_INTERIM_RESPONSES` are an error.

    A read that is just one chunk of a chunked body need not go through aiohttp's parser and the buffer of the body: see
    `BodyReceiver`. That is a third of the CPU time per token.

    Reading is resumed only if it is paused. aiohttp resumes the connection after every read, paused or not, and runs
    its parser on the remaining data. That is a tenth of the CPU time per token.
    """

    # An object with more than 30 attributes outside of slots needs 1.5 KB more, and aiohttp has 21 of them.
    __slots__ = ("_is_between_chunks", "_status_lines", "is_idle", "receiver")

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        super().__init__(loop)
        self._buffer = SmallQueue()  # type: ignore[assignment]
        self.is_idle = True
        """True as long as no request waits for a response."""
        self.receiver: BodyReceiver | None = None
        self._is_between_chunks = False  # whether aiohttp's parser waits for the size of the next chunk
        self._status_lines = 0  # that have arrived since the request was sent

    def set_response_params(self, **params: Any) -> None:  # called before each request is sent
        self.is_idle = False
        self._is_between_chunks = False
        self._status_lines = 0
        super().set_response_params(**params)

    def data_received(self, data: bytes) -> None:
        if self._is_between_chunks and self.receiver is not None:
            content = unframe_chunk(data)
            if content is not None and self.receiver.receive_chunk(content):
                return
        self._feed_parser(data)

    def _feed_parser(self, data: bytes) -> None:
        if self.is_idle:
            self.close()
        elif self._payload is None and self._has_too_many_status_lines(data):
            self.set_exception(aiohttp.ClientConnectionError("too many interim responses (status 1xx)"))
            self.close()
        elif self.receiver is None or self._payload is None:
            self._is_between_chunks = False
            super().data_received(data)
        else:
            body, size_before = self._payload, self._payload.total_bytes
            super().data_received(data)
            self._is_between_chunks = _has_added_chunk(body, body.total_bytes - size_before, data)
            self._report_progress()

    def close(self) -> None:
        """Close the connection, and drop a response that nobody will take: aiohttp would keep it in a cycle."""
        super().close()
        self._buffer.clear()

    def connection_lost(self, exc: BaseException | None) -> None:
        super().connection_lost(exc)
        self._report_progress()

    def _report_progress(self) -> None:
        if self.receiver is not None:
            self.receiver.receive_progress()

    def _has_too_many_status_lines(self, data: bytes) -> bool:
        self._status_lines += data.count(b"HTTP/1.")
        return self._status_lines > MAX_INTERIM_RESPONSES

    def set_exception(self, exc: BaseException, *cause: BaseException) -> None:
        """End the response with an error, also its body: aiohttp waits for the rest of a body with invalid framing."""
        super().set_exception(exc, *cause)
        body = self._payload
        if body is not None and not body.is_eof() and body.exception() is None:
            body.set_exception(aiohttp.ClientPayloadError(str(exc)))
        self._report_progress()

    def is_connected(self) -> bool:
        """Return whether the connection can be used. The connector calls it before it reuses an idle connection."""
        return super().is_connected() and not (self.is_idle and self._has_unasked_data())

    def _has_unasked_data(self) -> bool:
        """Return whether data followed the last response before the connection became idle."""
        if self._buffer:  # a complete response
            return True
        try:  # the parser returns or refuses the start of a response
            return self._parser is not None and self._parser.feed_eof() is not None
        except (HttpProcessingError, ValueError):
            return True

    def resume_reading(self, resume_parser: bool = True) -> None:
        if self._reading_paused:
            super().resume_reading(resume_parser)


class UpstreamResponse(aiohttp.ClientResponse):
    """Response of an upstream, in less memory: CPython stores only some twenty attributes of an object compactly."""

    __slots__ = (
        "_cache",
        "_loop",
        "_real_url",
        "_request_info",
        "_timer",
        "_traces",
        "_url",
        "method",
    )


class UpstreamConnector(aiohttp.TCPConnector):
    """Connection pool of `UpstreamConnection`s: aiohttp has no option for the protocol class."""

    def __init__(self, **options: Any) -> None:
        super().__init__(**options)
        self._factory = partial(UpstreamConnection, loop=asyncio.get_running_loop())  # type: ignore[assignment]

    def _release(self, key: Any, protocol: ResponseHandler, *, should_close: bool = False) -> None:
        """Return the connection to the pool at the end of a response, or close it."""
        assert isinstance(protocol, UpstreamConnection), "made by _factory"
        protocol.is_idle = True
        super()._release(key, protocol, should_close=should_close)
