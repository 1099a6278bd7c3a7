"""Log of the gateway: one line per request and further messages, on standard error or in a file."""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Callable
from contextlib import suppress
from datetime import UTC, datetime
from io import FileIO
from typing import Any, Protocol

from msgspec import Struct, structs

from interlingua.gateway.observability.background_writer import BackgroundWriter
from interlingua.gateway.observability.exchange_record import ExchangeRecord, summary
from interlingua.gateway.observability.rotating_file import RotatingFile
from interlingua.gateway.settings import schema as settings
from interlingua.gateway.settings.redaction import Redactor, printable

__all__ = ["GatewayLog", "LogOutput"]

_LEVELS = {"error": 0, "info": 1, "debug": 2}
_ERROR_OUTCOMES = ("upstream-failed", "broken")
_ROUTINE_FINDINGS = ("stop-reason",)
"""Findings that occur in every correct reply with calls in text. The text format leaves them out, so that other
findings are noticed."""
_MAX_QUEUED_BYTES = 8 * 1024 * 1024
_MAX_VALUE_CHARS = 64 * 1024


class LogOutput(Protocol):
    """Unbuffered binary output. `write` returns the number of bytes written, or None if it would block."""

    def write(self, data: bytes, /) -> int | None: ...


class _LogRecord(Struct, frozen=True):
    timestamp: float
    level: str
    message: str
    fields: dict[str, Any]
    format_line: Callable[[str, dict[str, Any]], str]
    """Function that formats message and fields as one line."""


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
        self._format_record = _format_json if config.format == "json" else _format_text
        self._redactor = Redactor(secrets)
        self._output = output or (RotatingFile(config.file) if config.file else FileIO(2, "wb", closefd=False))
        self._clock = clock
        self._writer: BackgroundWriter[_LogRecord] = BackgroundWriter(self._write, max_queued_bytes, "log")
        self._lock = threading.Lock()
        self._unwritten = b""  # rest of a line that was written in part
        self._reported_drops = 0
        self.dropped = 0
        """Number of lines dropped so far."""

    @property
    def is_debug(self) -> bool:
        """True if request and reply bodies are logged."""
        return self._level == _LEVELS["debug"]

    def request(self, exchange: ExchangeRecord) -> None:
        self._enqueue(
            "error" if exchange.outcome in _ERROR_OUTCOMES else "info", "request", summary(exchange), _format_request
        )

    def info(self, message: str, **fields: Any) -> None:
        self._enqueue("info", message, fields)

    def error(self, message: str, **fields: Any) -> None:
        self._enqueue("error", message, fields)

    def write_now(self, message: str, **fields: Any) -> None:
        """Write an error in the calling thread: a process that forks cannot use the writer thread."""
        self._write(_LogRecord(self._clock(), "error", message, fields, _format_message))

    def debug(self, message: str, **fields: Any) -> None:
        self._enqueue("debug", message, fields)

    def add_secrets(self, secrets: list[str]) -> None:
        """Redact these secrets, too, from now on."""
        self._redactor = self._redactor.with_secrets(secrets)

    def close(self, seconds: float = 5) -> None:
        """Write the queued lines, for at most `seconds`."""
        self._writer.close(seconds)

    def _enqueue(
        self,
        level: str,
        message: str,
        fields: dict[str, Any],
        format_line: Callable[[str, dict[str, Any]], str] | None = None,
    ) -> None:
        if _LEVELS[level] > self._level:
            return
        weight = 500 + sum(len(value) for value in fields.values() if isinstance(value, str | bytes))
        if not self._writer.put(
            _LogRecord(self._clock(), level, message, fields, format_line or _format_message), weight
        ):
            self._count_dropped()

    def _count_dropped(self) -> None:
        with self._lock:
            self.dropped += 1

    def _write(self, record: _LogRecord) -> None:
        unreported = self.dropped - self._reported_drops
        if unreported:
            if not self._write_record(
                _LogRecord(record.timestamp, "error", "log lines were dropped", {"lines": unreported}, _format_message)
            ):
                self._count_dropped()
                return
            self._reported_drops += unreported
        if not self._write_record(record):
            self._count_dropped()

    def _write_record(self, record: _LogRecord) -> bool:
        """Write the record and return whether the output accepted it.

        If only a part is written, the rest is kept and written first the next time, so that lines stay complete.
        """
        pending_bytes = len(self._unwritten)
        data = self._unwritten + self._encode(record)
        written = 0
        with suppress(OSError):
            while count := self._output.write(data[written:]):
                written += count
        started = written > pending_bytes
        self._unwritten = data[written:] if started else self._unwritten[written:]
        return started

    def _encode(self, record: _LogRecord) -> bytes:
        redacted = structs.replace(
            record,
            message=self._redactor.redact_text(record.message),
            fields=self._redactor.redact_value(record.fields),
        )
        return self._format_record(redacted).encode("utf-8", "backslashreplace") + b"\n"


def _format_time(timestamp: float) -> str:
    return datetime.fromtimestamp(timestamp, UTC).strftime("%Y-%m-%dT%H:%M:%S.%f")[:-3] + "Z"


def _format_json(record: _LogRecord) -> str:
    header = {"time": _format_time(record.timestamp), "level": record.level, "message": record.message}
    line = json.dumps({**header, **{name: _truncate(value) for name, value in record.fields.items()}}, default=str)
    return line.replace("\x7f", "\\u007f")  # the only control character that JSON does not escape


def _format_text(record: _LogRecord) -> str:
    return f"{_format_time(record.timestamp)} {record.format_line(record.message, record.fields)}"


def _format_message(message: str, fields: dict[str, Any]) -> str:
    words = [f"{printable(name)}={_format_value(value, _MAX_VALUE_CHARS)}" for name, value in fields.items()]
    return " ".join([printable(message, _MAX_VALUE_CHARS), *words])


def _format_request(_: str, fields: dict[str, Any]) -> str:
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
    words.append(f"error={_format_value(fields['error'])}" if fields["error"] else "")
    words.append(_format_value(fields["id"]))
    return "  ".join(word for word in words if word)


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
