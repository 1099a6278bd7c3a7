"""Is it still the same process? A number alone does not tell: the system gives it to another one later."""

from __future__ import annotations

import os
import signal
from contextlib import suppress
from pathlib import Path

__all__ = ["is_before_last_boot", "process_start_id", "send_signal"]

BOOT_ID_PATH = Path("/proc/sys/kernel/random/boot_id")
"""Another one each time that the machine starts."""


def process_start_id(pid: int) -> str:
    """When this process began, in the system's words, for comparison; "" if there is none, or it has ended."""
    try:
        stat = Path(f"/proc/{pid}/stat").read_text(encoding="utf-8", errors="replace")
    except FileNotFoundError:
        return "" if Path("/proc/self/stat").exists() else _start_id_from_ps(pid)
    except OSError:  # it went while it was read
        return ""
    state, *fields = stat.rpartition(")")[2].split()  # the program's name stands before, and may be anything
    if state in "ZX":
        return ""
    return f"{BOOT_ID_PATH.read_text(encoding='ascii').strip()} {fields[18]}"


def is_before_last_boot(start_id: str) -> bool:
    """Whether the machine was started again since, as far as it can be told."""
    return BOOT_ID_PATH.exists() and not start_id.startswith(BOOT_ID_PATH.read_text(encoding="ascii").strip())


def send_signal(pid: int, start_id: str, signal_number: signal.Signals) -> bool:
    """Sends the signal if it is still the process that began then. Whether it is."""
    if not hasattr(os, "pidfd_open"):
        return process_start_id(pid) == start_id and _kill(pid, signal_number)
    try:
        pidfd = os.pidfd_open(pid)  # from here on it is this process that is meant, and no later one
    except OSError:
        return process_start_id(pid) == start_id and _kill(pid, signal_number)
    try:
        if process_start_id(pid) != start_id:
            return False
        with suppress(ProcessLookupError):
            signal.pidfd_send_signal(pidfd, signal_number)
        return True
    finally:
        os.close(pidfd)


def _kill(pid: int, signal_number: signal.Signals) -> bool:
    with suppress(ProcessLookupError):
        os.kill(pid, signal_number)
    return True


def _start_id_from_ps(pid: int) -> str:
    """Where there is no /proc."""
    import subprocess  # all others do without

    env = {**os.environ, "LC_ALL": "C", "TZ": "UTC"}  # so that it says the same each time
    command = ["ps", "-o", "stat=,lstart=", "-p", str(pid)]
    ps = subprocess.run(command, env=env, capture_output=True, text=True)
    state, _, start_id = ps.stdout.strip().partition(" ")
    return "" if state.startswith("Z") else start_id.strip()
