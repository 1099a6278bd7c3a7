"""Output of `interlingua translate`: the translated reply, its explanation, or its trace."""

from __future__ import annotations

from typing import Any, Protocol

import interlingua as il
from interlingua.cli.common import console, terminal, two_columns
from interlingua.cli.translate.explain import Explainer
from interlingua.cli.translate.row_selection import RowSelection, RowSelector
from interlingua.trace import TraceEvent, TraceObserver, encode_trace_event

__all__ = ["ExplainedOutput", "Output", "ReplyOutput", "TraceOutput"]


class Output(Protocol):
    """Writer of standard output, and of findings on standard error, for one reply."""

    observer: TraceObserver | None
    """Observer for the translator."""

    def begin(self) -> None:
        """Write what comes before the reply."""

    def write_frames(self, sent: bytes, translator: il.Translator) -> None:
        """Write what is new after a part of a stream, for which these frames go to the client."""

    def write_body(self, body: dict[str, Any], translator: il.Translator) -> None:
        """Write a whole reply."""

    def end(self) -> None:
        """Write what comes after the last part of a stream."""


class ReplyOutput:
    """Writes the translated reply, and the findings to standard error."""

    observer: TraceObserver | None = None

    def __init__(self, finding_format: console.FindingFormat) -> None:
        self._finding_format = finding_format
        self._printed_findings = 0

    def begin(self) -> None: ...

    def write_frames(self, sent: bytes, translator: il.Translator) -> None:
        console.write(sent)
        self._print_findings(translator)

    def write_body(self, body: dict[str, Any], translator: il.Translator) -> None:
        console.write_json(body)
        self._print_findings(translator)

    def end(self) -> None: ...

    def _print_findings(self, translator: il.Translator) -> None:
        console.print_findings(translator.findings[self._printed_findings :], self._finding_format)
        self._printed_findings = len(translator.findings)


class ExplainedOutput:
    """Writes a row per message, or per run of chunks that fared alike. Findings are part of the rows.

    Args:
        only: the rows to write; None writes all of them.
        is_collapsed: whether a run of chunks that fared alike is one row.
    """

    def __init__(self, only: RowSelection | None, *, is_collapsed: bool) -> None:
        self._explainer = Explainer()
        self._selector = RowSelector(only, is_collapsed=is_collapsed)
        self._layout = two_columns.ColumnLayout(terminal.terminal_width(), terminal.stdout_styler())
        self.observer: TraceObserver | None = self._explainer.observe

    def begin(self) -> None:
        console.write(self._layout.format_header("from the upstream", "to the client").encode())

    def write_frames(self, sent: bytes, translator: il.Translator) -> None:  # noqa: ARG002 (the rows have them)
        for explained in self._explainer.take_rows():
            self._write_rows(self._selector.feed(explained))

    def write_body(self, body: dict[str, Any], translator: il.Translator) -> None:
        """Explain a whole reply as one chunk. A row shortens it, so the full translated body is printed below."""
        self.write_frames(b"", translator)
        self.end()
        console.write(b"\n")
        console.write_json(body)

    def _write_rows(self, rows: list[two_columns.ColumnRow]) -> None:
        for row in rows:
            console.write(self._layout.format_row(row).encode())

    def end(self) -> None:
        self._write_rows(self._selector.flush())
        console.write(f"\n{self._layout.format_note(self._explainer.summary())}".encode())


class TraceOutput:
    """Writes a line of JSON per trace event, as soon as the event happens."""

    def __init__(self) -> None:
        self.observer: TraceObserver | None = self._write_event

    def begin(self) -> None: ...

    def write_frames(self, sent: bytes, translator: il.Translator) -> None: ...

    def write_body(self, body: dict[str, Any], translator: il.Translator) -> None: ...

    def end(self) -> None: ...

    def _write_event(self, event: TraceEvent) -> None:
        console.write(console.printable(encode_trace_event(event).decode().rstrip()).encode() + b"\n")
