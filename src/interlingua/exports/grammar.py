"""Grammar: the texts that a model may write, as a tree. Each export format writes the tree in its own notation.

    sequence(Literal("<tool_call>"), Json(arguments), Literal("</tool_call>"))

The nodes have the meaning of regular expressions: a text is accepted if any way to match it exists. Only a `Rule` makes
the grammar recursive.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from itertools import chain
from typing import TypeAlias

from interlingua.exports.value_types import ValueType

__all__ = [
    "EMPTY",
    "NOTHING",
    "Chars",
    "Choice",
    "Grammar",
    "GrammarBuilder",
    "Json",
    "Literal",
    "Node",
    "Repeat",
    "Rule",
    "Sequence",
    "Text",
    "choice",
    "literal",
    "optional",
    "rename_rules",
    "replace_in_literals",
    "sequence",
    "text_without",
]


@dataclass(frozen=True)
class Literal:
    """Exactly this text."""

    text: str


@dataclass(frozen=True)
class Text:
    """Any text, also none, in which none of these strings occurs."""

    excluded: tuple[str, ...]


@dataclass(frozen=True)
class Chars:
    """One character of a set: each range has a first and a last character."""

    ranges: tuple[tuple[str, str], ...]
    is_negated: bool = False
    """True if the set consists of all other characters."""

    def __contains__(self, char: str) -> bool:
        return any(first <= char <= last for first, last in self.ranges) is not self.is_negated


@dataclass(frozen=True)
class Json:
    """JSON text of a value of this type, with any white space between its tokens."""

    type: ValueType


@dataclass(frozen=True)
class Sequence:
    """All parts, one after another."""

    parts: tuple[Node, ...]


@dataclass(frozen=True)
class Choice:
    """One of the options. Without options, no text is accepted."""

    options: tuple[Node, ...]


@dataclass(frozen=True)
class Repeat:
    """The item, `min` to `max` times. None: any number of times."""

    item: Node
    min: int = 0
    max: int | None = None
    separator: str = ""
    """Text between two items."""


@dataclass(frozen=True)
class Rule:
    """The node that the grammar has under this name."""

    name: str


Node: TypeAlias = Literal | Text | Chars | Json | Sequence | Choice | Repeat | Rule

EMPTY = Sequence(())
"""The empty text."""
NOTHING = Choice(())
"""No text at all."""


@dataclass(frozen=True)
class Grammar:
    """A tree, and the nodes of its rules by their names."""

    root: Node
    rules: Mapping[str, Node] = field(default_factory=dict)


class GrammarBuilder:
    """The rules of a grammar that is being made, and notes on what it does not enforce."""

    def __init__(self) -> None:
        self.rules: dict[str, Node] = {}
        self.notes: list[str] = []

    def define(self, name: str, make: Callable[[], Node]) -> Rule:
        """Return the rule with this name. `make` is called once, and may refer to the rule itself."""
        if name not in self.rules:
            self.rules[name] = NOTHING  # until it is made
            self.rules[name] = make()
        return Rule(name)

    def define_new(self, name: str, node: Node) -> Rule:
        """Return a new rule, whose name begins with this one."""
        return self.define(f"{name} {len(self.rules)}", lambda: node)

    def note(self, note: str) -> None:
        if note not in self.notes:
            self.notes.append(note)

    def build(self, root: Node) -> Grammar:
        return Grammar(root, self.rules)


def literal(text: str) -> Node:
    return Literal(text) if text else EMPTY


def text_without(strings: Iterable[str]) -> Text:
    """Return any text without these strings. A string that contains another one of them is left out."""
    unique = dict.fromkeys(strings)
    return Text(tuple(text for text in unique if not any(other in text and other != text for other in unique)))


def sequence(*parts: Node) -> Node:
    """Join parts. Literals next to each other become one."""
    joined: list[Node] = []
    for part in _flatten(parts):
        if isinstance(part, Literal) and joined and isinstance(joined[-1], Literal):
            joined[-1] = Literal(joined[-1].text + part.text)
        else:
            joined.append(part)
    if NOTHING in joined:
        return NOTHING
    return joined[0] if len(joined) == 1 else Sequence(tuple(joined))


def _flatten(parts: tuple[Node, ...]) -> Iterator[Node]:
    for part in parts:
        if isinstance(part, Sequence):
            yield from part.parts
        else:
            yield part


def choice(*options: Node) -> Node:
    """Join alternatives. Equal ones become one, and with the empty text as an alternative the others are optional."""
    inner = (option.options if isinstance(option, Choice) else (option,) for option in options)
    flat = tuple(dict.fromkeys(chain.from_iterable(inner)))
    if EMPTY in flat and len(flat) > 1:
        return optional(choice(*(option for option in flat if option != EMPTY)))
    return flat[0] if len(flat) == 1 else Choice(flat)


def optional(node: Node) -> Node:
    return Repeat(node, 0, 1)


def transform(node: Node, change: Callable[[Node], Node]) -> Node:
    """Return the tree with each node that has no others below it changed."""
    match node:
        case Sequence(parts):
            return sequence(*(transform(part, change) for part in parts))
        case Choice(options):
            return choice(*(transform(option, change) for option in options))
        case Repeat(item):
            return replace(node, item=transform(item, change))
        case _:
            return change(node)


def replace_in_literals(node: Node, text: str, replacement: Node) -> Node:
    """Return the tree with another node in place of a text that occurs in its literals."""

    def replace_in(leaf: Node) -> Node:
        first, *others = leaf.text.split(text) if isinstance(leaf, Literal) else [""]
        parts = (part for other in others for part in (replacement, literal(other)))
        return sequence(literal(first), *parts) if others else leaf

    return transform(node, replace_in)


def rename_rules(node: Node, prefix: str) -> Node:
    """Return the tree with a prefix before the names of all rules."""
    return transform(node, lambda leaf: Rule(prefix + leaf.name) if isinstance(leaf, Rule) else leaf)
