"""Writer of captures: each exchange goes to its own file, in a background thread. `capture_format` defines the format.

A stream never waits for the disk: data that does not fit into the queue is dropped, and the capture is marked as
truncated. A file gets its final name when it is complete.
"""

from __future__ import annotations

import errno
import os
import re
import threading
import time
from collections.abc import Callable, Mapping
from contextlib import suppress
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from typing import BinaryIO

import msgspec

from interlingua.captures.capture_format import (
    CaptureLine,
    ReceivedLine,
    RouteFacts,
    SentLine,
    encode_capture,
    read_capture,
)
from interlingua.errors import BadInput
from interlingua.gateway.observability.background_writer import BackgroundWriter
from interlingua.gateway.observability.exchange_record import ExchangeRecord, summary
from interlingua.gateway.observability.redacted_lines import RedactedLines, redact_streams
from interlingua.gateway.settings import schema as settings
from interlingua.gateway.settings.private_files import check_private_folder
from interlingua.gateway.settings.redaction import Redactor

__all__ = ["CaptureRecording", "CaptureWriter", "check_capture_folder", "read_capture"]

_MAX_QUEUED_BYTES = 32 * 1024 * 1024
"""Maximum size of the queue. Requests of agents are large, and each is stored twice: as received and as sent."""
_LINE_OVERHEAD_BYTES = 200
_CAPTURE_FILE_NAME = re.compile(r"\d{8}T\d{12}Z-[\w-]+\.jsonl")
_PARTIAL_FILE_NAME = re.compile(r"\.\d{8}T\d{12}Z-[\w-]+\.part")
_STALE_PART_SECONDS = 24 * 60 * 60


def check_capture_folder(config: settings.Capture) -> None:
    """Create the folder if it does not exist. Raise BadInput if the gateway cannot write to it."""
    _CaptureFolder(config, _create_private_file)


class CaptureWriter:
    """Writer of all captures of one process. If `config` is None, nothing is written."""

    def __init__(
        self,
        config: settings.Capture | None,
        redactor: Redactor,
        max_queued_bytes: int = _MAX_QUEUED_BYTES,
        create_file: Callable[[Path], BinaryIO] | None = None,
    ) -> None:
        self._folder = _CaptureFolder(config, create_file or _create_private_file) if config else None
        self._redactor = redactor
        self._writer: BackgroundWriter[Callable[[], None]] = BackgroundWriter(
            lambda job: job(), max_queued_bytes, "captures"
        )
        self._lock = threading.Lock()
        self.dropped = 0
        """Number of captures that are missing or truncated so far."""

    def start_recording(self, exchange: ExchangeRecord) -> CaptureRecording:
        file = _CaptureFile(self._folder, exchange, self._redactor, self._count_dropped) if self._folder else None
        if file and not self._writer.put(file.open, _LINE_OVERHEAD_BYTES):
            self._count_dropped()
            file = None
        return CaptureRecording(file, self._writer)

    def close(self, seconds: float = 5) -> None:
        """Write the queued data, for at most `seconds`, and discard unfinished captures."""
        if self._folder:
            self._writer.put(self._folder.discard_unfinished, 0)
        self._writer.close(seconds)

    def _count_dropped(self) -> None:
        with self._lock:
            self.dropped += 1


class CaptureRecording:
    """Recording of one exchange, called by the relay. No method blocks or raises."""

    def __init__(self, file: _CaptureFile | None, writer: BackgroundWriter[Callable[[], None]]) -> None:
        self._file = file
        self._writer = writer
        self._started = time.monotonic()
        self._truncated = False

    def on_request(self, headers: Mapping[str, str], body: bytes) -> None:
        """Record the request of the client."""
        if self._file:
            self._enqueue(self._file, self._file.write_request, dict(headers), body, weight=len(body))

    def on_upstream_request(self, url: str, headers: Mapping[str, str], body: bytes, route: RouteFacts) -> None:
        """Record a request to an upstream."""
        if self._file:
            step = self._file.lines.write_upstream_request
            self._enqueue(self._file, step, url, dict(headers), body, route, weight=len(body))

    def on_response(self, status: int, headers: Mapping[str, str], connect_seconds: float | None) -> None:
        """Record the status and headers of an upstream's response."""
        if self._file:
            step = self._file.lines.write_response
            self._enqueue(self._file, step, status, dict(headers), connect_seconds, weight=0)

    def on_received(self, data: bytes) -> None:
        if self._file:
            self._enqueue(self._file, self._file.lines.write_data, ReceivedLine, data, weight=len(data))

    def on_sent(self, data: bytes) -> None:
        if self._file:
            self._enqueue(self._file, self._file.lines.write_data, SentLine, data, weight=len(data))

    def on_forwarded(self, received: bytes, sent: bytes) -> None:
        self.on_received(received)
        self.on_sent(sent)

    def on_finish(self, exchange: ExchangeRecord) -> None:
        if self._file:
            step = partial(self._file.finish, self._elapsed_seconds(), exchange, self._truncated)
            self._writer.put(partial(self._file.run_step, step), 0)

    def _enqueue(self, file: _CaptureFile, step: Callable[..., None], *args: object, weight: int) -> None:
        if not self._truncated:
            job = partial(file.run_step, step, self._elapsed_seconds(), *args)
            self._truncated = not self._writer.put(job, _LINE_OVERHEAD_BYTES + weight)

    def _elapsed_seconds(self) -> float:
        return round(time.monotonic() - self._started, 6)


