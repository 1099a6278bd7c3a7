"""Results of a test in a file, so that it can be run in parts: one line for each run, and one for each part."""

from __future__ import annotations

import threading
from collections.abc import Iterable
from pathlib import Path

import msgspec

from e2e.run import Outcome, RunSpec

__all__ = ["Results"]


class _RunLine(msgspec.Struct, frozen=True, tag="run"):
    name: str
    seconds: float
    why: str
    exchanges: int
    other_statuses: int
    aborted: int


class _PartLine(msgspec.Struct, frozen=True, tag="part"):
    seconds: float
    refusals: int


class Results:
    """Results in a file.

    Args:
        path: The file.
        resume: Go on with the results that it has. Otherwise it is emptied.
    """

    def __init__(self, path: Path, *, resume: bool) -> None:
        self._path = path
        self._lock = threading.Lock()
        path.parent.mkdir(parents=True, exist_ok=True)
        if not resume:
            path.unlink(missing_ok=True)

    def add(self, outcome: Outcome) -> None:
        self._append(
            _RunLine(
                outcome.spec.name,
                outcome.seconds,
                outcome.why,
                outcome.exchanges,
                outcome.other_statuses,
                outcome.aborted,
            )
        )

    def add_part(self, seconds: float, refusals: int) -> None:
        """Add the duration of a part, and the number of requests that were refused in it and belong to no run."""
        self._append(_PartLine(seconds, refusals))

    def outcomes(self, specs: Iterable[RunSpec]) -> list[Outcome]:
        """Return the latest result of each of these runs that has one, in their order."""
        lines = {line.name: line for line in self._lines() if isinstance(line, _RunLine)}
        found = [(spec, lines[spec.name]) for spec in specs if spec.name in lines]
        return [
            Outcome(spec, line.seconds, line.why, line.exchanges, line.other_statuses, line.aborted)
            for spec, line in found
        ]

    @property
    def seconds(self) -> float:
        """Duration of all parts."""
        return sum(line.seconds for line in self._lines() if isinstance(line, _PartLine))

    @property
    def refusals(self) -> int:
        """Number of requests in all parts that were refused and belong to no run."""
        return sum(line.refusals for line in self._lines() if isinstance(line, _PartLine))

    def _append(self, line: _RunLine | _PartLine) -> None:
        with self._lock, self._path.open("ab") as file:
            file.write(msgspec.json.encode(line) + b"\n")

    def _lines(self) -> list[_RunLine | _PartLine]:
        if not self._path.exists():
            return []
        decoder = msgspec.json.Decoder(_RunLine | _PartLine)
        return [decoder.decode(line) for line in self._path.read_bytes().splitlines()]
