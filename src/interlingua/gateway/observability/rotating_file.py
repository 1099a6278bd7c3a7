"""Log file with rotation by size. Old files are numbered, and the oldest one is deleted."""

from __future__ import annotations

import os
from contextlib import suppress

from interlingua.errors import BadInput

__all__ = ["MAX_LOG_FILE_BYTES", "MAX_ROTATED_FILES", "RotatingFile"]

MAX_LOG_FILE_BYTES = 10 * 1024 * 1024
MAX_ROTATED_FILES = 2
"""Number of rotated files that are kept. FILE.1 is newer than FILE.2."""
STDERR_FD = 2


class RotatingFile:
    """Log file that several workers share. Each worker opens it; the first worker that finds it full rotates it."""

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
        """Return whether the path still refers to the open file, i.e. no other worker has rotated it."""
        try:
            status = os.stat(self._path, follow_symlinks=False)
        except FileNotFoundError:
            return False
        return os.path.samestat(status, os.fstat(self._fd))

    def _rotate(self) -> None:
        import fcntl  # not available on Windows, where the gateway does not run

        fcntl.flock(self._fd, fcntl.LOCK_EX)  # only one of the workers with this file open rotates it
        try:
            if self._is_current():
                for number in range(MAX_ROTATED_FILES, 1, -1):
                    with suppress(FileNotFoundError):
                        os.replace(f"{self._path}.{number - 1}", f"{self._path}.{number}")
                os.replace(self._path, f"{self._path}.1")
            new_fd = _open_for_append(self._path)
        finally:
            fcntl.flock(self._fd, fcntl.LOCK_UN)
        with suppress(OSError):  # standard error may be closed
            if os.path.samestat(os.fstat(STDERR_FD), os.fstat(self._fd)):
                os.dup2(new_fd, STDERR_FD)
        os.close(self._fd)
        self._fd = new_fd


def _open_for_append(path: str) -> int:
    return os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600)
