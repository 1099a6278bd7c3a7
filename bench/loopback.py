"""Processes on loopback, one core for the server under test and one for the rest, and what they have used."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

__all__ = ["CORES", "UNDER_TEST", "Load", "Process", "Seen", "born_on", "compiled", "gateway", "nginx", "upstream"]

HERE = Path(__file__).parent
CORES = sorted(os.sched_getaffinity(0)) if sys.platform == "linux" else [0]
UNDER_TEST, REST = CORES[-1], CORES[0]
NGINX = """\
daemon off;
{user}worker_processes 1;
pid {folder}/nginx.pid;
error_log {folder}/nginx.log;
events {{ worker_connections 8192; }}
http {{
  access_log off;
  client_body_buffer_size 1m;
  client_body_temp_path {folder}/body;
  proxy_temp_path {folder}/proxy;
  fastcgi_temp_path {folder}/fastcgi;
  uwsgi_temp_path {folder}/uwsgi;
  scgi_temp_path {folder}/scgi;
  upstream model {{ server 127.0.0.1:{upstream}; keepalive 256; }}
  server {{
    listen 127.0.0.1:{port};
    keepalive_requests 100000000;
    location / {{
      proxy_pass http://model;
      proxy_http_version 1.1;
      proxy_set_header Connection "";
      proxy_buffering off;
    }}
  }}
}}
"""


@dataclass(frozen=True)
class Process:
    """One that listens."""

    pid: int
    port: int

    def cpu(self) -> float:
        """Seconds of processor time, its children's included."""
        return sum(_cpu(pid) for pid in _family(self.pid))

    def rest(self) -> None:
        """Waits until it has nothing left to do: some go on with streams whose clients have left."""
        until = time.monotonic() + 15
        while time.monotonic() < until:
            before = self.cpu()
            time.sleep(0.2)
            if self.cpu() - before < 0.01:
                return

    def memory(self) -> int:
        """Bytes that are its own, and its children's."""
        return sum(_private(pid) for pid in _family(self.pid))


@dataclass(frozen=True)
class Seen:
    """What the clients have seen in one window, and what it has cost the server."""

    events: int
    responses: int
    seconds: float
    p50: float
    """Microseconds from the upstream's write to the client's read."""
    p99: float
    cpu: float
    memory: int
    """Bytes by which the server has grown, from before the clients came to the end of the window."""


@dataclass(frozen=True)
class Load:
    """Clients that all send one request."""

    program: Path
    request: Path
    clients: int

    def against(self, server: Process, seconds: float) -> Seen:
        """So long, counted from when all have heard a word."""
        memory = server.memory()
        args = [str(self.program), str(server.port), str(self.request), str(self.clients)]
        with _running(args, REST, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as process:
            assert process.stdin is not None
            assert process.stdout is not None
            if process.stdout.readline() != b"open\n":
                raise RuntimeError(f"the clients were not served: {args}")
            before = server.cpu()
            time.sleep(seconds)
            cpu, grown = server.cpu() - before, server.memory() - memory
            process.stdin.close()
            events, responses, took, p50, p99 = process.stdout.readline().split()
        return Seen(int(events), int(responses), float(took), float(p50), float(p99), cpu, grown)


def compiled(folder: Path, name: str) -> Path:
    """The program of this name here, which is written in C."""
    compiler = shutil.which("cc") or shutil.which("gcc")
    if compiler is None:
        raise SystemExit("bench.gateway: a C compiler is needed for its upstream and its clients: apt-get install gcc")
    subprocess.run([compiler, "-O2", "-o", str(folder / name), str(HERE / f"{name}.c")], check=True)
    return folder / name


@contextmanager
def upstream(program: Path, scripts: Sequence[tuple[str, int, Path]]) -> Iterator[Process]:
    """Scripts are names, microseconds between two events, and files."""
    args = [str(program), *(f"{name}:{interval}:{path}" for name, interval, path in scripts)]
    with _running(args, REST, stdout=subprocess.PIPE) as process:
        assert process.stdout is not None
        yield Process(process.pid, int(process.stdout.readline()))


@contextmanager
def nginx(folder: Path, model: Process) -> Iterator[Process]:
    """Passes everything through to the model, on one worker and without buffering."""
    port = _free_port()
    config = folder / "nginx.conf"
    user = "user root;\n" if os.getuid() == 0 else ""
    config.write_text(NGINX.format(folder=folder, user=user, port=port, upstream=model.port), encoding="utf-8")
    with _running(["nginx", "-p", str(folder), "-c", str(config)], UNDER_TEST) as process:
        yield _listening(process, port)


@contextmanager
def gateway(folder: Path, config: str) -> Iterator[Process]:
    """The gateway as users start it, with this settings file."""
    port = _free_port()
    path = folder / "interlingua.yaml"
    path.write_text(config, encoding="utf-8")
    path.chmod(0o600)
    known = {key: value for key, value in os.environ.items() if not key.startswith("INTERLINGUA_")}
    home = {"HOME": str(folder), "XDG_STATE_HOME": str(folder), "XDG_CONFIG_HOME": str(folder)}
    args = [sys.executable, "-m", "interlingua", "serve", "--config", str(path), "--port", str(port)]
    with (
        (folder / "gateway.log").open("wb") as log,
        _running(args, UNDER_TEST, env=known | home, stdout=log, stderr=log) as process,
    ):
        yield _listening(process, port)


@contextmanager
def born_on(core: int) -> Iterator[None]:
    """A process is born on the core of its parent, and its children and threads stay there."""
    os.sched_setaffinity(0, {core})
    try:
        yield
    finally:
        os.sched_setaffinity(0, {REST})


@contextmanager
def _running(
    args: list[str],
    core: int,
    env: dict[str, str] | None = None,
    stdin: int = subprocess.DEVNULL,
    stdout: object = None,
    stderr: object = None,
) -> Iterator[subprocess.Popen[bytes]]:
    with born_on(core):
        process = subprocess.Popen(args, env=env, stdin=stdin, stdout=stdout, stderr=stderr)  # type: ignore[call-overload]
    try:
        yield process
    finally:
        if process.poll() is None:
            process.send_signal(signal.SIGTERM)
        try:
            process.wait(3)
        except subprocess.TimeoutExpired:
            for pid in _family(process.pid):
                os.kill(pid, signal.SIGKILL)
            process.wait(3)


def _listening(process: subprocess.Popen[bytes], port: int) -> Process:
    import socket

    until = time.monotonic() + 60
    while time.monotonic() < until and process.poll() is None:
        with socket.socket() as one:
            if one.connect_ex(("127.0.0.1", port)) == 0:
                return Process(process.pid, port)
        time.sleep(0.02)
    raise RuntimeError(f"{process.args!r} does not listen")


def _free_port() -> int:
    import socket

    with socket.socket() as one:
        one.bind(("127.0.0.1", 0))
        return int(one.getsockname()[1])


def _family(pid: int) -> list[int]:
    children = Path(f"/proc/{pid}/task/{pid}/children").read_text(encoding="ascii").split()
    return [pid, *(other for child in children for other in _family(int(child)))]


def _cpu(pid: int) -> float:
    """By the process's own clock, which also knows of threads that have ended."""
    return time.clock_gettime(~pid << 3 | 2)


def _private(pid: int) -> int:
    lines = Path(f"/proc/{pid}/smaps_rollup").read_text(encoding="ascii").splitlines()
    return sum(int(line.split()[1]) for line in lines if line.startswith(("Private_Clean", "Private_Dirty"))) * 1024
