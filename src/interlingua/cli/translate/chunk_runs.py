"""Runs of chunks that `translate --explain` shows as one row: all of them fared alike.

A chunk belongs to a run if it was forwarded unchanged, if its text was forwarded in a frame of the same form, or if its
text is held back for the same reason.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any, TypeAlias

from interlingua import events as ev
from interlingua import trace
from interlingua.cli.common.console import printable
from interlingua.cli.common.two_columns import ColumnLine, ColumnRow
from interlingua.cli.translate.chunk_summary import format_fields
from interlingua.common.ansi import Style

__all__ = ["RunPart", "forwarded_part", "held_back_part", "rewritten_part", "run_row"]

COUNTER_FIELDS = frozenset({"sequence_number"})
"""Fields that differ in each frame."""
Path: TypeAlias = tuple[str | int, ...]
"""Keys and indexes that lead to a value in JSON."""


@dataclass(frozen=True)
class RunPart:
    """One chunk of a run."""

    row: ColumnRow
    key: object
    """Fields that are the same in all chunks of a run."""
    received: dict[str, Any]
    """Essential fields of the chunk."""
    frame: Any = None
    """Essential fields of the frame, if it differs from the chunk."""
    text_path: Path = ()
    """Place of the text in the frame."""
    shows_last: bool = False
    """True if the last row of the run explains all of them."""


def forwarded_part(row: ColumnRow, received: dict[str, Any]) -> RunPart:
    """Return the part for a chunk that was forwarded with the same fields."""
    return RunPart(row, ("forwarded", row.right, list(received)), received)


def held_back_part(row: ColumnRow, received: dict[str, Any], event: trace.HeldBack) -> RunPart:
    """Return the part for a chunk whose text waits."""
    return RunPart(row, ("held back", event.reason, event.channel, list(received)), received, shows_last=True)


def rewritten_part(row: ColumnRow, received: dict[str, Any], frame: Any, event: ev.ReplyEvent) -> RunPart | None:
    """Return the part for a chunk whose text was forwarded in one frame; None if the text is not found in it."""
    if not isinstance(event, ev.TextDelta | ev.ReasoningDelta | ev.RefusalDelta | ev.ArgsDelta):
        return None
    paths = [path for path, value in _leaves(frame) if value == event.text]
    if len(paths) != 1:
        return None
    form = [(path, value) for path, value in _leaves(frame) if path != paths[0]]
    return RunPart(row, ("rewritten", type(event), paths[0], form, list(received)), received, frame, paths[0])


def _leaves(value: Any, path: Path = ()) -> Iterator[tuple[Path, Any]]:
    """Yield the place of each value in JSON that has no values in it. Counters are left out."""
    if isinstance(value, dict):
        for name, inner in value.items():
            if name not in COUNTER_FIELDS:
                yield from _leaves(inner, (*path, name))
    elif isinstance(value, list):
        for index, inner in enumerate(value):
            yield from _leaves(inner, (*path, index))
    else:
        yield path, value


# ── rows ──────────────────────────────────────────────────────────────────────────────────────────────────────────────


def run_row(run: Sequence[RunPart]) -> ColumnRow:
    """Return one row for all chunks of a run."""
    first, last = run[0], run[-1]
    fields = _joined_texts([part.received for part in run])
    number = last.row.number
    text = f"… to {number}: {format_fields(fields)}" if fields else f"… to {number}: {len(run)} chunks"
    return ColumnRow(first.row.number, [ColumnLine(printable(text))], _right_lines(run))


def _right_lines(run: Sequence[RunPart]) -> list[ColumnLine]:
    first, last = run[0], run[-1]
    if not first.text_path:
        return last.row.right if last.shows_last else first.row.right
    joined = "".join(_value_at(part.frame, part.text_path) for part in run)
    frame = _with_value(first.frame, first.text_path, joined)
    reason = first.row.right[-1]
    return [
        ColumnLine(format_fields(frame), Style.GOOD, "→"),
        replace(reason, text=f"{reason.text}, in {len(run)} frames"),
    ]


def _value_at(value: Any, path: Path) -> Any:
    for step in path:
        value = value[step]
    return value


def _with_value(value: Any, path: Path, new: Any) -> Any:
    """Return a copy of a JSON value with another value at this place. Counters are left out."""
    if not path:
        return new
    step, *rest = path
    if isinstance(value, list):
        return [_with_value(inner, tuple(rest), new) if index == step else inner for index, inner in enumerate(value)]
    return {
        name: _with_value(inner, tuple(rest), new) if name == step else inner
        for name, inner in value.items()
        if name not in COUNTER_FIELDS
    }


def _joined_texts(chunks: list[dict[str, Any]]) -> dict[str, str]:
    """Return the text of all chunks together, if each chunk has one text; else {}."""
    names = {name for fields in chunks for name in fields}
    texts = [text for fields in chunks for text in fields.values()]
    if len(names) != 1 or not all(isinstance(text, str) for text in texts):
        return {}
    return {names.pop(): "".join(texts)}
