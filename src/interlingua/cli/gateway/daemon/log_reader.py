"""What stands in a gateway's log: its last lines, and those that come."""

from __future__ import annotations

import json
import os
import re
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any, BinaryIO

from interlingua.gateway.observability.rotating_file import MAX_ROTATED_FILES

__all__ = ["LogPosition", "failure_lines", "follow", "last_lines", "parse_notes"]

READ_CHUNK_BYTES = 64 * 1024
MAX_READ_BYTES = 4 * 1024 * 1024
"""Bytes in which last lines are looked for, in each file."""
POLL_INTERVAL_SECONDS = 0.2
_NOTE_PATTERN = re.compile(r"\S+Z (\w+)((?: \w+=[\d.]+)+)")
"""A note with numbers, as the gateway writes it for people."""
_FAILURE_PATTERN = re.compile(
    r'\S+Z +[\d-]+ (?:upstream-failed|broken|refused) |\{.*"outcome": "(?:upstream-failed|broken|refused)"'
)
"""A request that failed, as it is written for people or for programs."""


class LogPosition:
    """A place in a log, and what came behind it."""

    def __init__(self, path: Path, offset: int | None = None) -> None:
        """Its end, if no place is given."""
        self._path = path
        self.offset = offset if offset is not None else path.stat().st_size if path.exists() else 0

    def read_after(self) -> bytes:
        """All of the file if it is another one by now."""
        try:
            with self._path.open("rb") as stream:
                size = os.fstat(stream.fileno()).st_size
                stream.seek(max(self.offset if size >= self.offset else 0, size - MAX_READ_BYTES))
                return stream.read()
        except FileNotFoundError:
            return b""


def last_lines(path: Path, count: int, end: int | None = None) -> list[bytes]:
    """Up to this `end` of the file, if one is given. Also those in files that were put aside, if it has too few."""
    lines = _last_lines_of_file(path, count, end)
    for rotated in (Path(f"{path}.{number}") for number in range(1, MAX_ROTATED_FILES + 1)):
        if len(lines) >= count or not rotated.is_file():
            break
        lines = [*_last_lines_of_file(rotated, count - len(lines)), *lines]
    return lines


def follow(path: Path) -> tuple[int, Iterator[bytes]]:
    """How long the file is now, and what is written behind that, for ever, also into the files that come after it."""
    stream = path.open("rb")  # now, and not when the first piece is asked for: what comes between would be lost
    return stream.seek(0, os.SEEK_END), _follow_chunks(path, stream)


def _follow_chunks(path: Path, stream: BinaryIO) -> Iterator[bytes]:
    while True:
        while chunk := stream.read(READ_CHUNK_BYTES):
            yield chunk
        if path.exists() and not os.path.samestat(path.stat(), os.fstat(stream.fileno())):
            yield stream.read()  # what came just before it was put aside
            stream.close()
            stream = path.open("rb")
        else:
            time.sleep(POLL_INTERVAL_SECONDS)


def parse_notes(data: bytes, message: str) -> list[dict[str, Any]]:
    """The numbers in each note with this message, however the log is written."""
    matches = []
    for line in data.decode("utf-8", "replace").splitlines():
        if line.startswith("{"):
            try:
                fields = json.loads(line)
            except ValueError:  # half a line
                continue
            if fields.get("message") == message:
                matches.append(fields)
        elif (note := _NOTE_PATTERN.fullmatch(line)) and note[1] == message:
            matches.append({name: float(value) for name, value in (word.split("=") for word in note[2].split())})
    return matches


def _last_lines_of_file(path: Path, count: int, end: int | None = None) -> list[bytes]:
    if count <= 0:
        return []
    with path.open("rb") as stream:
        end = os.fstat(stream.fileno()).st_size if end is None else end
        start = stream.seek(max(0, end - MAX_READ_BYTES))
        return stream.read(end - start).splitlines(keepends=True)[-count:]


def failure_lines(data: bytes) -> list[str]:
    """The lines about requests that failed."""
    return [line for line in data.decode("utf-8", "replace").splitlines() if _FAILURE_PATTERN.match(line)]
