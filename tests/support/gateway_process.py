"""A gateway in its own process, as users start it, on a loopback port."""

from __future__ import annotations

import os
import re
import resource
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

LISTENING_PATTERN = re.compile(r"listening on (http://[^\s\"]+)[\" ]")
"""Startup message, in the text or the JSON format."""
START_TIMEOUT_SECONDS = 60.0
"""Enough for a start on a busy machine."""


@dataclass
class GatewayProcess:
    base: str
    """http://127.0.0.1:PORT"""
    process: subprocess.Popen[bytes]
    log: Path
    folder: Path
    """Working directory of the process."""

    def wait_for_log(self, pattern: str, seconds: float = 10) -> str:
        """Wait until the pattern is in the log, and return the log."""
        deadline = time.monotonic() + seconds
        while not re.search(pattern, text := self.log.read_text(encoding="utf-8", errors="replace")):
            assert time.monotonic() < deadline, f"{pattern!r} is not in the log:\n{text[-3000:]}"
            time.sleep(0.02)
        return text

    @property
    def resident_memory(self) -> int:
        """Bytes of memory in use."""
        return self._memory("VmRSS")

    @property
    def peak_memory(self) -> int:
        """The most bytes of memory that were ever in use."""
        return self._memory("VmHWM")

    def _memory(self, field: str) -> int:
        found = re.search(rf"{field}:\s+(\d+) kB", Path(f"/proc/{self.process.pid}/status").read_text())
        assert found
        return int(found[1]) * 1024

    def send_signal(self, number: int) -> None:
        self.process.send_signal(number)

    def stop(self, seconds: float = 20) -> int:
        self.process.send_signal(signal.SIGTERM)
        return self.process.wait(seconds)


@contextmanager
def run_gateway(
    *args: str, config: str | None = None, program: str = "", max_files: str = "", **environment: str
) -> Iterator[GatewayProcess]:
    """Run `interlingua serve` with these arguments until the block ends.

    Args:
        args: Command-line arguments.
        config: The text of a settings file.
        program: The text of a Python program that runs instead of `interlingua serve --port 0`.
        max_files: The hard limit of open files (`ulimit -Hn`).
        environment: Environment variables.
    """
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        if config is not None:
            (folder / "interlingua.yaml").write_text(config, encoding="utf-8")
        log = folder / "log"
        inherited = {key: value for key, value in os.environ.items() if not key.startswith("INTERLINGUA_")}
        if paths := inherited.get("PYTHONPATH"):  # the gateway runs in another folder
            inherited["PYTHONPATH"] = os.pathsep.join(os.path.abspath(path) for path in paths.split(os.pathsep))
        env = {**inherited, "HOME": name, "XDG_STATE_HOME": name, "XDG_CONFIG_HOME": name, **environment}
        with log.open("wb") as output:
            process = subprocess.Popen(
                [
                    sys.executable,
                    *(["-c", program] if program else ["-m", "interlingua", "serve", "--port", "0"]),
                    *args,
                ],
                cwd=folder,
                env=env,
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=output,
                start_new_session=True,  # without a terminal, so that SIGHUP reloads
            )
        gateway = GatewayProcess("", process, log, folder)
        if max_files:
            resource.prlimit(process.pid, resource.RLIMIT_NOFILE, (int(max_files), int(max_files)))
        try:
            match = LISTENING_PATTERN.search(gateway.wait_for_log(LISTENING_PATTERN.pattern, START_TIMEOUT_SECONDS))
            assert match is not None
            gateway.base = match[1]
            wait_until_ready(gateway.base)
            yield gateway
        finally:
            if process.poll() is None:
                process.kill()
            process.wait(10)


def wait_until_ready(base: str) -> None:
    import http.client

    host, port = base.removeprefix("http://").rsplit(":", 1)
    deadline = time.monotonic() + START_TIMEOUT_SECONDS
    while True:
        try:
            connection = http.client.HTTPConnection(host, int(port), timeout=5)
            connection.request("GET", "/readyz")
            assert connection.getresponse().status == 200
            connection.close()
            return
        except (OSError, AssertionError):  # not ready, or slow on a busy machine
            assert time.monotonic() < deadline, f"{base} is not ready"
            time.sleep(0.02)
