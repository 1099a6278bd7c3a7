"""Reply of an upstream: its data as it is received, recorded and translated."""

from __future__ import annotations

import aiohttp

from interlingua.errors import UpstreamError
from interlingua.gateway.aiohttp_internals import take_before_error
from interlingua.gateway.observability.exchange_record import ExchangeRecord
from interlingua.gateway.observability.traffic_observers import TrafficObserver
from interlingua.gateway.routing.routes import Route
from interlingua.gateway.upstream.http_client import broken_reply
from interlingua.gateway.upstream.secret_filter import SecretFilter
from interlingua.gateway.work_threads import MAX_INLINE_TEXT_BYTES, WorkThreads
from interlingua.translation.exchange import ReplyReceiver
from interlingua.translation.translator import Translator
from interlingua.translation.upstream_errors import UpstreamFailed

__all__ = ["UpstreamReply"]

LONG_REPLY_BYTES = 128 * 1024
"""Size of the text of a reply from which on the end of a part of it, which some wires repeat, is not short work."""


class UpstreamReply:
    """Reply of an upstream that has started.

    Args:
        route: The route to the upstream.
        response: The upstream's response.
        receiver: Translates the reply.
        secret_filter: Replaces the upstream's key in the reply.
        client_id: The client, for the fair use of the threads.
        record: The record of the exchange, in which received data is counted.
        observer: Observes the data.
        work_threads: The threads for long work.
    """

    __slots__ = (
        "_client_id",
        "_work_threads",
        "content_type",
        "initial_data",
        "input_tokens",
        "observer",
        "receiver",
        "record",
        "response",
        "returned_headers",
        "route",
        "secret_filter",
        "translator",
        "unsent",
    )

    def __init__(
        self,
        route: Route,
        response: aiohttp.ClientResponse,
        receiver: ReplyReceiver,
        secret_filter: SecretFilter,
        *,
        client_id: str,
        record: ExchangeRecord,
        observer: TrafficObserver | None,
        work_threads: WorkThreads,
    ) -> None:
        self.route = route
        self.response = response
        self.receiver = receiver
        self.translator: Translator = receiver.translator
        self.secret_filter = secret_filter
        self.record = record
        self.observer = observer
        self._client_id = client_id
        self._work_threads = work_threads
        self.returned_headers: dict[str, str] = {}
        """Headers of the response that the client gets."""
        self.content_type = ""
        self.input_tokens = 0
        """Estimated input tokens that are reported to the client."""
        self.initial_data = b""
        """Translated data to send to the client first: the beginning of a stream, or a whole reply."""
        self.unsent = b""
        """Translated data that must be redacted before it is sent: an error in the middle of a stream."""

    async def read(self) -> bytes:
        """Return the next bytes of the response, without the upstream's key; b"" at its end.

        Raises:
            UpstreamFailed: The connection is lost.
        """
        content = self.response.content
        while True:
            try:
                data = take_before_error(content) or await content.readany()
            except (aiohttp.ClientError, OSError) as error:
                raise broken_reply(error) from error
            if not data:
                return self.secret_filter.flush()
            self.record_received(data)
            if data := self.secret_filter.feed(data):
                return data

    def record_received(self, data: bytes) -> None:
        """Record data of the response, as it was received."""
        self.record.reads += 1
        self.record.bytes_in += len(data)
        if self.observer is not None:
            self.observer.on_received(data)

    async def translate(self, data: bytes) -> bytes:
        """Return the output for the next data of the response, or for its end (b"").

        Raises:
            UpstreamFailed: The reply is too large.
        """
        if data and not self.receiver.is_streaming:
            return self._receive(data)  # it is buffered
        if data:
            size = len(data) + self._carried_over_bytes
        else:
            size = self.receiver.pending_bytes + self.translator.held_bytes
        return await self._work_threads.parse(self._client_id, size, self._receive, data)

    def _receive(self, data: bytes) -> bytes:
        try:
            return self.receiver.feed(data) if data else self.receiver.close()
        except UpstreamError as error:  # too large
            raise UpstreamFailed(str(error), retryable=False) from error

    async def abort(self, message: str, type: str = "api_error") -> bytes:
        """Return the last output for a stream that was cut off."""
        translator = self.translator
        return await self._work_threads.parse(self._client_id, translator.held_bytes, translator.abort, message, type)

    @property
    def max_inline_bytes(self) -> int:
        """Size of the data that can be translated without a thread."""
        return MAX_INLINE_TEXT_BYTES - self._carried_over_bytes

    @property
    def _carried_over_bytes(self) -> int:
        """Size of what is translated together with the next data of a stream, however short that is."""
        size = self.translator.pending_bytes
        if self.translator.tally.content_bytes > LONG_REPLY_BYTES:
            size += self.translator.held_bytes  # the end of a part of the reply repeats its text
        return size

    def take_unsent(self) -> bytes:
        data, self.unsent = self.unsent, b""
        return data

    def discard(self) -> None:
        """Close the connection of a reply whose rest is not needed, and free its memory."""
        self.response.close()
        self.translator.release()
