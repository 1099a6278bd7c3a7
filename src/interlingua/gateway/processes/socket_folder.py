"""Temporary folders for Unix sockets, whose paths have to be short."""

from __future__ import annotations

import os
import tempfile

__all__ = ["make_socket_folder"]

PREFIX = "interlingua-"
MAX_PARENT_BYTES = 64
"""Longest path of a parent folder. The path of a Unix socket has at most 103 bytes on macOS, and 107 on Linux."""
FALLBACK_PARENT = "/tmp"


def make_socket_folder() -> str:
    """Create a folder that only its owner can enter, and return its path.

    It is in the folder of temporary files, or in /tmp if the path of that is too long.
    """
    parent = tempfile.gettempdir()
    if len(os.fsencode(parent)) > MAX_PARENT_BYTES:
        parent = FALLBACK_PARENT
    return tempfile.mkdtemp(prefix=PREFIX, dir=parent)
