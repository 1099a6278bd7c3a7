"""Direct forwarding: data of a stream is translated and sent in the callback in which it arrives."""

from __future__ import annotations

import asyncio

from interlingua.gateway.aiohttp_internals import UpstreamConnection, buffered_size, take_buffered, upstream_connection
from interlingua.gateway.http.response_stream import ResponseStream
from interlingua.gateway.relay.upstream_reply import UpstreamReply

__all__ = ["DirectForwarding"]


class DirectForwarding:
    """Forwards the data of one stream without waking up the task of its request.

    Waking up a task for each token takes longer than translating it. Only short data in the middle of a stream
    is forwarded here. Everything else is left to the task: long data, the end of the reply, errors, and a client that
    reads more slowly than the upstream sends.

    Args:
        reply: The reply that is forwarded.
        stream: The response to the client, which has started.
    """

    __slots__ = (
        "_bytes_left",
        "_connection",
        "_content",
        "_observer",
        "_record",
        "_reply",
        "_secret_filter",
        "_stream",
        "_tally",
        "_translator",
        "_waiter",
        "forwarded_bytes",
    )

    def __init__(self, reply: UpstreamReply, stream: ResponseStream) -> None:
        self._reply = reply
        self._stream = stream
        self._record = reply.record
        self._observer = reply.observer
        self._secret_filter = reply.secret_filter if reply.secret_filter.has_secrets else None
        self._content = reply.response.content
        self._connection: UpstreamConnection | None = (
            upstream_connection(reply.response) if stream.can_write_now else None
        )
        self._translator = reply.translator
        self._tally = reply.translator.tally
        self._waiter: asyncio.Future[None] | None = None
        self._bytes_left = 0
        self.forwarded_bytes = 0
        """Bytes that the last `run` has received and sent."""

    async def run(self, max_bytes: int) -> None:
        """Forward data until something has to be done that is not possible here, or `max_bytes` are received and sent.

        Afterwards the reply may have `unsent` data, which the caller must send.

        Raises:
            ConnectionError: The client has closed its connection.
        """
        self.forwarded_bytes, self._bytes_left = 0, max_bytes
        connection = self._connection
        if connection is None or self._has_work_for_task():
            return
        self._waiter = asyncio.get_running_loop().create_future()
        connection.receiver = self
        try:
            await self._waiter
        finally:
            connection.receiver = None
            if self._waiter.done() and not self._waiter.cancelled():
                self._waiter.exception()  # the task may have been cancelled before it could see it
            self._waiter = None
            self.forwarded_bytes = max_bytes - self._bytes_left

    def _has_work_for_task(self) -> bool:
        """Return whether there is something to do before data can be forwarded."""
        content = self._content
        return (
            not (self._reply.receiver.is_streaming and self._translator.begun and self._stream.bytes_sent)
            or buffered_size(content) > 0
            or content.is_eof()
            or content.exception() is not None
            or self._tally.stop is not None
            or self._stream.is_full
        )

    def receive_chunk(self, data: bytes) -> bool:
        """Forward the content of an HTTP chunk, which is usually one event. Return False if it must be buffered.

        This runs for nearly every token: the usual event is forwarded with as few calls as possible.
        """
        output = None
        if self._secret_filter is None or self._secret_filter.passes(data):
            output = self._translator.forward(data)
        if output is None:
            return self._forward_unusual_chunk(data)
        record = self._record
        record.reads += 1
        record.bytes_in += len(data)
        if self._observer is not None:
            self._observer.on_forwarded(data, output)
        self._bytes_left -= len(data) + len(output)
        try:
            if self._stream.write_delta(output) or self._bytes_left < 0:
                self._wake_task()
        except Exception as error:  # noqa: BLE001 - the task handles any error, as if it had raised it
            self._wake_task(error)
        return True

    def _forward_unusual_chunk(self, data: bytes) -> bool:
        if len(data) > self._reply.max_inline_bytes:
            return False
        self._forward(data)
        return True

    def receive_progress(self) -> None:
        """Forward what has arrived. Called after each read from the upstream's socket, and when the connection ends."""
        data = take_buffered(self._content, self._reply.max_inline_bytes)
        if data is None:
            self._wake_task()
        elif data:  # otherwise only a part of the HTTP framing has arrived
            self._forward(data)

    def _forward(self, data: bytes) -> None:
        """Translate and send any short data."""
        translator, tally = self._translator, self._tally
        try:
            self._reply.record_received(data)
            redacted = self._reply.secret_filter.feed(data)
            output = translator.feed(redacted) if redacted else b""
            self._bytes_left -= len(data) + len(output)
            if tally.failure is not None:  # the task redacts errors
                self._reply.unsent = output
                self._wake_task()
                return
            if output:
                if self._observer is not None:
                    self._observer.on_sent(output)
                self._stream.write_now(output)
        except Exception as error:  # noqa: BLE001 - the task handles any error, as if it had raised it
            self._wake_task(error)
            return
        if self._bytes_left < 0 or tally.stop is not None or translator.ended or self._stream.is_full:
            self._wake_task()

    def _wake_task(self, error: Exception | None = None) -> None:
        assert self._connection is not None
        assert self._waiter is not None, "data is forwarded only while `run` waits"
        if self._waiter.done():  # the task is cancelled
            return
        self._connection.receiver = None
        if error is not None:
            self._waiter.set_exception(error)
        else:
            self._waiter.set_result(None)
