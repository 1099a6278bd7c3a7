"""Log of the gateway: one line per request and further messages, on standard error or in a file.

A program that runs the gateway can redirect the log: handlers of the logger `interlingua.gateway` receive the records
instead, without secrets and in the writer thread. `record.fields` has the fields of a message.
"""

from __future__ import annotations

import json
import logging
import os
import textwrap
import threading
import time
from collections import Counter
from collections.abc import Callable
from contextlib import suppress
from datetime import UTC, datetime
from io import FileIO
from typing import Any, Protocol

from msgspec import Struct

from interlingua.common.ansi import Style, ansi_style, no_style, uses_color
from interlingua.gateway.observability.background_writer import BackgroundWriter
from interlingua.gateway.observability.exchange_record import ExchangeRecord, summary
from interlingua.gateway.observability.rotating_file import RotatingFile
from interlingua.gateway.settings import schema as settings
from interlingua.gateway.settings.redaction import Redactor, printable

__all__ = [
    "GatewayLog",
    "JsonFormatter",
    "LineHandler",
    "LogOutput",
    "TerminalFormatter",
    "TextFormatter",
    "format_json_line",
]

_LEVELS = {"error": logging.ERROR, "info": logging.INFO, "debug": logging.DEBUG}
_LOGGER = logging.getLogger("interlingua.gateway")
_ERROR_OUTCOMES = ("upstream-failed", "broken")
_ROUTINE_FINDINGS = ("stop-reason",)
"""Findings that occur in every correct reply with calls in text. The text format leaves them out, so that other
findings are noticed."""
_MAX_QUEUED_BYTES = 8 * 1024 * 1024
_MAX_VALUE_CHARS = 64 * 1024
STDERR_FD = 2
MIN_TERMINAL_WIDTH, DEFAULT_TERMINAL_WIDTH = 40, 80
CONTINUATION_INDENT = 4


class LogOutput(Protocol):
    """Unbuffered binary output. `write` returns the number of bytes written, or None if it would block."""

    def write(self, data: bytes, /) -> int | None: ...


class _QueuedRecord(Struct, frozen=True):
    """Cheap form of a `logging.LogRecord`, which the writer thread makes of it."""

    timestamp: float
    level: str
    message: str
    fields: dict[str, Any]
    is_request: bool = False


class LineHandler(logging.Handler):
    """Handler that writes each record as one line. Raises OSError if the output does not accept the line."""

    def __init__(self, output: LogOutput, formatter: logging.Formatter) -> None:
        super().__init__()
        self.setFormatter(formatter)
        self._output = output
        self._unwritten = b""  # rest of a line that was written in part

    def emit(self, record: logging.LogRecord) -> None:
        """Write the record. If only a part is written, the rest is written first the next time: lines stay complete."""
        pending_bytes = len(self._unwritten)
        data = self._unwritten + self.format(record).encode("utf-8", "backslashreplace") + b"\n"
        written = 0
        with suppress(OSError):
            while count := self._output.write(data[written:]):
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
        self._handler = LineHandler(output, _formatter(config, is_terminal=is_terminal))
        self._clock = clock
        self._writer: BackgroundWriter[_QueuedRecord] = BackgroundWriter(self._write, max_queued_bytes, "log")
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
        self._write(_QueuedRecord(self._clock(), "error", message, fields))

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
        weight = 500 + sum(len(value) for value in fields.values() if isinstance(value, str | bytes))
        if not self._writer.put(_QueuedRecord(self._clock(), level, message, fields, is_request), weight):
            self._count_dropped()

    def _count_dropped(self) -> None:
        with self._lock:
            self.dropped += 1

    def _write(self, record: _QueuedRecord) -> None:
        unreported = self.dropped - self._reported_drops
        try:
            if unreported:
                fields = {"lines": unreported}
                self._handle(_QueuedRecord(record.timestamp, "error", "log lines were dropped", fields))
                self._reported_drops += unreported
            self._handle(record)
        except Exception:  # noqa: BLE001 - handlers of other programs may raise anything; the thread has to go on
            self._count_dropped()

    def _handle(self, record: _QueuedRecord) -> None:
        values = {
            "name": _LOGGER.name,
            "levelno": _LEVELS[record.level],
            "levelname": record.level.upper(),
            "msg": self._redactor.redact_text(record.message),
            "created": record.timestamp,
            "msecs": record.timestamp % 1 * 1000,
            "fields": self._redactor.redact_fields(record.fields),
            "is_request": record.is_request,
        }
        if _LOGGER.handlers:
            _LOGGER.handle(logging.makeLogRecord(values))
        else:  # `handle` would take a lock, for which the exiting process would wait if a write hangs
            self._handler.emit(logging.makeLogRecord(values))


class TextFormatter(logging.Formatter):
    """Formats a record as text: time, message, and `name=value` for each field. Requests have columns."""

    def format(self, record: logging.LogRecord) -> str:
        fields = getattr(record, "fields", {})
        is_request = getattr(record, "is_request", False)
        text = _format_request(fields) if is_request else _format_message(record.getMessage(), fields)
        return f"{_format_time(record.created)} {text}"


