"""Recording of one response: its status, headers and bytes, and when they arrived."""

from __future__ import annotations

from collections.abc import Iterator

import msgspec

__all__ = ["Arrival", "Recording"]


class Arrival(msgspec.Struct, frozen=True, array_like=True):
    """A piece of a body: its size in bytes, and the seconds since the request was sent."""

    size: int
    seconds: float


class Recording(msgspec.Struct, frozen=True, kw_only=True):
    """Response to one request. A request without a response has the status 0 and an error."""

    wire: str
    stream: bool
    """True if a stream was requested."""
    status: int = 0
    content_type: str = ""
    body: bytes = b""
    arrivals: tuple[Arrival, ...] = ()
    seconds: float = 0.0
    """Time from the request to the end of the response."""
    error: str = ""
    """Reason why there is no response, or why it is incomplete."""
    retry_after: float | None = None
    """Seconds to wait before the next request, if the server sent them."""
    is_unreachable: bool = False
    """True if no connection could be opened."""
    has_timed_out: bool = False
    """True if the response did not come, or was not complete, within the time limit."""

    @property
    def is_success(self) -> bool:
        return 200 <= self.status < 300

    def pieces(self) -> Iterator[tuple[bytes, float]]:
        """Yield the pieces of the body, each with the time of its arrival."""
        start = 0
        for arrival in self.arrivals:
            yield self.body[start : start + arrival.size], arrival.seconds
            start += arrival.size
