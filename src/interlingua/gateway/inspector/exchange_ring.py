"""Ring of exchanges in memory: the newest ones, up to a number of bytes. The oldest ones are dropped first."""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Callable
from time import monotonic
from typing import assert_never

from interlingua.captures.capture_format import (
    AnsweredLine,
    CapturedExchange,
    CaptureLine,
    ClientRequestLine,
    EndLine,
    FindingsLine,
    ReceivedLine,
    SentLine,
    UpstreamRequestLine,
    encode_data_fields,
)
from interlingua.gateway.inspector.exchange_source import ChangeLog, UnknownExchange
from interlingua.gateway.inspector.feed_protocol import (
    AnsweredItem,
    AskedItem,
    BeginFrame,
    EndFrame,
    ForwardedItem,
    Item,
    ReceivedItem,
    RequestItem,
    SentItem,
    decode_items,
)
from interlingua.gateway.inspector.growing_summary import GrowingSummary
from interlingua.gateway.observability.redacted_lines import redact_capture
from interlingua.gateway.settings.redaction import Redactor
from interlingua.inspection.exchange_summary import SummarizedExchange

__all__ = ["ExchangeRing", "RecordedExchange"]

OVERHEAD_BYTES = 2000
"""Memory of an exchange besides its data."""
WORKER_DIED = "worker-died"
WORKER_DIED_MESSAGE = "the worker process that served this request has died: see the log of the gateway"
FACTS_OF_ABANDONED = (
    *("wire", "path", "upstream", "upstream_wire", "upstream_model", "dialect"),
    *("status", "attempts", "bytes_in", "bytes_out"),
)
"""Fields of the summary of an exchange that has no end, which become those of its end."""
MAX_SHARE = 4
"""One exchange may use up to this part of the memory: a quarter. The rest of it is not recorded."""


class RecordedExchange:
    """One exchange, as the worker sent it. It is decoded and redacted when a page asks for it."""

    def __init__(self, begin: BeginFrame, redactor: Redactor) -> None:
        self._begin = begin
        self._redactor = redactor
        self._blocks: list[bytes] = []
        self._end: EndFrame | None = None
        self._is_cut = False
        self._growing = GrowingSummary(self._request_line(0.0, {}, b""), redactor)
        self._read_blocks = 0
        """Number of blocks that `_growing` has."""
        self._summary: tuple[int, SummarizedExchange] | None = None
        self._summary_lock = threading.Lock()
        self.size = OVERHEAD_BYTES
        self.data_bytes = 0
        self.version = 0

    @property
    def id(self) -> str:
        return self._begin.id

    @property
    def is_finished(self) -> bool:
        return self._end is not None

    def add(self, block: bytes, max_bytes: int) -> int:
        """Add encoded items, and return the memory that they use. Beyond `max_bytes` they are dropped."""
        self.version += 1
        self.data_bytes += len(block)
        if self._is_cut or self.size + len(block) > max_bytes:
            self._is_cut = True
            return 0
        self._blocks.append(block)
        self.size += len(block)
        return len(block)

    def finish(self, end: EndFrame) -> None:
        self.version += 1
        self._end = end

    def abandon(self, at: float) -> None:
        """End an exchange whose worker has died at this time, with what is known of it."""
        known = self.summarized().summary
        summary = {name: getattr(known, name) for name in FACTS_OF_ABANDONED}
        summary |= {"first_byte_seconds": known.first_byte, "seconds": self._at(at)}
        summary |= {"outcome": WORKER_DIED, "error": WORKER_DIED_MESSAGE}
        self.finish(EndFrame(number=self._begin.number, at=at, summary=summary, findings=[], truncated=False))

    def captured(self) -> CapturedExchange:
        """Return the exchange without secrets."""
        lines = [line for block in list(self._blocks) for line in self._lines_of(block)]
        if (end := self._end) is not None:
            lines += [FindingsLine(at=self._at(end.at), findings=end.findings)] if end.findings else []
            lines.append(self._end_line(end))
        return redact_capture(CapturedExchange(lines), self._redactor)

    def summarized(self) -> SummarizedExchange:
        """Return the summary. For it, each block is decoded once at most."""
        with self._summary_lock:
            if self._summary is None or self._summary[0] != self.version:
                version, end = self.version, self._end
                self._read_new_blocks()
                summarized = self._growing.summarize(self._end_line(end) if end else None, self.data_bytes)
                self._summary = version, summarized
            return self._summary[1]

    def _read_new_blocks(self) -> None:
        """Add new blocks to the summary. Of an exchange that has ended, only the request is needed."""
        blocks = list(self._blocks)
        while self._read_blocks < len(blocks) and not (self.is_finished and self._growing.has_request):
            self._growing.add(self._lines_of(blocks[self._read_blocks]))
            self._read_blocks += 1

    def _lines_of(self, block: bytes) -> list[CaptureLine]:
        return [line for item in decode_items(block) for line in self._to_lines(item)]

    def _end_line(self, end: EndFrame) -> EndLine:
        return EndLine(at=self._at(end.at), exchange=end.summary, truncated=end.truncated or self._is_cut)

    def _at(self, moment: float) -> float:
        return round(max(moment - self._begin.started, 0.0), 6)

    def _to_lines(self, item: Item) -> list[CaptureLine]:
        """Return the lines of a capture for an item. They still have secrets."""
        at = self._at(item.at)
        match item:
            case RequestItem():
                return [self._request_line(at, item.headers, item.body)]
            case AskedItem():
                data = encode_data_fields(item.body)
                return [UpstreamRequestLine(at=at, url=item.url, headers=item.headers, route=item.route, **data)]
            case AnsweredItem():
                seconds = item.connect_seconds
                return [AnsweredLine(at=at, status=item.status, headers=item.headers, connect_seconds=seconds)]
            case ReceivedItem():
                return [ReceivedLine(at=at, **encode_data_fields(item.data))]
            case SentItem():
                return [SentLine(at=at, **encode_data_fields(item.data))]
            case ForwardedItem():
                return [
                    ReceivedLine(at=at, **encode_data_fields(item.received)),
                    SentLine(at=at, **encode_data_fields(item.sent)),
                ]
            case _:
                assert_never(item)

    def _request_line(self, at: float, headers: dict[str, str], body: bytes) -> ClientRequestLine:
        begin = self._begin
        return ClientRequestLine(
            at=at,
            id=begin.id,
            time=begin.time,
            path=begin.path,
            wire=begin.wire,
            headers=headers,
            **encode_data_fields(body),
        )


