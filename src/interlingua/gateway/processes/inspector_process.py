"""Start and restart of the inspector's process, by the first process of the gateway."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import time
from contextlib import suppress

import msgspec

from interlingua.gateway.inspector.process_main import ProcessSettings
from interlingua.gateway.processes.socket_folder import make_socket_folder
from interlingua.gateway.settings.schema import Inspect

__all__ = ["InspectorProcess"]

STOP_TIMEOUT_SECONDS = 5.0
MIN_LIFETIME_SECONDS = 5.0
"""A process that ends sooner than this is not started again: it cannot work."""


class InspectorProcess:
    """Process of the inspector. It runs beside the workers, and ends when this one does."""

    def __init__(self, config: Inspect) -> None:
        self.folder = make_socket_folder()
        """Folder of its sockets, which only its owner can enter."""
        self._settings = ProcessSettings(self.folder, config.memory, config.keep, config.size)
        self._owner = os.getpid()  # not a worker that was forked later
        self._process: subprocess.Popen[bytes] | None = None
        self._started_at = 0.0
        self._start()

    def _start(self) -> None:
        self._started_at = time.monotonic()
        self._process = subprocess.Popen(
            [sys.executable, "-m", "interlingua.gateway.inspector.process_main"],
            stdin=subprocess.PIPE,
            stdout=subprocess.DEVNULL,
        )
        assert self._process.stdin is not None, "it is a pipe"
        with suppress(OSError):  # it has died already
            self._process.stdin.write(msgspec.json.encode(self._settings) + b"\n")
            self._process.stdin.flush()

    def restart_if_dead(self) -> bool:
        """Start the process again if it has died. Return whether it was started. Its exchanges are lost."""
        if os.getpid() != self._owner or self._process is None or self._process.poll() is None:
            return False
        if time.monotonic() - self._started_at < MIN_LIFETIME_SECONDS:
            self._process = None
            return False
        self._start()
        return True

    def stop(self) -> None:
        """End the process, which may still store exchanges, and delete its folder."""
        process, self._process = self._process, None
        if process is not None:
            with suppress(OSError):
                assert process.stdin is not None, "it is a pipe"
                process.stdin.close()
            try:
                process.wait(STOP_TIMEOUT_SECONDS)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()
        shutil.rmtree(self.folder, ignore_errors=True)
