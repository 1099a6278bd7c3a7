"""Incremental scanner that finds the end of one JSON value in text that arrives in pieces.

The scanner builds no value and never reads old text again. It keeps only its *state* in the grammar, the states to
return to when open brackets close, and a token that was cut at the end of a piece.

    scanner = JsonScanner()
    scanner.scan('{"a": "x', 0)       # 8: all scanned, needs more
    scanner.scan('y"} and so on', 0)  # 3: scanner.ended; the rest does not belong to the value

Models write text that is not JSON. The scanner records the first error in `problem` and continues, because the end of
a value matters even if the value is invalid. It stops only at an unknown character, one that JSON never uses outside a
string, so that the caller can check for a marker there. If there is no marker, `skip_char` skips the character.

Some errors have only one possible meaning. With `corrects`, they are not a problem but a `Correction`, as long as there
is no problem before them: after one, it is not known what the model intended. `corrector.py` applies the corrections,
and `close_brackets` returns the brackets that are missing at the end.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Callable
from string import ascii_letters, digits
from typing import Literal, NamedTuple, TypeAlias, cast

__all__ = ["Correction", "JsonScanner"]

MAX_DEPTH = 1000
"""Maximum number of open brackets. Most parsers, json.loads among them, fail at about this depth."""

MAX_SCALAR_CHARS = 4096
"""Maximum length of a number. A longer one is treated as invalid and need not be buffered."""

# Tokens.
#
# Possessive quantifiers never backtrack, so a piece is scanned in linear time. But Python 3.11.0 to 3.11.4 lose
# the position when a possessive *group* fails halfway through a structure of its own. So the alternatives in
# `_BODY` are written out flat, and other groups are repeated greedily, up to a bound that keeps the state of the
# matcher small. `_BODY` lists the characters that a string may contain, not the excluded ones: nearly twice as fast.

_MatchFunction: TypeAlias = Callable[[str, int], re.Match[str]]


def _compile_match(pattern: str) -> _MatchFunction:
    """Return the match method of a pattern that matches the empty string. It never returns None: hence the cast."""
    return cast("_MatchFunction", re.compile(pattern).match)


def _scalar_pattern(max_digits: int) -> str:
    """Return the pattern of a literal or a number in which no run of digits is longer than this."""
    digit_run = rf"[0-9]{{1,{max_digits}}}+"
    return rf"(?:true|false|null|-?(?:0|(?=[1-9]){digit_run})(?:\.{digit_run})?(?:[eE][+-]?{digit_run})?)"


_WHITESPACE = r"[ \t\n\r]{0,64}+"
"""Whitespace between two tokens. A longer run is scanned separately, and counted."""
_HEX = r"[0-9A-Fa-f]"
_BODY = rf'(?:[ !#-\[\]-\U0010ffff]++|\\["\\/bfnrt]|\\u{_HEX}{_HEX}{_HEX}{_HEX})*+'
_ITEM = rf'(?:"{_BODY}"|{_scalar_pattern(MAX_SCALAR_CHARS // 4)}(?=[ \t\n\r,\]}}]))'
_MEMBER = rf'"{_BODY}"{_WHITESPACE}:{_WHITESPACE}{_ITEM}'

_match_whitespace = _compile_match(r"[ \t\n\r]*+")
_match_string_body = _compile_match(_BODY)
_match_scalar_run = _compile_match(r"[A-Za-z0-9+\-._]*+")
_match_partial_escape = _compile_match(rf"(?:\\u{_HEX}{{0,3}}|\\)?")
_match_escape = re.compile(rf'\\["\\/bfnrt]|\\u{_HEX}{{4}}').match
_is_scalar = re.compile(_scalar_pattern(MAX_SCALAR_CHARS)).fullmatch

# Token type by first character. Each punctuation character is a type of its own; all other characters are unknown.
_TOKEN_TYPES = {char: char for char in '"{}[],:'}
_TOKEN_TYPES |= dict.fromkeys(" \t\n\r", " ")
_TOKEN_TYPES |= dict.fromkeys(ascii_letters + digits + "+-._", "0")  # a scalar; it is validated at its end
_UNKNOWN_TOKEN = "?"
_STRING_TOKENS = ('"', "\\")
"""First characters of the token in which a piece was cut, if the cut is inside a string."""

# Corrections.


class Correction(NamedTuple):
    """Replacement of the characters from offset `start` to `stop`. `note` describes the error and the correction."""

    start: int
    stop: int
    replacement: str
    note: str


_CONTROL_ESCAPES = {chr(code): f"\\u{code:04x}" for code in range(0x20)}
_CONTROL_ESCAPES |= {"\b": r"\b", "\f": r"\f", "\n": r"\n", "\r": r"\r", "\t": r"\t"}
_PYTHON_LITERALS = {"True": "true", "False": "false", "None": "null"}
_PYTHON_PREFIXES = frozenset(literal[:n] for literal in _PYTHON_LITERALS for n in range(1, len(literal) + 1))
CONTROL_CHARACTER_NOTE = "raw control characters in a string: escaped"
WRONG_BRACKET_NOTE = "']' after a member of an object: replaced by '}'"
TRAILING_COMMA_NOTE = "comma before a closing bracket: removed"
PYTHON_LITERAL_NOTE = "True, False or None, as Python writes them: written as in JSON"

# Grammar.

_StateName: TypeAlias = Literal[
    "top", "first item", "item", "after item", "first key", "key", "after key", "value", "after value", "end"
]


class _State(NamedTuple):
    """State of the scanner between two tokens: the legal tokens, and the next state for each token.

    Illegal tokens have a next state, too: the one that the model most likely intended.
    """

    expected: str
    legal: str
    value: _StateName  # after a string, a scalar or a closed bracket
    comma: _StateName
    colon: _StateName


_STATES: dict[_StateName, _State] = {
    "top": _State("a value", '"0{[', "end", "top", "top"),
    "first item": _State("a value or ']'", '"0{[]', "after item", "item", "item"),
    "item": _State("a value", '"0{[', "after item", "item", "item"),
    "after item": _State("',' or ']'", ",]", "after item", "item", "item"),
    "first key": _State("a string key or '}'", '"}', "after key", "key", "value"),
    "key": _State("a string key", '"', "after key", "key", "value"),
    "after key": _State("':' after a key", ":", "after value", "key", "value"),
    "value": _State("a value", '"0{[', "after value", "key", "value"),
    "after value": _State("',' or '}'", ",}", "after key", "key", "value"),
}

_CLOSER_AFTER_COMMA: dict[_StateName, str] = {"item": "]", "key": "}"}
_CLOSER_AFTER_VALUE: dict[_StateName, str] = {"after item": "]", "after value": "}"}
_STATE_BEFORE_COMMA: dict[_StateName, _StateName] = {"item": "after item", "key": "after value"}

# Flat items and members that are complete and valid are scanned many at a time.
_FLAT_RUNS: dict[_StateName, tuple[_MatchFunction, _StateName]] = {
    "first item": (_compile_match(rf"(?:{_ITEM}(?:{_WHITESPACE},{_WHITESPACE}{_ITEM}){{0,255}})?"), "after item"),
    "after item": (_compile_match(rf"(?:{_WHITESPACE},{_WHITESPACE}{_ITEM}){{0,256}}"), "after item"),
    "first key": (_compile_match(rf"(?:{_MEMBER}(?:{_WHITESPACE},{_WHITESPACE}{_MEMBER}){{0,255}})?"), "after value"),
    "after value": (_compile_match(rf"(?:{_WHITESPACE},{_WHITESPACE}{_MEMBER}){{0,256}}"), "after value"),
}


class JsonScanner:
    """Incremental scanner of one JSON value."""

    __slots__ = (
        "_comma_offset",
        "_last_whitespace",
        "_max_whitespace",
        "_partial_token",
        "_piece_offset",
        "_return_states",
        "_state",
        "corrections",
        "corrects",
        "ended",
        "first_char",
        "is_settled",
        "offset",
        "problem",
        "whitespace_overflow",
    )

    def __init__(self, max_whitespace: int = sys.maxsize, *, corrects: bool = False) -> None:
        """Create a scanner.

        Args:
            max_whitespace: maximum number of whitespace characters between two tokens.
            corrects: whether errors with only one possible meaning become `corrections`.
        """
        self.first_char = ""
        """First character of the value; empty before it arrives."""
        self.offset = 0
        """Number of characters scanned so far."""
        self.ended = False
        """True if the value is complete: no further text belongs to it."""
        self.problem: str | None = None
        """Description of the first syntax error, or None."""
        self.whitespace_overflow: int | None = None
        """Offset at which the whitespace between two tokens exceeded the maximum, or None."""
        self.corrections: list[Correction] = []
        """The corrections so far, in the order of the text. The caller that applies them removes them."""
        self.is_settled = True
        """False if there may be corrections, or text at the end that may have to be corrected. The caller resets it."""
        self.corrects = corrects
        """True if errors with only one possible meaning become `corrections`."""
        self._comma_offset = 0  # offset of the last comma that a closing bracket may follow
        self._max_whitespace = max_whitespace
        self._last_whitespace = (0, 0)  # start and end offset of the last whitespace
        self._state: _StateName = "top"
        self._return_states: list[_StateName] = []  # for each open bracket, the state after it closes
        # The token in which the last piece was cut. '"' represents a string so far, and a partial escape a string
        # that was cut inside the escape. A scalar is kept completely, because it is validated only at its end.
        self._partial_token = ""
        self._piece_offset = 0  # offset of the current piece's first character

    @property
    def in_string(self) -> bool:
        """True if the text so far ends inside a string."""
        return self._partial_token[:1] in _STRING_TOKENS

    @property
    def lacks_only_brace(self) -> bool:
        """True if the value is an object whose members are all complete, so that only its closing brace is missing.

        A number or literal at the end of the text may continue, so it is not complete.
        """
        is_between_members = self._state in ("first key", "after value") and not self._partial_token
        return is_between_members and len(self._return_states) == 1 and self.problem is None

    @property
    def undecided_offset(self) -> int | None:
        """The offset of the text at the end that is corrected or not, as the next character shows; None if there is
        none: a comma and the whitespace after it, or the beginning of `True`, `False` or `None`."""
        if not self.corrects or self.problem is not None:
            return None
        if self._partial_token:
            return self.offset - len(self._partial_token) if self._partial_token in _PYTHON_PREFIXES else None
        return self._comma_offset if self._state in _CLOSER_AFTER_COMMA else None

    def scan(self, text: str, pos: int) -> int:
        """Scan from text[pos:] and return the position where the scan stopped.

        That is the end of the text, the end of the value (see `ended`), or an unknown character.
        """
        end = pos
        if self._partial_token == '"':  # fast path: nearly always taken while a long argument streams in
            end = _match_string_body(text, pos).end()
            if end == len(text):
                self.offset += end - pos
                return end
        self._piece_offset = self.offset - pos
        if self._partial_token:
            end = self._resume_token(text, end)
        if not self._partial_token:
            end = self._scan_tokens(text, end)
        self.offset = self._piece_offset + end
        self.ended = self._state == "end"
        if self._state in _CLOSER_AFTER_COMMA and not self._partial_token:
            self.is_settled = False
        return end

    def skip_string_text(self, text: str) -> bool:
        """Advance past a text that is completely inside the current string. Return False, and change nothing, if it
        may end the string or need a correction."""
        partial = self._partial_token
        if not self.is_settled or partial[:1] not in _STRING_TOKENS:
            return False
        rest = text if partial == '"' else partial + text  # the string from its last character, or escape, on
        end = _match_string_body(rest, 0).end()
        if end < len(rest) and _match_partial_escape(rest, end).end() < len(rest):
            return False
        self._partial_token = rest[end:] or '"'
        self.offset += len(text)
        return True

    def skip_string_texts(self, texts: list[str], joined: str) -> int:
        """Advance past the texts that are completely inside the current string, from the first one on.

        Args:
            texts: The texts.
            joined: All of them as one.

        Returns: how many of them were skipped.
        """
        if self.skip_string_text(joined):
            return len(texts)
        count = 0
        while count < len(texts) - 1 and self.skip_string_text(texts[count]):
            count += 1
        return count

    def scan_all(self, text: str, pos: int = 0) -> int:
        """Scan text[pos:], in which no marker has to be found, past unknown characters. Return where it stopped: at the
        end of the value or of the text."""
        pos = self.scan(text, pos)
        while pos < len(text) and not self.ended:
            pos = self.scan(text, self.skip_char(text, pos))
        return pos

    def skip_char(self, text: str, pos: int) -> int:
        """Skip the unknown character at which `scan` stopped, and return the next position."""
        self._piece_offset = self.offset - pos
        self._note_unexpected(_STATES[self._state].expected, text[pos], pos)
        self.offset += 1
        return pos + 1

    def finish(self) -> None:
        """End the text: anything still open is a problem, but a number or literal is complete only now."""
        self._piece_offset = self.offset
        if self._partial_token and self._partial_token[0] not in '"\\':
            self._end_scalar(self._partial_token, 0)
        if self._partial_token:
            self._note_problem("ended inside a string", 0)
        elif self._return_states:
            brackets = "1 bracket" if len(self._return_states) == 1 else f"{len(self._return_states)} brackets"
            self._note_problem(f"ended with {brackets} open", 0)
        elif not self.ended and self.problem is None:
            self.problem = "empty"

    def close_brackets(self) -> str:
        """End the text and the value, if only closing brackets are missing, and return these brackets.

        A comma at the end of the text becomes a correction. Returns "" if the value before the brackets is not
        complete, or if there is a problem.
        """
        if not self.corrects or self.in_string:
            return ""
        self._piece_offset = self.offset
        if self._partial_token:
            self._end_scalar(self._partial_token, 0)
        elif self._correct_trailing_comma(_CLOSER_AFTER_COMMA.get(self._state, "")):
            self._state = _STATE_BEFORE_COMMA[self._state]
        if self.problem is not None or self._state not in _CLOSER_AFTER_VALUE:
            return ""
        brackets = ""
        while self._state != "end":
            brackets += _CLOSER_AFTER_VALUE[self._state]
            self._state = self._return_states.pop()
        self.ended = True
        return brackets

    def _scan_tokens(self, text: str, pos: int) -> int:
        """Continue between two tokens."""
        while pos < len(text) and self._state != "end":
            char = text[pos]
            token_type = _TOKEN_TYPES.get(char, _UNKNOWN_TOKEN)
            if token_type == " ":
                pos = self._count_whitespace(pos, _match_whitespace(text, pos).end())
                continue
            state = _STATES[self._state]
            if token_type not in state.legal:
                if token_type == _UNKNOWN_TOKEN or self._state == "top":
                    break
                if not (self._correct_trailing_comma(char) or self._correct_wrong_bracket(char, pos)):
                    self._note_unexpected(state.expected, char, pos)
            elif token_type in '",0' and self._state in _FLAT_RUNS:
                match_run, next_state = _FLAT_RUNS[self._state]
                stop = match_run(text, pos).end()
                if stop > pos:
                    pos, self._state = stop, next_state
                    continue
            self.first_char = self.first_char or char
            if token_type == '"':
                self._partial_token = char
                pos = self._scan_string(text, pos + 1)
            elif token_type == "0":
                pos = self._scan_scalar(text, pos)
            else:
                self._scan_punctuation(char, state, pos)
                pos += 1
        return pos

    def _count_whitespace(self, pos: int, stop: int) -> int:
        start, end = self._last_whitespace
        if self._piece_offset + pos != end or not end:
            start = self._piece_offset + pos
        self._last_whitespace = (start, self._piece_offset + stop)
        if self._last_whitespace[1] - start > self._max_whitespace and self.whitespace_overflow is None:
            self.whitespace_overflow = start + self._max_whitespace
        return stop

    def _scan_punctuation(self, char: str, state: _State, pos: int) -> None:
        if char == ",":
            self._state = state.comma
            self._comma_offset = self._piece_offset + pos
        elif char == ":":
            self._state = state.colon
        elif char in "]}":
            self._state = self._return_states.pop()
        else:
            self._return_states.append(state.value)
            self._state = "first key" if char == "{" else "first item"
            if len(self._return_states) > MAX_DEPTH:
                self._note_problem(f"more than {MAX_DEPTH} brackets open", pos)

    def _resume_token(self, text: str, pos: int) -> int:
        """Continue inside the token in which the last piece was cut."""
        if self._partial_token[0] == "\\":
            pos = self._scan_escape(text, pos)
        return self._scan_string(text, pos) if self._partial_token[0] in '"\\' else self._scan_scalar(text, pos)

    def _scan_string(self, text: str, pos: int) -> int:
        while (pos := _match_string_body(text, pos).end()) < len(text):
            char = text[pos]
            pos += 1
            if char == '"':
                self._partial_token = ""
                self._state = _STATES[self._state].value
                return pos
            if char == "\\":
                self._partial_token = char
                pos = self._scan_escape(text, pos)
            elif not self._correct(pos - 1, pos, _CONTROL_ESCAPES.get(char, char), CONTROL_CHARACTER_NOTE):
                self._note_problem(f"raw control character {char!r} in a string", pos - 1)
        return pos

    def _scan_escape(self, text: str, pos: int) -> int:
        """Continue inside a partial escape. Consume all of it, or only the backslash if the escape is invalid."""
        prefix_length = len(self._partial_token)
        escape = self._partial_token + text[pos : pos + 6 - prefix_length]
        match = _match_escape(escape)
        valid_length = _match_partial_escape(escape, 0).end()
        if match is None and valid_length == len(escape):
            self._partial_token = escape
            return len(text)
        self._partial_token = '"'
        if match is None:
            expected = "an escape after '\\'" if valid_length == 1 else "4 hex digits after '\\u'"
            self._note_unexpected(expected, escape[valid_length], pos - prefix_length + valid_length)
            return pos
        return pos - prefix_length + match.end()

    def _scan_scalar(self, text: str, pos: int) -> int:
        stop = _match_scalar_run(text, pos).end()
        scalar = self._partial_token + text[pos : min(stop, pos + MAX_SCALAR_CHARS + 1)]
        if len(scalar) > MAX_SCALAR_CHARS:
            self._note_problem(
                f"a number or literal longer than {MAX_SCALAR_CHARS} characters", pos - len(self._partial_token)
            )
            scalar = scalar[: MAX_SCALAR_CHARS + 1]
        if stop == len(text):
            self._partial_token = scalar
            if scalar in _PYTHON_PREFIXES:
                self.is_settled = False
        else:
            self._end_scalar(scalar, stop)
        return stop

    def _end_scalar(self, scalar: str, pos: int) -> None:
        if not _is_scalar(scalar) and not (
            scalar in _PYTHON_LITERALS
            and self._correct(pos - len(scalar), pos, _PYTHON_LITERALS[scalar], PYTHON_LITERAL_NOTE)
        ):
            self._note_unexpected("a value", scalar[:40], pos - len(scalar))
        self._partial_token = ""
        self._state = _STATES[self._state].value
        self.ended = self._state == "end"

    def _correct_trailing_comma(self, char: str) -> bool:
        """Remove the last comma, if this is the closing bracket of the array or object that ends with it."""
        if _CLOSER_AFTER_COMMA.get(self._state) != char:
            return False
        start = self._comma_offset - self._piece_offset
        return self._correct(start, start + 1, "", TRAILING_COMMA_NOTE)

    def _correct_wrong_bracket(self, char: str, pos: int) -> bool:
        """Replace the closing bracket of an array that can only end an object: no array is open.

        A model that forgets the closing brace of the arguments of a call in an array writes it.
        """
        if char != "]" or self._state != "after value" or "after item" in self._return_states:
            return False
        return self._correct(pos, pos + 1, "}", WRONG_BRACKET_NOTE)

    def _correct(self, start: int, stop: int, replacement: str, note: str) -> bool:
        """Add a correction of text[start:stop]. Return False if nothing is corrected."""
        if not self.corrects or self.problem is not None:
            return False
        offset = self._piece_offset
        self.corrections.append(Correction(offset + start, offset + stop, replacement, note))
        self.is_settled = False
        return True

    def _note_unexpected(self, expected: str, actual: str, pos: int) -> None:
        self._note_problem(f"expected {expected}, found {actual!r}", pos)

    def _note_problem(self, problem: str, pos: int) -> None:
        if self.problem is None:
            self.problem = f"{problem} at character {self._piece_offset + pos}"
