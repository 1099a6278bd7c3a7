"""Interface of the grammars of arguments, and the samples that they write."""

from __future__ import annotations

from typing import Any, Protocol

from interlingua.exports.grammar import Node
from interlingua.exports.value_types import Object

__all__ = ["SAMPLE_KEY", "SAMPLE_STRING", "ArgumentsGrammar", "ParamWriter", "split_at"]

SAMPLE_KEY, SAMPLE_STRING = "qzkey", "qzvalue"
"""A key and a value that no tool has."""


class ArgumentsGrammar(Protocol):
    """Grammar of the arguments of a call in one dialect."""

    sample: str
    """Arguments, as JSON."""
    written_sample: str
    """The same arguments, as the dialect writes them inside a call."""

    def arguments(self, type_: Object) -> Node: ...


class ParamWriter(Protocol):
    """A grammar of a shape that writes params one by one."""

    def write_param(self, key: str, value: Any) -> str: ...


def split_at(sample: str, text: str) -> tuple[str, str]:
    """Return the text before and after the last occurrence of the sample."""
    before, found, after = text.rpartition(sample)
    assert found, f"{sample!r} is not in {text!r}"
    return before, after
