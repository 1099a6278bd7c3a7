"""Exchanges in capture files, for `interlingua inspect`. Files and folders are watched: new files are added, those that
have changed are read again, because another program may still be writing them, and those that are gone are removed.

Captures have no secrets. Those that a pattern finds are redacted once more, for files that another program wrote.
"""

from __future__ import annotations

import asyncio
import os
import threading
import time
from collections.abc import Callable, Iterable, Iterator
from itertools import chain, count
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

_FileVersion = tuple[int, int, int] | None
"""Size, and the times at which content and attributes of a file have changed; None if there is no such file."""

MAX_FILES = 20_000
WATCH_SECONDS = 1.0
MAX_WATCH_SECONDS = 5.0
MAX_WATCH_SHARE = 0.05
"""Share of the time that is spent looking for changes. Folders with many files are looked at less often."""
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
            files += sorted(_files_in(path))
        elif path.exists():
            files.append(path)
        else:
            raise BadInput(f"{name}: no such file or folder", "pass captures: interlingua serve --capture DIR")
    return list(dict.fromkeys(files))[-MAX_FILES:]


def _files_in(folder: Path) -> Iterator[Path]:
    """Yield the capture files in a folder. Unlike `rglob`, this does not fail if a folder is removed meanwhile."""
    for parent, folders, names in os.walk(folder):
        yield from (Path(parent, name) for name in (*folders, *names) if name.endswith(CAPTURE_SUFFIX))


class CaptureFiles:
    """Exchanges in files and folders. A file that is no capture is left out, and `problems` names it."""

    is_live = False

    def __init__(self, paths: Iterable[str]) -> None:
        self._paths = list(paths)
        self._lock = threading.Lock()
        self._files: dict[str, Path] = {}
        self._summaries: dict[str, SummarizedExchange] = {}
        self._ids: dict[Path, str] = {}
        self._versions: dict[Path, _FileVersion] = {}
        """All files, as they were when they were read."""
        self._problems_of_files: dict[Path, str] = {}
        self.problems: list[str] = []
        self.changes = ChangeLog()

    def read_new_files(self) -> list[str]:
        """Read summaries of files that are new or have changed, and forget those that are gone.

        Returns:
            The ids of the exchanges that were read.
        """
        paths = find_capture_files(name for name in self._paths if Path(name).exists())
        for path in self._versions.keys() - set(paths):
            self._forget(path)
            del self._versions[path]
        return [id for id in map(self._read_summary, list(self._unread_files(paths))) if id]

    def _unread_files(self, paths: list[Path]) -> Iterator[Path]:
        for path in paths:
            version = _version(path)
            if path not in self._versions or version != self._versions[path]:
                self._versions[path] = version
                yield path

    def _read_summary(self, path: Path) -> str:
        """Read the summary of a file. Return the id of its exchange; "" if it is no capture."""
        try:
            if not path.is_file():  # to open a named pipe would take for ever
                raise BadInput(f"{path}: not a regular file", "pass captures: interlingua serve --capture DIR")
            summarized = redact_summary(summarize(_summary_lines(path), path.stem), Redactor())
        except (BadInput, OSError) as error:
            self._forget(path)
            self._note_problem(path, str(error))
            return ""
        id = summarized.summary.id = self._unique_id(summarized.summary.id, path)
        if self._ids.get(path) != id:
            self._forget(path)
        self._note_problem(path, "")
        with self._lock:
            self._files[id], self._summaries[id], self._ids[path] = path, summarized, id
        return id

    def _unique_id(self, id: str, path: Path) -> str:
        """Return an id that no other file has: copies are exchanges of their own."""
        copy_id = f"{id}~{path.stem}"
        candidates = chain((id, copy_id), (f"{copy_id}~{number}" for number in count(2)))
        with self._lock:
            return next(candidate for candidate in candidates if self._files.get(candidate, path) == path)

    def _forget(self, path: Path) -> None:
        """Remove the exchange and the problem of a file."""
        self._note_problem(path, "")
        with self._lock:
            id = self._ids.pop(path, "")
            self._files.pop(id, None)
            self._summaries.pop(id, None)

    def _note_problem(self, path: Path, problem: str) -> None:
        """Replace the problem of a file in `problems`; "" if it has none."""
        earlier = self._problems_of_files.pop(path, "")
        if problem:
            self._problems_of_files[path] = problem
        if problem != earlier:
            with self._lock:
                self.problems[:] = self._problems_of_files.values()

    async def watch(self, on_read: Callable[[], None]) -> None:
        """Look for changes of the files until the task is cancelled. `on_read` is called after each look."""
        while True:
            started = time.monotonic()
            known_ids, known_problems = set(self._summaries), list(self.problems)
            try:
                changed = await asyncio.to_thread(self.read_new_files)
            except (BadInput, OSError):  # a folder was moved away at this moment, or cannot be read for now
                changed = []
            for id in known_ids - self._summaries.keys():
                self.changes.remove(id)
            for id in changed:
                self.changes.add(id)
            if self.problems != known_problems:
                self.changes.announce()
            on_read()
            pause = (time.monotonic() - started) / MAX_WATCH_SHARE
            await asyncio.sleep(min(max(pause, WATCH_SECONDS), MAX_WATCH_SECONDS))

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
    return status.st_size, status.st_mtime_ns, status.st_ctime_ns


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
