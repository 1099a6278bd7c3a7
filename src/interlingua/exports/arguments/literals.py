"""Params that are literals: `literals` and `pythonic`."""

from __future__ import annotations

import json

from interlingua.common.jsontext.codec import write_json
from interlingua.exports.arguments.base import SAMPLE_KEY, SAMPLE_STRING, note_free_text
from interlingua.exports.grammar import GrammarBuilder, Json, Node, Text, choice, literal, sequence
from interlingua.exports.notations import KEY, Item, LiteralNotation, note_other_keys, separate
from interlingua.exports.value_types import AnyValue, Constant, Object, String, ValueType, alternatives
from interlingua.parsing.shapes.literals.grammar import LiteralsGrammar
from interlingua.parsing.shapes.literals.pythonic_grammar import PythonicGrammar

__all__ = ["LiteralArguments"]


class LiteralArguments:
    """Params that are keys and literals, separated by commas.

    Args:
        grammar: The grammar of the dialect, which writes the params.
        builder: Receives the rules.
        values_are_text: True if all values are written as strings, and those of other types as JSON inside.
    """

    def __init__(
        self, grammar: LiteralsGrammar | PythonicGrammar, builder: GrammarBuilder, *, values_are_text: bool = False
    ) -> None:
        self._writer = grammar.writer
        self._builder = builder
        self._values_are_text = values_are_text
        self._notation = LiteralNotation(grammar.writer, builder, "literal")
        self._separator = grammar.write_param(SAMPLE_KEY, True).removeprefix(SAMPLE_KEY)[:1]
        self.sample = json.dumps({SAMPLE_KEY: SAMPLE_STRING})
        self.written_sample = grammar.write_param(SAMPLE_KEY, SAMPLE_STRING)

    def arguments(self, type_: Object) -> Node:
        members = self._writer.ordered_items({member.key: member for member in type_.members})
        items = [Item(self._param(literal(key), member.type), member.is_required) for key, member in members]
        note_other_keys(type_, self._builder)
        other = None if type_.other is None else self._param(KEY, type_.other)
        return separate(items, other, self._notation.comma, self._builder, "params")

    def _param(self, key: Node, type_: ValueType) -> Node:
        value = self._quoted_value(type_) if self._values_are_text else self._notation.inner_value(type_)
        return sequence(key, literal(self._separator), value)

    def _quoted_value(self, type_: ValueType) -> Node:
        quote = literal(self._writer.quote)
        types = tuple(alternatives(type_))
        if any(isinstance(inner, String | AnyValue) for inner in types):
            note_free_text(types, self._builder)
            content: Node = Text((self._writer.quote,))
        else:
            content = choice(*map(self._text_value, types))
        return sequence(quote, content, quote)

    def _text_value(self, type_: ValueType) -> Node:
        if not isinstance(type_, Constant):
            return Json(type_)
        return choice(*(literal(value if isinstance(value, str) else write_json(value)) for value in type_.values))
