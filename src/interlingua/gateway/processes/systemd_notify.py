"""Who is told that the gateway serves? Whoever started it and named a socket for that: systemd, `interlingua start`."""

from __future__ import annotations

import os
import socket
from contextlib import suppress

__all__ = ["is_wanted", "reached_by", "ready", "stopping", "url", "url_of"]

SOCKET = "NOTIFY_SOCKET"
_ANYWHERE = {"0.0.0.0": "127.0.0.1", "::": "::1"}


def ready(listener: socket.socket) -> None:
    """Clients can ask now, and where."""
    _tell("READY=1", f"STATUS=listening on {url_of(listener)}")


def stopping() -> None:
    _tell("STOPPING=1", "STATUS=streams may finish")


def is_wanted() -> bool:
    """Whether a program waits for it, and no person reads along."""
    return bool(os.environ.get(SOCKET))


def url_of(listener: socket.socket) -> str:
    return url(*listener.getsockname()[:2])


def url(host: str, port: int) -> str:
    return f"http://[{host}]:{port}" if ":" in host else f"http://{host}:{port}"


def reached_by(host: str) -> str:
    """Where a client on this machine finds who listens there: who listens everywhere is on loopback, too."""
    return _ANYWHERE.get(host, host)


def _tell(*lines: str) -> None:
    """As sd_notify(3) has it. Nobody may listen any more, and nobody waits for them."""
    path = os.environ.get(SOCKET, "")
    if not path.startswith(("/", "@")):
        return
    with suppress(OSError), socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as sender:
        sender.setblocking(False)
        sender.sendto("\n".join(lines).encode(), "\0" + path[1:] if path.startswith("@") else path)
