"""How is an exchange kept, as it went by? In a file of its own, written by a thread; `captured` says what it holds.

A stream never waits for a disk: what does not fit into memory is left out, and the capture says so. A file has its name
only once it is complete.
"""

from __future__ import annotations

import errno
import os
import re
import threading
import time
from collections.abc import Callable, Mapping
from contextlib import suppress
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from typing import BinaryIO

import msgspec

from interlingua.errors import BadInput
from interlingua.events import Finding
from interlingua.gateway.observability.background_writer import Later
from interlingua.gateway.observability.capture_format import (
    Asked,
    End,
    Findings,
    Line,
    Received,
    Request,
    Sent,
    packed,
    read,
)
from interlingua.gateway.observability.exchange_record import Exchange, told
from interlingua.gateway.settings import schema as settings
from interlingua.gateway.settings.redaction import Redactor

__all__ = ["Captures", "Recording", "check_folder", "read"]

_LIMIT = 32 * 1024 * 1024
"""For what waits to be written, in bytes. Requests of agents are large, and each is kept as it came and as it went."""
_LINE = 200
_NAME = re.compile(r"\d{8}T\d{12}Z-[\w-]+\.jsonl")
_PART = re.compile(r"\.\d{8}T\d{12}Z-[\w-]+\.part")
_DAY = 24 * 60 * 60


def check_folder(wanted: settings.Capture) -> None:
    """Makes it if it is missing. Raises if nothing could be written there."""
    _Folder(wanted, _create)


class Captures:
    """All of one process. Without settings, nothing is kept."""

    def __init__(
        self,
        wanted: settings.Capture | None,
        redactor: Redactor,
        limit: int = _LIMIT,
        create: Callable[[Path], BinaryIO] | None = None,
    ) -> None:
        self._folder = _Folder(wanted, create or _create) if wanted else None
        self._redactor = redactor
        self._later: Later[Callable[[], None]] = Later(lambda do: do(), limit, "captures")
        self._lock = threading.Lock()
        self.dropped = 0
        """How many are missing or cut short so far."""

    def open(self, exchange: Exchange) -> Recording:
        file = _File(self._folder, exchange, self._redactor, self._lose) if self._folder else None
        if file and not self._later.put(file.begin, _LINE):
            self._lose()
            file = None
        return Recording(file, self._later)

    def close(self, seconds: float = 5) -> None:
        """Waits for what is to be written, but not for ever. What is not finished now never will be."""
        if self._folder:
            self._later.put(self._folder.abandon, 0)
        self._later.close(seconds)

    def _lose(self) -> None:
        with self._lock:
            self.dropped += 1


class Recording:
    """One exchange, as the relay tells it. Nothing here waits or fails."""

    def __init__(self, file: _File | None, later: Later[Callable[[], None]]) -> None:
        self._file = file
        self._later = later
        self._started = time.monotonic()
        self._truncated = False

    def request(self, headers: Mapping[str, str], body: bytes) -> None:
        """What the client asked."""
        self._put(_File.request, dict(headers), body, weight=len(body))

    def asked(self, url: str, headers: Mapping[str, str], body: bytes) -> None:
        """What an upstream is asked."""
        self._put(_File.asked, url, dict(headers), body, weight=len(body))

    def received(self, data: bytes) -> None:
        self._put(_File.flow, Received, data, weight=len(data))

    def sent(self, data: bytes) -> None:
        self._put(_File.flow, Sent, data, weight=len(data))

    def finish(self, exchange: Exchange) -> None:
        if self._file:
            self._later.put(partial(self._file.do, _File.finish, self._now(), exchange, self._truncated), 0)

    def _put(self, step: Callable[..., None], *args: object, weight: int) -> None:
        if self._file and not self._truncated:
            job = partial(self._file.do, step, self._now(), *args)
            self._truncated = not self._later.put(job, _LINE + weight)

    def _now(self) -> float:
        return round(time.monotonic() - self._started, 6)


