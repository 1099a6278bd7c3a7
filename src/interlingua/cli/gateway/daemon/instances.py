"""What is known of gateways in the background: a file for each, in a folder that is the user's alone."""

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

from interlingua.cli.common import console as io
from interlingua.cli.gateway.daemon.process_identity import process_start_id
from interlingua.errors import BadInput, UsageError
from interlingua.gateway.settings.signing_key import state_folder

__all__ = ["DEFAULT_NAME", "Instance", "InstanceStore", "add_name_option", "instance_name"]

DEFAULT_NAME = "default"
LOCK_TIMEOUT_SECONDS = 120.0
"""Seconds for which a command waits for another one about the same gateway."""
_NAME_PATTERN = re.compile(r"[A-Za-z0-9_-]{1,64}")
_MAX_FILE_BYTES = 64 * 1024


class Instance(msgspec.Struct, frozen=True, kw_only=True):
    """One gateway."""

    name: str
    pid: int
    began: str
    """What tells its process from a later one with the same number."""
    since: float
    version: str
    log: str
    drain: float
    workers: int
    address: str = ""
    """Where it listens; "": it has not said so yet."""
    told_to_stop: float = 0.0
    """When it was, for the first time; 0: it was not."""
    log_then: int = 0
    """How long its log was then: what became of its requests stands behind."""

    @property
    def is_running(self) -> bool:
        return bool(self.began) and process_start_id(self.pid) == self.began


class InstanceStore:
    """The folder. Nothing in it is reached through a link, and files change at once or not at all."""

    def __init__(self) -> None:
        self.path = state_folder()
        try:
            self.path.mkdir(parents=True, exist_ok=True, mode=0o700)
            self._folder_fd = os.open(self.path, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC)
            if os.fstat(self._folder_fd).st_uid != os.geteuid():
                raise PermissionError(errno.EPERM, "it belongs to somebody else")
            os.fchmod(self._folder_fd, 0o700)
        except OSError as error:
            link = self.path.is_symlink()
            reason = "it is a link" if link else error.strerror
            hint = "set XDG_STATE_HOME to a folder of your own, where it can be made"
            raise BadInput(f"cannot keep anything in {self.path}: {reason}", hint) from error

    def log_path(self, name: str) -> Path:
        return self.path / f"{name}.log"

    def find(self, name: str) -> Instance | None:
        """What was written of it, whether it runs or not."""
        try:
            descriptor = os.open(f"{name}.json", os.O_RDONLY | os.O_NOFOLLOW | os.O_CLOEXEC, dir_fd=self._folder_fd)
            with os.fdopen(descriptor, "rb") as stream:
                return msgspec.json.decode(stream.read(_MAX_FILE_BYTES), type=Instance)
        except (OSError, msgspec.MsgspecError):  # none, or nothing that these commands have written
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
            raise BadInput(f"cannot write into {self.path}: {error.strerror}", "is there room on the disk?") from error

    def remove(self, name: str) -> None:
        with suppress(FileNotFoundError):
            os.unlink(f"{name}.json", dir_fd=self._folder_fd)

    @contextmanager
    def lock(self, name: str) -> Iterator[None]:
        """Nobody else starts or stops it meanwhile."""
        flags = os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC
        try:
            descriptor = os.open(f"{name}.lock", flags, 0o600, dir_fd=self._folder_fd)
        except OSError as error:
            raise BadInput(f"cannot write into {self.path}: {error.strerror}", "is there room on the disk?") from error
        try:
            _acquire_lock(descriptor, name)
            yield
        finally:
            os.close(descriptor)


def _acquire_lock(descriptor: int, name: str) -> None:
    import fcntl  # Windows has none

    started = time.monotonic()
    deadline, report_at = started + LOCK_TIMEOUT_SECONDS, started + 1
    while True:
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
            return
        except BlockingIOError:
            now = time.monotonic()
        if now > deadline:
            raise BadInput(f"somebody else starts or stops {name!r} all the time", "try again later")
        if now > report_at:
            io.print_stderr(f"waiting for another `interlingua start` or `stop` of {name!r}")
            report_at = deadline
        time.sleep(0.05)


def add_name_option(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--name", default=DEFAULT_NAME, help="which one, if there are several; default: default")


def instance_name(args: argparse.Namespace) -> str:
    name = str(args.name)
    if not _NAME_PATTERN.fullmatch(name):
        raise UsageError(f"{name!r} is no name for a gateway", "use letters, digits, - and _, at most 64 of them")
    return name
