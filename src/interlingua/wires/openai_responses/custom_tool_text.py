"""The text of a custom tool, taken out of the arguments of a function.

Models that know only functions are offered a custom tool as a function with one string, `input`. What they write for it
is `{"input": "…"}`, as a rule, and its text goes on as it comes. What is written otherwise is held to the end and then
guessed: another key, a bare string, no JSON at all. A patch may also stand in a code fence or a heredoc.
"""

from __future__ import annotations

import re
from enum import Enum
from typing import Any

from interlingua.common.jsontext.codec import read_json

__all__ = ["CustomToolText"]

TEXT_KEYS = ("input", "patch", "code")
"""Where models put the text, the right place first."""
MAX_HEAD_CHARS = 200
PATCH_HEADER = "*** Begin Patch"

_match_head = re.compile(rf'\s*\{{\s*"({"|".join(TEXT_KEYS)})"\s*:\s*"').match
_match_text = re.compile(
    r'(?:[^"\\]+|\\(?:[^u]|u[0-9a-fA-F]{4}|u(?=[0-9a-fA-F]{0,3}[^0-9a-fA-F])))*+', re.S
).match  # up to an escape that is cut; what is no escape at all goes along
_search_high_surrogate = re.compile(r"(?<!\\)(?:\\\\)*(\\u[dD][89abAB][0-9a-fA-F]{2})\Z").search
_escape_pattern = re.compile(r"(?:\\u[0-9a-fA-F]{4})+|\\[^u]", re.S)
_SHORT_ESCAPES = {"b": "\b", "f": "\f", "n": "\n", "r": "\r", "t": "\t"}
_WRAPPER_OPENERS = ("```", "<<", "apply_patch")
_match_fence = re.compile(r"\s*```[^\n]*\n(?P<text>.*?)\n?```\s*", re.S).fullmatch
_match_heredoc = re.compile(
    r"\s*(?:apply_patch)?\s*<<-?\s*(['\"]?)(?P<word>\w+)\1[^\n]*\n(?P<text>.*?)\n(?P=word)\s*", re.S
).fullmatch


class _State(Enum):
    BEFORE_TEXT = "before the text"
    IN_TEXT = "in the text"
    AFTER_TEXT = "behind the text"
    OTHER_FORMAT = "in something else"


class CustomToolText:
    """Takes the arguments of one call as they come and gives back the tool's text. `note` says what was guessed."""

    def __init__(self) -> None:
        self.note = ""
        self._state = _State.BEFORE_TEXT
        self._buffer = ""  # arguments that are not read yet
        self._other_format: list[str] = []  # arguments that only their end will tell the meaning of
        self._wrapper = _WrapperRemover()

    @classmethod
    def resume_in_text(cls) -> CustomToolText:
        """Of a call whose text has begun already."""
        tool_text = cls()
        tool_text._state = _State.IN_TEXT
        tool_text._wrapper = _WrapperRemover(_WrapperState.NOT_WRAPPED)
        return tool_text

    def feed(self, args: str) -> str:
        if self._state is _State.OTHER_FORMAT:
            self._other_format.append(args)
            return ""
        self._buffer += args
        if self._state is _State.BEFORE_TEXT:
            self._read_head()
        return self._wrapper.feed(self._read_text()) if self._state is _State.IN_TEXT else ""

    def end(self) -> str:
        """The arguments are over: what is still to be said."""
        buffered, self._buffer = self._buffer, ""
        remainder = ""
        if self._state is _State.IN_TEXT:
            remainder = _decode_escapes(buffered)
        elif self._state is not _State.AFTER_TEXT:
            remainder = self._guess_text("".join(self._other_format) + buffered)
        elif buffered.strip() != "}":
            self.note = self.note or f"more than the text of the tool: dropped {buffered!r:.60}"
        text = self._wrapper.feed(remainder) + self._wrapper.end()
        self.note = self.note or self._wrapper.note
        return text

    def _read_head(self) -> None:
        if head := _match_head(self._buffer):
            self._state, self._buffer = _State.IN_TEXT, self._buffer[head.end() :]
            if head[1] != TEXT_KEYS[0]:
                self.note = f"the tool's text came as {head[1]!r}"
        elif len(self._buffer) > MAX_HEAD_CHARS:
            self._state, self._other_format, self._buffer = _State.OTHER_FORMAT, [self._buffer], ""

    def _read_text(self) -> str:
        """The text up to where it ends, or to an escape that is cut."""
        match = _match_text(self._buffer)
        end = match.end() if match else 0
        text, remainder = self._buffer[:end], self._buffer[end:]
        if remainder.startswith('"'):
            self._state, remainder = _State.AFTER_TEXT, remainder[1:]
        elif text[-6:-4] == "\\u" and (high_surrogate := _search_high_surrogate(text)):
            text, remainder = (
                text[: high_surrogate.start(1)],
                high_surrogate[1] + remainder,
            )  # the other half of the character is yet to come
        self._buffer = remainder
        return _decode_escapes(text)

    def _guess_text(self, args: str) -> str:
        """The text in arguments that are not `{"input": "…"}`."""
        self.note = "the tool's text did not come as 'input'"
        if (bare_string := read_json(args, str)) is not None:
            return bare_string
        values = read_json(args, dict[str, Any])
        if not values:
            return args if values is None else ""
        texts = {key: text for key, text in values.items() if isinstance(text, str)}
        key = next((key for key in TEXT_KEYS if key in texts), None)
        if key is None and len(values) == 1:
            key = next(iter(texts), None)
        return args if key is None else texts[key]


class _WrapperState(Enum):
    UNKNOWN = "not known yet"
    WRAPPED = "in a wrapper, it seems: only the end tells"
    NOT_WRAPPED = "no wrapper"


class _WrapperRemover:
    """Takes a fence or a heredoc off a patch. What may begin with one is held until that is known, or to its end."""

    def __init__(self, state: _WrapperState = _WrapperState.UNKNOWN) -> None:
        self.note = ""
        self._state = state
        self._buffer: list[str] = []

    def feed(self, text: str) -> str:
        if self._state is _WrapperState.NOT_WRAPPED:
            return text
        self._buffer.append(text)
        if self._state is _WrapperState.UNKNOWN:
            start = "".join(self._buffer).lstrip()
            if start.startswith(_WRAPPER_OPENERS):
                self._state = _WrapperState.WRAPPED
            elif len(self._buffer) > MAX_HEAD_CHARS or not any(opener.startswith(start) for opener in _WRAPPER_OPENERS):
                self._state = _WrapperState.NOT_WRAPPED
                return self._take_buffer()
        return ""

    def end(self) -> str:
        text = inner = self._take_buffer()
        while match := _match_fence(inner) or _match_heredoc(inner):
            inner = match["text"]
        if inner is text or not inner.lstrip().startswith(PATCH_HEADER):
            return text
        self.note = "the patch stood in a code fence or a heredoc"
        return inner

    def _take_buffer(self) -> str:
        buffered, self._buffer = "".join(self._buffer), []
        return buffered


def _decode_escapes(text: str) -> str:
    """The characters of a JSON string. What is no escape stays as it is."""
    return _escape_pattern.sub(_decode_escape, text) if "\\" in text else text


def _decode_escape(escape: re.Match[str]) -> str:
    text = escape[0]
    if text[1] != "u":
        return _SHORT_ESCAPES.get(text[1], text[1] if text[1] in '"\\/' else text)
    units = b"".join(int(unit, 16).to_bytes(2, "little") for unit in text.split("\\u")[1:])
    return units.decode("utf-16-le", "replace")
