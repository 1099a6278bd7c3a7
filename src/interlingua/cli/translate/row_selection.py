"""Selection of the rows that `translate --explain` prints: runs of chunks as one row, or only some rows."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, TypeAlias, get_args

from interlingua.cli.common.two_columns import ColumnRow
from interlingua.cli.translate.chunk_runs import RunPart, run_row
from interlingua.core.finding_severity import SEVERITIES, Severity

__all__ = ["ROW_SELECTIONS", "ExplainedRow", "RowSelection", "RowSelector"]

RowSelection: TypeAlias = Literal["changes", "findings", "warnings", "errors"]
"""changes: chunks that are not forwarded unchanged. The others: chunks with findings of at least this severity."""
ROW_SELECTIONS: tuple[RowSelection, ...] = get_args(RowSelection)
_MIN_SEVERITIES: dict[str, Severity] = {"findings": "info", "warnings": "warning", "errors": "error"}
MIN_RUN_CHUNKS = 3
"""Number of chunks in a row that fared alike, from which on they are one row."""


@dataclass(frozen=True)
class ExplainedRow:
    """Row of one message, and what decides whether it is shown."""

    row: ColumnRow
    is_unchanged: bool = False
    """True if the chunk is forwarded as it is, without a comment."""
    run_part: RunPart | None = None
    """The chunk as a part of a run; None if it has a row of its own in any case."""
    severity: Severity | None = None
    """The worst severity of its findings; None if it has none. A failure of the upstream is an error."""


class RowSelector:
    """Selects the rows of one reply. `flush` returns what is left at its end.

    Args:
        only: the rows to show; None shows all of them.
        is_collapsed: whether a run of chunks that fared alike is one row.
    """

    def __init__(self, only: RowSelection | None, *, is_collapsed: bool) -> None:
        self._only = only
        self._is_collapsed = is_collapsed
        self._run: list[RunPart] = []

    def feed(self, explained: ExplainedRow) -> list[ColumnRow]:
        """Return the rows that can be printed now."""
        if self._only is not None:
            return [explained.row] if self._is_selected(explained) else []
        if not self._is_collapsed:
            return [explained.row]
        part = explained.run_part
        rows = [] if part is not None and self._run and self._run[-1].key == part.key else self.flush()
        if part is None:
            return [*rows, explained.row]
        self._run.append(part)
        return rows

    def flush(self) -> list[ColumnRow]:
        """Return the rows of the last run."""
        run, self._run = self._run, []
        return [part.row for part in run] if len(run) < MIN_RUN_CHUNKS else [run_row(run)]

    def _is_selected(self, explained: ExplainedRow) -> bool:
        if self._only == "changes":
            return not explained.is_unchanged
        minimum = SEVERITIES.index(_MIN_SEVERITIES[str(self._only)])
        return explained.severity is not None and SEVERITIES.index(explained.severity) >= minimum
