"""How does a log stay small that a file keeps? Once the file is full it is put aside, and the oldest of these goes."""

from __future__ import annotations

import os
from contextlib import suppress

from interlingua.errors import BadInput

__all__ = ["ASIDE", "LARGEST", "LogFile"]

LARGEST = 10 * 1024 * 1024
ASIDE = 2
"""How many full files are kept: FILE.1 is newer than FILE.2."""
STANDARD_ERROR = 2


class LogFile:
    """Workers share one: each has opened it for itself, and whoever finds it full puts it aside for all."""

    def __init__(self, path: str, largest: int = LARGEST) -> None:
        self._path = path
        self._largest = largest
        try:
            self._file = _opened(path)
        except OSError as error:
            raise BadInput(f"cannot write the log {path}: {error.strerror}", "choose another `log.file`") from error

    def write(self, data: bytes, /) -> int:
        size = os.fstat(self._file).st_size
        if (size and size + len(data) > self._largest) or not self._is_mine():
            self._begin_anew()
        return os.write(self._file, data)

    def close(self) -> None:
        os.close(self._file)

    def _is_mine(self) -> bool:
        """Whether the path still leads to the file that is open here."""
        try:
            there = os.stat(self._path, follow_symlinks=False)
        except FileNotFoundError:
            return False
        return os.path.samestat(there, os.fstat(self._file))

    def _begin_anew(self) -> None:
        import fcntl  # Windows has none, and no gateway

        fcntl.flock(self._file, fcntl.LOCK_EX)  # of those who have this file open, one puts it aside
        try:
            if self._is_mine():
                for number in range(ASIDE, 1, -1):
                    with suppress(FileNotFoundError):
                        os.replace(f"{self._path}.{number - 1}", f"{self._path}.{number}")
                os.replace(self._path, f"{self._path}.1")
            new = _opened(self._path)
        finally:
            fcntl.flock(self._file, fcntl.LOCK_UN)
        with suppress(OSError):  # there may be no standard error
            if os.path.samestat(os.fstat(STANDARD_ERROR), os.fstat(self._file)):
                os.dup2(new, STANDARD_ERROR)
        os.close(self._file)
        self._file = new


def _opened(path: str) -> int:
    return os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600)
