"""Request bodies: reading within limits, and decoding."""

from __future__ import annotations

import asyncio
import time
import zlib
from codecs import BOM_UTF8
from collections.abc import Iterator
from contextlib import suppress
from typing import Any

from aiohttp import web

from interlingua.common.jsontext.codec import explain_invalid_object, read_full_object, read_json
from interlingua.common.jsontext.value_count import has_at_most_values
from interlingua.errors import BadRequest, shorten
from interlingua.gateway.aiohttp_internals import replace_queues
from interlingua.gateway.http.deadline import DeadlineExceeded, MovingDeadline
from interlingua.gateway.http.error_responses import TooLarge
from interlingua.gateway.http.memory_budget import MemoryShare, decoded_size
from interlingua.gateway.settings.schema import RequestLimits
from interlingua.gateway.work_threads import WorkThreads
from interlingua.translation.undecoded_request import UndecodedRequest

__all__ = ["RequestBody", "decode_body", "read_body"]

_WBITS_BY_ENCODING = {"gzip": 16 + zlib.MAX_WBITS, "deflate": zlib.MAX_WBITS}
"""Supported content encodings, and the `wbits` argument of `zlib` for each."""

DECOMPRESSION_STEP_BYTES = 256 * 1024
"""Bytes that are decompressed before the limits are checked."""
MAX_COMPRESSION_RATIO = 100
"""A body may have this many times its compressed size. Conversations have about ten times."""
MIN_RATIO_BYTES = 1024 * 1024
"""Size up to which the compression ratio is not checked."""
BODY_GRACE_SECONDS = 10.0
"""Seconds before the minimum rate `limits.rate` applies to a request body."""


class UnknownEncoding(BadRequest):
    status = 415


async def read_body(request: web.Request, limits: RequestLimits, memory: MemoryShare) -> bytes:
    """Read and decompress the complete request body within the limits.

    Args:
        request: The client's request.
        limits: The limits for its size and for the time to send it.
        memory: Receives the size of the body as it arrives.

    Raises:
        TooLarge: The body is larger than a limit.
        BadRequest: The body cannot be read, or takes too long.
        OutOfMemory: The memory budget is used up.
    """
    if (request.content_length or 0) > limits.body:
        raise _too_large(limits)
    encoding = request.headers.get("content-encoding", "").strip()
    decompressor = _decompressor_for(encoding)
    pieces: list[bytes] = []
    size = received = 0
    started = time.monotonic()
    try:
        with MovingDeadline() as deadline:
            deadline.set_timeout("the request body", _body_timeout(limits, received))
            while data := await request.content.readany():
                received += len(data)
                deadline.set_timeout(
                    "the request body", max(0.0, _body_timeout(limits, received) - (time.monotonic() - started))
                )
                for piece in _decompress(decompressor, data) if decompressor else (data,):
                    size += len(piece)
                    if size > limits.body:
                        raise _too_large(limits)
                    if size > max(MIN_RATIO_BYTES, MAX_COMPRESSION_RATIO * received):
                        raise _too_compressed()
                    memory.grow(len(piece))
                    pieces.append(piece)
                    if decompressor:
                        await asyncio.sleep(0)  # let other requests continue between two steps
    except DeadlineExceeded as error:
        seconds = _body_timeout(limits, received)
        problem = f"the request body took longer than {seconds:g} s; {received:,} bytes arrived"
        raise BadRequest("", problem, "send it faster, increase limits.send or decrease limits.rate") from error
    except (web.PayloadAccessError, web.RequestPayloadError, ValueError, zlib.error) as error:
        raise BadRequest("", f"cannot read the request body: {error}", "its encoding must match the headers") from error
    if decompressor and not decompressor.eof:
        raise BadRequest("", f"the {encoding} data of the request body is cut off", "send all of it")
    if decompressor and decompressor.unused_data:
        raise BadRequest("", f"data follows the {encoding} data of the request body", "compress the body as one stream")
    replace_queues(request.content)
    return b"".join(pieces)


def _decompress(decompressor: zlib._Decompress, data: bytes) -> Iterator[bytes]:
    """Yield the decompressed data in steps, so that the caller can stop at a limit."""
    while data:
        yield decompressor.decompress(data, DECOMPRESSION_STEP_BYTES)
        data = decompressor.unconsumed_tail


def _body_timeout(limits: RequestLimits, received: int) -> float:
    """Return the total time allowed for a body of which `received` bytes have arrived."""
    return min(limits.send, BODY_GRACE_SECONDS + received / limits.rate) if limits.rate else limits.send


