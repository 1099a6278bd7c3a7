"""Formats of log lines: text in columns, text that fits a terminal, and JSON."""

from __future__ import annotations

import json
import logging
import os
import re
import textwrap
import time
from collections import Counter
from collections.abc import Callable
from datetime import UTC, datetime
from typing import Any, TypeAlias

import msgspec

from interlingua.common.ansi import Style, ansi_style, no_style, uses_color
from interlingua.gateway.settings import schema as settings
from interlingua.gateway.settings.redaction import printable

__all__ = [
    "STDERR_FD",
    "JsonFormatter",
    "LineFormat",
    "LogLine",
    "TerminalFormat",
    "TextFormatter",
    "choose_format",
    "format_as_json",
    "format_as_text",
    "format_json_line",
]

_ROUTINE_FINDINGS = ("stop-reason",)
"""Findings that occur in every correct reply with calls in text. The text format leaves them out, so that other
findings are noticed."""
_MAX_VALUE_CHARS = 64 * 1024
STDERR_FD = 2
MIN_TERMINAL_WIDTH, DEFAULT_TERMINAL_WIDTH = 40, 80
CONTINUATION_INDENT = 4
_PLAIN_VALUE = re.compile(r'[^ "=]+')
"""A value that needs no quotes, if it is printable."""


class LogLine(msgspec.Struct, frozen=True):
    """Content of one line."""

    timestamp: float
    level: str
    message: str
    fields: dict[str, Any]
    is_request: bool = False
    """True if the fields are those of `exchange_record.summary`."""


LineFormat: TypeAlias = Callable[[LogLine], str]


def choose_format(config: settings.Log, *, is_terminal: bool) -> LineFormat:
    """Return the format that the settings choose."""
    if config.format == "json":
        return format_as_json
    has_color = uses_color(os.environ, is_terminal=is_terminal)
    return TerminalFormat(has_color=has_color) if is_terminal else format_as_text


def format_as_text(line: LogLine) -> str:
    """Format a line as text: time, message, and `name=value` for each field. Requests have columns."""
    text = _format_request(line.fields) if line.is_request else _format_message(line.message, line.fields)
    return f"{_format_time(line.timestamp)} {text}"


class TerminalFormat:
    """Format for a terminal: text that fits its width, split between words, and errors in colour.

    Args:
        has_color: Whether colours are used.
        width: The number of columns; None for that of the terminal.
    """

    def __init__(self, *, has_color: bool, width: int | None = None) -> None:
        self._styler = ansi_style if has_color else no_style
        self._width = width

    def __call__(self, line: LogLine) -> str:
        timestamp, _, text = format_as_text(line).partition(" ")
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
        style = Style.ERROR if line.level == "error" else Style.PLAIN
        return "\n".join([f"{self._styler(timestamp, Style.FAINT)} {self._styler(first, style)}", *lines[1:]])


def format_as_json(line: LogLine) -> str:
    """Format a line as one JSON object."""
    header = {"time": _format_time(line.timestamp), "level": line.level, "message": line.message}
    fields = {name: _truncate(value) for name, value in line.fields.items()}
    text = json.dumps({**header, **fields}, default=str)
    return text.replace("\x7f", "\\u007f")  # the only control character that JSON does not escape


def format_json_line(level: str, message: str, **fields: Any) -> str:
    """Return a line of the log in JSON, for what is reported before the log is open."""
    return format_as_json(LogLine(time.time(), level, message, fields))


class TextFormatter(logging.Formatter):
    """Text format for handlers of other programs."""

    def format(self, record: logging.LogRecord) -> str:
        return format_as_text(_line_of(record))


class JsonFormatter(logging.Formatter):
    """JSON format for handlers of other programs."""

    def format(self, record: logging.LogRecord) -> str:
        return format_as_json(_line_of(record))


def _line_of(record: logging.LogRecord) -> LogLine:
    fields, is_request = getattr(record, "fields", {}), getattr(record, "is_request", False)
    return LogLine(record.created, record.levelname.lower(), record.getMessage(), fields, is_request)


def _terminal_width() -> int:
    """Return $COLUMNS, or the width of the terminal on standard error, which may change."""
    columns = os.environ.get("COLUMNS", "")
    if columns.isascii() and columns.isdigit():
        return max(MIN_TERMINAL_WIDTH, int(columns))
    try:
        return max(MIN_TERMINAL_WIDTH, os.get_terminal_size(STDERR_FD).columns)
    except OSError:
        return DEFAULT_TERMINAL_WIDTH


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
    rounds = fields.get("rounds", 1)
    words.append(_pluralize(rounds, "round") if rounds > 1 else "")
    words.append(_pluralize(fields["attempts"], "attempt") if fields["attempts"] > rounds else "")
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
    if "failed_attempts" not in fields:
        return ""
    failures = Counter(
        f"{attempt['upstream']}: {attempt['model']}: {attempt['reason']}"
        for attempt in fields["failed_attempts"]
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
    if value.isprintable() and _PLAIN_VALUE.fullmatch(value):
        return printable(value, max_chars)
    escaped = value.replace("\\", "\\\\").replace('"', '\\"')
    return f'"{printable(escaped, max_chars)}"'


def _truncate(value: Any) -> Any:
    if isinstance(value, str) and len(value) > _MAX_VALUE_CHARS:
        return f"{value[:_MAX_VALUE_CHARS]}… ({len(value) - _MAX_VALUE_CHARS} more)"
    return value
