"""Ring of exchanges in memory: the newest ones, up to a number of bytes. The oldest ones are dropped first."""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Callable, Iterable

from interlingua.captures.capture_format import (
    CapturedExchange,
    CaptureLine,
    ClientRequestLine,
    EndLine,
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
from interlingua.gateway.observability.redacted_lines import RedactedLines
from interlingua.gateway.settings.redaction import Redactor
from interlingua.inspection.exchange_summary import ExchangeSummary, SummarizedExchange, summarize

__all__ = ["ExchangeRing", "RecordedExchange"]

OVERHEAD_BYTES = 2000
"""Memory of an exchange besides its data."""
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
        self._summary: tuple[int, SummarizedExchange] | None = None
        self.size = OVERHEAD_BYTES
        self.data_bytes = 0
        self.version = 0

    @property
    def id(self) -> str:
        return self._begin.id

    @property
    def is_finished(self) -> bool:
        return self._end is not None

    def add(self, block: bytes, data_bytes: int, max_bytes: int) -> int:
        """Add encoded items, and return the memory that they use. Beyond `max_bytes` they are dropped."""
        self.version += 1
        self.data_bytes += data_bytes
        if self._is_cut or self.size + len(block) > max_bytes:
            self._is_cut = True
            return 0
        self._blocks.append(block)
        self.size += len(block)
        return len(block)

    def finish(self, end: EndFrame) -> None:
        self.version += 1
        self._end = end

    def lines(self) -> list[CaptureLine]:
        """Return the lines of the exchange without secrets."""
        lines: list[CaptureLine] = []
        writer = RedactedLines(self._redactor, lines.append)
        for item in self._items():
            self._write(item, writer)
        end = self._end
        if end is not None:
            writer.finish(self._at(end.at), end.findings, end.summary, end.truncated or self._is_cut)
        else:
            writer.flush()
        return lines

    def summarized(self) -> SummarizedExchange:
        """Return the summary. Chunks are not needed for it, and not decoded."""
        if self._summary is not None and self._summary[0] == self.version:
            return self._summary[1]
        version, lines = self.version, self._lines_for_summary()
        summarized = summarize(lines)
        if not self.is_finished:
            summarized.summary.bytes_in = self.data_bytes
        headers = next((line.headers for line in lines if isinstance(line, ClientRequestLine)), {})
        _redact_summary(summarized.summary, self._redactor.with_credentials(headers))
        self._summary = version, summarized
        return summarized

    def _items(self) -> Iterable[Item]:
        for block in list(self._blocks):
            yield from decode_items(block)

    def _at(self, moment: float) -> float:
        return round(max(moment - self._begin.started, 0.0), 6)

    def _write(self, item: Item, writer: RedactedLines) -> None:
        begin, at = self._begin, self._at(item.at)
        match item:
            case RequestItem():
                writer.write_request(at, begin.id, begin.time, begin.path, begin.wire, item.headers, item.body)
            case AskedItem():
                writer.write_upstream_request(at, item.url, item.headers, item.body, item.route)
            case AnsweredItem():
                writer.write_response(at, item.status, item.headers, item.connect_seconds)
            case ReceivedItem():
                writer.write_data(at, ReceivedLine, item.data)
            case SentItem():
                writer.write_data(at, SentLine, item.data)
            case ForwardedItem():
                writer.write_data(at, ReceivedLine, item.received)
                writer.write_data(at, SentLine, item.sent)

    def _lines_for_summary(self) -> list[CaptureLine]:
        """Return the lines that a summary is made of. They still have secrets."""
        begin = self._begin
        lines: list[CaptureLine] = []
        first_data: float | None = None
        for block in self._blocks[:1] if self.is_finished else self._blocks:
            for item in decode_items(block):
                at = self._at(item.at)
                match item:
                    case RequestItem():
                        lines.append(
                            ClientRequestLine(
                                at=at,
                                id=begin.id,
                                time=begin.time,
                                path=begin.path,
                                wire=begin.wire,
                                headers=item.headers,
                                **encode_data_fields(item.body),
                            )
                        )
                    case AskedItem():
                        lines.append(UpstreamRequestLine(at=at, url=item.url, headers={}, route=item.route))
                    case ReceivedItem() | ForwardedItem() if first_data is None:
                        first_data = at
                        lines.append(ReceivedLine(at=at))
                    case _:
                        pass
        if self._end is not None:
            end = self._end
            lines.append(EndLine(at=self._at(end.at), exchange=end.summary, truncated=end.truncated or self._is_cut))
        if not any(isinstance(line, ClientRequestLine) for line in lines):
            lines.insert(
                0,
                ClientRequestLine(
                    at=0.0, id=begin.id, time=begin.time, path=begin.path, wire=begin.wire, headers={}, text="{}"
                ),
            )
        return lines


def _redact_summary(summary: ExchangeSummary, redactor: Redactor) -> None:
    for name in ExchangeSummary.__struct_fields__:
        if isinstance(value := getattr(summary, name), str):
            setattr(summary, name, redactor.redact_text(value))


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

    def add(self, exchange: RecordedExchange, block: bytes, data_bytes: int) -> None:
        self._size += exchange.add(block, data_bytes, self._max_bytes // MAX_SHARE)
        self.changes.add(exchange.id)
        self._drop_oldest()

    def finish(self, exchange: RecordedExchange, end: EndFrame) -> None:
        exchange.finish(end)
        self.changes.add(exchange.id)
        if self._on_finished is not None:
            self._on_finished(exchange)

    def abandon(self, exchange: RecordedExchange) -> None:
        """Remove an exchange that will never end, because its worker is gone."""
        if not exchange.is_finished:
            self._remove(exchange.id)

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
        return CapturedExchange(sorted(self._find(id).lines(), key=lambda line: line.at))

    def _find(self, id: str) -> RecordedExchange:
        with self._lock:
            exchange = self._exchanges.get(id)
        if exchange is None:
            raise UnknownExchange(id)
        return exchange
