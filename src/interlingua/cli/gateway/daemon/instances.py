"""State files of background gateways, one JSON file each, in a folder that only the user can access."""

from __future__ import annotations

import argparse
import errno
import os
import re
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import msgspec

from interlingua.cli.common import console
from interlingua.cli.gateway.daemon.process_identity import process_start_id
from interlingua.errors import BadInput, UsageError
from interlingua.gateway.settings.signing_key import state_folder

__all__ = ["DEFAULT_NAME", "Instance", "InstanceStore", "add_name_option", "instance_name"]

DEFAULT_NAME = "default"
LOCK_TIMEOUT_SECONDS = 120.0
"""Maximum time that a command waits for another command on the same gateway."""
_NAME_PATTERN = re.compile(r"[A-Za-z0-9_-]{1,64}")
_MAX_FILE_BYTES = 64 * 1024


class Instance(msgspec.Struct, frozen=True, kw_only=True):
    """State of one background gateway."""

    name: str
    pid: int
    start_id: str
    """Result of `process_start_id`. It distinguishes the process from a later one with the same pid."""
    started_at: float
    version: str
    log: str
    drain: float
    workers: int
    address: str = ""
    """URL on which the gateway listens; "" until it has reported it."""
    stop_requested_at: float = 0.0
    """Time of the first `interlingua stop`; 0 if there was none."""
    log_bytes_at_stop: int = 0
    """Size of the log at that time. The notes about how the open requests ended come after it."""

    @property
    def is_running(self) -> bool:
        return bool(self.start_id) and process_start_id(self.pid) == self.start_id


class InstanceStore:
    """Folder with the state files. Symbolic links in it are not followed, and files are replaced atomically."""

    def __init__(self) -> None:
        self.path = state_folder()
        try:
            self.path.mkdir(parents=True, exist_ok=True, mode=0o700)
            self._folder_fd = os.open(self.path, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC)
            if os.fstat(self._folder_fd).st_uid != os.geteuid():
                raise PermissionError(errno.EPERM, "it belongs to another user")
            os.fchmod(self._folder_fd, 0o700)
        except OSError as error:
            link = self.path.is_symlink()
            reason = "it is a symbolic link" if link else error.strerror
            hint = "set XDG_STATE_HOME to a folder of yours in which this folder can be created"
            raise BadInput(f"cannot use the state folder {self.path}: {reason}", hint) from error

    def log_path(self, name: str) -> Path:
        return self.path / f"{name}.log"

    def find(self, name: str) -> Instance | None:
        """Return the saved state, whether or not the process is running; None if there is no valid file."""
        try:
            descriptor = os.open(f"{name}.json", os.O_RDONLY | os.O_NOFOLLOW | os.O_CLOEXEC, dir_fd=self._folder_fd)
            with os.fdopen(descriptor, "rb") as stream:
                return msgspec.json.decode(stream.read(_MAX_FILE_BYTES), type=Instance)
        except (OSError, msgspec.MsgspecError):  # no file, or not one that these commands have written
            return None

    def names(self) -> list[str]:
        files = (name.removesuffix(".json") for name in os.listdir(self._folder_fd) if name.endswith(".json"))
        return sorted(name for name in files if _NAME_PATTERN.fullmatch(name))

    def save(self, instance: Instance) -> None:
        temporary = f".{instance.name}.{os.getpid()}.new"
        try:
            flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
            with os.fdopen(os.open(temporary, flags, 0o600, dir_fd=self._folder_fd), "wb") as stream:
                stream.write(msgspec.json.encode(instance) + b"\n")
            os.replace(temporary, f"{instance.name}.json", src_dir_fd=self._folder_fd, dst_dir_fd=self._folder_fd)
        except OSError as error:
            raise BadInput(f"cannot write to {self.path}: {error.strerror}", "check the free disk space") from error

    def remove(self, name: str) -> None:
        with suppress(FileNotFoundError):
            os.unlink(f"{name}.json", dir_fd=self._folder_fd)

    @contextmanager
    def lock(self, name: str) -> Iterator[None]:
        """Hold an exclusive lock: no other command can start or stop this gateway meanwhile."""
        flags = os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC
        try:
            descriptor = os.open(f"{name}.lock", flags, 0o600, dir_fd=self._folder_fd)
        except OSError as error:
            raise BadInput(f"cannot write to {self.path}: {error.strerror}", "check the free disk space") from error
        try:
            _acquire_lock(descriptor, name)
            yield
        finally:
            os.close(descriptor)


def _acquire_lock(descriptor: int, name: str) -> None:
    import fcntl  # not available on Windows

    started = time.monotonic()
    deadline, report_at = started + LOCK_TIMEOUT_SECONDS, started + 1
    while True:
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
            return
        except BlockingIOError:
            now = time.monotonic()
        if now > deadline:
            raise BadInput(
                f"other commands keep {name!r} locked for more than {LOCK_TIMEOUT_SECONDS:.0f} s", "try again later"
            )
        if now > report_at:
            console.print_stderr(f"waiting for another `interlingua start` or `interlingua stop` of {name!r} to finish")
            report_at = deadline
        time.sleep(0.05)


def add_name_option(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--name", default=DEFAULT_NAME, help=f"name of the gateway, if there are several; without it: {DEFAULT_NAME!r}"
    )


def instance_name(args: argparse.Namespace) -> str:
    name = str(args.name)
    if not _NAME_PATTERN.fullmatch(name):
        raise UsageError(f"{name!r} is not a valid gateway name", "use at most 64 letters, digits, - and _")
    return name
