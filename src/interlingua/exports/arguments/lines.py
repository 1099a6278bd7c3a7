"""Params on lines: `line_params`."""

from __future__ import annotations

import json

from interlingua.common.jsontext.codec import write_json
from interlingua.errors import NotExpressible
from interlingua.exports.arguments.base import SAMPLE_KEY, SAMPLE_STRING, ParamWriter, note_free_text
from interlingua.exports.grammar import (
    GrammarBuilder,
    Json,
    Node,
    Repeat,
    Text,
    choice,
    literal,
    optional,
    sequence,
)
from interlingua.exports.value_types import AnyValue, Constant, Object, String, ValueType, alternatives
from interlingua.parsing.shapes.line_params.grammar import LineParams
from interlingua.parsing.shapes.line_params.lines import NEWLINE

__all__ = ["LineArguments"]


class LineArguments:
    def __init__(
        self, shape: LineParams, writer: ParamWriter, special_tokens: tuple[str, ...], builder: GrammarBuilder
    ) -> None:
        self._shape = shape
        self._writer = writer
        self._builder = builder
        self._line = Text((NEWLINE, "\r", *special_tokens))
        self.sample = json.dumps({SAMPLE_KEY: SAMPLE_STRING})
        self.written_sample = NEWLINE + writer.write_param(SAMPLE_KEY, SAMPLE_STRING)

    def arguments(self, type_: Object) -> Node:
        if type_.other is not None:
            raise NotExpressible(
                "params that the schema does not declare: a line of text could be one",
                "declare the properties of the tool, or set additionalProperties to false",
            )
        params = (
            (member, sequence(literal(NEWLINE), self._param(member.key, member.type))) for member in type_.members
        )
        return sequence(*(param if member.is_required else optional(param) for member, param in params))

    def _param(self, key: str, type_: ValueType) -> Node:
        types = tuple(alternatives(type_))
        if any(isinstance(inner, String | AnyValue) for inner in types):
            note_free_text(types, self._builder)
            return self._string_param(key)
        return choice(*(self._value_param(key, inner) for inner in types))

    def _value_param(self, key: str, type_: ValueType) -> Node:
        if isinstance(type_, Constant):
            return choice(*(literal(self._writer.write_param(key, value)) for value in type_.values))
        return sequence(literal(self._writer.write_param(key, 0).removesuffix(write_json(0))), Json(type_))

    def _string_param(self, key: str) -> Node:
        """Return the grammar of a text: one line, and further lines if they are indented."""
        head = literal(self._writer.write_param(key, ""))
        if not self._shape.indent:
            self._builder.note(f"strings have one line, because {self._shape.NAME} has no indent here")
            return sequence(head, self._line)
        more_lines = sequence(literal(NEWLINE + self._shape.indent), self._line)
        if not self._shape.block:
            return sequence(head, self._line, Repeat(more_lines))
        block_head = literal(self._writer.write_param(key, NEWLINE).partition(NEWLINE)[0])
        return choice(sequence(head, self._line), sequence(block_head, Repeat(more_lines, 1)))
