"""Process identity: pid plus start time, because the system reuses pids."""

from __future__ import annotations

import os
import signal
from contextlib import suppress
from pathlib import Path

__all__ = ["is_before_last_boot", "process_start_id", "send_signal"]

BOOT_ID_PATH = Path("/proc/sys/kernel/random/boot_id")
"""Changes with each boot of the machine."""


def process_start_id(pid: int) -> str:
    """Return an opaque string for the start time of this process; "" if there is no such process or it has ended."""
    try:
        stat = Path(f"/proc/{pid}/stat").read_text(encoding="utf-8", errors="replace")
    except FileNotFoundError:
        return "" if Path("/proc/self/stat").exists() else _start_id_from_ps(pid)
    except OSError:  # the process ended while it was read
        return ""
    state, *fields = stat.rpartition(")")[2].split()  # the program name before it may contain any character
    if state in "ZX":
        return ""
    return f"{BOOT_ID_PATH.read_text(encoding='ascii').strip()} {fields[18]}"


def is_before_last_boot(start_id: str) -> bool:
    """Return whether the machine was restarted since then. False if that is unknown (no /proc)."""
    return BOOT_ID_PATH.exists() and not start_id.startswith(BOOT_ID_PATH.read_text(encoding="ascii").strip())


def send_signal(pid: int, start_id: str, signal_number: signal.Signals) -> bool:
    """Send the signal if the pid still belongs to the process with this start id. Returns whether it does."""
    if not hasattr(os, "pidfd_open"):
        return process_start_id(pid) == start_id and _kill(pid, signal_number)
    try:
        pidfd = os.pidfd_open(pid)  # refers to this process only, even if the pid is reused later
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
    """Return the start time as printed by `ps`, for systems without /proc."""
    import subprocess  # imported here because Linux does not need it

    env = {**os.environ, "LC_ALL": "C", "TZ": "UTC"}  # the output must not depend on the locale
    command = ["ps", "-o", "stat=,lstart=", "-p", str(pid)]
    ps = subprocess.run(command, env=env, capture_output=True, text=True)
    state, _, start_id = ps.stdout.strip().partition(" ")
    return "" if state.startswith("Z") else start_id.strip()
