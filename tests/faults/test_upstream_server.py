"""The scripted upstream server."""

from __future__ import annotations

import json
import socket
import struct

import pytest

from interlingua.faults.upstream.server import UpstreamServer
from tests.support.saved_garbage import saved_garbage

BODY = json.dumps({"model": "test", "user": "0123456789"}).encode()
REQUEST = b"POST /v1/chat/completions HTTP/1.1\r\ncontent-length: %d\r\n\r\n" % len(BODY) + BODY


@pytest.mark.parametrize("sent_bytes", [10, len(REQUEST) - 10])
def test_reset_request_leaves_no_cycle(upstream: UpstreamServer, sent_bytes: int) -> None:
    """Tests that look for cycles of the gateway would find it: both run in one process."""
    with saved_garbage() as garbage:
        connection = connect(upstream)
        connection.sendall(REQUEST[:sent_bytes])
        wait_until_read(upstream)
        connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        connection.close()
        wait_until_read(upstream)
    assert not [item for item in garbage if isinstance(item, ConnectionResetError)]


def connect(upstream: UpstreamServer) -> socket.socket:
    return socket.create_connection(("127.0.0.1", upstream.port), timeout=10)


def wait_until_read(upstream: UpstreamServer) -> None:
    """Wait until the server has read what all connections have sent: it responds to a later request."""
    with connect(upstream) as connection:
        connection.sendall(REQUEST)
        while connection.recv(4096):
            pass
