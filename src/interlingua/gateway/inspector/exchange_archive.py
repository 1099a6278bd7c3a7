"""Archive of finished exchanges in an SQLite file, without secrets, up to a size. The oldest ones are deleted first."""

from __future__ import annotations

import os
import sqlite3
import threading
import zlib
from pathlib import Path

import msgspec

from interlingua.captures.capture_format import CapturedExchange, decode_capture, encode_capture
from interlingua.errors import BadInput
from interlingua.gateway.inspector.exchange_ring import ExchangeRing, RecordedExchange
from interlingua.gateway.inspector.exchange_source import ChangeLog, UnknownExchange
from interlingua.gateway.observability.background_writer import BackgroundWriter
from interlingua.gateway.settings.private_files import check_private_file, check_private_folder
from interlingua.inspection.exchange_summary import SummarizedExchange, summarize

__all__ = ["ArchivedExchanges", "ExchangeArchive"]

COMPRESSION_LEVEL = 1
MAX_QUEUED_BYTES = 256 * 1024 * 1024
"""Exchanges that wait to be written."""
BUSY_TIMEOUT_SECONDS = 10.0
_SCHEMA = """\
create table if not exists exchange (
    id text primary key,
    time real not null,
    size integer not null,
    summarized blob not null,
    capture blob not null
);
create index if not exists exchange_time on exchange (time);
"""


class ExchangeArchive:
    """Finished exchanges in an SQLite file.

    Args:
        path: Path of the file. It is created for its owner only.
        max_bytes: Maximum size of all exchanges in it.

    Raises:
        BadInput: The file cannot be used.
    """

    def __init__(self, path: Path, max_bytes: int) -> None:
        self._max_bytes = max_bytes
        self._lock = threading.Lock()
        self._connection = _open_database(path)
        (self._size,) = self._connection.execute("select coalesce(sum(size), 0) from exchange").fetchone()

    def add(self, captured: CapturedExchange) -> list[str]:
        """Store an exchange, and return the ids of those that were deleted for it."""
        summarized = summarize(captured.lines)
        capture = zlib.compress(encode_capture(captured), COMPRESSION_LEVEL)
        encoded = msgspec.json.encode(summarized)
        size = len(capture) + len(encoded)
        with self._lock, self._connection:
            self._connection.execute(
                "insert or replace into exchange (id, time, size, summarized, capture) values (?, ?, ?, ?, ?)",
                (summarized.summary.id, summarized.summary.time, size, encoded, capture),
            )
            self._size += size
            return self._delete_oldest()

    def _delete_oldest(self) -> list[str]:
        deleted: list[str] = []
        while self._size > self._max_bytes:
            row = self._connection.execute("select id, size from exchange order by time limit 1").fetchone()
            if row is None:
                break
            self._connection.execute("delete from exchange where id = ?", (row[0],))
            self._size -= row[1]
            deleted.append(row[0])
        return deleted

    def list_exchanges(self) -> list[SummarizedExchange]:
        with self._lock:
            rows = self._connection.execute("select summarized from exchange order by time").fetchall()
        return [_decode_summarized(row[0]) for row in rows]

    def find_summary(self, id: str) -> SummarizedExchange:
        return _decode_summarized(self._find("summarized", id))

    def load(self, id: str) -> CapturedExchange:
        return decode_capture(zlib.decompress(self._find("capture", id)).splitlines(), id)

    def _find(self, column: str, id: str) -> bytes:
        with self._lock:
            row = self._connection.execute(f"select {column} from exchange where id = ?", (id,)).fetchone()
        if row is None:
            raise UnknownExchange(id)
        data: bytes = row[0]
        return data

    def close(self) -> None:
        with self._lock:
            self._connection.close()


_decode_summarized = msgspec.json.Decoder(SummarizedExchange).decode


def _open_database(path: Path) -> sqlite3.Connection:
    try:
        path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        check_private_folder(path.parent, "inspect.keep")
        with open(os.open(path, os.O_RDWR | os.O_CREAT, 0o600), "rb") as file:
            check_private_file(path, os.fstat(file.fileno()), "archive")
        connection = sqlite3.connect(path, timeout=BUSY_TIMEOUT_SECONDS, check_same_thread=False)
        connection.execute("pragma journal_mode = wal")
        connection.execute("pragma synchronous = normal")
        connection.executescript(_SCHEMA)
    except (OSError, sqlite3.Error) as error:
        reason = error.strerror if isinstance(error, OSError) and error.strerror else str(error)
        hint = "choose a file in a folder that the gateway can write to"
        raise BadInput(f"inspect.keep: cannot use {path}: {reason}", hint) from None
    return connection


class ArchivedExchanges:
    """Exchanges of a running gateway, of which the finished ones are kept in an archive.

    Args:
        archive: The archive.
        max_bytes: Memory for exchanges that are open, or not stored yet.
    """

    is_live = True

    def __init__(self, archive: ExchangeArchive, max_bytes: int) -> None:
        self._archive = archive
        self.ring = ExchangeRing(max_bytes, self._store)
        self._writer: BackgroundWriter[RecordedExchange] = BackgroundWriter(
            self._write, MAX_QUEUED_BYTES, "inspector archive"
        )

    @property
    def changes(self) -> ChangeLog:
        return self.ring.changes

    def _store(self, exchange: RecordedExchange) -> None:
        self._writer.put(exchange, exchange.size)

    def _write(self, exchange: RecordedExchange) -> None:
        try:
            self._archive.add(exchange.captured())
        except (sqlite3.Error, ValueError):  # a full disk; a value that cannot be encoded
            return

    def list_exchanges(self) -> list[SummarizedExchange]:
        archived = {one.summary.id: one for one in self._archive.list_exchanges()}
        return list({**archived, **{one.summary.id: one for one in self.ring.list_exchanges()}}.values())

    def find_summary(self, id: str) -> SummarizedExchange:
        try:
            return self.ring.find_summary(id)
        except UnknownExchange:
            return self._archive.find_summary(id)

    def load(self, id: str) -> CapturedExchange:
        try:
            return self.ring.load(id)
        except UnknownExchange:
            return self._archive.load(id)

    def close(self) -> None:
        self._writer.close()
        self._archive.close()
