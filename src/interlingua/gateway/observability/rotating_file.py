"""How does a log stay small that a file keeps? Once the file is full it is put aside, and the oldest of these goes."""

from __future__ import annotations

import os
from contextlib import suppress

from interlingua.errors import BadInput

__all__ = ["MAX_LOG_FILE_BYTES", "MAX_ROTATED_FILES", "RotatingFile"]

MAX_LOG_FILE_BYTES = 10 * 1024 * 1024
MAX_ROTATED_FILES = 2
"""How many full files are kept: FILE.1 is newer than FILE.2."""
STDERR_FD = 2


class RotatingFile:
    """Workers share one: each has opened it for itself, and whoever finds it full puts it aside for all."""

    def __init__(self, path: str, max_bytes: int = MAX_LOG_FILE_BYTES) -> None:
        self._path = path
        self._max_bytes = max_bytes
        try:
            self._fd = _open_for_append(path)
        except OSError as error:
            raise BadInput(f"cannot write the log {path}: {error.strerror}", "choose another `log.file`") from error

    def write(self, data: bytes, /) -> int:
        size = os.fstat(self._fd).st_size
        if (size and size + len(data) > self._max_bytes) or not self._is_current():
            self._rotate()
        return os.write(self._fd, data)

    def close(self) -> None:
        os.close(self._fd)

    def _is_current(self) -> bool:
        """Whether the path still leads to the file that is open here."""
        try:
            status = os.stat(self._path, follow_symlinks=False)
        except FileNotFoundError:
            return False
        return os.path.samestat(status, os.fstat(self._fd))

    def _rotate(self) -> None:
        import fcntl  # Windows has none, and no gateway

        fcntl.flock(self._fd, fcntl.LOCK_EX)  # of those who have this file open, one puts it aside
        try:
            if self._is_current():
                for number in range(MAX_ROTATED_FILES, 1, -1):
                    with suppress(FileNotFoundError):
                        os.replace(f"{self._path}.{number - 1}", f"{self._path}.{number}")
                os.replace(self._path, f"{self._path}.1")
            new_fd = _open_for_append(self._path)
        finally:
            fcntl.flock(self._fd, fcntl.LOCK_UN)
        with suppress(OSError):  # there may be no standard error
            if os.path.samestat(os.fstat(STDERR_FD), os.fstat(self._fd)):
                os.dup2(new_fd, STDERR_FD)
        os.close(self._fd)
        self._fd = new_fd


def _open_for_append(path: str) -> int:
    return os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600)
