"""Grammars of a call's arguments, one module for each way in which shapes write them.

The text around a value is taken from what the dialect writes for a sample, so that a grammar allows what `render`
writes.
"""

from __future__ import annotations

from interlingua.exports.arguments.base import ArgumentsGrammar
from interlingua.exports.arguments.elements import ElementArguments
from interlingua.exports.arguments.json_arguments import JsonArguments
from interlingua.exports.arguments.lines import LineArguments
from interlingua.exports.arguments.literals import LiteralArguments
from interlingua.exports.grammar import GrammarBuilder
from interlingua.parsing.dialect import Dialect
from interlingua.parsing.shapes.channels.grammar import Channels, ChannelsGrammar
from interlingua.parsing.shapes.line_params.grammar import LineParams, LineParamsGrammar
from interlingua.parsing.shapes.literals.grammar import Literals, LiteralsGrammar
from interlingua.parsing.shapes.literals.pythonic_grammar import PythonicGrammar
from interlingua.parsing.shapes.tagged_params.grammar import TaggedParams, TaggedParamsGrammar

__all__ = ["ArgumentsGrammar", "arguments_grammar"]


def arguments_grammar(dialect: Dialect, builder: GrammarBuilder) -> ArgumentsGrammar:
    """Return the grammar of the arguments that this dialect writes."""
    shape, grammar = dialect.shape, dialect.grammar
    if isinstance(shape, Channels) and isinstance(grammar, ChannelsGrammar):
        shape, grammar = shape.body, grammar.body_grammar
    if isinstance(shape, TaggedParams) and isinstance(grammar, TaggedParamsGrammar):
        return ElementArguments(shape, grammar, dialect.tokens, builder)
    if isinstance(shape, LineParams) and isinstance(grammar, LineParamsGrammar):
        return LineArguments(shape, grammar, dialect.tokens, builder)
    if isinstance(shape, Literals) and isinstance(grammar, LiteralsGrammar):
        return LiteralArguments(grammar, builder, values_are_text=shape.quoted == "any")
    if isinstance(grammar, PythonicGrammar):
        return LiteralArguments(grammar, builder)
    return JsonArguments()
