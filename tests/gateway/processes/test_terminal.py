"""Gateway with a controlling terminal: it ends with the terminal, and its port is free again."""

from __future__ import annotations

import fcntl
import os
import pty
import re
import select
import signal
import subprocess
import sys
import termios
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from interlingua.gateway.processes.terminal import has_terminal
from tests.support.gateway_process import LISTENING_PATTERN, wait_until_ready

SECONDS = 60


class Terminal:
    """A terminal in which `interlingua serve` runs in the foreground."""

    def __init__(self, folder: Path, *args: str, ignores_hangup: bool = False) -> None:
        self._master, slave = pty.openpty()

        def attach() -> None:
            fcntl.ioctl(slave, termios.TIOCSCTTY, 0)
            if ignores_hangup:  # as nohup does
                signal.signal(signal.SIGHUP, signal.SIG_IGN)

        known = {name: text for name, text in os.environ.items() if not name.startswith("INTERLINGUA_")}
        self.process = subprocess.Popen(
            [sys.executable, "-m", "interlingua", "serve", "--demo", "--port", "0", *args],
            cwd=folder,
            env={**known, "HOME": str(folder), "XDG_STATE_HOME": str(folder)},
            stdin=slave,
            stdout=slave,
            stderr=slave,
            start_new_session=True,
            preexec_fn=attach,
        )
        os.close(slave)
        self._output = b""
        self._changed = threading.Condition()
        self._is_closing = False
        self._reader = threading.Thread(target=self._read, daemon=True)
        self._reader.start()

    def _read(self) -> None:
        """Read the output. A `read` that blocks would keep the terminal open after `close`."""
        while not self._is_closing:
            if select.select([self._master], [], [], 0.05)[0]:
                try:
                    data = os.read(self._master, 4096)
                except OSError:  # EIO: the program has ended
                    return
                with self._changed:
                    self._output += data
                    self._changed.notify_all()

    def wait_for_output(self, pattern: str) -> re.Match[str]:
        with self._changed:
            found = self._changed.wait_for(lambda: re.search(pattern, self._output.decode()), SECONDS)
            assert found is not None, self._output
            return found

    def wait_until_ready(self) -> None:
        """Wait until the gateway answers. A signal that arrives before ends it as any other program."""
        wait_until_ready(self.wait_for_output(LISTENING_PATTERN.pattern)[1])

    def close(self) -> None:
        if not self._is_closing:
            self._is_closing = True
            self._reader.join(SECONDS)
            os.close(self._master)


@contextmanager
def serving(folder: Path, *args: str, ignores_hangup: bool = False) -> Iterator[Terminal]:
    terminal = Terminal(folder, *args, ignores_hangup=ignores_hangup)
    try:
        terminal.wait_until_ready()
        yield terminal
    finally:
        terminal.close()
        if terminal.process.poll() is None:
            terminal.process.kill()
        terminal.process.wait(SECONDS)


@pytest.mark.parametrize("workers", ["1", "2"])
def test_gateway_stops_when_its_terminal_is_closed(tmp_path: Path, workers: str) -> None:
    with serving(tmp_path, "--workers", workers) as terminal:
        terminal.close()
        assert terminal.process.wait(SECONDS) == 0


def test_sighup_stops_a_gateway_with_a_terminal(tmp_path: Path) -> None:
    with serving(tmp_path) as terminal:
        terminal.process.send_signal(signal.SIGHUP)
        terminal.wait_for_output("stopped")
        assert terminal.process.wait(SECONDS) == 0


def test_sighup_reloads_a_gateway_that_nohup_started(tmp_path: Path) -> None:
    with serving(tmp_path, ignores_hangup=True) as terminal:
        terminal.process.send_signal(signal.SIGHUP)
        terminal.wait_for_output("reloaded")
        assert terminal.process.poll() is None


def test_process_without_a_terminal_has_none() -> None:
    program = "from interlingua.gateway.processes.terminal import has_terminal; print(has_terminal())"
    result = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, start_new_session=True)
    assert result.stdout.strip() == "False"
    assert isinstance(has_terminal(), bool)
