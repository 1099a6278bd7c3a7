"""Files of a cassette: one file, or a folder with one file per conversation.

Several processes may record into the same folder: a file is extended under a lock and replaced as a whole.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from interlingua.cassettes.cassette_format import read_cassette, write_cassette
from interlingua.cassettes.match_rules import DEFAULT_RULES, MatchRules
from interlingua.cassettes.recorded_exchange import RecordedExchange
from interlingua.cassettes.recording_index import RecordingIndex
from interlingua.cassettes.request_meaning import RequestMeaning, read_request_meaning
from interlingua.core.reply import Text
from interlingua.errors import BadInput

__all__ = [
    "CLOCK_TOLERANCE_SECONDS",
    "SUFFIXES",
    "CassetteFiles",
    "cassette_name",
    "list_files",
    "load_cassette",
    "read_file",
    "write_file",
]

SUFFIXES = (".yaml", ".yml")
MAX_FILE_BYTES = 256 * 1024 * 1024
MAX_SLUG_CHARS = 40
CLOCK_TOLERANCE_SECONDS = 0.05
"""The time of a file may be that much older than the clock showed when it was written."""
_NOT_SLUG = re.compile(r"[^a-z0-9]+")


def load_cassette(path: str | Path, rules: MatchRules = DEFAULT_RULES) -> RecordingIndex:
    """Return the recordings of a file or folder. Raises BadInput if it cannot be read."""
    index = RecordingIndex(rules)
    CassetteFiles(path, index).load()
    return index


class CassetteFiles:
    """The files of one cassette, and the index that is kept up to date with them.

    Args:
        path: A file (`.yaml`), or a folder.
        index: The index of its recordings.
    """

    def __init__(self, path: str | Path, index: RecordingIndex) -> None:
        self.path = Path(path)
        self.index = index
        self._states: dict[str, tuple[int, int, int]] = {}  # of the files that are in the index
        self._first_states = self._read_states()  # of the files that existed before this object

    @property
    def is_file(self) -> bool:
        return self.path.suffix in SUFFIXES

    def _read_states(self) -> dict[str, tuple[int, int, int]]:
        states = {}
        for path in list_files(self.path) if self.path.exists() else ():
            with suppress(FileNotFoundError):  # it was deleted meanwhile
                states[self._name(path)] = _state(path)
        return states

    def create_folder(self) -> None:
        """Create the folder for its owner only: conversations are private until they are published. Raises BadInput."""
        try:
            self.path.mkdir(mode=0o700, parents=True, exist_ok=True)
        except OSError as error:
            raise BadInput(f"cannot create {self.path}: {error.strerror}", "choose another folder") from error

    def load(self) -> None:
        """Read all files. Raises BadInput if there is no such file or folder, or if a file cannot be read."""
        list_files(self.path)
        self.refresh()

    def refresh(self) -> bool:
        """Read the files that are new or have changed, and return whether there are any. Raises BadInput."""
        found = {self._name(path): path for path in (list_files(self.path) if self.path.exists() else ())}
        changed = False
        for name, path in found.items():
            try:
                state = _state(path)
                if self._states.get(name) != state:
                    self.index.replace(name, read_file(path))
                    self._states[name], changed = state, True
            except FileNotFoundError:  # it was deleted meanwhile
                continue
        for name in self._states.keys() - found.keys():
            self.index.replace(name, ())
            del self._states[name]
            changed = True
        return changed

    def append(self, exchange: RecordedExchange, started: float = 0.0) -> Path:
        """Add a recording to its file, and return the file.

        Args:
            exchange: The recording.
            started: The time at which this recording session began. What was recorded before is replaced: a file that
                is older is started over. 0: all recordings are kept.

        Raises:
            BadInput: The file cannot be read or written.
        """
        request = exchange.request
        meaning = read_request_meaning(request.wire, request.body, self.index.rules)
        path = self.path if self.is_file else self.path / cassette_name(exchange, meaning)
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            with _locked(path.parent):
                earlier = read_file(path) if path.exists() and not self._is_older(path, started) else []
                exchanges = [*_without_incomplete(earlier, exchange), exchange]
                write_file(path, exchanges)
                self._states[self._name(path)] = _state(path)
        except OSError as error:
            raise BadInput(f"cannot write {path}: {error.strerror}", "check the folder and the free space") from error
        self.index.replace(self._name(path), exchanges)
        return path

    def _is_older(self, path: Path, started: float) -> bool:
        """Return whether a file was written before this time. A file that has not changed since is certainly older."""
        written = path.stat().st_mtime
        is_unchanged = self._first_states.get(self._name(path)) == _state(path)
        return written < started - CLOCK_TOLERANCE_SECONDS or (written < started and is_unchanged)

    def _name(self, path: Path) -> str:
        return path.name if self.is_file else str(path.relative_to(self.path))


def cassette_name(exchange: RecordedExchange, meaning: RequestMeaning | None = None) -> str:
    """Return the name of the file for an exchange. All turns of a conversation have the same."""
    request = exchange.request
    meaning = meaning or read_request_meaning(request.wire, request.body)
    messages = (message for message in request.read().messages if message.role == "user")
    texts = (piece.text for message in messages for piece in message.pieces if isinstance(piece, Text))
    question = next((text for text in texts if not text.lstrip().startswith("<")), "")
    slug = _NOT_SLUG.sub("-", question[: 2 * MAX_SLUG_CHARS].lower()).strip("-")[:MAX_SLUG_CHARS].strip("-")
    return f"{slug or 'conversation'}-{meaning.opening[:8]}.yaml"


def list_files(path: Path) -> list[Path]:
    """Return the files of a cassette: the file itself, or those of a folder. Raises BadInput if it does not exist."""
    if not path.exists():
        raise BadInput(f"no cassette at {path}", "record one first, or check the path")
    if not path.is_dir():
        return [path]
    return sorted(file for file in path.rglob("*") if file.suffix in SUFFIXES and not file.name.startswith("."))


def read_file(path: Path) -> list[RecordedExchange]:
    """Return the exchanges of a file. Raises BadInput, or FileNotFoundError."""
    try:
        if path.stat().st_size > MAX_FILE_BYTES:
            raise BadInput(f"{path} is larger than {MAX_FILE_BYTES:,} bytes", "check that it is the right file")
        text = path.read_text(encoding="utf-8")
    except FileNotFoundError:
        raise
    except (OSError, UnicodeDecodeError) as error:
        raise BadInput(f"cannot read {path}: {error}", "check the file") from error
    return read_cassette(text, str(path))


def _without_incomplete(exchanges: list[RecordedExchange], new: RecordedExchange) -> list[RecordedExchange]:
    """Return the exchanges without replies to the same request that their client did not read to the end."""
    return [one for one in exchanges if one.reply.is_complete or one.request.body != new.request.body]


def _state(path: Path) -> tuple[int, int, int]:
    status = path.stat()
    return status.st_mtime_ns, status.st_size, status.st_ino


def write_file(path: Path, exchanges: Iterable[RecordedExchange]) -> None:
    """Write a file as a whole, so that no reader sees a part of it. Raises OSError."""
    text = write_cassette(exchanges)
    temporary = path.with_name(f".{path.name}.{os.getpid()}.part")
    try:
        with temporary.open("w", encoding="utf-8", newline="\n") as file:
            file.write(text)
        temporary.replace(path)
    except OSError:
        with suppress(OSError):
            temporary.unlink()
        raise


@contextmanager
def _locked(folder: Path) -> Iterator[None]:
    """Hold the lock of a folder, which is the folder itself: a file for it would be seen by version control."""
    try:
        import fcntl
    except ImportError:  # not on Windows, where one process records at a time
        yield
        return
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX)
        yield
    finally:
        os.close(descriptor)
