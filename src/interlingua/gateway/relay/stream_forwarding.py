"""Forwarding of a streamed reply to the client, up to its last frames."""

from __future__ import annotations

from collections.abc import Awaitable, Callable

from interlingua.gateway.http.deadline import DeadlineExceeded, MovingDeadline
from interlingua.gateway.http.memory_budget import UNCHECKED_BYTES, MemoryShare
from interlingua.gateway.http.response_stream import ResponseStream
from interlingua.gateway.relay.direct_forwarding import DirectForwarding
from interlingua.gateway.relay.upstream_reply import UpstreamReply
from interlingua.gateway.settings.schema import Settings
from interlingua.translation.upstream_errors import UpstreamFailed
from interlingua.wires import get_wire

__all__ = ["CLIENT", "StreamForwarding"]

UPSTREAM_CLOSE_TIMEOUT_SECONDS = 5.0
"""Time for an upstream to close its stream after the reply is complete."""
MEMORY_COUNT_BYTES = UNCHECKED_BYTES
"""Bytes of a stream after which the memory that it holds is counted; more if it holds more."""
CLIENT = "the client"
"""Name of the operation for timeouts while data is sent to the client."""


class StreamForwarding:
    """Forwards the stream of one reply. What is read from the upstream at once becomes one write to the client.

    Most data is forwarded by `DirectForwarding`, without this task. The task handles the rest: long data, the end of
    the reply, errors, and a client that does not read. While it does not, at most one more piece is read from the
    upstream, so that a slow client applies back-pressure to it.

    Args:
        reply: The reply, of which `initial_data` is to be sent first.
        stream: The response to the client.
        send: Sends data to the client, with what has to be done before.
        memory: The share of the memory budget that the request has.
        settings: Settings of the gateway.
    """

    __slots__ = ("_memory", "_next_count", "_reply", "_send", "_settings", "_stream", "_uncounted")

    def __init__(
        self,
        reply: UpstreamReply,
        stream: ResponseStream,
        send: Callable[[bytes], Awaitable[None]],
        memory: MemoryShare,
        settings: Settings,
    ) -> None:
        self._reply = reply
        self._stream = stream
        self._send = send
        self._memory = memory
        self._settings = settings
        self._uncounted = 0  # bytes since the memory was counted
        self._next_count = MEMORY_COUNT_BYTES  # bytes after which it is counted again

    async def run(self) -> bytes:
        """Forward the stream up to its last frames, and return these. Another coroutine would add memory to all
        streams.

        Raises:
            ConnectionError: The client has closed its connection.
            DeadlineExceeded: The client does not read.
            OutOfMemory: The stream holds more memory than the budget has left.
        """
        reply, translator, stats = self._reply, self._reply.translator, self._reply.translator.tally
        timeouts = reply.route.timeouts
        output, reply.initial_data = reply.initial_data, b""
        self._memory.resize(translator.held_bytes + len(output))
        try:
            with MovingDeadline(reply.record.received_bytes) as deadline:
                deadline.call_every(self._settings.keepalive, self._keep_alive)
                deadline.set_final_timeout("the stream", timeouts.stream)
                forwarding = DirectForwarding(reply, self._stream)
                while not translator.ended:
                    if output or self._stream.is_full:
                        deadline.set_timeout(CLIENT, self._settings.limits.send)
                        await self._send(output)
                        output = b""  # release the memory while the upstream is silent
                        await self._stream.drain()
                    close_timeout = min(UPSTREAM_CLOSE_TIMEOUT_SECONDS, timeouts.idle)
                    deadline.set_timeout("the next event", timeouts.idle if stats.stop is None else close_timeout)
                    await forwarding.run(self._next_count - self._uncounted)
                    output = reply.take_unsent()
                    if forwarding.forwarded_bytes:
                        self._count_memory(forwarding.forwarded_bytes, output)
                    else:
                        data = await reply.read()
                        output = await reply.translate(data)
                        self._count_memory(len(data) + len(output), output)
        except UpstreamFailed as error:
            output = reply.take_unsent() + await reply.abort(f"{reply.route.name}: {error}")
        except DeadlineExceeded as error:
            if error.operation == CLIENT:
                raise
            timeout = f"{reply.route.name}: {error}"
            output = reply.take_unsent() + await reply.abort(timeout, "timeout_error")
        return output

    def _count_memory(self, size: int, output: bytes) -> None:
        """Count the memory of the stream from time to time, after this many bytes have been received and sent."""
        translator = self._reply.translator
        self._uncounted += size
        if self._uncounted > self._next_count and not translator.ended:  # the last frames are sent in any case
            self._memory.resize(translator.held_bytes + len(output))
            self._uncounted, self._next_count = 0, max(MEMORY_COUNT_BYTES, self._memory.size // 4)

    def _keep_alive(self) -> None:
        self._stream.keep_alive(get_wire(self._reply.record.wire).HTTP_API.keepalive_frame)
