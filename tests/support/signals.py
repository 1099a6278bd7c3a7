"""Signals that the parent of pytest ignores, as `nohup` and background jobs of scripts do."""

from __future__ import annotations

import signal

__all__ = ["handle_ignored_signals"]


def handle_ignored_signals() -> None:
    """Replace ignored signals by handlers that do nothing.

    Processes that a test starts would inherit that a signal is ignored, but never a handler: they have the default,
    as in a terminal. pytest itself still survives the signal.
    """
    for number in (signal.SIGHUP, signal.SIGINT):
        if signal.getsignal(number) == signal.SIG_IGN:
            signal.signal(number, lambda *_: None)
