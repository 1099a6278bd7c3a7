"""Notify the service manager (systemd's `sd_notify` protocol, also `interlingua start`) of readiness and shutdown."""

from __future__ import annotations

import os
import socket
from contextlib import suppress

__all__ = ["client_host", "http_url", "is_enabled", "listener_url", "send_ready", "send_stopping", "send_watchdog"]

SOCKET_VARIABLE, WATCHDOG_VARIABLE = "NOTIFY_SOCKET", "WATCHDOG_USEC"
_LOOPBACK_BY_WILDCARD = {"0.0.0.0": "127.0.0.1", "::": "::1"}


def send_ready(listener: socket.socket) -> None:
    """Report that the gateway accepts requests, and its URL."""
    _send("READY=1", f"STATUS=listening on {listener_url(listener)}")


def send_stopping() -> None:
    _send("STOPPING=1", "STATUS=draining: waiting for open streams to finish")


def send_watchdog() -> None:
    """Report that the gateway still runs, for a service with `WatchdogSec`."""
    if os.environ.get(WATCHDOG_VARIABLE):
        _send("WATCHDOG=1")


def is_enabled() -> bool:
    """Return whether a service manager waits for notifications, so that no person reads the output."""
    return bool(os.environ.get(SOCKET_VARIABLE))


def listener_url(listener: socket.socket) -> str:
    return http_url(*listener.getsockname()[:2])


def http_url(host: str, port: int) -> str:
    return f"http://[{host}]:{port}" if ":" in host else f"http://{host}:{port}"


def client_host(host: str) -> str:
    """Return the host for clients on this machine: a wildcard address is replaced by the loopback address."""
    return _LOOPBACK_BY_WILDCARD.get(host, host)


def _send(*lines: str) -> None:
    """Send a datagram as in sd_notify(3). Errors are ignored: the receiver may be gone. Never blocks."""
    path = os.environ.get(SOCKET_VARIABLE, "")
    if not path.startswith(("/", "@")):
        return
    with suppress(OSError), socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as sender:
        sender.setblocking(False)
        sender.sendto("\n".join(lines).encode(), "\0" + path[1:] if path.startswith("@") else path)
