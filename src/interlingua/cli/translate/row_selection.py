"""Selection of the rows that `translate --explain` prints: runs of unchanged chunks as one row, or only some rows."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal, TypeAlias, get_args

from interlingua.cli.common.console import printable
from interlingua.cli.common.two_columns import ColumnLine, ColumnRow
from interlingua.cli.translate.chunk_summary import format_fields
from interlingua.core.finding_severity import SEVERITIES, Severity

__all__ = ["ROW_SELECTIONS", "ExplainedRow", "RowSelection", "RowSelector"]

RowSelection: TypeAlias = Literal["changes", "findings", "warnings", "errors"]
"""changes: chunks that are not forwarded unchanged. The others: chunks with findings of at least this severity."""
ROW_SELECTIONS: tuple[RowSelection, ...] = get_args(RowSelection)
_MIN_SEVERITIES: dict[str, Severity] = {"findings": "info", "warnings": "warning", "errors": "error"}
MIN_RUN_CHUNKS = 3
"""Number of unchanged chunks in a row from which on they are one row."""


@dataclass(frozen=True)
class ExplainedRow:
    """Row of one message, and what decides whether it is shown."""

    row: ColumnRow
    unchanged_fields: dict[str, Any] | None = None
    """Essential fields of a chunk that is forwarded without a comment; None for all other messages."""
    severity: Severity | None = None
    """The worst severity of its findings; None if it has none. A failure of the upstream is an error."""


class RowSelector:
    """Selects the rows of one reply. `flush` returns what is left at its end.

    Args:
        only: the rows to show; None shows all of them.
        is_collapsed: whether a run of unchanged chunks is one row.
    """

    def __init__(self, only: RowSelection | None, *, is_collapsed: bool) -> None:
        self._only = only
        self._is_collapsed = is_collapsed
        self._run: list[ExplainedRow] = []

    def feed(self, explained: ExplainedRow) -> list[ColumnRow]:
        """Return the rows that can be printed now."""
        if self._only is not None:
            return [explained.row] if self._is_selected(explained) else []
        if not self._is_collapsed:
            return [explained.row]
        if explained.unchanged_fields is not None and self._continues_run(explained):
            self._run.append(explained)
            return []
        rows = self.flush()
        if explained.unchanged_fields is not None:
            self._run = [explained]
            return rows
        return [*rows, explained.row]

    def flush(self) -> list[ColumnRow]:
        """Return the rows of the last run."""
        run, self._run = self._run, []
        return [explained.row for explained in run] if len(run) < MIN_RUN_CHUNKS else [_run_row(run)]

    def _is_selected(self, explained: ExplainedRow) -> bool:
        if self._only == "changes":
            return explained.unchanged_fields is None
        minimum = SEVERITIES.index(_MIN_SEVERITIES[str(self._only)])
        return explained.severity is not None and SEVERITIES.index(explained.severity) >= minimum

    def _continues_run(self, explained: ExplainedRow) -> bool:
        """Return whether a chunk has fields of the same names as those before it, and they are forwarded as these."""
        if not self._run:
            return True
        first, names = self._run[0], list(explained.unchanged_fields or ())
        return first.row.right == explained.row.right and list(first.unchanged_fields or ()) == names


def _run_row(run: list[ExplainedRow]) -> ColumnRow:
    first, last = run[0].row, run[-1].row
    fields = _joined_texts([explained.unchanged_fields or {} for explained in run])
    text = f"… to {last.number}: {format_fields(fields)}" if fields else f"… to {last.number}: {len(run)} chunks"
    return ColumnRow(first.number, [ColumnLine(printable(text))], first.right)


def _joined_texts(chunks: list[dict[str, Any]]) -> dict[str, str]:
    """Return the text of all chunks together, if each chunk has one text; else {}."""
    names = {name for fields in chunks for name in fields}
    texts = [text for fields in chunks for text in fields.values()]
    if len(names) != 1 or not all(isinstance(text, str) for text in texts):
        return {}
    return {names.pop(): "".join(texts)}
