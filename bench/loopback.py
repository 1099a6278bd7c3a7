"""Processes of a benchmark on loopback, with CPU time and memory. The server under test has its own core."""

from __future__ import annotations

import os
import select
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Collection, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

__all__ = [
    "CORES",
    "UNDER_TEST",
    "Load",
    "Measurement",
    "Process",
    "compile_program",
    "gateway",
    "nginx",
    "pin_to_core",
    "upstream",
]

HERE = Path(__file__).parent
CORES = sorted(os.sched_getaffinity(0)) if sys.platform == "linux" else [0]
UNDER_TEST, REST = CORES[-1], CORES[0]
OPEN_TIMEOUT_SECONDS = 60.0
"""Some servers need long until each client has received an event."""
REPORT_TIMEOUT_SECONDS = 10.0
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
    """Server process with its port."""

    pid: int
    port: int
    uncounted: frozenset[int] = frozenset()
    """Ids of children whose CPU time does not count."""

    def cpu(self) -> float:
        """Return the CPU time in seconds, children included."""
        return sum(_cpu(pid) for pid in _process_tree(self.pid) if pid not in self.uncounted)

    def wait_until_idle(self) -> None:
        """Wait until the process is idle. Some servers continue with streams whose clients have disconnected."""
        until = time.monotonic() + 15
        while time.monotonic() < until:
            before = self.cpu()
            time.sleep(0.2)
            if self.cpu() - before < 0.01:
                return

    def children(self) -> list[int]:
        """Return the process ids of the children, such as the workers of a gateway."""
        return _process_tree(self.pid)[1:]

    def memory(self) -> int:
        """Return the private memory in bytes, children included."""
        return sum(_private_memory(pid) for pid in _process_tree(self.pid))


@dataclass(frozen=True)
class Measurement:
    """Events that the clients received in one time window, and the cost for the server."""

    events: int
    responses: int
    seconds: float
    p50: float
    """Microseconds from the upstream's write to the client's read, at the median."""
    p99: float
    cpu: float
    memory: int
    """Growth of the server in bytes, from before the clients connected to the end of the window."""
    reads: int
    """Reads of the clients that had at least one event."""
    streams: int
    """Clients that received at least one event."""
    opening: float
    """Seconds from the start of the clients until each has received an event."""
    load_cpu: float
    """CPU time of the clients, and of the upstream if it is given."""


@dataclass(frozen=True)
class Load:
    """Clients that all send the same requests."""

    program: Path
    requests: Path
    clients: int
    cores: Collection[int] = (REST,)

    def run_against(
        self,
        server: Process,
        seconds: float,
        open_timeout: float = OPEN_TIMEOUT_SECONDS,
        model: Process | None = None,
    ) -> Measurement:
        """Run the clients. The time is counted from when every client has received an event.

        Raises:
            RuntimeError: A client received no event within `open_timeout` seconds, or an error.
        """
        memory, started = server.memory(), time.monotonic()
        with self.open(server, open_timeout) as process:
            load = [Process(process.pid, 0), *([model] if model else [])]
            opening, before, load_before = time.monotonic() - started, server.cpu(), _total_cpu(load)
            time.sleep(seconds)
            cpu, load_cpu, grown = server.cpu() - before, _total_cpu(load) - load_before, server.memory() - memory
            assert process.stdin is not None
            process.stdin.close()
            fields = _read_line(process, REPORT_TIMEOUT_SECONDS).split()
            if not fields:
                raise RuntimeError(_client_error(process))
        events, responses, took, p50, p99, reads, streams = map(float, fields)
        return Measurement(
            int(events), int(responses), took, p50, p99, cpu, grown, int(reads), int(streams), opening, load_cpu
        )

    @contextmanager
    def open(self, server: Process, open_timeout: float = OPEN_TIMEOUT_SECONDS) -> Iterator[subprocess.Popen[bytes]]:
        """Run the clients, in the block from when every client has received an event. Raises RuntimeError."""
        args = [str(self.program), str(server.port), str(self.requests), str(self.clients)]
        pipe = subprocess.PIPE
        with _run_process(args, self.cores, stdin=pipe, stdout=pipe, stderr=pipe) as process:
            if _read_line(process, open_timeout) != "open":
                raise RuntimeError(_client_error(process))
            yield process


def _total_cpu(processes: list[Process]) -> float:
    return sum(process.cpu() for process in processes)


def _read_line(process: subprocess.Popen[bytes], timeout: float) -> str:
    """Return the next line of the output; "" if there is none in time."""
    assert process.stdout is not None
    if not select.select([process.stdout], [], [], timeout)[0]:
        return ""
    return process.stdout.readline().decode().strip()


def _client_error(process: subprocess.Popen[bytes]) -> str:
    process.kill()
    assert process.stderr is not None
    return process.stderr.read().decode(errors="replace").strip() or "the server did not answer all clients in time"


