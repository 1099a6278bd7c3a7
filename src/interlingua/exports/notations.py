"""Notations of values: the grammar of a value that is written with brackets, quotes and commas, as JSON or Python.

A writer of the dialect writes all constants and keys, so that a grammar contains what `render` writes.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple, assert_never

from interlingua.exports.grammar import (
    EMPTY,
    Chars,
    GrammarBuilder,
    Literal,
    Node,
    Repeat,
    Text,
    choice,
    literal,
    optional,
    sequence,
)
from interlingua.exports.value_types import (
    ANY_VALUE,
    AnyValue,
    Array,
    Boolean,
    Constant,
    Null,
    Number,
    Object,
    Reference,
    String,
    Union,
    ValueType,
    union,
)
from interlingua.parsing.shapes.literals.writer import LiteralWriter

__all__ = ["DIGITS", "KEY", "Item", "LiteralNotation", "json_notation", "note_other_keys", "separate"]

MAX_REPEATS = 512
"""Largest number of repetitions that a grammar counts. Engines compile a state for each of them."""
MAX_JSON_SPACES = 32
"""Maximum white space between two tokens of JSON. Models that write it without end never come to the next token."""

DIGITS = Chars((("0", "9"),))
HEX = Chars((("0", "9"), ("a", "f"), ("A", "F")))
KEY = Repeat(Chars((("a", "z"), ("A", "Z"), ("0", "9"), ("_", "_"), (".", "."), ("-", "-"))), 1, 64)
"""A key that is not declared."""
INTEGER = choice(Literal("0"), sequence(Chars((("1", "9"),)), Repeat(DIGITS)))
FRACTION = sequence(Literal("."), Repeat(DIGITS, 1))
EXPONENT = sequence(Chars((("e", "e"), ("E", "E"))), optional(Chars((("+", "+"), ("-", "-")))), Repeat(DIGITS, 1))
CODE_UNIT = choice(
    sequence(Chars((("0", "9"), ("a", "c"), ("A", "C"), ("e", "f"), ("E", "F"))), Repeat(HEX, 3, 3)),
    sequence(Chars((("d", "d"), ("D", "D"))), Chars((("0", "7"),)), Repeat(HEX, 2, 2)),
)
"""Hex digits of a character that is not half of a surrogate pair."""


class Item(NamedTuple):
    """A param, or a member of an object."""

    node: Node
    is_required: bool


class LiteralNotation:
    """Notation of values in brackets, quotes and commas.

    Args:
        writer: The writer of the dialect.
        builder: Receives the rules.
        name: The name of the notation, which is part of the names of its rules.
        space: What may come between two tokens. Without it, values are written exactly as the writer does.
    """

    def __init__(self, writer: LiteralWriter, builder: GrammarBuilder, name: str, space: Node = EMPTY) -> None:
        self._writer = writer
        self._builder = builder
        self._name = name
        self._space = space
        self.comma = self._separator(writer.comma)
        self._colon = self._separator(writer.colon)

    def _separator(self, text: str) -> Node:
        return literal(text) if self._space == EMPTY else sequence(self._space, literal(text.strip()), self._space)

    def value(self, type_: ValueType) -> Node:
        match type_:
            case AnyValue():
                return self._builder.define(f"{self._name} value", self._any_value)
            case Null():
                return literal(self._writer.write_value(None))
            case Boolean():
                return choice(literal(self._writer.write_value(True)), literal(self._writer.write_value(False)))
            case Number():
                return self._number(type_)
            case String():
                return self._string(type_)
            case Constant(values):
                return choice(*(literal(self._writer.write_value(value)) for value in values))
            case Array():
                return self._array(type_)
            case Object():
                return self._object(type_)
            case Union(types):
                return choice(*map(self.value, types))
            case Reference(name):
                return self._builder.define(f"{self._name} {name}", lambda: self.value(type_.type))
            case _:
                assert_never(type_)

    def inner_value(self, type_: ValueType) -> Node:
        """Return the grammar of a value inside another one, which may be written in several places."""
        node = self.value(type_)
        if not isinstance(type_, Array | Object | Union):
            return node
        # In a rule of its own. Otherwise the size of a grammar would double with each level of nested values.
        return self._builder.define_new(f"{self._name} part", node)

    def _any_value(self) -> Node:
        containers = Object((), ANY_VALUE), Array((), ANY_VALUE)
        return self.value(union(String(), Number(), Boolean(), Null(), *containers))

    def _number(self, type_: Number) -> Node:
        if type_.minimum not in (None, 0) or type_.maximum is not None:
            self._builder.note("the limits of numbers are not enforced")
        sign = EMPTY if type_.minimum is not None and type_.minimum >= 0 else optional(Literal("-"))
        return sequence(sign, INTEGER, *(() if type_.is_integer else (optional(FRACTION), optional(EXPONENT))))

    def _string(self, type_: String) -> Node:
        return self._builder.define(
            f"{self._name} string {type_.min_length} {type_.max_length}", lambda: self._make_string(type_)
        )

    def _make_string(self, type_: String) -> Node:
        quote = self._writer.quote
        if not self._writer.escapes:
            if type_ != String():
                self._builder.note("the length of strings is not enforced")
            return sequence(literal(quote), Text((quote,)), literal(quote))
        plain = Chars(((quote, quote), ("\\", "\\"), ("\0", "\x1f"), ("\x7f", "\x7f")), is_negated=True)
        escaped = Chars(tuple((char, char) for char in f"{quote}\\/bfnrt"))
        pair = sequence(
            Chars((("d", "d"), ("D", "D"))),
            Chars((("8", "9"), ("a", "b"), ("A", "B"))),
            Repeat(HEX, 2, 2),
            Literal("\\u"),
            Chars((("d", "d"), ("D", "D"))),
            Chars((("c", "f"), ("C", "F"))),
            Repeat(HEX, 2, 2),
        )
        char = choice(plain, sequence(Literal("\\"), choice(escaped, sequence(Literal("u"), choice(CODE_UNIT, pair)))))
        return sequence(literal(quote), Repeat(char, *self._limits(type_.min_length, type_.max_length)), literal(quote))

    def _limits(self, least: int, most: int | None) -> tuple[int, int | None]:
        if max(least, most or 0) > MAX_REPEATS:
            self._builder.note(f"lengths above {MAX_REPEATS} are not enforced")
        return min(least, MAX_REPEATS), most if most is None or most <= MAX_REPEATS else None

    def _array(self, type_: Array) -> Node:
        least, most = self._limits(type_.min_items, type_.max_items)
        first = type_.first[:most]
        if first:
            most_others = None if most is None else most - len(first)
            others = [] if type_.item is None else [sequence(self.comma, self.inner_value(type_.item))]
            items = sequence(*(Repeat(other, max(0, least - len(first)), most_others) for other in others))
            for n, inner in reversed(list(enumerate(first))):
                items = sequence(self.comma if n else EMPTY, self.inner_value(inner), items)
                items = items if n < least else optional(items)
        else:
            items = EMPTY if type_.item is None else self._join(self.inner_value(type_.item), least, most)
        return sequence(Literal("["), self._space, items, self._space, Literal("]"))

    def _join(self, item: Node, least: int, most: int | None) -> Node:
        """Return the item, repeated with commas."""
        if most == 0:
            return EMPTY
        others = Repeat(sequence(self.comma, item), max(0, least - 1), None if most is None else most - 1)
        items = sequence(item, others)
        return items if least else optional(items)

    def _object(self, type_: Object) -> Node:
        items = []
        for key, member in self._writer.ordered_items({member.key: member for member in type_.members}):
            value = self.inner_value(member.type)
            items.append(Item(sequence(literal(self._writer.write_key(key)), self._colon, value), member.is_required))
        note_other_keys(type_, self._builder)
        other = None if type_.other is None else sequence(self._other_key(), self._colon, self.inner_value(type_.other))
        inner = separate(items, other, self.comma, self._builder, f"{self._name} members")
        return sequence(Literal("{"), self._space, inner, self._space, Literal("}"))

    def _other_key(self) -> Node:
        return self._string(String()) if self._writer.escapes else KEY


def note_other_keys(type_: Object, builder: GrammarBuilder) -> None:
    """Note that a grammar cannot tell declared keys from others, where others are possible."""
    if type_.other is not None and any(member.type != type_.other for member in type_.members):
        builder.note("where undeclared keys are possible, a declared key may have any of their values")


def separate(items: Sequence[Item], other: Node | None, comma: Node, builder: GrammarBuilder, name: str) -> Node:
    """Return the grammar of items in this order, with commas between them. Items that are not required may be missing.

    Args:
        items: The items.
        other: Another item, which may follow these any number of times.
        comma: The separator.
        builder: Receives a rule for what may follow an item, so that the grammar has the size of the items.
        name: The beginning of the names of these rules.
    """
    others = EMPTY if other is None else Repeat(sequence(comma, other))
    following: Node = others
    """The grammar of the text after an item."""
    beginnings: list[Node] = [EMPTY if other is None else optional(sequence(other, others))]
    """The same if no item was written yet, from the last item to the first."""
    for n, item in reversed(list(enumerate(items))):
        if item.is_required:
            beginnings.clear()
        beginnings.append(sequence(item.node, following))
        next_item = sequence(comma, item.node)
        following = sequence(next_item if item.is_required else optional(next_item), following)
        if n and not items[n - 1].is_required:
            following = builder.define_new(name, following)
    return choice(*reversed(beginnings))


def json_notation(builder: GrammarBuilder) -> LiteralNotation:
    """Return the notation of JSON."""
    writer = LiteralWriter('"', ("true", "false", "null"))
    space = Repeat(Chars(((" ", " "), ("\n", "\n"), ("\t", "\t"), ("\r", "\r"))), 0, MAX_JSON_SPACES)
    return LiteralNotation(writer, builder, "json", builder.define("json space", lambda: space))
