"""Who is told that the gateway serves? Whoever started it and named a socket for that: systemd, `interlingua start`."""

from __future__ import annotations

import os
import socket
from contextlib import suppress

__all__ = ["ready", "stopping", "url_of"]


def ready(listener: socket.socket) -> None:
    """Clients can ask now, and where."""
    _tell("READY=1", f"STATUS=listening on {url_of(listener)}")


def stopping() -> None:
    _tell("STOPPING=1", "STATUS=streams may finish")


def url_of(listener: socket.socket) -> str:
    host, port = listener.getsockname()[:2]
    return f"http://[{host}]:{port}" if ":" in host else f"http://{host}:{port}"


def _tell(*lines: str) -> None:
    """As sd_notify(3) has it. Nobody may listen any more, and nobody waits for them."""
    path = os.environ.get("NOTIFY_SOCKET", "")
    if not path.startswith(("/", "@")):
        return
    with suppress(OSError), socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as sender:
        sender.setblocking(False)
        sender.sendto("\n".join(lines).encode(), "\0" + path[1:] if path.startswith("@") else path)
