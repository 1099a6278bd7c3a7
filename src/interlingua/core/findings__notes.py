"""What is lost or changed when a request is written: collected as findings, each told once."""

from __future__ import annotations

from interlingua.events import Finding

__all__ = ["FindingCollector"]


class FindingCollector:
    def __init__(self) -> None:
        self._findings: dict[tuple[str, str], Finding] = {}

    def report(self, kind: str, message: str, place: str = "") -> None:
        """The same message twice is one finding, at the first place."""
        self._findings.setdefault((kind, message), Finding(kind, message, place))

    @property
    def findings(self) -> list[Finding]:
        return list(self._findings.values())
