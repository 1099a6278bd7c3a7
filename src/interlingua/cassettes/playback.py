"""Playback of a recorded reply: the pieces in which it arrives, and when.

A replay may be cut in another way than the recorded reply, and be faster or slower: neither changes its meaning.
"""

from __future__ import annotations

import re
from bisect import bisect_left
from collections.abc import Iterator, Mapping
from itertools import accumulate
from typing import NamedTuple

import msgspec

from interlingua.cassettes.recorded_exchange import RecordedReply
from interlingua.errors import UsageError, suggestion_hint

__all__ = ["CUTS", "Playback", "TimedPiece"]

CUTS = ("recorded", "whole", "event", "character", "byte", "random")
"""Ways to cut a reply. `random` may have a seed: `random:7`."""
DEFAULT_SEED = 1
MAX_RANDOM_PIECE_BYTES = 40
_CUT = re.compile(r"([a-z]+)(?::(\d{1,9}))?")
_FAULT = re.compile(r"[^@]+(?:@[1-9]\d{0,8})?")
_EVENT_END = re.compile(rb"\r\n\r\n|\n\n|\r\r")
_OPTION = re.compile(r"\s*([a-z]+)\s*=\s*([^;]*?)\s*")


class TimedPiece(NamedTuple):
    seconds: float
    """Seconds since the request."""
    data: bytes


class Playback(msgspec.Struct, frozen=True, kw_only=True):
    """Options of a replay.

    Args:
        cut: One of `CUTS`.
        speed: 0: at once. 1: as recorded. 2: twice as fast.
        fault: Name of a fault that is mixed in (`interlingua faults list --recorded`), such as `reset-in-text`.
            `NAME@2` mixes it into the second request only. "": none.
    """

    cut: str = "recorded"
    speed: float = 0
    fault: str = ""

    def __post_init__(self) -> None:
        match = _CUT.fullmatch(self.cut)
        if match is None or match[1] not in CUTS or (match[2] and match[1] != "random"):
            hint = suggestion_hint(self.cut.partition(":")[0], CUTS)
            raise UsageError(f"a reply cannot be cut by {self.cut!r}", f"{hint}; a seed follows a colon: random:7")
        if not 0 <= self.speed < float("inf"):
            raise UsageError(f"not a speed: {self.speed}", "0: at once; 1: as recorded; 2: twice as fast")
        if self.fault and not _FAULT.fullmatch(self.fault):
            raise UsageError(f"not a fault: {self.fault!r}", "NAME, or NAME@2 for the second request only")

    @property
    def fault_name(self) -> str:
        return self.fault.partition("@")[0]

    def has_fault(self, number: int) -> bool:
        """Return whether the fault is mixed into the request of this number, from 1."""
        _, _, chosen = self.fault.partition("@")
        return bool(self.fault) and (not chosen or int(chosen) == number)

    def with_options(self, text: str) -> Playback:
        """Return the playback with these options of a request: `cut=byte; speed=1; fault=reset-in-text`."""
        options = {}
        for option in filter(str.strip, text.split(";")):
            match = _OPTION.fullmatch(option)
            if match is None or match[1] not in self.__struct_fields__:
                raise UsageError(f"not an option of a replay: {option.strip()!r}", "for example: cut=byte; speed=1")
            options[match[1]] = match[2]
        return msgspec.structs.replace(self, **_typed(options)) if options else self

    def pieces(self, reply: RecordedReply) -> Iterator[TimedPiece]:
        """Yield the pieces of a reply. A piece arrives when its last byte was recorded."""
        recorded_ends = list(accumulate(piece.size for piece in reply.pieces))
        start = 0
        for end in self._ends(reply, recorded_ends):
            number = min(bisect_left(recorded_ends, end), len(recorded_ends) - 1)
            seconds = reply.pieces[number].seconds / self.speed if self.speed and recorded_ends else 0.0
            yield TimedPiece(seconds, reply.body[start:end])
            start = end

    def _ends(self, reply: RecordedReply, recorded_ends: list[int]) -> Iterator[int]:
        """Yield the position after each piece. The last one is the end of the body."""
        body, size = reply.body, len(reply.body)
        name, _, seed = self.cut.partition(":")
        match name:
            case "recorded":
                ends: Iterator[int] = iter(recorded_ends)
            case "event":
                ends = (match.end() for match in _EVENT_END.finditer(body))
            case "character":
                ends = (position for position in range(1, size) if body[position] & 0xC0 != 0x80)
            case "byte":
                ends = iter(range(1, size))
            case "random":
                ends = accumulate(_random_sizes(int(seed or DEFAULT_SEED)))
            case _:
                ends = iter(())
        last = 0
        for end in ends:
            if end >= size:
                break
            if end > last:
                yield end
                last = end
        if size:
            yield size


def _typed(options: Mapping[str, str]) -> dict[str, object]:
    try:
        return {name: float(text) if name == "speed" else text for name, text in options.items()}
    except ValueError:
        raise UsageError(f"not a speed: {options['speed']!r}", "0: at once; 1: as recorded; 2: twice as fast") from None


def _random_sizes(seed: int) -> Iterator[int]:
    """Yield sizes that look random and are the same for the same seed, on every machine."""
    state = seed
    while True:
        state = (state * 6364136223846793005 + 1442695040888963407) % 2**64  # Knuth's MMIX generator
        yield 1 + (state >> 33) % MAX_RANDOM_PIECE_BYTES
