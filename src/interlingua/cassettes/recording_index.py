"""Index of recordings: finds those that answer a request, and explains why none does."""

from __future__ import annotations

from collections.abc import Iterable

import msgspec

from interlingua.cassettes.differences import describe_differences, distance
from interlingua.cassettes.match_rules import DEFAULT_RULES, MatchRules
from interlingua.cassettes.recorded_exchange import RecordedExchange
from interlingua.cassettes.request_meaning import RequestMeaning, read_request_meaning
from interlingua.errors import BadInput

__all__ = ["CassetteMiss", "Recording", "RecordingIndex"]


class Recording(msgspec.Struct, frozen=True):
    """A recorded exchange, with the meaning of its request and its place."""

    exchange: RecordedExchange
    meaning: RequestMeaning
    source: str
    """Name of its file."""
    number: int
    """Its number in the file, from 1."""

    @property
    def place(self) -> str:
        return f"{self.source}, exchange {self.number}"


class CassetteMiss(BadInput):
    """No recording answers a request. The message shows the nearest one and the differences."""

    code = "cassette_miss"


class RecordingIndex:
    """Recordings by the meaning of their requests."""

    def __init__(self, rules: MatchRules = DEFAULT_RULES) -> None:
        self.rules = rules
        self._by_key: dict[str, list[Recording]] = {}
        self._by_source: dict[str, list[Recording]] = {}

    def __len__(self) -> int:
        return sum(map(len, self._by_source.values()))

    @property
    def recordings(self) -> list[Recording]:
        return [recording for recordings in self._by_source.values() for recording in recordings]

    def replace(self, source: str, exchanges: Iterable[RecordedExchange]) -> None:
        """Set the recordings of a file."""
        for key in {recording.meaning.key for recording in self._by_source.pop(source, ())}:
            self._by_key[key] = [recording for recording in self._by_key[key] if recording.source != source]
        recordings = [
            Recording(
                exchange, read_request_meaning(exchange.request.wire, exchange.request.body, self.rules), source, n
            )
            for n, exchange in enumerate(exchanges, 1)
        ]
        self._by_source[source] = recordings
        for recording in recordings:
            self._by_key.setdefault(recording.meaning.key, []).append(recording)

    def find(self, request: RequestMeaning) -> list[Recording]:
        """Return the recordings that answer a request, in the order in which they were recorded.

        Several are replies to the same request, sent several times. Complete ones are preferred to those whose client
        disconnected, and those of the request's own wire to others.

        Raises:
            CassetteMiss: No recording answers it, or several that differ do.
        """
        fitting = [recording for recording in self._by_key.get(request.key, ()) if request.fits(recording.meaning)]
        complete = [recording for recording in fitting if recording.exchange.reply.is_complete]
        candidates = complete or fitting
        if not candidates:
            raise self._miss(request)
        own_wire = [recording for recording in candidates if recording.meaning.wire == request.wire]
        candidates = own_wire or _closest_settings(request, candidates)
        variant = _variant(candidates[0].meaning)
        if other := next((one for one in candidates if _variant(one.meaning) != variant), None):
            raise CassetteMiss(
                f"two recordings fit the request, and they differ: {candidates[0].place}, and {other.place}:\n"
                + _indent(describe_differences(candidates[0].meaning, other.meaning)),
                "set what differs in the request, too",
            )
        return candidates

    def _miss(self, request: RequestMeaning) -> CassetteMiss:
        if not len(self):
            return CassetteMiss("no recording for this request: the cassette is empty")
        nearest = min(self.recordings, key=lambda recording: distance(request, recording.meaning))
        problem = f"no recording for this request. The nearest one is {nearest.place}; the request differs in:"
        lines = [problem, _indent(describe_differences(request, nearest.meaning)), self.rules.describe_unused()]
        return CassetteMiss("\n".join(filter(None, lines)))


def _closest_settings(request: RequestMeaning, candidates: list[Recording]) -> list[Recording]:
    """Return the recordings of other wires that have the most settings in common with the request."""
    fewest = min(request.differing_settings(recording.meaning) for recording in candidates)
    return [one for one in candidates if request.differing_settings(one.meaning) == fewest]


def _variant(meaning: RequestMeaning) -> tuple[str, dict[str, str], dict[str, str]]:
    return meaning.wire, meaning.settings, meaning.specifics


def _indent(lines: list[str]) -> str:
    return "\n".join(f"  {line}" for line in lines)
