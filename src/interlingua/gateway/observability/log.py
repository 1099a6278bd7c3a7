"""What does the gateway tell of its work? One line for each request, and notes, on standard error or in a file."""

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

from interlingua.gateway.observability.background_writer import Later
from interlingua.gateway.observability.exchange_record import Exchange, told
from interlingua.gateway.observability.rotating_file import LogFile
from interlingua.gateway.settings import schema as settings
from interlingua.gateway.settings.redaction import Redactor, printable

__all__ = ["Log", "Output"]

_LEVELS = {"error": 0, "info": 1, "debug": 2}
_FAULTS = ("upstream-failed", "broken")
_USUAL = ("stop-reason",)
"""Findings of every good reply with calls that were written as text. People would stop reading the others."""
_LIMIT = 8 * 1024 * 1024
_LONGEST = 64 * 1024


class Output(Protocol):
    """Unbuffered: how many of the bytes were taken, or None if none can be now."""

    def write(self, data: bytes, /) -> int | None: ...


class _Record(Struct, frozen=True):
    at: float
    level: str
    message: str
    fields: dict[str, Any]
    text: Callable[[str, dict[str, Any]], str]
    """Its message and fields as one line."""


class Log:
    """Lines that cannot be written, now or in time, are dropped and counted. The count is told once writing works."""

    def __init__(
        self,
        wanted: settings.Log,
        secrets: list[str],
        output: Output | None = None,
        limit: int = _LIMIT,
        clock: Callable[[], float] = time.time,
    ) -> None:
        self._level = _LEVELS[wanted.level]
        self._line = _json_line if wanted.format == "json" else _text_line
        self._redactor = Redactor(secrets)
        self._output = output or (LogFile(wanted.file) if wanted.file else FileIO(2, "wb", closefd=False))
        self._clock = clock
        self._later: Later[_Record] = Later(self._write, limit, "log")
        self._lock = threading.Lock()
        self._rest = b""  # of a line that was written in part
        self._told = 0
        self.dropped = 0
        """How many lines were lost so far."""

    @property
    def tells_all(self) -> bool:
        """Bodies, too."""
        return self._level == _LEVELS["debug"]

    def request(self, exchange: Exchange) -> None:
        self._put("error" if exchange.outcome in _FAULTS else "info", "request", told(exchange), _request_text)

    def note(self, message: str, **fields: Any) -> None:
        self._put("info", message, fields)

    def error(self, message: str, **fields: Any) -> None:
        self._put("error", message, fields)

    def at_once(self, message: str, **fields: Any) -> None:
        """An error, written by whoever calls: a process that forks has no other threads."""
        self._write(_Record(self._clock(), "error", message, fields, _note_text))

    def debug(self, message: str, **fields: Any) -> None:
        self._put("debug", message, fields)

    def hide(self, secrets: list[str]) -> None:
        """From now on these are not told, either."""
        self._redactor = self._redactor.knowing(secrets)

    def close(self, seconds: float = 5) -> None:
        """Waits for the lines that are under way, but not for ever."""
        self._later.close(seconds)

    def _put(
        self,
        level: str,
        message: str,
        fields: dict[str, Any],
        text: Callable[[str, dict[str, Any]], str] | None = None,
    ) -> None:
        if _LEVELS[level] > self._level:
            return
        weight = 500 + sum(len(value) for value in fields.values() if isinstance(value, str | bytes))
        if not self._later.put(_Record(self._clock(), level, message, fields, text or _note_text), weight):
            self._drop()

    def _drop(self) -> None:
        with self._lock:
            self.dropped += 1

    def _write(self, record: _Record) -> None:
        lost = self.dropped - self._told
        if lost:
            if not self._send(_Record(record.at, "error", "log lines were lost", {"lines": lost}, _note_text)):
                self._drop()
                return
            self._told += lost
        if not self._send(record):
            self._drop()

    def _send(self, record: _Record) -> bool:
        """Whether the line was taken. What was taken in part is kept and goes first the next time: no line is torn."""
        before = len(self._rest)
        data = self._rest + self._bytes(record)
        written = 0
        with suppress(OSError):
            while taken := self._output.write(data[written:]):
                written += taken
        begun = written > before
        self._rest = data[written:] if begun else self._rest[written:]
        return begun

    def _bytes(self, record: _Record) -> bytes:
        shown = structs.replace(
            record,
            message=self._redactor.text(record.message),
            fields=self._redactor.value(record.fields),
        )
        return self._line(shown).encode("utf-8", "backslashreplace") + b"\n"


def _time(at: float) -> str:
    return datetime.fromtimestamp(at, UTC).strftime("%Y-%m-%dT%H:%M:%S.%f")[:-3] + "Z"


def _json_line(record: _Record) -> str:
    head = {"time": _time(record.at), "level": record.level, "message": record.message}
    line = json.dumps({**head, **{name: _cut(value) for name, value in record.fields.items()}}, default=str)
    return line.replace("\x7f", "\\u007f")  # the one control character that JSON leaves as it is


def _text_line(record: _Record) -> str:
    return f"{_time(record.at)} {record.text(record.message, record.fields)}"


def _note_text(message: str, fields: dict[str, Any]) -> str:
    words = [f"{printable(name)}={_word(value, _LONGEST)}" for name, value in fields.items()]
    return " ".join([printable(message, _LONGEST), *words])


def _request_text(_: str, fields: dict[str, Any]) -> str:
    """What every request has stands in columns. What this one does not have is left out."""
    status = fields["status"] or "-"
    words = [f"{status:>3} {fields['outcome']:<15} {fields['wire']:<18} → {_word(fields['upstream'] or '-')}"]
    if fields["model"]:
        words.append(_from_to(fields["model"], fields["upstream_model"]))
    words.append(_word(fields["dialect"]) if fields["dialect"] else "")
    words.append(_many(fields["calls"], "call"))
    found = ((kind, n) for kind, n in fields["findings"].items() if kind not in _USUAL)
    words.append(" ".join(kind + (f"×{n}" if n > 1 else "") for kind, n in found))
    words.append(_many(fields["attempts"], "attempt") if fields["attempts"] > 1 else "")
    times = [fields["first_byte_seconds"], fields["seconds"]]
    words.append("/".join(f"{seconds:.2f}s" for seconds in times if seconds is not None))
    if tokens := fields["tokens"]:
        words.append(f"{tokens['input']}+{tokens['output']} tokens")
    words.append(f"error={_word(fields['error'])}" if fields["error"] else "")
    words.append(_word(fields["id"]))
    return "  ".join(word for word in words if word)


def _from_to(model: str, upstream_model: str) -> str:
    return _word(model) if upstream_model in ("", model) else f"{_word(model)} → {_word(upstream_model)}"


def _many(number: int, what: str) -> str:
    return f"{number} {what}{'s' if number > 1 else ''}" if number else ""


def _word(value: Any, longest: int = 300) -> str:
    """A value that cannot be taken for more than one, nor for none."""
    if not isinstance(value, str):
        return printable(json.dumps(value, default=str), longest)
    elif value and value.isprintable() and not any(sign in value for sign in ' "='):
        return printable(value, longest)
    escaped = value.replace("\\", "\\\\").replace('"', '\\"')
    return f'"{printable(escaped, longest)}"'


def _cut(value: Any) -> Any:
    if isinstance(value, str) and len(value) > _LONGEST:
        return f"{value[:_LONGEST]}… ({len(value) - _LONGEST} more)"
    return value
