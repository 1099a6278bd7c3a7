"""File format of captures: one JSON object per line.

The first line is `request`. Then follow, for each attempt at an upstream, `asked` and `answered` (without a response,
there is no `answered`), `received` and `sent` for each chunk, `findings` and `end`. Bytes are stored as `text` if they
are UTF-8, otherwise as `base64`. The concatenation of all `received` lines of an attempt is byte for byte what the
upstream sent, except for redacted secrets.
"""

from __future__ import annotations

import re
from base64 import b64decode, b64encode
from calendar import timegm
from collections.abc import Iterable
from pathlib import Path
from typing import Any, TypeAlias, TypedDict, TypeVar

import msgspec
from msgspec import Struct

from interlingua.core.options import ArgumentsPolicy, Delivery, ReasoningPolicy
from interlingua.errors import BadInput
from interlingua.events import Finding

__all__ = [
    "CAPTURE_SUFFIX",
    "AnsweredLine",
    "CaptureLine",
    "CapturedExchange",
    "ClientRequestLine",
    "EndLine",
    "FindingsLine",
    "ReceivedLine",
    "RouteFacts",
    "SentLine",
    "UpstreamRequestLine",
    "decode_capture",
    "decode_line",
    "encode_capture",
    "encode_data_fields",
    "read_capture",
]

CAPTURE_SUFFIX = ".jsonl"
_UTC_TIME = re.compile(r"(\d{4})-(\d\d)-(\d\d)T(\d\d):(\d\d):(\d\d)(\.\d+)?")


class RouteFacts(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """Settings of the translation of a request for an upstream, and of its reply for the client."""

    upstream: str
    """Name of the upstream in the settings."""
    wire: str
    model: str
    profile: str = ""
    dialect: str = "auto"
    prefill: str = ""
    delivery: Delivery = "stream"
    arguments: ArgumentsPolicy = "repair"
    reasoning: ReasoningPolicy = "keep"
    input_tokens: int = 0
    """Estimated input tokens that the client is told before the upstream has counted them."""


class _TimedLine(Struct, frozen=True, kw_only=True, tag_field="kind", omit_defaults=True):
    at: float
    """Seconds since the start of the exchange."""


class _DataLine(_TimedLine, frozen=True, kw_only=True):
    text: str = ""
    base64: str = ""

    @property
    def data(self) -> bytes:
        return b64decode(self.base64) if self.base64 else self.text.encode()


class ClientRequestLine(_DataLine, frozen=True, kw_only=True, tag="request"):
    id: str
    time: str
    path: str
    wire: str
    headers: dict[str, str]

    @property
    def unix_time(self) -> float:
        """`time` in seconds since 1970; 0 if it cannot be read."""
        match = _UTC_TIME.match(self.time)
        return timegm(tuple(map(int, match.groups()[:6]))) + float(match[7] or 0) if match else 0.0


class UpstreamRequestLine(_DataLine, frozen=True, kw_only=True, tag="asked"):
    url: str
    headers: dict[str, str]
    route: RouteFacts | None = None


class AnsweredLine(_TimedLine, frozen=True, kw_only=True, tag="answered"):
    """The headers of an upstream's response have arrived."""

    status: int
    headers: dict[str, str] = {}
    connect_seconds: float | None = None
    """Time to open the connection; None if an open one was used."""


class ReceivedLine(_DataLine, frozen=True, kw_only=True, tag="received"):
    pass


class SentLine(_DataLine, frozen=True, kw_only=True, tag="sent"):
    pass


class FindingsLine(_TimedLine, frozen=True, kw_only=True, tag="findings"):
    findings: list[Finding]


class EndLine(_TimedLine, frozen=True, kw_only=True, tag="end"):
    exchange: dict[str, Any]
    """Summary of the exchange, as in the log."""
    truncated: bool = False
    """True if chunks are missing because they arrived faster than they could be written."""


CaptureLine: TypeAlias = (
    ClientRequestLine | UpstreamRequestLine | AnsweredLine | ReceivedLine | SentLine | FindingsLine | EndLine
)
T = TypeVar("T", bound=CaptureLine)
_LINE_DECODER = msgspec.json.Decoder(CaptureLine)


class DataFields(TypedDict, total=False):
    """Fields of a line that store bytes."""

    text: str
    base64: str


def encode_data_fields(data: bytes) -> DataFields:
    """Return the fields of a line that store these bytes."""
    try:
        return {"text": data.decode()}
    except UnicodeDecodeError:
        return {"base64": b64encode(data).decode("ascii")}


class CapturedExchange(Struct, frozen=True):
    lines: list[CaptureLine]
    """Lines sorted by time."""

    def lines_of(self, line_type: type[T]) -> list[T]:
        return [line for line in self.lines if isinstance(line, line_type)]

    @property
    def last_attempt(self) -> list[CaptureLine]:
        """The lines from the last request to an upstream on; all lines if there is none."""
        start = max(
            (index for index, line in enumerate(self.lines) if isinstance(line, UpstreamRequestLine)), default=0
        )
        return self.lines[start:]

    @property
    def received(self) -> list[ReceivedLine]:
        """Data that the upstream of the last attempt sent."""
        return [line for line in self.last_attempt if isinstance(line, ReceivedLine)]


def read_capture(path: str | Path) -> CapturedExchange:
    """Read a capture file. Raises OSError, or BadInput with the number of the line."""
    with open(path, "rb") as file:
        return decode_capture(file, str(path))


def decode_capture(lines: Iterable[bytes], name: str) -> CapturedExchange:
    """Decode the lines of a capture. Raises BadInput, with this name and the number of the line."""
    decoded = [decode_line(line, name, number) for number, line in enumerate(lines, 1)]
    return CapturedExchange(sorted(decoded, key=lambda line: line.at))


def decode_line(line: bytes, name: str, number: int) -> CaptureLine:
    """Decode one line of a capture. Raises BadInput, with this name and number."""
    try:
        decoded: CaptureLine = _LINE_DECODER.decode(line)
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        hint = "the gateway writes captures if `capture` is set"
        raise BadInput(f"{name}: line {number} is not a line of a capture: {error}", hint) from None
    return decoded


def encode_capture(captured: CapturedExchange) -> bytes:
    """Return the capture as a file."""
    return b"".join(msgspec.json.encode(line) + b"\n" for line in captured.lines)
