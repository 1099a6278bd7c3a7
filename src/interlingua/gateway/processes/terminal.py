"""Controlling terminal of the gateway."""

from __future__ import annotations

import os
import signal

__all__ = ["has_terminal", "stops_on_hangup"]


def has_terminal() -> bool:
    """Return whether this process has a controlling terminal, also if its output goes to a file."""
    try:
        os.close(os.open("/dev/tty", os.O_RDWR | os.O_NOCTTY | os.O_CLOEXEC))
    except OSError:
        return False
    return True


def stops_on_hangup() -> bool:
    """Return whether SIGHUP means that the terminal was closed. Otherwise it asks for a reload, as with all daemons.

    It has to be asked at the start: when SIGHUP arrives, the terminal is gone. `nohup` ignores SIGHUP before the start,
    so that a program outlives its terminal.
    """
    return has_terminal() and signal.getsignal(signal.SIGHUP) is not signal.SIG_IGN
