"""One connection of a client to a scripted upstream: read the request, run its script."""

from __future__ import annotations

import asyncio
import json
import time

from interlingua.faults.upstream.script import ReceivedRequest, Script

__all__ = ["read_request", "run_script"]


async def run_script(request: ReceivedRequest, steps: Script) -> None:
    """Run the script until it ends or the client disconnects."""
    script = asyncio.ensure_future(_run_steps(request, steps))
    disconnected = asyncio.ensure_future(request.reader.read(1))
    try:
        await asyncio.wait({script, disconnected}, return_when=asyncio.FIRST_COMPLETED)
        if not script.done() or isinstance(script.exception(), ConnectionError):
            request.client_left_at = time.monotonic()
    finally:
        script.cancel()
        disconnected.cancel()
        await asyncio.gather(script, disconnected, return_exceptions=True)


async def _run_steps(request: ReceivedRequest, steps: Script) -> None:
    for step in steps:
        await step(request)


async def read_request(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> ReceivedRequest:
    head = await reader.readuntil(b"\r\n\r\n")
    request_line, *lines = head.decode("latin-1").split("\r\n")
    headers = {name.lower(): value.strip() for name, _, value in (line.partition(":") for line in lines if line)}
    if headers.get("transfer-encoding", "").lower() == "chunked":
        data = await _read_chunked(reader)
    else:
        data = await reader.readexactly(int(headers.get("content-length", 0)))
    body = json.loads(data or b"{}")
    return ReceivedRequest(request_line.split(" ")[1], headers, body if isinstance(body, dict) else {}, reader, writer)


async def _read_chunked(reader: asyncio.StreamReader) -> bytes:
    pieces: list[bytes] = []
    while size := int(await reader.readuntil(b"\r\n"), 16):
        pieces.append((await reader.readexactly(size + 2))[:-2])
    await reader.readuntil(b"\r\n")
    return b"".join(pieces)
