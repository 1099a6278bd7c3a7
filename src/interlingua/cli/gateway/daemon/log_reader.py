"""Reader of a gateway's log file: last lines, new lines, notes with their fields, failed requests."""

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
"""Maximum number of bytes that are read from the end of each file."""
POLL_INTERVAL_SECONDS = 0.2
_NOTE_PATTERN = re.compile(r"\S+Z (?P<message>[^=]*?)(?P<fields>(?: \w+=(?:\"(?:[^\"\\]|\\.)*\"|[^ \"]\S*))*)")
"""Message with its fields, in the text format."""
_FIELD_PATTERN = re.compile(r" (\w+)=(?:\"((?:[^\"\\]|\\.)*)\"|([^ \"]\S*))")
_ESCAPED_CHAR = re.compile(r"\\([\"\\])")
_FAILURES = "(?:upstream-failed|broken|refused|cut-off)"
_FAILURE_PATTERN = re.compile(rf'\S+Z +[\d-]+ {_FAILURES} |\{{.*"outcome": "{_FAILURES}"')
"""Failed request, in the text or the JSON format."""


class LogPosition:
    """Position in a log file, for reading what is written after it."""

    def __init__(self, path: Path, offset: int | None = None) -> None:
        """Without an offset, use the current end of the file."""
        self._path = path
        self.offset = offset if offset is not None else path.stat().st_size if path.exists() else 0

    def read_after(self) -> bytes:
        """Return the bytes after the position; the whole file if it is shorter now, because it was rotated."""
        try:
            with self._path.open("rb") as stream:
                size = os.fstat(stream.fileno()).st_size
                stream.seek(max(self.offset if size >= self.offset else 0, size - MAX_READ_BYTES))
                return stream.read()
        except FileNotFoundError:
            return b""


def last_lines(path: Path, count: int, end: int | None = None) -> list[bytes]:
    """Return the last lines before `end` (default: end of file). If there are too few, continue in rotated files."""
    lines = _last_lines_of_file(path, count, end)
    for rotated in (Path(f"{path}.{number}") for number in range(1, MAX_ROTATED_FILES + 1)):
        if len(lines) >= count or not rotated.is_file():
            break
        lines = [*_last_lines_of_file(rotated, count - len(lines)), *lines]
    return lines


def follow(path: Path) -> tuple[int, Iterator[bytes]]:
    """Return the current size, and an endless iterator of what is written after it, across log rotation."""
    stream = path.open("rb")  # open it now, not lazily: otherwise lines written in between would be lost
    return stream.seek(0, os.SEEK_END), _follow_chunks(path, stream)


def _follow_chunks(path: Path, stream: BinaryIO) -> Iterator[bytes]:
    while True:
        while chunk := stream.read(READ_CHUNK_BYTES):
            yield chunk
        if path.exists() and not os.path.samestat(path.stat(), os.fstat(stream.fileno())):
            yield stream.read()  # written just before the rotation
            stream.close()
            stream = path.open("rb")
        else:
            time.sleep(POLL_INTERVAL_SECONDS)


def parse_notes(data: bytes, message: str) -> list[dict[str, Any]]:
    """Return the fields of each note with this message, in either log format. In the text format they are strings."""
    matches = []
    for line in data.decode("utf-8", "replace").splitlines():
        if line.startswith("{"):
            try:
                fields = json.loads(line)
            except ValueError:  # incomplete line
                continue
            if fields.get("message") == message:
                matches.append(fields)
        elif (note := _NOTE_PATTERN.fullmatch(line)) and note["message"] == message:
            fields = _FIELD_PATTERN.findall(note["fields"])
            matches.append({name: _ESCAPED_CHAR.sub(r"\1", quoted) or bare for name, quoted, bare in fields})
    return matches


def _last_lines_of_file(path: Path, count: int, end: int | None = None) -> list[bytes]:
    if count <= 0:
        return []
    with path.open("rb") as stream:
        end = os.fstat(stream.fileno()).st_size if end is None else end
        start = stream.seek(max(0, end - MAX_READ_BYTES))
        return stream.read(end - start).splitlines(keepends=True)[-count:]


def failure_lines(data: bytes) -> list[str]:
    """Return the lines about failed requests."""
    return [line for line in data.decode("utf-8", "replace").splitlines() if _FAILURE_PATTERN.match(line)]
