"""What stands in a capture's file? A JSON object in each line.

`request` comes first, then `asked` for each attempt at an upstream, `received` and `sent` for each piece that went by,
`findings` and `end`. Bytes are `text` if they are UTF-8, else `base64`. Put together, what was received is what came,
byte for byte, but for secrets.
"""

from __future__ import annotations

from base64 import b64decode, b64encode
from pathlib import Path
from typing import Any, TypeAlias, TypeVar

import msgspec
from msgspec import Struct

from interlingua.errors import BadInput
from interlingua.events import Finding

__all__ = ["Asked", "Captured", "End", "Findings", "Line", "Received", "Request", "Sent", "packed", "read"]


class _Timed(Struct, frozen=True, kw_only=True, tag_field="kind", omit_defaults=True):
    at: float
    """Seconds since the exchange began."""


class _Data(_Timed, frozen=True, kw_only=True):
    text: str = ""
    base64: str = ""

    @property
    def data(self) -> bytes:
        return b64decode(self.base64) if self.base64 else self.text.encode()


class Request(_Data, frozen=True, kw_only=True, tag="request"):
    id: str
    time: str
    path: str
    wire: str
    headers: dict[str, str]


class Asked(_Data, frozen=True, kw_only=True, tag="asked"):
    url: str
    headers: dict[str, str]


class Received(_Data, frozen=True, kw_only=True, tag="received"):
    pass


class Sent(_Data, frozen=True, kw_only=True, tag="sent"):
    pass


class Findings(_Timed, frozen=True, kw_only=True, tag="findings"):
    findings: list[Finding]


class End(_Timed, frozen=True, kw_only=True, tag="end"):
    exchange: dict[str, Any]
    """As the log tells it."""
    truncated: bool = False
    """Whether pieces are missing, for they came faster than they could be written."""


Line: TypeAlias = Request | Asked | Received | Sent | Findings | End
T = TypeVar("T", bound=Line)
_LINE = msgspec.json.Decoder(Line)


def packed(data: bytes) -> dict[str, str]:
    """The fields that hold these bytes."""
    try:
        return {"text": data.decode()}
    except UnicodeDecodeError:
        return {"base64": b64encode(data).decode("ascii")}


class Captured(Struct, frozen=True):
    lines: list[Line]
    """In the order of their times."""

    def all(self, kind: type[T]) -> list[T]:
        return [line for line in self.lines if isinstance(line, kind)]

    @property
    def received(self) -> list[Received]:
        """What came from the upstream that was asked last."""
        last = max((at for at, line in enumerate(self.lines) if isinstance(line, Asked)), default=0)
        return [line for line in self.lines[last:] if isinstance(line, Received)]


def read(path: str | Path) -> Captured:
    lines: list[Line] = []
    with open(path, "rb") as file:
        for number, line in enumerate(file, 1):
            try:
                lines.append(_LINE.decode(line))
            except (msgspec.DecodeError, UnicodeDecodeError) as error:
                hint = "captures are made by the gateway, with `capture` in its settings"
                raise BadInput(f"{path}: line {number} is none of a capture: {error}", hint) from None
    return Captured(sorted(lines, key=lambda line: line.at))
