"""Log of the gateway: one line per request and further messages, on standard error or in a file.

A program that runs the gateway can redirect the log: handlers of the logger `interlingua.gateway` receive the records
instead, without secrets and in the writer thread. `record.fields` has the fields of a message.
"""

from __future__ import annotations

import logging
import os
import threading
import time
from collections.abc import Callable
from contextlib import suppress
from io import FileIO
from typing import Any, Protocol

from interlingua.gateway.observability.background_writer import BackgroundWriter
from interlingua.gateway.observability.exchange_record import ExchangeRecord, summary
from interlingua.gateway.observability.log_format import STDERR_FD, LineFormat, LogLine, choose_format
from interlingua.gateway.observability.rotating_file import RotatingFile
from interlingua.gateway.settings import schema as settings
from interlingua.gateway.settings.redaction import Redactor

__all__ = ["GatewayLog", "LogOutput"]

_LEVELS = {"error": logging.ERROR, "info": logging.INFO, "debug": logging.DEBUG}
_LOGGER = logging.getLogger("interlingua.gateway")
_ERROR_OUTCOMES = ("upstream-failed", "broken")
_MAX_QUEUED_BYTES = 8 * 1024 * 1024
LINE_BYTES = 500
"""Memory of a queued line without the texts in it."""


class LogOutput(Protocol):
    """Unbuffered binary output. `write` returns the number of bytes written, or None if it would block."""

    def write(self, data: bytes, /) -> int | None: ...


class LineWriter:
    """Writer of complete lines. Raises OSError if the output does not accept the line."""

    def __init__(self, output: LogOutput) -> None:
        self._output = output
        self._unwritten = b""  # rest of a line that was written in part

    def write(self, line: str) -> None:
        """Write the line. If only a part is written, the rest is written first the next time: lines stay complete."""
        pending_bytes = len(self._unwritten)
        data = self._unwritten + line.encode("utf-8", "backslashreplace") + b"\n"
        written = 0
        with suppress(OSError):
            while written < len(data) and (count := self._output.write(data[written:])):
                written += count
        started = written > pending_bytes
        self._unwritten = data[written:] if started else self._unwritten[written:]
        if not started:
            raise BlockingIOError("the output does not accept the line")


class GatewayLog:
    """Non-blocking log. Lines that cannot be written are dropped and counted.

    A line is dropped if the queue is full or the output fails. The number of dropped lines is logged when writing works
    again.
    """

    def __init__(
        self,
        config: settings.Log,
        secrets: list[str],
        output: LogOutput | None = None,
        max_queued_bytes: int = _MAX_QUEUED_BYTES,
        clock: Callable[[], float] = time.time,
    ) -> None:
        self._level = _LEVELS[config.level]
        self._redactor = Redactor(secrets)
        is_terminal = output is None and not config.file and os.isatty(STDERR_FD)
        output = output or (RotatingFile(config.file) if config.file else FileIO(STDERR_FD, "wb", closefd=False))
        self._line_writer = LineWriter(output)
        self._format: LineFormat = choose_format(config, is_terminal=is_terminal)
        self._clock = clock
        self._writer: BackgroundWriter[LogLine] = BackgroundWriter(self._write, max_queued_bytes, "log")
        self._lock = threading.Lock()
        self._reported_drops = 0
        self.dropped = 0
        """Number of lines dropped so far."""

    @property
    def is_debug(self) -> bool:
        """True if request and reply bodies are logged."""
        return self._level == _LEVELS["debug"]

    def request(self, exchange: ExchangeRecord) -> None:
        level = "error" if exchange.outcome in _ERROR_OUTCOMES else "info"
        self._enqueue(level, "request", summary(exchange), is_request=True)

    def info(self, message: str, **fields: Any) -> None:
        self._enqueue("info", message, fields)

    def error(self, message: str, **fields: Any) -> None:
        self._enqueue("error", message, fields)

    def write_now(self, message: str, **fields: Any) -> None:
        """Write an error in the calling thread: a process that forks cannot use the writer thread."""
        self._write(LogLine(self._clock(), "error", message, fields))

    def debug(self, message: str, **fields: Any) -> None:
        self._enqueue("debug", message, fields)

    def add_secrets(self, secrets: list[str]) -> None:
        """Redact these secrets, too, from now on."""
        self._redactor = self._redactor.with_secrets(secrets)

    def close(self, seconds: float = 5) -> None:
        """Write the queued lines, for at most `seconds`."""
        self._writer.close(seconds)

    def _enqueue(self, level: str, message: str, fields: dict[str, Any], is_request: bool = False) -> None:
        if _LEVELS[level] < self._level:
            return
        texts = [value for value in fields.values() if type(value) is str or type(value) is bytes]
        weight = LINE_BYTES + sum(map(len, texts))
        if not self._writer.put(LogLine(self._clock(), level, message, fields, is_request), weight):
            self._count_dropped()

    def _count_dropped(self) -> None:
        with self._lock:
            self.dropped += 1

    def _write(self, line: LogLine) -> None:
        unreported = self.dropped - self._reported_drops
        try:
            if unreported:
                fields = {"lines": unreported}
                self._handle(LogLine(line.timestamp, "error", "log lines were dropped", fields))
                self._reported_drops += unreported
            self._handle(line)
        except Exception:  # noqa: BLE001 - handlers of other programs may raise anything; the thread has to go on
            self._count_dropped()

    def _handle(self, line: LogLine) -> None:
        message, fields = self._redactor.redact_text(line.message), self._redactor.redact_fields(line.fields)
        redacted = LogLine(line.timestamp, line.level, message, fields, line.is_request)
        if _LOGGER.handlers:
            _LOGGER.handle(_log_record(redacted))
        else:
            self._line_writer.write(self._format(redacted))


def _log_record(line: LogLine) -> logging.LogRecord:
    """Return the line for handlers of other programs."""
    return logging.makeLogRecord(
        {
            "name": _LOGGER.name,
            "levelno": _LEVELS[line.level],
            "levelname": line.level.upper(),
            "msg": line.message,
            "created": line.timestamp,
            "msecs": line.timestamp % 1 * 1000,
            "fields": line.fields,
            "is_request": line.is_request,
        }
    )
