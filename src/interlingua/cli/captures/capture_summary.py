"""Summary of a capture: the record of its exchange, which is the last line of the file."""

from __future__ import annotations

import os
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import msgspec

from interlingua.captures.capture_format import EndLine
from interlingua.cli.common.capture_files import capture_id

__all__ = ["CaptureSummary", "read_summary"]

MAX_END_BYTES = 256 * 1024
"""Size of the end of a file that is read: captures can be large, and their last line is short."""
_TIME_FORMAT = "%Y%m%dT%H%M%S%fZ"


class CaptureSummary(msgspec.Struct, frozen=True):
    """One capture in a list."""

    id: str
    file: str
    time: datetime | None
    """Start of the exchange; None if the name of the file does not have it."""
    exchange: dict[str, Any]
    """Record of the exchange, as in the log; {} if the capture has no end."""

    @property
    def has_failed(self) -> bool:
        return self.exchange.get("outcome") != "ok"


def read_summary(path: Path) -> CaptureSummary:
    try:
        time = datetime.strptime(path.name.partition("-")[0], _TIME_FORMAT).replace(tzinfo=UTC)
    except ValueError:
        time = None
    return CaptureSummary(capture_id(path), str(path), time, _read_exchange(path))


def _read_exchange(path: Path) -> dict[str, Any]:
    try:
        with path.open("rb") as file:
            file.seek(max(0, file.seek(0, os.SEEK_END) - MAX_END_BYTES))
            last_line = file.read().rstrip(b"\n").rpartition(b"\n")[2]
        return msgspec.json.decode(last_line, type=EndLine).exchange
    except (OSError, msgspec.MsgspecError, UnicodeDecodeError):
        return {}
