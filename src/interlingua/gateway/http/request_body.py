"""Request bodies: reading within limits, decoding, and sharing of tool lists between requests."""

from __future__ import annotations

import time
import zlib
from collections import OrderedDict
from collections.abc import Callable
from typing import Any

import msgspec
from aiohttp import web

from interlingua.common.jsontext.codec import explain_invalid_object, read_full_object
from interlingua.errors import BadRequest, shorten
from interlingua.gateway.http.deadline import DeadlineExceeded, MovingDeadline
from interlingua.gateway.http.error_responses import TooLarge
from interlingua.gateway.settings.schema import RequestLimits

__all__ = ["ToolListCache", "decode_body", "read_body"]

_WBITS_BY_ENCODING = {"gzip": 16 + zlib.MAX_WBITS, "deflate": zlib.MAX_WBITS}
"""What is unpacked, and what `zlib` calls it."""

BODY_GRACE_SECONDS = 10.0
"""Seconds for which a body may come as slowly as it likes."""


class UnknownEncoding(BadRequest):
    status = 415


async def read_body(request: web.Request, limits: RequestLimits) -> bytes:
    """All of it, or an error that says what to do."""
    if (request.content_length or 0) > limits.body:
        raise _too_large(limits)
    decompress = _decompressor_for(request.headers.get("content-encoding", "").strip(), limits)
    pieces: list[bytes] = []
    size = received = 0
    started = time.monotonic()
    try:
        with MovingDeadline() as deadline:
            deadline.set_timeout("the request's body", _body_timeout(limits, received))
            while piece := await request.content.readany():
                received += len(piece)
                deadline.set_timeout(
                    "the request's body", max(0.0, _body_timeout(limits, received) - (time.monotonic() - started))
                )
                pieces.append(decompress(piece))
                size += len(pieces[-1])
                if size > limits.body:
                    raise _too_large(limits)
            return b"".join(pieces)
    except DeadlineExceeded as error:
        seconds = _body_timeout(limits, received)
        problem = f"the request's body took longer than {seconds:g} s, and {received:,} bytes of it came"
        raise BadRequest("", problem, "send it faster, or change limits.send and limits.rate") from error
    except (web.PayloadAccessError, web.RequestPayloadError, ValueError, zlib.error) as error:
        raise BadRequest("", f"the body cannot be read: {error}", "is its encoding as its headers say?") from error


def _body_timeout(limits: RequestLimits, received: int) -> float:
    """How long a body may take of which so much has come."""
    return min(limits.send, BODY_GRACE_SECONDS + received / limits.rate) if limits.rate else limits.send


def _decompressor_for(encoding: str, limits: RequestLimits) -> Callable[[bytes], bytes]:
    """Unpacks each piece, and of none of them more than is allowed in all."""
    if encoding.lower() in ("", "identity"):
        return bytes
    if encoding.lower() not in _WBITS_BY_ENCODING:
        message = f"the body is in a content-encoding that nobody knows here: {shorten(encoding)!r}"
        raise UnknownEncoding("", message, "send it as it is, or with gzip or deflate")
    decompressor = zlib.decompressobj(wbits=_WBITS_BY_ENCODING[encoding.lower()])
    return lambda piece: decompressor.decompress(piece, limits.body + 1)


def decode_body(data: bytes) -> dict[str, Any]:
    try:
        text = data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise BadRequest("", f"the body is not UTF-8: {error.reason} at byte {error.start}", "encode it so") from None
    body = read_full_object(text)
    if body is None:
        raise BadRequest(
            "", f"the body is no JSON object: {explain_invalid_object(text)}", "see that it is whole, and JSON"
        )
    return body


def _too_large(limits: RequestLimits) -> TooLarge:
    return TooLarge(f"the request has more than {limits.body:,} bytes", "see limits.body")


MAX_CACHED_TOOL_LISTS = 16
"""Lists of tools that are kept: those that came last."""
MAX_CACHED_TOOL_LIST_BYTES = 256 * 1024
"""Bytes of JSON in a list that is kept."""


class ToolListCache:
    """Values that came as JSON, by their JSON: whoever gets one of them in the place of its own cannot tell. Nobody may
    change what is in a request."""

    def __init__(self) -> None:
        self._lists: OrderedDict[bytes, list[Any]] = OrderedDict()

    def share_tools(self, body: dict[str, Any]) -> dict[str, Any]:
        """The same request, with tools that others hold, too."""
        tools = body.get("tools")
        if isinstance(tools, list) and tools:
            body["tools"] = self._cached(tools)
        return body

    def _cached(self, tools: list[Any]) -> list[Any]:
        try:
            encoded = msgspec.json.encode(tools)
        except (ValueError, OverflowError, RecursionError):  # half characters, large numbers, deep nesting
            return tools
        if len(encoded) > MAX_CACHED_TOOL_LIST_BYTES:
            return tools
        cached = self._lists.setdefault(encoded, tools)
        self._lists.move_to_end(encoded)
        if len(self._lists) > MAX_CACHED_TOOL_LISTS:
            self._lists.popitem(last=False)
        return cached