def compile_program(folder: Path, name: str) -> Path:
    """Compile the C program of this name in this folder."""
    compiler = shutil.which("cc") or shutil.which("gcc")
    if compiler is None:
        raise SystemExit("bench.gateway: its upstream and its clients need a C compiler: apt-get install gcc")
    subprocess.run([compiler, "-O2", "-o", str(folder / name), str(HERE / f"{name}.c")], check=True)
    return folder / name


@contextmanager
def upstream(program: Path, scripts: Sequence[tuple[str, int, Path]], api: str = "") -> Iterator[Process]:
    """Run the upstream program.

    Args:
        program: The compiled program.
        scripts: Name, microseconds between two events, and file of each script.
        api: End of the paths that the upstream offers; "" for all paths.
    """
    args = [str(program), api, *(f"{name}:{interval}:{path}" for name, interval, path in scripts)]
    with _run_process(args, [REST], stdout=subprocess.PIPE) as process:
        assert process.stdout is not None
        yield Process(process.pid, int(process.stdout.readline()))


@contextmanager
def nginx(folder: Path, model: Process) -> Iterator[Process]:
    """Run nginx, which forwards everything to the model, with one worker and without buffering."""
    port = _free_port()
    config = folder / "nginx.conf"
    user = "user root;\n" if os.getuid() == 0 else ""
    config.write_text(NGINX.format(folder=folder, user=user, port=port, upstream=model.port), encoding="utf-8")
    with _run_process(["nginx", "-p", str(folder), "-c", str(config)], [UNDER_TEST]) as process:
        yield _wait_until_listening(process, port)


@contextmanager
def gateway(folder: Path, config: str) -> Iterator[Process]:
    """Run the gateway as users start it, with these settings."""
    port = _free_port()
    path = folder / "interlingua.yaml"
    path.write_text(config, encoding="utf-8")
    path.chmod(0o600)
    known = {key: value for key, value in os.environ.items() if not key.startswith("INTERLINGUA_")}
    home = {"HOME": str(folder), "XDG_STATE_HOME": str(folder), "XDG_CONFIG_HOME": str(folder)}
    args = [sys.executable, "-m", "interlingua", "serve", "--config", str(path), "--port", str(port)]
    with (
        (folder / "gateway.log").open("wb") as log,
        _run_process(args, [UNDER_TEST], env=known | home, stdout=log, stderr=log) as process,
    ):
        yield _wait_until_listening(process, port)


@contextmanager
def pin_to_core(core: int) -> Iterator[None]:
    """Pin this process to a core, so that processes started in the block run there, with their children and threads."""
    with _pin_to_cores([core]):
        yield


@contextmanager
def _pin_to_cores(cores: Collection[int]) -> Iterator[None]:
    os.sched_setaffinity(0, cores)
    try:
        yield
    finally:
        os.sched_setaffinity(0, {REST})


@contextmanager
def _run_process(
    args: list[str],
    cores: Collection[int],
    env: dict[str, str] | None = None,
    stdin: int = subprocess.DEVNULL,
    stdout: object = None,
    stderr: object = None,
) -> Iterator[subprocess.Popen[bytes]]:
    with _pin_to_cores(cores):
        process = subprocess.Popen(args, env=env, stdin=stdin, stdout=stdout, stderr=stderr)  # type: ignore[call-overload]
    try:
        yield process
    finally:
        if process.poll() is None:
            process.send_signal(signal.SIGTERM)
        try:
            process.wait(3)
        except subprocess.TimeoutExpired:
            for pid in _process_tree(process.pid):
                os.kill(pid, signal.SIGKILL)
            process.wait(3)


def _wait_until_listening(process: subprocess.Popen[bytes], port: int) -> Process:
    import socket

    until = time.monotonic() + 60
    while time.monotonic() < until and process.poll() is None:
        with socket.socket() as one:
            if one.connect_ex(("127.0.0.1", port)) == 0:
                return Process(process.pid, port)
        time.sleep(0.02)
    raise RuntimeError(f"{process.args!r} does not listen on port {port}")


def _free_port() -> int:
    import socket

    with socket.socket() as one:
        one.bind(("127.0.0.1", 0))
        return int(one.getsockname()[1])


def _process_tree(pid: int) -> list[int]:
    children = Path(f"/proc/{pid}/task/{pid}/children").read_text(encoding="ascii").split()
    return [pid, *(other for child in children for other in _process_tree(int(child)))]


def _cpu(pid: int) -> float:
    """Read the CPU clock of the process, which also counts threads that have ended."""
    return time.clock_gettime(~pid << 3 | 2)


def _private_memory(pid: int) -> int:
    lines = Path(f"/proc/{pid}/smaps_rollup").read_text(encoding="ascii").splitlines()
    return sum(int(line.split()[1]) for line in lines if line.startswith(("Private_Clean", "Private_Dirty"))) * 1024
