"""Streaming extraction of a custom tool's text from function arguments.

A model that supports only functions is offered a custom tool as a function with one string parameter, `input`. It
usually writes `{"input": "…"}`, and the text is forwarded as it arrives. Any other form (another key, a bare string, no
JSON) is buffered to the end, and the text is then guessed. A patch may also be wrapped in a code fence or a heredoc.
"""

from __future__ import annotations

import re
from enum import Enum
from typing import Any

from interlingua.common.jsontext.codec import read_json

__all__ = ["CustomToolText"]

TEXT_KEYS = ("input", "patch", "code")
"""Keys under which models write the text. The correct key is first."""
MAX_HEAD_CHARS = 200
PATCH_HEADER = "*** Begin Patch"
MAX_WRAPPERS = 4
"""Largest number of code fences and heredocs around a patch that are removed. Models write one or two."""

_match_head = re.compile(rf'\s*\{{\s*"({"|".join(TEXT_KEYS)})"\s*:\s*"').match
_match_text = re.compile(
    r'(?:[^"\\]+|\\(?:[^u]|u[0-9a-fA-F]{4}|u(?=[0-9a-fA-F]{0,3}[^0-9a-fA-F])))*+', re.S
).match  # stops before an incomplete escape; an invalid escape is matched as text
_search_high_surrogate = re.compile(r"(?<!\\)(?:\\\\)*(\\u[dD][89abAB][0-9a-fA-F]{2})\Z").search
_escape_pattern = re.compile(r"(?:\\u[0-9a-fA-F]{4})+|\\[^u]", re.S)
_SHORT_ESCAPES = {"b": "\b", "f": "\f", "n": "\n", "r": "\r", "t": "\t"}
_WRAPPER_OPENERS = ("```", "<<", "apply_patch")
_match_fence = re.compile(r"\s*+```[^\n]*\n(?P<text>.*?)\n?```\s*", re.S).fullmatch
_match_heredoc = re.compile(
    r"\s*+(?:apply_patch)?\s*+<<-?\s*+(['\"]?)(?P<word>\w+)\1[^\n]*\n(?P<text>.*?)\n(?P=word)\s*", re.S
).fullmatch


class _State(Enum):
    BEFORE_TEXT = "before the text"
    IN_TEXT = "in the text"
    AFTER_TEXT = "after the text"
    OTHER_FORMAT = "in another format"


class CustomToolText:
    """Extracts the tool's text from the streamed arguments of one call. `note` describes what was guessed."""

    def __init__(self) -> None:
        self.note = ""
        self._state = _State.BEFORE_TEXT
        self._buffer = ""  # arguments not parsed yet
        self._other_format: list[str] = []  # arguments in another format, parsed at the end
        self._after_text: list[str] = []  # arguments after the text
        self._wrapper = _WrapperRemover()

    @classmethod
    def resume_in_text(cls) -> CustomToolText:
        """Create the parser for a call whose text has already started."""
        tool_text = cls()
        tool_text._state = _State.IN_TEXT
        tool_text._wrapper = _WrapperRemover(_WrapperState.NOT_WRAPPED)
        return tool_text

    def feed(self, args: str) -> str:
        if self._state is _State.OTHER_FORMAT:
            self._other_format.append(args)
            return ""
        if self._state is _State.AFTER_TEXT:
            self._after_text.append(args)
            return ""
        self._buffer += args
        if self._state is _State.BEFORE_TEXT:
            self._read_head()
        return self._wrapper.feed(self._read_text()) if self._state is _State.IN_TEXT else ""

    def end(self) -> str:
        """Return the rest of the text, at the end of the arguments."""
        buffered, self._buffer = "".join([self._buffer, *self._after_text]), ""
        remainder = ""
        if self._state is _State.IN_TEXT:
            remainder = _decode_escapes(buffered)
        elif self._state is not _State.AFTER_TEXT:
            remainder = self._guess_text("".join(self._other_format) + buffered)
        elif buffered.strip() != "}":
            self.note = self.note or f"dropped {buffered!r:.60} after the text of the tool"
        text = self._wrapper.feed(remainder) + self._wrapper.end()
        self.note = self.note or self._wrapper.note
        return text

    def _read_head(self) -> None:
        if head := _match_head(self._buffer):
            self._state, self._buffer = _State.IN_TEXT, self._buffer[head.end() :]
            if head[1] != TEXT_KEYS[0]:
                self.note = f"the tool's text was sent as {head[1]!r}, not as 'input'"
        elif len(self._buffer) > MAX_HEAD_CHARS:
            self._state, self._other_format, self._buffer = _State.OTHER_FORMAT, [self._buffer], ""

    def _read_text(self) -> str:
        """Take the text up to its closing quote, or up to an incomplete escape, from the buffer."""
        match = _match_text(self._buffer)
        end = match.end() if match else 0
        text, remainder = self._buffer[:end], self._buffer[end:]
        if remainder.startswith('"'):
            self._state, remainder = _State.AFTER_TEXT, remainder[1:]
        elif text[-6:-4] == "\\u" and (high_surrogate := _search_high_surrogate(text)):
            text, remainder = (
                text[: high_surrogate.start(1)],
                high_surrogate[1] + remainder,
            )  # keep a high surrogate buffered until its low surrogate arrives
        self._buffer = remainder
        return _decode_escapes(text)

    def _guess_text(self, args: str) -> str:
        """Return the text in arguments that are not `{"input": "…"}`."""
        self.note = "the tool's text was not sent as 'input'"
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
    WRAPPED = "starts like a wrapper; confirmed at the end"
    NOT_WRAPPED = "no wrapper"


class _WrapperRemover:
    """Removes a code fence or a heredoc around a patch.

    Text that may start with a wrapper is buffered until that is decided. Text that does start with one is buffered to
    the end.
    """

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
        for _ in range(MAX_WRAPPERS):
            if match := _match_fence(inner) or _match_heredoc(inner):
                inner = match["text"]
        if inner is text or not inner.lstrip().startswith(PATCH_HEADER):
            return text
        self.note = "the patch was wrapped in a code fence or a heredoc"
        return inner

    def _take_buffer(self) -> str:
        buffered, self._buffer = "".join(self._buffer), []
        return buffered


def _decode_escapes(text: str) -> str:
    """Decode the escapes of a JSON string. Invalid escapes are kept as text."""
    return _escape_pattern.sub(_decode_escape, text) if "\\" in text else text


def _decode_escape(escape: re.Match[str]) -> str:
    text = escape[0]
    if text[1] != "u":
        return _SHORT_ESCAPES.get(text[1], text[1] if text[1] in '"\\/' else text)
    units = b"".join(int(unit, 16).to_bytes(2, "little") for unit in text.split("\\u")[1:])
    return units.decode("utf-16-le", "replace")