class TerminalFormatter(TextFormatter):
    """Formats a record as text for a terminal: lines that fit its width, split between words, and errors in colour.

    Args:
        has_color: Whether colours are used.
        width: The number of columns; None for that of the terminal.
    """

    def __init__(self, *, has_color: bool, width: int | None = None) -> None:
        super().__init__()
        self._styler = ansi_style if has_color else no_style
        self._width = width

    def format(self, record: logging.LogRecord) -> str:
        timestamp, _, text = super().format(record).partition(" ")
        width = self._width or _terminal_width()
        lines = textwrap.wrap(
            text,
            width,
            initial_indent=" " * (len(timestamp) + 1),
            subsequent_indent=" " * CONTINUATION_INDENT,
            break_long_words=False,
            break_on_hyphens=False,
        )
        first = lines[0].lstrip() if lines else ""
        style = Style.ERROR if record.levelno >= logging.ERROR else Style.PLAIN
        return "\n".join([f"{self._styler(timestamp, Style.FAINT)} {self._styler(first, style)}", *lines[1:]])


class JsonFormatter(logging.Formatter):
    """Formats a record as one JSON object."""

    def format(self, record: logging.LogRecord) -> str:
        header = {
            "time": _format_time(record.created),
            "level": record.levelname.lower(),
            "message": record.getMessage(),
        }
        fields = {name: _truncate(value) for name, value in getattr(record, "fields", {}).items()}
        line = json.dumps({**header, **fields}, default=str)
        return line.replace("\x7f", "\\u007f")  # the only control character that JSON does not escape


def _formatter(config: settings.Log, *, is_terminal: bool) -> logging.Formatter:
    if config.format == "json":
        return JsonFormatter()
    has_color = uses_color(os.environ, is_terminal=is_terminal)
    return TerminalFormatter(has_color=has_color) if is_terminal else TextFormatter()


def _terminal_width() -> int:
    """Return $COLUMNS, or the width of the terminal on standard error, which may change."""
    columns = os.environ.get("COLUMNS", "")
    if columns.isascii() and columns.isdigit():
        return max(MIN_TERMINAL_WIDTH, int(columns))
    try:
        return max(MIN_TERMINAL_WIDTH, os.get_terminal_size(STDERR_FD).columns)
    except OSError:
        return DEFAULT_TERMINAL_WIDTH


def format_json_line(level: str, message: str, **fields: Any) -> str:
    """Return a line of the log in JSON, for what is reported before the log is open."""
    values = {"levelname": level, "msg": message, "created": time.time(), "fields": fields}
    return JsonFormatter().format(logging.makeLogRecord(values))


def _format_time(timestamp: float) -> str:
    return datetime.fromtimestamp(timestamp, UTC).isoformat(timespec="milliseconds").removesuffix("+00:00") + "Z"


def _format_message(message: str, fields: dict[str, Any]) -> str:
    words = [f"{printable(name)}={_format_value(value, _MAX_VALUE_CHARS)}" for name, value in fields.items()]
    return " ".join([printable(message, _MAX_VALUE_CHARS), *words])


def _format_request(fields: dict[str, Any]) -> str:
    """Format the line of a request: common fields in columns, then the optional fields that are set."""
    status = fields["status"] or "-"
    words = [f"{status:>3} {fields['outcome']:<15} {fields['wire']:<18} → {_format_value(fields['upstream'] or '-')}"]
    if fields["model"]:
        words.append(_format_model(fields["model"], fields["upstream_model"]))
    words.append(_format_value(fields["dialect"]) if fields["dialect"] else "")
    words.append(_pluralize(fields["calls"], "call"))
    unusual_findings = ((kind, n) for kind, n in fields["findings"].items() if kind not in _ROUTINE_FINDINGS)
    words.append(" ".join(kind + (f"×{n}" if n > 1 else "") for kind, n in unusual_findings))
    words.append(_pluralize(fields["attempts"], "attempt") if fields["attempts"] > 1 else "")
    times = [fields["first_byte_seconds"], fields["seconds"]]
    words.append("/".join(f"{seconds:.2f}s" for seconds in times if seconds is not None))
    if tokens := fields["tokens"]:
        words.append(f"{tokens['input']}+{tokens['output']} tokens")
    words.append(f"client={_format_value(fields['client'])}" if fields["client"] else "")
    words.append(_format_failures(fields))
    words.append(f"error={_format_value(fields['error'])}" if fields["error"] else "")
    words.append(_format_value(fields["id"]))
    return "  ".join(word for word in words if word)


def _format_failures(fields: dict[str, Any]) -> str:
    """Format the failed attempts: upstream, model and reason. `error` already has those of the last upstream."""
    failures = Counter(
        f"{attempt['upstream']}: {attempt['model']}: {attempt['reason']}"
        for attempt in fields.get("failed_attempts", ())
        if not fields["error"] or attempt["upstream"] != fields["upstream"]
    )
    texts = (text + (f" ×{count}" if count > 1 else "") for text, count in failures.items())
    return "  ".join(f"failed={_format_value(text)}" for text in texts)


def _format_model(model: str, upstream_model: str) -> str:
    return (
        _format_value(model)
        if upstream_model in ("", model)
        else f"{_format_value(model)} → {_format_value(upstream_model)}"
    )


def _pluralize(number: int, noun: str) -> str:
    return f"{number} {noun}{'s' if number > 1 else ''}" if number else ""


def _format_value(value: Any, max_chars: int = 300) -> str:
    """Format a value so that it is unambiguous: quoted if it is empty or contains a space, quote or equals sign."""
    if not isinstance(value, str):
        return printable(json.dumps(value, default=str), max_chars)
    elif value and value.isprintable() and not any(char in value for char in ' "='):
        return printable(value, max_chars)
    escaped = value.replace("\\", "\\\\").replace('"', '\\"')
    return f'"{printable(escaped, max_chars)}"'


def _truncate(value: Any) -> Any:
    if isinstance(value, str) and len(value) > _MAX_VALUE_CHARS:
        return f"{value[:_MAX_VALUE_CHARS]}… ({len(value) - _MAX_VALUE_CHARS} more)"
    return value
