"""One call's arguments on their way through: a JSON object passes as it comes, anything else is held and mended.

A wire feeds its text to `feed`. A shape, which has to look for markers at the same time, drives the `cursor` itself.
"""

from __future__ import annotations

from interlingua.common.jsontext.codec import read_json, read_object
from interlingua.common.jsontext.scanner import JsonCursor

__all__ = ["STREAMED", "Args"]


STREAMED = ("{", "[")
"""What arguments begin with that go on as they come."""


NOTHING = ("", "null", '""')
"""What arguments are that are none."""


class Args:
    """Takes the arguments as the model writes them and gives back what may go on.

    An object or array goes on piece by piece. Anything else (`null`, a string that holds an object, prose) is held
    until it ends, because only then is known what to make of it. `notes` says what was odd, as (kind, message).
    """

    def __init__(self, held_limit: int) -> None:
        self.cursor = JsonCursor()
        self.notes: list[tuple[str, str]] = []
        self._limit = held_limit
        self._held: list[str] = []
        self._held_size = 0
        self._over_limit = False

    def feed(self, text: str) -> tuple[str, str]:
        """Text that holds nothing but arguments. Returns what may go on, and what came after the end of an object."""
        cursor = self.cursor
        if not cursor.first:
            if self._held or self._over_limit or text.lstrip()[:1] not in STREAMED:
                return self.hold(text), ""
            text = text.lstrip()
        pos = cursor.walk(text, 0)
        if pos == len(text):
            return text, ""
        while pos < len(text) and not cursor.ended:
            pos = cursor.walk(text, cursor.skip(text, pos))
        return text[:pos], text[pos:]

    def hold(self, text: str) -> str:
        """Arguments that are not streamed. Returns what can be held no longer."""
        if text.strip() or self._held:
            self._held.append(text)
            self._held_size += len(text)
        if not self._over_limit and self._held_size <= self._limit:
            return ""
        self._over_limit = True
        return self._take_held()

    def end(self) -> str:
        """The model has closed the call: what is still to go on, so that the arguments are an object if they can be."""
        if self.cursor.first in STREAMED:
            self.cursor.finish()
            self._judge_streamed()
            return ""
        text = self._take_held().strip()
        if text in NOTHING and not self._over_limit:
            return "{}"
        inner = _object_in_string(text)
        if inner is not None:
            self.notes.append(("unwrapped-arguments", "the arguments were an object inside a string: taken out of it"))
            return inner
        self.notes.append(("bad-arguments", "the arguments are not a JSON object: passed on as they are"))
        return text

    @property
    def unfinished(self) -> bool:
        """Whether the arguments have begun as JSON and not ended."""
        if self.cursor.first in STREAMED:
            return not self.cursor.ended
        text = "".join(self._held).strip()
        if text and text != "null" and "null".startswith(text):
            return True
        return text.startswith('"') and read_json(text, str) is None

    @property
    def empty(self) -> bool:
        """Whether there are none. If more was to come, they do not show it."""
        return not self.cursor.first and not self._over_limit and "".join(self._held).strip() in ("", "null")

    def cut(self) -> str:
        """The reply ended inside the call: what is still held, as it is."""
        return self._take_held().strip()

    def _take_held(self) -> str:
        held = "".join(self._held)
        self._held.clear()
        return held

    def _judge_streamed(self) -> None:
        if self.cursor.problem is not None:
            message = f"the arguments are not JSON: {self.cursor.problem}; passed on as they are"
            self.notes.append(("bad-arguments", message))
        elif self.cursor.first != "{":
            self.notes.append(("bad-arguments", "the arguments are not a JSON object: passed on as they are"))


def _object_in_string(text: str) -> str | None:
    inner = read_json(text, str)
    return inner.strip() if inner is not None and read_object(inner) is not None else None
