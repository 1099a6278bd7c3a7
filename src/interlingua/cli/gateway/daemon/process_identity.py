"""Is it still the same process? A number alone does not tell: the system gives it to another one later."""

from __future__ import annotations

import os
import signal
from contextlib import suppress
from pathlib import Path

__all__ = ["before_the_last_boot", "beginning", "send"]

BOOT = Path("/proc/sys/kernel/random/boot_id")
"""Another one each time that the machine starts."""


def beginning(pid: int) -> str:
    """When this process began, in the system's words, for comparison; "" if there is none, or it has ended."""
    try:
        stat = Path(f"/proc/{pid}/stat").read_text(encoding="utf-8", errors="replace")
    except FileNotFoundError:
        return "" if Path("/proc/self/stat").exists() else _told_by_ps(pid)
    except OSError:  # it went while it was read
        return ""
    state, *fields = stat.rpartition(")")[2].split()  # the program's name stands before, and may be anything
    if state in "ZX":
        return ""
    return f"{BOOT.read_text(encoding='ascii').strip()} {fields[18]}"


def before_the_last_boot(began: str) -> bool:
    """Whether the machine was started again since, as far as it can be told."""
    return BOOT.exists() and not began.startswith(BOOT.read_text(encoding="ascii").strip())


def send(pid: int, began: str, number: signal.Signals) -> bool:
    """Sends the signal if it is still the process that began then. Whether it is."""
    if not hasattr(os, "pidfd_open"):
        return beginning(pid) == began and _kill(pid, number)
    try:
        handle = os.pidfd_open(pid)  # from here on it is this process that is meant, and no later one
    except OSError:
        return beginning(pid) == began and _kill(pid, number)
    try:
        if beginning(pid) != began:
            return False
        with suppress(ProcessLookupError):
            signal.pidfd_send_signal(handle, number)
        return True
    finally:
        os.close(handle)


def _kill(pid: int, number: signal.Signals) -> bool:
    with suppress(ProcessLookupError):
        os.kill(pid, number)
    return True


def _told_by_ps(pid: int) -> str:
    """Where there is no /proc."""
    import subprocess  # all others do without

    env = {**os.environ, "LC_ALL": "C", "TZ": "UTC"}  # so that it says the same each time
    command = ["ps", "-o", "stat=,lstart=", "-p", str(pid)]
    ps = subprocess.run(command, env=env, capture_output=True, text=True)
    state, _, began = ps.stdout.strip().partition(" ")
    return "" if state.startswith("Z") else began.strip()
