"""Merging of a call's arguments, which upstreams send in the start of its block, in deltas, or in both.

    start                deltas               arguments
    ───────────────────  ───────────────────  ─────────────────────────────
    {"a": 1}             none, `{}`           {"a": 1}
    none, null or {}     {"a": 1}             {"a": 1}, streamed as they arrive
    {"a": 1}             {"a": 1}             {"a": 1}: complete deltas win
    {"a": 1}             ,"b": 2}             {"a": 1,"b": 2}

Deltas are buffered only if the start has arguments, until they are complete or the block ends.
"""

from __future__ import annotations

from typing import Any

from interlingua.common.jsontext.arguments import EMPTY_ARGUMENTS, ArgumentsStream
from interlingua.common.jsontext.codec import read_shallow_object, write_json
from interlingua.common.jsontext.scanner import JsonScanner
from interlingua.core.options import ArgumentsPolicy, Limits
from interlingua.core.text_forwarder import TextForwarder

__all__ = ["ToolInputMerger"]

_EMPTY_INPUTS = (*EMPTY_ARGUMENTS, "{}")


class ToolInputMerger:
    """Merger for the arguments of one call from both sources. `notes`: findings as (kind, message)."""

    def __init__(self, start: Any, limits: Limits, arguments: ArgumentsPolicy) -> None:
        self._args = ArgumentsStream(limits.held, limits.blanks, repairs=arguments == "repair")
        self.notes = self._args.notes
        start_text = _start_as_text(start)
        self._undecided = None if start_text in _EMPTY_INPUTS else _StartAndDeltas(start_text, limits.held)

    @property
    def ended(self) -> bool:
        """True if the arguments are complete: any text after them is not part of them."""
        return self._undecided is None and self._args.scanner.ended

    @property
    def runaway(self) -> bool:
        """True if more whitespace came between two tokens than is allowed."""
        return self._args.runaway

    @property
    def unfinished(self) -> bool:
        """True if the arguments have begun but not ended: a block that ends here is truncated."""
        return self._args.unfinished if self._undecided is None else self._undecided.unfinished

    @property
    def empty(self) -> bool:
        """True if there are no arguments. They do not show whether the block is truncated."""
        return self._undecided is None and self._args.empty

    def feed(self, text: str) -> tuple[str, str]:
        """Feed the next delta. Returns: the text to forward, and the text after the end of the arguments."""
        if self._undecided is None:
            return self._args.feed(text)
        merged = self._undecided.feed(text)
        return ("", "") if merged is None else self._feed_merged(merged)

    @property
    def text_forwarder(self) -> TextForwarder | None:
        """A function for texts inside a string of the arguments that `feed` would return unchanged. None if it is not
        decided yet which text is returned."""
        return self._args.scanner.skip_string_texts if self._undecided is None else None

    def end(self) -> str:
        """End the block and return the remaining text to forward."""
        accepted = ""
        if self._undecided is not None:
            accepted, _ = self._feed_merged(self._undecided.end(self.notes))
        return accepted + self._args.end()

    def flush(self) -> str:
        """Return the buffered text, after the reply ended inside the block."""
        return self._args.flush() if self._undecided is None else self._undecided.merged_text

    def _feed_merged(self, text: str) -> tuple[str, str]:
        """Switch to plain streaming, with the merged arguments as its beginning."""
        self._undecided = None
        return self._args.feed(text)


class _StartAndDeltas:
    """Arguments from the start, and deltas that may repeat, continue or replace them: not decided yet."""

    def __init__(self, start_text: str, limit: int) -> None:
        self._start_text = start_text
        self._limit = limit
        self._deltas: list[str] = []
        self._cursor = JsonScanner()

    @property
    def merged_text(self) -> str:
        deltas = "".join(self._deltas).lstrip()
        return _start_prefix(self._start_text, deltas) + deltas if deltas else self._start_text

    @property
    def unfinished(self) -> bool:
        """True if the deltas continue the start and are truncated.

        Truncated deltas that do not continue the start do no harm: the start has all the arguments.
        """
        deltas = "".join(self._deltas).strip()
        return (
            bool(deltas and _start_prefix(self._start_text, deltas))
            and self._cursor.problem is None
            and not self._cursor.ended
        )

    def feed(self, text: str) -> str | None:
        """Feed the next delta. Returns: the merged arguments, once they are decided; None before that."""
        if not self._deltas:
            text = text.lstrip()
            if not text:
                return None
            self._cursor.scan_all(_start_prefix(self._start_text, text))
        self._deltas.append(text)
        self._cursor.scan_all(text)
        if self._cursor.ended and self._cursor.problem is None:
            return self._start_text if self.merged_text.strip() in _EMPTY_INPUTS else self.merged_text
        return self.merged_text if self._cursor.offset > self._limit else None

    def end(self, notes: list[tuple[str, str]]) -> str:
        deltas = "".join(self._deltas).strip()
        if deltas not in _EMPTY_INPUTS:
            message = (
                "arguments in the start of a block, and deltas that are not valid JSON: those in the start are used"
            )
            notes.append(("odd-deltas", message))
        return self._start_text


def _start_prefix(start_text: str, deltas: str) -> str:
    """Return the part of the start that these deltas continue; "" if the deltas begin anew."""
    if not start_text.startswith("{"):
        return ""
    opened = start_text[:-1].rstrip()
    return {",": opened, "}": opened, '"': f"{opened},"}.get(deltas[0], "")


def _start_as_text(start: Any) -> str:
    """Return the input in the start as JSON text. Some upstreams send the object as a string."""
    if isinstance(start, str) and read_shallow_object(start) is not None:
        return start.strip()
    return "" if start is None else write_json(start)
