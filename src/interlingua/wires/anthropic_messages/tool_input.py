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

from interlingua.common.jsontext.arguments import NOTHING, Args
from interlingua.common.jsontext.codec import read_object, write_json
from interlingua.common.jsontext.scanner import JsonCursor

__all__ = ["Input"]

_NONE = (*NOTHING, "{}")


class Input:
    """The arguments of one call, from both sources. `notes` says what was odd, as (kind, message)."""

    def __init__(self, start: Any, held_limit: int) -> None:
        self._args = Args(held_limit)
        self.notes = self._args.notes
        given = _as_text(start)
        self._both = None if given in _NONE else _Both(given, held_limit)

    @property
    def ended(self) -> bool:
        """Whether the arguments are complete: whatever follows is no part of them."""
        return self._both is None and self._args.cursor.ended

    @property
    def unfinished(self) -> bool:
        """Whether they have begun and not ended, so that a block that is over here has been cut."""
        return self._args.unfinished if self._both is None else self._both.unfinished

    @property
    def empty(self) -> bool:
        """Whether there are none. If more was to come, they do not show it."""
        return self._both is None and self._args.empty

    def feed(self, text: str) -> tuple[str, str]:
        """The next delta. Returns what may go on, and what came after the end of the arguments."""
        if self._both is None:
            return self._args.feed(text)
        decided = self._both.feed(text)
        return ("", "") if decided is None else self._decide(decided)

    def end(self) -> str:
        """The block is over: what is still to go on."""
        passed = ""
        if self._both is not None:
            passed, _ = self._decide(self._both.end(self.notes))
        return passed + self._args.end()

    def cut(self) -> str:
        """The reply ended inside the block: what is still held, as far as it goes."""
        return self._args.cut() if self._both is None else self._both.so_far

    def _decide(self, text: str) -> tuple[str, str]:
        """Both sources are one from here on."""
        self._both = None
        return self._args.feed(text)


class _Both:
    """What the start has given, and deltas of which it is not known yet what they are to it."""

    def __init__(self, given: str, limit: int) -> None:
        self._given = given
        self._limit = limit
        self._deltas: list[str] = []
        self._cursor = JsonCursor()

    @property
    def so_far(self) -> str:
        deltas = "".join(self._deltas).lstrip()
        return _lead(self._given, deltas) + deltas if deltas else self._given

    @property
    def unfinished(self) -> bool:
        """A continuation that breaks off. Deltas that break off by themselves do no harm: the start has it all."""
        deltas = "".join(self._deltas).strip()
        return bool(deltas and _lead(self._given, deltas)) and self._cursor.problem is None and not self._cursor.ended

    def feed(self, text: str) -> str | None:
        """The arguments of both, once they can be told."""
        if not self._deltas:
            text = text.lstrip()
            if not text:
                return None
            self._walk(_lead(self._given, text))
        self._deltas.append(text)
        self._walk(text)
        if self._cursor.ended and self._cursor.problem is None:
            return self._given if self.so_far.strip() in _NONE else self.so_far
        return self.so_far if self._cursor.offset > self._limit else None

    def end(self, notes: list[tuple[str, str]]) -> str:
        deltas = "".join(self._deltas).strip()
        if deltas not in _NONE:
            message = "arguments in a block's start, and others in its deltas that are no JSON: the start's are taken"
            notes.append(("odd-deltas", message))
        return self._given

    def _walk(self, text: str) -> None:
        pos = self._cursor.walk(text, 0)
        while pos < len(text) and not self._cursor.ended:
            pos = self._cursor.walk(text, self._cursor.skip(text, pos))


def _lead(given: str, deltas: str) -> str:
    """What of the start stands before these deltas: nothing, if they begin anew."""
    if not given.startswith("{"):
        return ""
    opened = given[:-1].rstrip()
    return {",": opened, "}": opened, '"': f"{opened},"}.get(deltas[0], "")


def _as_text(start: Any) -> str:
    """What the start gives, as JSON text. Some write the object as a string."""
    if isinstance(start, str) and read_object(start) is not None:
        return start.strip()
    return "" if start is None else write_json(start)