class _File:
    """What the thread does for one recording. A file that cannot be written is given up, and removed."""

    def __init__(self, folder: _Folder, exchange: Exchange, redactor: Redactor, lose: Callable[[], None]) -> None:
        self._folder = folder
        self._redactor = redactor
        self._lose = lose
        self._time = datetime.now(UTC)
        self._exchange = exchange
        name = f"{self._time:%Y%m%dT%H%M%S%f}Z-{re.sub(r'[^A-Za-z0-9_-]', '_', exchange.id)[:80] or '_'}"
        self._path = folder.path / f"{name}.jsonl"
        self._part = folder.path / f".{name}.part"
        self._out: BinaryIO | None = None
        self._held: dict[type[Received] | type[Sent], list[tuple[float, bytes]]] = {}

    def begin(self) -> None:
        try:
            self._out = self._folder.create(self._part)
            self._folder.unfinished.add(self)
        except OSError:
            self._lose()

    def do(self, step: Callable[..., None], *args: object) -> None:
        if not self._out:
            return
        try:
            step(self, *args)
        except (OSError, ValueError):  # the disk; what cannot be written as JSON
            self.give_up()

    def give_up(self) -> None:
        self._lose()
        with suppress(OSError):
            self._done()
        with suppress(OSError):
            self._part.unlink()

    def _done(self) -> None:
        out, self._out = self._out, None
        self._folder.unfinished.discard(self)
        if out:
            out.close()

    def request(self, at: float, headers: dict[str, str], body: bytes) -> None:
        self._redactor = self._redactor.with_credentials(headers)
        exchange = self._exchange
        self._write(
            Request(
                at=at,
                id=exchange.id,
                time=self._time.isoformat(),
                path=_text(self._redactor.text(exchange.path)),
                wire=exchange.wire,
                headers=self._headers(headers),
                **packed(self._redactor.data(body)),
            )
        )

    def asked(self, at: float, url: str, headers: dict[str, str], body: bytes) -> None:
        self._release(Received, Sent)
        url = _text(self._redactor.text(url))
        self._write(Asked(at=at, url=url, headers=self._headers(headers), **packed(self._redactor.data(body))))

    def flow(self, at: float, kind: type[Received] | type[Sent], data: bytes) -> None:
        """A piece that ends like the beginning of a secret waits for the next one."""
        held = self._held.setdefault(kind, [])
        held.append((at, data))
        if not self._redactor.may_begin(b"".join(data for _, data in held)):
            self._release(kind)

    def finish(self, at: float, exchange: Exchange, truncated: bool) -> None:
        self._release(Received, Sent)
        if exchange.findings:
            self._write(Findings(at=at, findings=[self._shown(finding) for finding in exchange.findings]))
        fields = self._redactor.value(told(exchange))
        fields = {name: _text(value) if isinstance(value, str) else value for name, value in fields.items()}
        self._write(End(at=at, exchange=fields, truncated=truncated))
        self._done()
        self._folder.keep(self._part, self._path)
        if truncated:
            self._lose()

    def _release(self, *kinds: type[Received] | type[Sent]) -> None:
        """Pieces go out as they came; those that share a secret, as one without it."""
        for kind in kinds:
            pieces = self._held.pop(kind, [])
            whole = b"".join(data for _, data in pieces)
            shown = self._redactor.data(whole)
            for at, data in pieces if shown == whole else [(pieces[0][0], shown)]:
                self._write(kind(at=at, **packed(data)))

    def _headers(self, headers: dict[str, str]) -> dict[str, str]:
        return {_text(name): _text(value) for name, value in self._redactor.headers(headers).items()}

    def _shown(self, finding: Finding) -> Finding:
        return Finding(finding.kind, _text(self._redactor.text(finding.message)), _text(finding.place))

    def _write(self, line: Line) -> None:
        assert self._out  # or no step is taken
        self._out.write(msgspec.json.encode(line) + b"\n")


class _Folder:
    """Where captures are kept: for its owner only, and no more of them than wanted. Other processes may share it."""

    def __init__(self, wanted: settings.Capture, create: Callable[[Path], BinaryIO]) -> None:
        self.path = Path(wanted.dir).expanduser()
        self.create = create
        self._keep = wanted.keep
        self.unfinished: set[_File] = set()
        self._since = 0  # captures since it was last looked through
        try:
            self.path.mkdir(mode=0o700, parents=True, exist_ok=True)
            self._remove_old_parts()
            if not os.access(self.path, os.W_OK | os.X_OK):
                raise PermissionError(errno.EACCES, os.strerror(errno.EACCES))
        except OSError as error:
            hint = "name a directory that the gateway may write to"
            raise BadInput(f"capture.dir: cannot write to {self.path}: {error.strerror}", hint) from None

    def keep(self, part: Path, path: Path) -> None:
        os.replace(part, path)
        self._since += 1
        if self._since > self._keep // 50:  # seldom, for looking takes longer the more there are
            self._since = 0
            names = sorted(name for name in os.listdir(self.path) if _NAME.fullmatch(name))
            for name in names[: -self._keep]:
                with suppress(FileNotFoundError):  # another process was faster
                    os.unlink(self.path / name)

    def abandon(self) -> None:
        for file in [*self.unfinished]:
            file.give_up()

    def _remove_old_parts(self) -> None:
        """Of processes that were killed: those of others that are alive are newer."""
        for entry in os.scandir(self.path):
            if _PART.fullmatch(entry.name) and time.time() - entry.stat().st_mtime > _DAY:
                with suppress(FileNotFoundError):
                    os.unlink(entry.path)


def _create(path: Path) -> BinaryIO:
    """A new file for its owner only. Never one that exists, nor one that a link leads to."""
    return open(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "wb")


def _text(text: str) -> str:
    """Headers that are not UTF-8 come with half characters, which JSON has no way to write."""
    return text.encode("utf-8", "backslashreplace").decode()
