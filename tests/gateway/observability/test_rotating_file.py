"""Tests of the rotating log file with several writers, and of the notification when the gateway is ready."""

from __future__ import annotations

import os
import socket
import subprocess
import sys
import tempfile
from pathlib import Path

import pytest

from interlingua.errors import BadInput
from interlingua.gateway.observability.rotating_file import MAX_ROTATED_FILES, RotatingFile
from tests.support import upstream_server as up
from tests.support.gateway_process import run_gateway
from tests.support.raw_client import CHAT, request_reply
from tests.support.upstream_server import UpstreamServer

SMALL = 1000
LINE = b"0123456789" * 9 + b"12345678\n"


def sizes(path: Path) -> dict[str, int]:
    return {file.name: file.stat().st_size for file in sorted(path.parent.iterdir())}


def test_full_file_is_rotated_and_oldest_deleted(tmp_path: Path) -> None:
    path = tmp_path / "log"
    log = RotatingFile(str(path), SMALL)
    for number in range(55):
        assert log.write(b"%2d" % number + LINE[2:]) == len(LINE)
    log.close()
    assert list(sizes(path)) == ["log", "log.1", "log.2"]
    kept = b"".join((tmp_path / name).read_bytes() for name in ("log.2", "log.1", "log"))
    numbers = [int(line[:2]) for line in kept.splitlines()]
    assert numbers == list(range(numbers[0], 55))
    assert all(size <= SMALL for size in sizes(path).values())
    assert path.stat().st_mode & 0o777 == 0o600


def test_line_larger_than_file_limit_is_written(tmp_path: Path) -> None:
    log = RotatingFile(str(tmp_path / "log"), 10)
    assert log.write(LINE) == log.write(LINE) == len(LINE)
    log.close()
    assert (tmp_path / "log").read_bytes() == (tmp_path / "log.1").read_bytes() == LINE


def test_moved_file_is_reopened(tmp_path: Path) -> None:
    path = tmp_path / "log"
    log = RotatingFile(str(path))
    log.write(LINE)
    path.rename(tmp_path / "moved")
    log.write(LINE)
    log.close()
    assert path.read_bytes() == (tmp_path / "moved").read_bytes() == LINE


WRITER = """
import os, sys
from interlingua.gateway.observability.rotating_file import RotatingFile
path, name, lines, largest = sys.argv[1:]
log = RotatingFile(path, int(largest))
os.dup2(log._fd, 2)
for number in range(int(lines)):
    log.write(f"{name} {number:06}\\n".encode())
log.write(b"last\\n")
os.write(2, b"written to stderr\\n")
"""


def test_concurrent_processes_lose_no_line(tmp_path: Path) -> None:
    """Three files of this size hold all lines, so a missing line was lost by rotation and not by deletion."""
    path, lines, writers = tmp_path / "log", 2000, 3
    largest = lines * writers * 9 // MAX_ROTATED_FILES
    args = [sys.executable, "-c", WRITER, str(path)]
    processes = [subprocess.Popen([*args, str(name), str(lines), str(largest)]) for name in range(writers)]
    assert [process.wait(60) for process in processes] == [0] * writers
    text = "".join(file.read_text() for file in tmp_path.iterdir())
    assert len(list(tmp_path.iterdir())) > 1
    expected = {f"{name} {number:06}" for name in range(writers) for number in range(lines)}
    assert set(text.splitlines()) == expected | {"last", "written to stderr"}
    assert len(text.splitlines()) == len(expected) + 2 * writers


@pytest.mark.parametrize("kind", ["link", "folder", "nowhere"])
def test_path_that_is_not_a_regular_file_raises(tmp_path: Path, kind: str) -> None:
    path = tmp_path / kind
    if kind == "link":
        (tmp_path / "elsewhere").write_text("mine")
        path.symlink_to(tmp_path / "elsewhere")
    elif kind == "folder":
        path.mkdir()
    else:
        path = path / "log"
    with pytest.raises(BadInput, match=f"cannot write the log {path}"):
        RotatingFile(str(path))


@pytest.mark.parametrize("workers", ["1", "2"])
def test_gateway_writes_log_file(upstream: UpstreamServer, tmp_path: Path, workers: str) -> None:
    upstream.add("logged", up.chat_stream("Hello"))
    file = tmp_path / "gateway.log"
    with run_gateway("--upstream", upstream.url, "--workers", workers, INTERLINGUA_LOG__FILE=str(file)) as gateway:
        assert request_reply(gateway, CHAT, "logged").status == 200
        assert gateway.stop() == 0
        assert "200 ok" in file.read_text()
        assert file.read_text().count("stopped cut=0") == int(workers)
        assert "200 ok" not in gateway.log.read_text()


@pytest.mark.one_row_in(3)
@pytest.mark.parametrize("workers", ["1", "2"])
@pytest.mark.parametrize("abstract", [False, True])
def test_systemd_notify_socket_receives_ready_and_stopping(workers: str, abstract: bool) -> None:
    if abstract and sys.platform != "linux":
        pytest.skip("only Linux has abstract sockets")
    with (
        tempfile.TemporaryDirectory() as folder,  # the path of a socket must be short
        socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as listener,
    ):
        path = f"@interlingua-{os.getpid()}-{workers}" if abstract else f"{folder}/socket"
        listener.bind(path.replace("@", "\0"))
        listener.settimeout(10)
        with run_gateway("--demo", "--workers", workers, NOTIFY_SOCKET=path) as gateway:
            for _ in range(int(workers)):
                assert listener.recv(1000).decode() == f"READY=1\nSTATUS=listening on {gateway.base}"
            assert gateway.stop() == 0
            assert listener.recv(1000).startswith(b"STOPPING=1\n")


@pytest.mark.parametrize("workers", ["1", "2"])
def test_systemd_watchdog_receives_messages(workers: str) -> None:
    with (
        tempfile.TemporaryDirectory() as folder,
        socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as listener,
    ):
        listener.bind(f"{folder}/socket")
        listener.settimeout(10)
        with run_gateway("--demo", "--workers", workers, NOTIFY_SOCKET=f"{folder}/socket", WATCHDOG_USEC="60000000"):
            messages = [listener.recv(1000) for _ in range(5)]
        assert messages.count(b"WATCHDOG=1") >= 2
