"""Folders for Unix sockets: short enough wherever the temporary files are."""

from __future__ import annotations

import os
import socket
import stat
import tempfile
from pathlib import Path

import pytest

from interlingua.gateway.inspector.socket_paths import feed_path, http_path
from interlingua.gateway.processes.socket_folder import MAX_PARENT_BYTES, make_socket_folder

MACOS_PATH_BYTES = 103


def test_path_of_a_socket_is_short_on_every_system() -> None:
    longest_parent = "/" + "t" * (MAX_PARENT_BYTES - 1)
    folder = f"{longest_parent}/interlingua-abcdefgh"
    assert max(map(len, (feed_path(folder), http_path(folder)))) <= MACOS_PATH_BYTES


@pytest.mark.parametrize(("length", "is_used"), [(10, True), (100, False)])
def test_folder_whose_path_is_too_long_is_not_used(monkeypatch: pytest.MonkeyPatch, length: int, is_used: bool) -> None:
    parent = Path(tempfile.mkdtemp(dir="/tmp")) / ("t" * length)
    parent.mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(parent))
    folder = Path(make_socket_folder())
    try:
        assert (folder.parent == parent) is is_used
        assert stat.S_IMODE(folder.stat().st_mode) == 0o700
        with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as listener:
            listener.bind(feed_path(str(folder)))
        os.unlink(feed_path(str(folder)))
    finally:
        for path in (folder, parent, parent.parent):
            path.rmdir()
