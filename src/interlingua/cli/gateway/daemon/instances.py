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
from interlingua.cli.gateway.daemon.process_identity import beginning
from interlingua.errors import BadInput, UsageError
from interlingua.gateway.settings.signing_key import state_folder

__all__ = ["DEFAULT", "Instance", "Instances", "add_name", "named"]

DEFAULT = "default"
PATIENCE = 120.0
"""Seconds for which a command waits for another one about the same gateway."""
_NAME = re.compile(r"[A-Za-z0-9_-]{1,64}")
_LARGEST = 64 * 1024


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
    def runs(self) -> bool:
        return bool(self.began) and beginning(self.pid) == self.began


class Instances:
    """The folder. Nothing in it is reached through a link, and files change at once or not at all."""

    def __init__(self) -> None:
        self.path = state_folder()
        try:
            self.path.mkdir(parents=True, exist_ok=True, mode=0o700)
            self._folder = os.open(self.path, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC)
            if os.fstat(self._folder).st_uid != os.geteuid():
                raise PermissionError(errno.EPERM, "it belongs to somebody else")
            os.fchmod(self._folder, 0o700)
        except OSError as error:
            link = self.path.is_symlink()
            reason = "it is a link" if link else error.strerror
            hint = "set XDG_STATE_HOME to a folder of your own, where it can be made"
            raise BadInput(f"cannot keep anything in {self.path}: {reason}", hint) from error

    def log_of(self, name: str) -> Path:
        return self.path / f"{name}.log"

    def find(self, name: str) -> Instance | None:
        """What was written of it, whether it runs or not."""
        try:
            file = os.open(f"{name}.json", os.O_RDONLY | os.O_NOFOLLOW | os.O_CLOEXEC, dir_fd=self._folder)
            with os.fdopen(file, "rb") as stream:
                return msgspec.json.decode(stream.read(_LARGEST), type=Instance)
        except (OSError, msgspec.MsgspecError):  # none, or nothing that these commands have written
            return None

    def names(self) -> list[str]:
        files = (name.removesuffix(".json") for name in os.listdir(self._folder) if name.endswith(".json"))
        return sorted(name for name in files if _NAME.fullmatch(name))

    def save(self, instance: Instance) -> None:
        new = f".{instance.name}.{os.getpid()}.new"
        try:
            flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
            with os.fdopen(os.open(new, flags, 0o600, dir_fd=self._folder), "wb") as stream:
                stream.write(msgspec.json.encode(instance) + b"\n")
            os.replace(new, f"{instance.name}.json", src_dir_fd=self._folder, dst_dir_fd=self._folder)
        except OSError as error:
            raise BadInput(f"cannot write into {self.path}: {error.strerror}", "is there room on the disk?") from error

    def forget(self, name: str) -> None:
        with suppress(FileNotFoundError):
            os.unlink(f"{name}.json", dir_fd=self._folder)

    @contextmanager
    def locked(self, name: str) -> Iterator[None]:
        """Nobody else starts or stops it meanwhile."""
        flags = os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC
        try:
            file = os.open(f"{name}.lock", flags, 0o600, dir_fd=self._folder)
        except OSError as error:
            raise BadInput(f"cannot write into {self.path}: {error.strerror}", "is there room on the disk?") from error
        try:
            _lock(file, name)
            yield
        finally:
            os.close(file)


def _lock(file: int, name: str) -> None:
    import fcntl  # Windows has none

    began = time.monotonic()
    until, told = began + PATIENCE, began + 1
    while True:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            return
        except BlockingIOError:
            now = time.monotonic()
        if now > until:
            raise BadInput(f"somebody else starts or stops {name!r} all the time", "try again later")
        if now > told:
            io.tell(f"waiting for another `interlingua start` or `stop` of {name!r}")
            told = until
        time.sleep(0.05)


def add_name(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--name", default=DEFAULT, help="which one, if there are several; default: default")


def named(args: argparse.Namespace) -> str:
    name = str(args.name)
    if not _NAME.fullmatch(name):
        raise UsageError(f"{name!r} is no name for a gateway", "use letters, digits, - and _, at most 64 of them")
    return name
