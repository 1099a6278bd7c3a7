"""Reader for EBNF grammars as xgrammar writes them."""

from __future__ import annotations

import re
from collections.abc import Iterator

from interlingua.errors import BadInput
from interlingua.exports.grammar import (
    EMPTY,
    Chars,
    Grammar,
    Node,
    Repeat,
    Rule,
    Text,
    choice,
    literal,
    sequence,
)

__all__ = ["read_ebnf"]

_TOKEN = re.compile(
    r"""\s*(?:\#[^\n]*\s*)*                       # white space and comments
    (?:(?P<head>[A-Za-z_][\w.-]*\s*::=)
    |(?P<macro>TagDispatch\s*\(\s*loop_after_dispatch=false,\s*excludes=\((?P<excluded>(?:[^()"]|"(?:\\.|[^"\\])*")*)\)\s*\))
    |(?P<name>[A-Za-z_][\w.-]*)
    |(?P<literal>"(?:\\.|[^"\\])*")
    |(?P<set>\[(?:\\.|[^\]\\])*\])
    |(?P<count>[*+?]|\{\d+(?:,\d*)?\})
    |(?P<sign>[()|])
    |(?P<end>\Z))""",
    re.X | re.S,
)
_LITERAL = re.compile(r'"((?:\\.|[^"\\])*)"', re.S)
_CHAR = re.compile(r"\\u([0-9a-fA-F]{4})|\\U([0-9a-fA-F]{8})|\\(.)|(.)", re.S)
_ESCAPES = {"n": "\n", "r": "\r", "t": "\t"}
_COUNTS: dict[str, tuple[int, int | None]] = {"*": (0, None), "+": (1, None), "?": (0, 1)}


def read_ebnf(text: str) -> Grammar:
    """Read a grammar whose first rule is `root`.

    Raises:
        BadInput: The text is not EBNF, or uses a part of it that this reader does not know.
    """
    reader = _EbnfReader(text)
    rules = reader.read_rules()
    unknown = sorted(reader.names - rules.keys())
    if "root" not in rules or unknown:
        raise BadInput(f"the grammar has no rule {(unknown or ['root'])[0]!r}", "define all rules, and one named root")
    return Grammar(rules["root"], rules)


class _EbnfReader:
    def __init__(self, text: str) -> None:
        self.names: set[str] = set()
        """The rules that others refer to."""
        self._tokens = _split_tokens(text)
        self._kind, self._token = next(self._tokens)

    def _advance(self) -> str:
        token = self._token
        self._kind, self._token = next(self._tokens, ("end", ""))
        return token

    def read_rules(self) -> dict[str, Node]:
        rules: dict[str, Node] = {}
        while self._kind == "head":
            name = self._advance().removesuffix("::=").strip()
            rules[name] = self._read_alternatives()
        if self._kind != "end":
            raise BadInput(f"{self._token!r} is not valid in a grammar here", "write: name ::= alternatives")
        return rules

    def _read_alternatives(self) -> Node:
        options = [self._read_sequence()]
        while self._token == "|" and self._kind == "sign":
            self._advance()
            options.append(self._read_sequence())
        return choice(*options)

    def _read_sequence(self) -> Node:
        parts: list[Node] = []
        while self._kind in ("macro", "name", "literal", "set") or (self._kind == "sign" and self._token == "("):
            parts.append(self._read_item())
            while self._kind == "count":
                parts[-1] = Repeat(parts[-1], *_read_count(self._advance()))
        return sequence(*parts)

    def _read_item(self) -> Node:
        kind, token = self._kind, self._advance()
        if kind == "name":
            self.names.add(token)
            return Rule(token)
        if kind == "literal":
            return literal(_unescape(token[1:-1]))
        if kind == "set":
            return _read_set(token[1:-1])
        if kind == "macro":
            return Text(tuple(map(_unescape, _LITERAL.findall(token))))
        group = self._read_alternatives()
        if self._token != ")":
            raise BadInput("a group in the grammar is not closed", "add the closing bracket")
        self._advance()
        return group


def _split_tokens(text: str) -> Iterator[tuple[str, str]]:
    position = 0
    while True:
        match = _TOKEN.match(text, position)
        if match is None:
            raise BadInput(f"not a grammar: {text[position : position + 40]!r}", "compare it with the notation of GBNF")
        kind = match.lastgroup or "end"
        if kind == "excluded":
            kind = "macro"
        yield kind, match["excluded"] if kind == "macro" else match[kind]
        position = match.end()
        if kind == "end":
            return


def _read_count(token: str) -> tuple[int, int | None]:
    if token in _COUNTS:
        return _COUNTS[token]
    least, comma, most = token[1:-1].partition(",")
    return int(least), (int(most) if most else None) if comma else int(least)


def _read_set(text: str) -> Node:
    is_negated = text.startswith("^")
    chars = [(_unescape(match[0]), match[0]) for match in _CHAR.finditer(text.removeprefix("^"))]
    ranges: list[tuple[str, str]] = []
    position = 0
    while position < len(chars):
        first = chars[position][0]
        if [raw for _, raw in chars[position + 1 : position + 2]] == ["-"] and position + 2 < len(chars):
            ranges.append((first, chars[position + 2][0]))
            position += 3
        else:
            ranges.append((first, first))
            position += 1
    return Chars(tuple(ranges), is_negated) if ranges or is_negated else EMPTY


def _unescape(text: str) -> str:
    def replace(match: re.Match[str]) -> str:
        code = match[1] or match[2]
        return chr(int(code, 16)) if code else _ESCAPES.get(match[3], match[3]) if match[3] else match[4]

    return _CHAR.sub(replace, text)
