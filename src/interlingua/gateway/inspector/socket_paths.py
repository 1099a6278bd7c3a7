"""Paths of the sockets in the folder of the inspector's process."""

from __future__ import annotations

import os

__all__ = ["feed_path", "http_path"]


def feed_path(folder: str) -> str:
    """Return the path of the socket that the workers send to."""
    return os.path.join(folder, "feed.sock")


def http_path(folder: str) -> str:
    """Return the path of the socket that serves the page."""
    return os.path.join(folder, "http.sock")
