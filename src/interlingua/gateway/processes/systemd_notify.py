"""Who is told that the gateway serves? Whoever started it and named a socket for that: systemd, `interlingua start`."""

from __future__ import annotations

import os
import socket
from contextlib import suppress

__all__ = ["client_host", "http_url", "is_enabled", "listener_url", "send_ready", "send_stopping"]

SOCKET_VARIABLE = "NOTIFY_SOCKET"
_LOOPBACK_BY_WILDCARD = {"0.0.0.0": "127.0.0.1", "::": "::1"}


def send_ready(listener: socket.socket) -> None:
    """Clients can ask now, and where."""
    _send("READY=1", f"STATUS=listening on {listener_url(listener)}")


def send_stopping() -> None:
    _send("STOPPING=1", "STATUS=streams may finish")


def is_enabled() -> bool:
    """Whether a program waits for it, and no person reads along."""
    return bool(os.environ.get(SOCKET_VARIABLE))


def listener_url(listener: socket.socket) -> str:
    return http_url(*listener.getsockname()[:2])


def http_url(host: str, port: int) -> str:
    return f"http://[{host}]:{port}" if ":" in host else f"http://{host}:{port}"


def client_host(host: str) -> str:
    """Where a client on this machine finds who listens there: who listens everywhere is on loopback, too."""
    return _LOOPBACK_BY_WILDCARD.get(host, host)


def _send(*lines: str) -> None:
    """As sd_notify(3) has it. Nobody may listen any more, and nobody waits for them."""
    path = os.environ.get(SOCKET_VARIABLE, "")
    if not path.startswith(("/", "@")):
        return
    with suppress(OSError), socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as sender:
        sender.setblocking(False)
        sender.sendto("\n".join(lines).encode(), "\0" + path[1:] if path.startswith("@") else path)