class ExchangeRing:
    """The newest exchanges of a gateway.

    Args:
        max_bytes: Memory for them.
        on_finished: Called with each exchange that has ended.
    """

    is_live = True

    def __init__(self, max_bytes: int, on_finished: Callable[[RecordedExchange], None] | None = None) -> None:
        self._max_bytes = max_bytes
        self._on_finished = on_finished
        self._exchanges: OrderedDict[str, RecordedExchange] = OrderedDict()
        self._lock = threading.Lock()
        self._size = 0
        self.changes = ChangeLog()

    def begin(self, begin: BeginFrame, redactor: Redactor) -> RecordedExchange:
        exchange = RecordedExchange(begin, redactor)
        with self._lock:
            self._exchanges[exchange.id] = exchange
        self._size += exchange.size
        self.changes.add(exchange.id)
        self._drop_oldest()
        return exchange

    def add(self, exchange: RecordedExchange, block: bytes) -> None:
        self._size += exchange.add(block, self._max_bytes // MAX_SHARE)
        self.changes.add(exchange.id)
        self._drop_oldest()

    def finish(self, exchange: RecordedExchange, end: EndFrame) -> None:
        exchange.finish(end)
        self._announce_end(exchange)

    def abandon(self, exchange: RecordedExchange) -> None:
        """End an exchange whose worker has died. It is kept: a crash is what somebody looks for."""
        exchange.abandon(monotonic())
        self._announce_end(exchange)

    def _announce_end(self, exchange: RecordedExchange) -> None:
        self.changes.add(exchange.id)
        if self._on_finished is not None:
            self._on_finished(exchange)

    def _drop_oldest(self) -> None:
        while self._size > self._max_bytes and len(self._exchanges) > 1:
            self._remove(next(iter(self._exchanges)))

    def _remove(self, id: str) -> None:
        with self._lock:
            exchange = self._exchanges.pop(id, None)
        if exchange is not None:
            self._size -= exchange.size
            self.changes.remove(id)

    # ── for the page ──────────────────────────────────────────────────────────────────────────────────────────────────

    def list_exchanges(self) -> list[SummarizedExchange]:
        with self._lock:
            exchanges = list(self._exchanges.values())
        return [exchange.summarized() for exchange in exchanges]

    def find_summary(self, id: str) -> SummarizedExchange:
        return self._find(id).summarized()

    def load(self, id: str) -> CapturedExchange:
        return self._find(id).captured()

    def _find(self, id: str) -> RecordedExchange:
        with self._lock:
            exchange = self._exchanges.get(id)
        if exchange is None:
            raise UnknownExchange(id)
        return exchange
