"""GBNF: the grammars of llama.cpp."""

from __future__ import annotations

from typing import Any

from interlingua.exports.formats.ebnf import EbnfWriter, text_as_states
from interlingua.exports.grammar import Grammar
from interlingua.exports.reply_grammar import ReplyGrammar

__all__ = ["write_gbnf", "write_lazy_gbnf"]

WORD_TRIGGER = 1
"""The type of a trigger that is a text, in requests to llama.cpp's server."""


def write_gbnf(reply: ReplyGrammar, notes: list[str]) -> str:
    """Write the grammar of the whole reply, for `grammar` in requests and for `--grammar-file`."""
    return _write(reply.grammar, notes)


def write_lazy_gbnf(reply: ReplyGrammar, notes: list[str]) -> dict[str, Any]:
    """Return the fields of a request to llama.cpp's server, which applies the grammar only from a trigger on.

    Until then, the model writes without the cost of a grammar. If a call is required, there is no trigger, and the
    grammar applies from the beginning.
    """
    if reply.triggered is None:
        return {"grammar": _write(reply.grammar, notes), "grammar_lazy": False}
    return {
        "grammar": _write(reply.triggered, notes),
        "grammar_lazy": True,
        "grammar_triggers": [{"type": WORD_TRIGGER, "value": trigger} for trigger in reply.triggers],
        "preserved_tokens": list(reply.triggers),
    }


def _write(grammar: Grammar, notes: list[str]) -> str:
    writer = EbnfWriter(grammar.rules, text_as_states)
    written = writer.write(grammar.root)
    notes += writer.notes
    return written