class _CaptureFile:
    """File of one recording, used by the writer thread. A file that cannot be written is discarded and deleted."""

    def __init__(
        self, folder: _CaptureFolder, exchange: ExchangeRecord, redactor: Redactor, on_dropped: Callable[[], None]
    ) -> None:
        self._folder = folder
        self._on_dropped = on_dropped
        self._started_at = datetime.now(UTC)
        self._exchange = exchange
        name = f"{self._started_at:%Y%m%dT%H%M%S%f}Z-{re.sub(r'[^A-Za-z0-9_-]', '_', exchange.id)[:80] or '_'}"
        self._path = folder.path / f"{name}.jsonl"
        self._partial_path = folder.path / f".{name}.part"
        self._out: BinaryIO | None = None
        self.lines = RedactedLines(redactor, self._write_line)

    def open(self) -> None:
        try:
            self._out = self._folder.create_file(self._partial_path)
            self._folder.unfinished.add(self)
        except OSError:
            self._on_dropped()

    def run_step(self, step: Callable[..., None], *args: object) -> None:
        if not self._out:
            return
        try:
            step(*args)
        except (OSError, ValueError):  # disk error; value that cannot be encoded as JSON
            self.discard()

    def discard(self) -> None:
        self._on_dropped()
        with suppress(OSError):
            self._close()
        with suppress(OSError):
            self._partial_path.unlink()

    def _close(self) -> None:
        out, self._out = self._out, None
        self._folder.unfinished.discard(self)
        if out:
            out.close()

    def write_request(self, at: float, headers: dict[str, str], body: bytes) -> None:
        exchange, time = self._exchange, self._started_at.isoformat()
        self.lines.write_request(at, exchange.id, time, exchange.path, exchange.wire, headers, body)

    def finish(self, at: float, exchange: ExchangeRecord, truncated: bool) -> None:
        self.lines.finish(at, exchange.findings, summary(exchange), truncated)
        self._close()
        self._redact_streams()
        self._folder.add(self._partial_path, self._path)
        if truncated:
            self._on_dropped()

    def _redact_streams(self) -> None:
        """Write the file again if several of its chunks together have a secret: a model writes a key token by token."""
        captured = read_capture(self._partial_path)
        redacted = redact_streams(captured, self.lines.redactor)
        if redacted is not captured:
            self._partial_path.unlink()
            with self._folder.create_file(self._partial_path) as file:
                file.write(encode_capture(redacted))

    def _write_line(self, line: CaptureLine) -> None:
        assert self._out  # `run_step` runs no step without an open file
        self._out.write(msgspec.json.encode(line) + b"\n")


class _CaptureFolder:
    """Folder of captures, private to its owner, with a limited number of files. Several processes may share it."""

    def __init__(self, config: settings.Capture, create_file: Callable[[Path], BinaryIO]) -> None:
        self.path = Path(config.dir).expanduser()
        self.create_file = create_file
        self._max_files = config.keep
        self.unfinished: set[_CaptureFile] = set()
        self._added_since_pruning = 0  # number of captures added since old ones were last deleted
        try:
            self.path.mkdir(mode=0o700, parents=True, exist_ok=True)
            check_private_folder(self.path, "capture.dir")
            self._remove_stale_parts()
            if not os.access(self.path, os.W_OK | os.X_OK):
                raise PermissionError(errno.EACCES, os.strerror(errno.EACCES))
        except OSError as error:
            hint = "choose a directory that the gateway can write to"
            raise BadInput(f"capture.dir: cannot write to {self.path}: {error.strerror}", hint) from None

    def add(self, partial_path: Path, path: Path) -> None:
        os.replace(partial_path, path)
        self._added_since_pruning += 1
        if self._added_since_pruning > self._max_files // 50:  # not every time: listing a large folder is slow
            self._added_since_pruning = 0
            names = sorted(name for name in os.listdir(self.path) if _CAPTURE_FILE_NAME.fullmatch(name))
            for name in names[: -self._max_files]:
                with suppress(FileNotFoundError):  # another process has deleted it
                    os.unlink(self.path / name)

    def discard_unfinished(self) -> None:
        for file in [*self.unfinished]:
            file.discard()

    def _remove_stale_parts(self) -> None:
        """Delete partial files of killed processes. Partial files of running processes are newer."""
        for entry in os.scandir(self.path):
            if _PARTIAL_FILE_NAME.fullmatch(entry.name) and time.time() - entry.stat().st_mtime > _STALE_PART_SECONDS:
                with suppress(FileNotFoundError):
                    os.unlink(entry.path)


def _create_private_file(path: Path) -> BinaryIO:
    """Create a new file, private to its owner. Fail if the path exists, also as a symbolic link."""
    return open(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "wb")
