"""A log that a file keeps stays small, however many write it, and whoever started a gateway is told once it serves."""

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
    return {one.name: one.stat().st_size for one in sorted(path.parent.iterdir())}


def test_full_files_are_put_aside_and_the_oldest_goes(tmp_path: Path) -> None:
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


def test_a_line_that_is_larger_than_a_file_is_written(tmp_path: Path) -> None:
    log = RotatingFile(str(tmp_path / "log"), 10)
    assert log.write(LINE) == log.write(LINE) == len(LINE)
    log.close()
    assert (tmp_path / "log").read_bytes() == (tmp_path / "log.1").read_bytes() == LINE


def test_a_file_that_somebody_has_moved_is_begun_anew(tmp_path: Path) -> None:
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
os.write(2, b"what others write\\n")
"""


def test_several_processes_lose_no_line(tmp_path: Path) -> None:
    """Three files of this size have room for all: what is missing was lost by turning over, not by age."""
    path, lines, writers = tmp_path / "log", 2000, 3
    largest = lines * writers * 9 // MAX_ROTATED_FILES
    args = [sys.executable, "-c", WRITER, str(path)]
    processes = [subprocess.Popen([*args, str(name), str(lines), str(largest)]) for name in range(writers)]
    assert [process.wait(60) for process in processes] == [0] * writers
    text = "".join(one.read_text() for one in tmp_path.iterdir())
    assert len(list(tmp_path.iterdir())) > 1
    expected = {f"{name} {number:06}" for name in range(writers) for number in range(lines)}
    assert set(text.splitlines()) == expected | {"last", "what others write"}
    assert len(text.splitlines()) == len(expected) + 2 * writers


@pytest.mark.parametrize("kind", ["link", "folder", "nowhere"])
def test_what_is_no_file_is_refused_with_its_name(tmp_path: Path, kind: str) -> None:
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
def test_the_gateways_own_log(upstream: UpstreamServer, tmp_path: Path, workers: str) -> None:
    upstream.add("logged", up.chat_stream("Hello"))
    file = tmp_path / "gateway.log"
    with run_gateway("--upstream", upstream.url, "--workers", workers, INTERLINGUA_LOG__FILE=str(file)) as gateway:
        assert request_reply(gateway, CHAT, "logged").status == 200
        assert gateway.stop() == 0
        assert "200 ok" in file.read_text()
        assert file.read_text().count("stopped cut=0") == int(workers)
        assert "200 ok" not in gateway.log.read_text()


@pytest.mark.parametrize("workers", ["1", "2"])
@pytest.mark.parametrize("abstract", [False, True])
def test_whoever_named_a_socket_is_told(workers: str, abstract: bool) -> None:
    if abstract and sys.platform != "linux":
        pytest.skip("only Linux has sockets without a file")
    with (
        tempfile.TemporaryDirectory() as folder,  # the path of a socket has to be short
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
