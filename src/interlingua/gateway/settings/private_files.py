"""Checks of files and directories that other users of the machine must not read or replace."""

from __future__ import annotations

import os
import stat
from pathlib import Path

from interlingua.errors import BadInput

__all__ = ["check_private_file", "check_private_folder"]

ROOT = 0
"""Id of the user that can read and replace every file anyway. On Windows, every file has this owner."""
WRITABLE_BY_OTHERS = stat.S_IWGRP | stat.S_IWOTH
USABLE_BY_OTHERS = stat.S_IRWXG | stat.S_IRWXO


def check_private_folder(path: Path, purpose: str) -> None:
    """Raise BadInput if other users can add, delete or replace files in this directory.

    Args:
        path: The directory.
        purpose: What the directory is for, such as the name of its setting.
    """
    status = path.stat()
    if _is_of_another_user(status):
        raise BadInput(
            f"{purpose}: another user owns {path} (user id {status.st_uid})",
            f"run chown {os.geteuid()} {path} if you trust what is in it, or choose another directory",
        )
    if status.st_mode & WRITABLE_BY_OTHERS:
        raise BadInput(
            f"{purpose}: other users can write to {path} (mode {stat.S_IMODE(status.st_mode):o})",
            f"run chmod 700 {path}, or choose a directory in it that does not exist: it is created for its owner only",
        )


def check_private_file(path: Path, status: os.stat_result, contents: str = "key") -> None:
    """Raise BadInput if other users can read or write a file with this status. `contents` names what is in it."""
    if _is_of_another_user(status):
        raise BadInput(
            f"another user owns {path} (user id {status.st_uid})", f"delete it, so that a new {contents} is created"
        )
    if status.st_mode & USABLE_BY_OTHERS:
        raise BadInput(
            f"other users can read or write {path} (mode {stat.S_IMODE(status.st_mode):o})",
            f"delete it, so that a new {contents} is created; if no other user has read it, run chmod 600 {path}",
        )


def _is_of_another_user(status: os.stat_result) -> bool:
    """Return whether the owner, who can change the mode at any time, is neither the own user nor root."""
    return status.st_uid != ROOT and status.st_uid != os.geteuid()
