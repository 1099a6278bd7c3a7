r"""EBNF of a grammar, in the notation that xgrammar and llama.cpp share.

They differ in one point: xgrammar has a macro for text without certain strings. For llama.cpp, the states of a search
for these strings become rules.
"""

from __future__ import annotations

import re
from collections import deque
from collections.abc import Callable, Mapping
from typing import TypeAlias, assert_never

from interlingua.exports.grammar import (
    Chars,
    Choice,
    GrammarBuilder,
    Json,
    Literal,
    Node,
    Repeat,
    Rule,
    Sequence,
    Text,
)
from interlingua.exports.notations import json_notation

__all__ = ["EbnfWriter", "text_as_macro", "text_as_states"]

TextRules: TypeAlias = Callable[[str, Text], Mapping[str, str]]
"""Returns the rules of a text by their names. The first of them has the given name."""

_NO_NAME_CHARS = re.compile(r"[^a-z0-9]+")
_ESCAPES = {"\n": r"\n", "\r": r"\r", "\t": r"\t", "\\": r"\\"}
_LITERAL_ESCAPES = _ESCAPES | {'"': r"\""}
_SET_ESCAPES = _ESCAPES | {char: rf"\u{ord(char):04x}" for char in "]^-["}
_COUNTS = {(0, None): "*", (1, None): "+", (0, 1): "?", (1, 1): ""}


class EbnfWriter:
    """Writer for one grammar. `text_rules` writes texts without certain strings."""

    def __init__(self, rules: Mapping[str, Node], text_rules: TextRules) -> None:
        self._builder = GrammarBuilder()
        self._builder.rules.update(rules)
        self._json = json_notation(self._builder)
        self._text_rules = text_rules
        self._names: dict[Rule | Text, str] = {}
        self._pending: deque[Rule | Text] = deque()
        """Nodes that have a name, and no rule yet."""
        self._written: dict[str, str] = {}

    @property
    def notes(self) -> list[str]:
        """Requirements that the grammar does not enforce, because EBNF cannot express them."""
        return self._builder.notes

    def write(self, root: Node) -> str:
        """Write the grammar. Its first rule is `root`."""
        self._written["root"] = self._alternatives(root)
        while self._pending:
            node = self._pending.popleft()
            if isinstance(node, Rule):
                self._written[self._names[node]] = self._alternatives(self._builder.rules[node.name])
            else:
                self._written |= self._text_rules(self._names[node], node)
        return "".join(f"{name} ::= {body}\n" for name, body in self._written.items())

    def _alternatives(self, node: Node) -> str:
        """Write the right side of a rule."""
        return " | ".join(map(self._element, node.options)) if isinstance(node, Choice) else self._element(node)

    def _element(self, node: Node) -> str:
        match node:
            case Literal(text):
                return _write_literal(text)
            case Chars(ranges, is_negated):
                return f"[{'^' if is_negated else ''}{''.join(_write_range(*pair) for pair in ranges)}]"
            case Text() | Rule():
                return self._rule_name(node)
            case Json(type_):
                return self._element(self._json.value(type_))
            case Sequence(parts):
                return " ".join(map(self._element, parts)) or '""'
            case Choice():
                return f"({self._alternatives(node)})"
            case Repeat():
                return self._repeat(node)
            case _:
                assert_never(node)

    def _repeat(self, node: Repeat) -> str:
        if not node.separator:
            item = self._element(node.item)
            is_group = isinstance(node.item, Sequence | Repeat | Json)
            return (f"({item})" if is_group else item) + _write_count(node.min, node.max)
        item = self._element(self._builder.define_new("item", node.item))
        most = None if node.max is None else node.max - 1
        items = f"{item} ({_write_literal(node.separator)} {item}){_write_count(max(0, node.min - 1), most)}"
        return items if node.min else f"({items})?"

    def _rule_name(self, node: Text | Rule) -> str:
        if node not in self._names:
            stem = "text" if isinstance(node, Text) else _NO_NAME_CHARS.sub("-", node.name.lower())[:40].strip("-")
            self._names[node] = f"{stem or 'rule'}-{len(self._names)}"
            self._pending.append(node)
        return self._names[node]


def _write_count(least: int, most: int | None) -> str:
    if (least, most) in _COUNTS:
        return _COUNTS[least, most]
    return f"{{{least}}}" if least == most else f"{{{least},{'' if most is None else most}}}"


def _write_literal(text: str) -> str:
    return f'"{"".join(_escape(char, _LITERAL_ESCAPES) for char in text)}"'


def _write_range(first: str, last: str) -> str:
    return _write_set(first) if first == last else f"{_write_set(first)}-{_write_set(last)}"


def _write_set(chars: str) -> str:
    return "".join(_escape(char, _SET_ESCAPES) for char in chars)


def _escape(char: str, escapes: Mapping[str, str]) -> str:
    if char in escapes:
        return escapes[char]
    return char if char.isprintable() else rf"\U{ord(char):08x}"


# ── text without certain strings ──────────────────────────────────────────────────────────────────────────────────────


def text_as_macro(name: str, node: Text) -> Mapping[str, str]:
    """Write a text for xgrammar."""
    excluded = ", ".join(map(_write_literal, node.excluded))
    return {name: f"TagDispatch(loop_after_dispatch=false, excludes=({excluded}))"}


def text_as_states(name: str, node: Text) -> Mapping[str, str]:
    """Write a text with one rule for each state of a search for the excluded strings.

    A state is the longest end of the text so far that is the beginning of an excluded string.
    """
    states = sorted(
        {"", *(text[:n] for text in node.excluded for n in range(len(text)))}, key=lambda text: (len(text), text)
    )
    names = {state: f"{name}-{n}" if n else name for n, state in enumerate(states)}
    alphabet = sorted({char for text in node.excluded for char in text})
    return {names[state]: _write_state(state, names, alphabet, node.excluded) for state in states}


def _write_state(state: str, names: Mapping[str, str], alphabet: list[str], excluded: tuple[str, ...]) -> str:
    """Write the rule of a state: the end of the text, or a character and the state after it."""
    chars_by_state: dict[str, str] = {}
    other_chars = ""
    for char in alphabet:
        text = state + char
        if text.endswith(excluded):
            other_chars += char
        elif next_state := next((text[n:] for n in range(len(text)) if text[n:] in names), ""):
            other_chars += char
            chars_by_state[next_state] = chars_by_state.get(next_state, "") + char
    steps = [f"[{_write_set(chars)}] {names[next_state]}" for next_state, chars in chars_by_state.items()]
    return " | ".join(('""', f"[^{_write_set(other_chars)}] {names['']}", *steps))
