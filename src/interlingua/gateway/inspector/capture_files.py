"""Exchanges in capture files, for `interlingua inspect`. Folders are watched for new files. Incomplete files are
read again when they have changed: another program may still be writing or copying them.

Captures have no secrets. Those that a pattern finds are redacted once more, for files that another program wrote.
"""

from __future__ import annotations

import asyncio
import os
import threading
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import BinaryIO

from interlingua.captures.capture_format import (
    CAPTURE_SUFFIX,
    CapturedExchange,
    CaptureLine,
    ClientRequestLine,
    UpstreamRequestLine,
    decode_line,
    read_capture,
)
from interlingua.errors import BadInput
from interlingua.gateway.inspector.exchange_source import ChangeLog, UnknownExchange, redact_summary
from interlingua.gateway.observability.redacted_lines import redact_capture
from interlingua.gateway.settings.redaction import Redactor
from interlingua.inspection.exchange_summary import SummarizedExchange, summarize

__all__ = ["CaptureFiles", "find_capture_files"]

_FileVersion = tuple[int, int] | None
"""Size and time of change of a file; None if it cannot be read."""

MAX_FILES = 20_000
WATCH_SECONDS = 1.0
END_LINE_START = b'{"kind":"end"'
END_BLOCK_BYTES = 64 * 1024
"""Size of the end of a file in which its last line is looked for first."""


def find_capture_files(paths: Iterable[str]) -> list[Path]:
    """Return the capture files among these files and in these folders, the newest ones if there are too many.

    Raises:
        BadInput: A path does not exist, or there is no capture.
    """
    files: list[Path] = []
    for name in paths:
        path = Path(name)
        if path.is_dir():
            files += sorted(path.rglob(f"*{CAPTURE_SUFFIX}"))
        elif path.exists():
            files.append(path)
        else:
            raise BadInput(f"{name}: no such file or folder", "pass captures: interlingua serve --capture DIR")
    return list(dict.fromkeys(files))[-MAX_FILES:]


class CaptureFiles:
    """Exchanges in files and folders. A file that is no capture is left out, and `problems` names it."""

    is_live = False

    def __init__(self, paths: Iterable[str]) -> None:
        self._paths = list(paths)
        self._lock = threading.Lock()
        self._files: dict[str, Path] = {}
        self._summaries: dict[str, SummarizedExchange] = {}
        self._known: set[Path] = set()
        self._incomplete: dict[Path, _FileVersion] = {}
        """Files that are no capture, or have no end, as they were when they were read."""
        self._problems_of_files: dict[Path, str] = {}
        self.problems: list[str] = []
        self.changes = ChangeLog()

    def read_new_files(self) -> list[str]:
        """Read summaries of new files, and of incomplete ones that have changed. Return the ids of their exchanges."""
        return [id for id in map(self._read_summary, list(self._unread_files())) if id]

    def _unread_files(self) -> Iterator[Path]:
        for path in find_capture_files(self._paths):
            if path not in self._known:
                self._known.add(path)
                yield path
            elif path in self._incomplete and _version(path) != self._incomplete[path]:
                yield path

    def _read_summary(self, path: Path) -> str:
        """Read the summary of a file. Return the id of its exchange; "" if it is no capture."""
        version = _version(path)
        try:
            summarized = redact_summary(summarize(_summary_lines(path), path.stem), Redactor())
        except (BadInput, OSError) as error:
            self._incomplete[path] = version
            self._note_problem(path, str(error))
            return ""
        if summarized.summary.outcome == "open":
            self._incomplete[path] = version
        else:
            self._incomplete.pop(path, None)
        self._note_problem(path, "")
        id = summarized.summary.id
        with self._lock:
            if self._files.get(id, path) != path:  # a copy
                id = summarized.summary.id = f"{id}~{path.stem}"
            self._files[id], self._summaries[id] = path, summarized
        return id

    def _note_problem(self, path: Path, problem: str) -> None:
        """Replace the problem of a file in `problems`; "" if it has none."""
        earlier = self._problems_of_files.pop(path, "")
        if problem:
            self._problems_of_files[path] = problem
        if problem != earlier:
            with self._lock:
                self.problems[:] = self._problems_of_files.values()

    async def watch(self, on_read: Callable[[], None]) -> None:
        """Look for new files until the task is cancelled. `on_read` is called after each look."""
        while True:
            known_problems = list(self.problems)
            try:
                changed = await asyncio.to_thread(self.read_new_files)
            except BadInput:  # a folder was moved away; it can come back
                changed = []
            for id in changed:
                self.changes.add(id)
            if self.problems != known_problems:
                self.changes.announce()
            on_read()
            await asyncio.sleep(WATCH_SECONDS)

    def list_exchanges(self) -> list[SummarizedExchange]:
        with self._lock:
            return list(self._summaries.values())

    def find_summary(self, id: str) -> SummarizedExchange:
        with self._lock:
            summarized = self._summaries.get(id)
        if summarized is None:
            raise UnknownExchange(id)
        return summarized

    def load(self, id: str) -> CapturedExchange:
        with self._lock:
            path = self._files.get(id)
        if path is None:
            raise UnknownExchange(id)
        try:
            return redact_capture(read_capture(path), Redactor())
        except OSError as error:
            raise BadInput(f"cannot read {path}: {error.strerror}", "reload the page") from error


def _version(path: Path) -> _FileVersion:
    try:
        status = path.stat()
    except OSError:
        return None
    return status.st_size, status.st_mtime_ns


def _summary_lines(path: Path) -> list[CaptureLine]:
    """Return the lines of a file that its summary is made of: those at its start, and the last one.

    Raises:
        BadInput: The file is no capture.
    """
    lines: list[CaptureLine] = []
    with path.open("rb") as file:
        for number, encoded in enumerate(file, 1):
            line = decode_line(encoded, str(path), number)
            lines.append(line)
            if not isinstance(line, ClientRequestLine | UpstreamRequestLine):
                break
        last = _last_line(file)
    if not lines:
        raise BadInput(f"{path}: the file is empty", "the gateway writes captures if `capture` is set")
    end = decode_line(last, str(path), 0) if last.startswith(END_LINE_START) else None
    if end is not None:
        return [*lines, end]
    return read_capture(path).lines  # it has no end: everything is needed


def _last_line(file: BinaryIO) -> bytes:
    """Return the last line of an open file; b"" if it is longer than usual."""
    size = file.seek(0, os.SEEK_END)
    file.seek(max(size - END_BLOCK_BYTES, 0))
    block = file.read().rstrip(b"\n")
    start = block.rfind(b"\n")
    return block[start + 1 :] if start >= 0 or size <= END_BLOCK_BYTES else b""
