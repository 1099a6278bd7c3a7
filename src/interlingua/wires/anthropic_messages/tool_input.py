"""A call's arguments, which upstreams send in the start of its block, in deltas, or in both.

    start                deltas               arguments
    ───────────────────  ───────────────────  ─────────────────────────────
    {"a": 1}             none, `{}`           {"a": 1}
    none, null or {}     {"a": 1}             {"a": 1}, as they come
    {"a": 1}             {"a": 1}             {"a": 1}: deltas that are whole win
    {"a": 1}             ,"b": 2}             {"a": 1,"b": 2}

Only where the start has arguments do the deltas wait, until they are whole or the block is over.
"""

from __future__ import annotations

from typing import Any

from interlingua.common.jsontext.arguments import EMPTY_ARGUMENTS, ArgumentsStream
from interlingua.common.jsontext.codec import read_shallow_object, write_json
from interlingua.common.jsontext.scanner import JsonScanner

__all__ = ["ToolInputMerger"]

_EMPTY_INPUTS = (*EMPTY_ARGUMENTS, "{}")


class ToolInputMerger:
    """The arguments of one call, from both sources. `notes` says what was odd, as (kind, message)."""

    def __init__(self, start: Any, held_limit: int) -> None:
        self._args = ArgumentsStream(held_limit)
        self.notes = self._args.notes
        start_text = _start_as_text(start)
        self._undecided = None if start_text in _EMPTY_INPUTS else _StartAndDeltas(start_text, held_limit)

    @property
    def ended(self) -> bool:
        """Whether the arguments are complete: whatever follows is no part of them."""
        return self._undecided is None and self._args.scanner.ended

    @property
    def unfinished(self) -> bool:
        """Whether they have begun and not ended, so that a block that is over here has been cut."""
        return self._args.unfinished if self._undecided is None else self._undecided.unfinished

    @property
    def empty(self) -> bool:
        """Whether there are none. If more was to come, they do not show it."""
        return self._undecided is None and self._args.empty

    def feed(self, text: str) -> tuple[str, str]:
        """The next delta. Returns what may go on, and what came after the end of the arguments."""
        if self._undecided is None:
            return self._args.feed(text)
        merged = self._undecided.feed(text)
        return ("", "") if merged is None else self._feed_merged(merged)

    def end(self) -> str:
        """The block is over: what is still to go on."""
        accepted = ""
        if self._undecided is not None:
            accepted, _ = self._feed_merged(self._undecided.end(self.notes))
        return accepted + self._args.end()

    def flush(self) -> str:
        """The reply ended inside the block: what is still held, as far as it goes."""
        return self._args.flush() if self._undecided is None else self._undecided.merged

    def _feed_merged(self, text: str) -> tuple[str, str]:
        """Both sources are one from here on."""
        self._undecided = None
        return self._args.feed(text)


class _StartAndDeltas:
    """What the start has given, and deltas of which it is not known yet what they are to it."""

    def __init__(self, start_text: str, limit: int) -> None:
        self._start_text = start_text
        self._limit = limit
        self._deltas: list[str] = []
        self._cursor = JsonScanner()

    @property
    def merged(self) -> str:
        deltas = "".join(self._deltas).lstrip()
        return _start_prefix(self._start_text, deltas) + deltas if deltas else self._start_text

    @property
    def unfinished(self) -> bool:
        """A continuation that breaks off. Deltas that break off by themselves do no harm: the start has it all."""
        deltas = "".join(self._deltas).strip()
        return (
            bool(deltas and _start_prefix(self._start_text, deltas))
            and self._cursor.problem is None
            and not self._cursor.ended
        )

    def feed(self, text: str) -> str | None:
        """The arguments of both, once they can be told."""
        if not self._deltas:
            text = text.lstrip()
            if not text:
                return None
            self._scan(_start_prefix(self._start_text, text))
        self._deltas.append(text)
        self._scan(text)
        if self._cursor.ended and self._cursor.problem is None:
            return self._start_text if self.merged.strip() in _EMPTY_INPUTS else self.merged
        return self.merged if self._cursor.offset > self._limit else None

    def end(self, notes: list[tuple[str, str]]) -> str:
        deltas = "".join(self._deltas).strip()
        if deltas not in _EMPTY_INPUTS:
            message = "arguments in a block's start, and others in its deltas that are no JSON: the start's are taken"
            notes.append(("odd-deltas", message))
        return self._start_text

    def _scan(self, text: str) -> None:
        pos = self._cursor.scan(text, 0)
        while pos < len(text) and not self._cursor.ended:
            pos = self._cursor.scan(text, self._cursor.skip_char(text, pos))


def _start_prefix(start_text: str, deltas: str) -> str:
    """What of the start stands before these deltas: nothing, if they begin anew."""
    if not start_text.startswith("{"):
        return ""
    opened = start_text[:-1].rstrip()
    return {",": opened, "}": opened, '"': f"{opened},"}.get(deltas[0], "")


def _start_as_text(start: Any) -> str:
    """What the start gives, as JSON text. Some write the object as a string."""
    if isinstance(start, str) and read_shallow_object(start) is not None:
        return start.strip()
    return "" if start is None else write_json(start)
