"""File format of captures: one JSON object per line.

The first line is `request`. Then follow `asked` for each attempt at an upstream, `received` and `sent` for each chunk,
`findings` and `end`. Bytes are stored as `text` if they are UTF-8, otherwise as `base64`. The concatenation of all
`received` lines is byte for byte what the upstream sent, except for redacted secrets.
"""

from __future__ import annotations

from base64 import b64decode, b64encode
from pathlib import Path
from typing import Any, TypeAlias, TypeVar

import msgspec
from msgspec import Struct

from interlingua.errors import BadInput
from interlingua.events import Finding

__all__ = [
    "CaptureLine",
    "CapturedExchange",
    "ClientRequestLine",
    "EndLine",
    "FindingsLine",
    "ReceivedLine",
    "SentLine",
    "UpstreamRequestLine",
    "encode_data_fields",
    "read_capture",
]


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


class UpstreamRequestLine(_DataLine, frozen=True, kw_only=True, tag="asked"):
    url: str
    headers: dict[str, str]


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


CaptureLine: TypeAlias = ClientRequestLine | UpstreamRequestLine | ReceivedLine | SentLine | FindingsLine | EndLine
T = TypeVar("T", bound=CaptureLine)
_LINE_DECODER = msgspec.json.Decoder(CaptureLine)


def encode_data_fields(data: bytes) -> dict[str, str]:
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
    def received(self) -> list[ReceivedLine]:
        """Data that the upstream of the last attempt sent."""
        last_attempt = max(
            (index for index, line in enumerate(self.lines) if isinstance(line, UpstreamRequestLine)), default=0
        )
        return [line for line in self.lines[last_attempt:] if isinstance(line, ReceivedLine)]


def read_capture(path: str | Path) -> CapturedExchange:
    lines: list[CaptureLine] = []
    with open(path, "rb") as file:
        for number, line in enumerate(file, 1):
            try:
                lines.append(_LINE_DECODER.decode(line))
            except (msgspec.DecodeError, UnicodeDecodeError) as error:
                hint = "the gateway writes captures if `capture` is set"
                raise BadInput(f"{path}: line {number} is not a line of a capture: {error}", hint) from None
    return CapturedExchange(sorted(lines, key=lambda line: line.at))
