"""A client's request body: read within limits, and as JSON."""

from __future__ import annotations

import time
import zlib
from collections.abc import Callable
from typing import Any

from aiohttp import web

from interlingua.common.jsontext.codec import read_values, why_no_object
from interlingua.errors import BadRequest, shortened
from interlingua.gateway.http.deadline import Patience, WaitedTooLong
from interlingua.gateway.http.error_responses import TooLarge
from interlingua.gateway.settings.schema import RequestLimits

__all__ = ["decoded", "read_body"]

_PACKED = {"gzip": 16 + zlib.MAX_WBITS, "deflate": zlib.MAX_WBITS}
"""What is unpacked, and what `zlib` calls it."""

AT_FIRST = 10.0
"""Seconds for which a body may come as slowly as it likes."""


class UnknownEncoding(BadRequest):
    status = 415


async def read_body(request: web.Request, limits: RequestLimits) -> bytes:
    """All of it, or an error that says what to do."""
    if (request.content_length or 0) > limits.body:
        raise _too_large(limits)
    unpack = _unpacker(request.headers.get("content-encoding", "").strip(), limits)
    pieces: list[bytes] = []
    size = came = 0
    started = time.monotonic()
    try:
        with Patience() as patience:
            patience.wait("the request's body", _patience(limits, came))
            while piece := await request.content.readany():
                came += len(piece)
                patience.wait("the request's body", max(0.0, _patience(limits, came) - (time.monotonic() - started)))
                pieces.append(unpack(piece))
                size += len(pieces[-1])
                if size > limits.body:
                    raise _too_large(limits)
            return b"".join(pieces)
    except WaitedTooLong as error:
        took = f"the request's body took longer than {_patience(limits, came):g} s, and {came:,} bytes of it came"
        raise BadRequest("", took, "send it faster, or change limits.send and limits.rate") from error
    except (web.PayloadAccessError, web.RequestPayloadError, ValueError, zlib.error) as error:
        raise BadRequest("", f"the body cannot be read: {error}", "is its encoding as its headers say?") from error


def _patience(limits: RequestLimits, came: int) -> float:
    """How long a body may take of which so much has come."""
    return min(limits.send, AT_FIRST + came / limits.rate) if limits.rate else limits.send


def _unpacker(encoding: str, limits: RequestLimits) -> Callable[[bytes], bytes]:
    """Unpacks each piece, and of none of them more than is allowed in all."""
    if encoding.lower() in ("", "identity"):
        return bytes
    if encoding.lower() not in _PACKED:
        message = f"the body is in a content-encoding that nobody knows here: {shortened(encoding)!r}"
        raise UnknownEncoding("", message, "send it as it is, or with gzip or deflate")
    unpacking = zlib.decompressobj(wbits=_PACKED[encoding.lower()])
    return lambda piece: unpacking.decompress(piece, limits.body + 1)


def decoded(data: bytes) -> dict[str, Any]:
    try:
        text = data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise BadRequest("", f"the body is not UTF-8: {error.reason} at byte {error.start}", "encode it so") from None
    body = read_values(text)
    if body is None:
        raise BadRequest("", f"the body is no JSON object: {why_no_object(text)}", "see that it is whole, and JSON")
    return body


def _too_large(limits: RequestLimits) -> TooLarge:
    return TooLarge(f"the request has more than {limits.body:,} bytes", "see limits.body")