def _decompressor_for(encoding: str) -> zlib._Decompress | None:
    """Return the decompressor for this content encoding; None if the body is not compressed. Raises BadRequest."""
    if encoding.lower() in ("", "identity"):
        return None
    if encoding.lower() not in _WBITS_BY_ENCODING:
        message = f"unsupported content-encoding: {shorten(encoding)!r}"
        raise UnknownEncoding("", message, "send the body uncompressed, or with gzip or deflate")
    return zlib.decompressobj(wbits=_WBITS_BY_ENCODING[encoding.lower()])


def check_value_count(data: bytes, limits: RequestLimits) -> None:
    """Raise TooLarge if the body has more JSON values than the limit."""
    if not has_at_most_values(data, limits.values):
        message = f"the request body has more than {limits.values:,} JSON values"
        raise TooLarge(message, "send less, or increase limits.values")


def decode_body(data: bytes, limits: RequestLimits) -> dict[str, Any]:
    """Decode the request body. Raises TooLarge or BadRequest."""
    check_value_count(data, limits)
    decoded = read_json(data.removeprefix(BOM_UTF8), dict[str, Any])
    if decoded is not None:  # a copy of the body as text, which can need much more memory, is for special cases only
        return decoded
    try:
        text = data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        message = f"the request body is not UTF-8: {error.reason} at byte {error.start}"
        raise BadRequest("", message, "encode it as UTF-8") from None
    body = read_full_object(text)
    if body is None:
        message = f"the request body is not a JSON object: {explain_invalid_object(text)}"
        raise BadRequest("", message, "send one complete JSON object")
    return body


def _too_compressed() -> TooLarge:
    problem = f"the request body is more than {MAX_COMPRESSION_RATIO} times as large as its compressed data"
    return TooLarge(problem, "send it without compression")


def _too_large(limits: RequestLimits) -> TooLarge:
    return TooLarge(f"the request body is larger than {limits.body:,} bytes", "send less, or increase limits.body")


class RequestBody:
    """Body of a client's request. It is decoded as a whole only if that is needed.

    Args:
        data: The body.
        limits: The limits for its contents.
        conversation_field: Name of the field that holds the conversation.
    """

    __slots__ = ("_conversation_field", "_data", "_decoded", "_dropped", "_limits", "undecoded")

    def __init__(self, data: bytes, limits: RequestLimits, conversation_field: str) -> None:
        self._data = data
        self._limits = limits
        self._conversation_field = conversation_field
        self._decoded: dict[str, Any] | None = None
        self._dropped: tuple[str, ...] = ()
        self.undecoded: UndecodedRequest | None = None
        """The body with its top level decoded; None if it cannot be read like that, or was replaced."""

    def scan(self) -> None:
        """Read the top level of the body."""
        self.undecoded = UndecodedRequest.read(self._data, self._conversation_field)

    def check_value_count(self) -> None:
        """Raise TooLarge if the body has more JSON values than the limit. `decode` checks it, too."""
        check_value_count(self._data, self._limits)

    def may_contain(self, text: bytes) -> bool:
        """Return whether the body contains this text. True if the body was replaced, and has to be searched itself."""
        return not self._data or text in self._data

    @property
    def is_decoded(self) -> bool:
        """True if the whole body is decoded."""
        return self._decoded is not None

    def get(self, name: str) -> Any:
        """Return the value of a field; None if it is missing. Raises BadRequest if the body is invalid."""
        if self._decoded is None and self.undecoded is not None:
            with suppress(ValueError, RecursionError):
                return self.undecoded.get(name)
        return self.decode().get(name)

    def decode(self) -> dict[str, Any]:
        """Return the whole body. Raises TooLarge or BadRequest."""
        if self._decoded is None:
            decoded = decode_body(self._data, self._limits)
            self._decoded = {name: value for name, value in decoded.items() if name not in self._dropped}
        return self._decoded

    async def decode_in_thread(self, client_id: str, work_threads: WorkThreads, memory: MemoryShare) -> dict[str, Any]:
        """Return the whole body. Its memory is counted before it is decoded. Raises OutOfMemory, too."""
        if self._decoded is not None:
            return self._decoded
        size = await work_threads.run(client_id, len(self._data), decoded_size, self._data)
        memory.resize(max(memory.size, size))
        return await work_threads.run(client_id, len(self._data), self.decode)

    def drop(self, name: str) -> None:
        """Remove a field."""
        self._dropped = (*self._dropped, name)
        if self.undecoded is not None:
            self.undecoded = self.undecoded.without(name)
        if self._decoded is not None:
            self._decoded = {key: value for key, value in self._decoded.items() if key != name}

    def replace(self, decoded: dict[str, Any]) -> None:
        """Set another body."""
        self._decoded, self.undecoded, self._data = decoded, None, b""

    def clear(self) -> None:
        """Release the memory."""
        self.replace({})
