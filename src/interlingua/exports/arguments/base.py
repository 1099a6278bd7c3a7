"""Interface of the grammars of arguments, and the samples that they write."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, Protocol

from interlingua.exports.grammar import GrammarBuilder, Node
from interlingua.exports.value_types import (
    ANY_VALUE,
    Array,
    Boolean,
    Constant,
    Null,
    Number,
    Object,
    String,
    ValueType,
)

__all__ = ["SAMPLE_KEY", "SAMPLE_STRING", "ArgumentsGrammar", "ParamWriter", "note_free_text", "split_at"]

SAMPLE_KEY, SAMPLE_STRING = "qzkey", "qzvalue"
"""A key and a value that no tool has."""
_UNLIMITED = (
    *(ANY_VALUE, Null(), Boolean(), String(), Number(), Number(is_integer=True)),
    *(Object((), ANY_VALUE), Array((), ANY_VALUE)),
)
"""Types whose values all fit."""


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


def note_free_text(types: Iterable[ValueType], builder: GrammarBuilder) -> None:
    """Note what is not enforced of these types because a value of them may be any text."""
    limited = [type_ for type_ in types if type_ not in _UNLIMITED and not _lists_strings(type_)]
    if any(isinstance(type_, String) for type_ in limited):
        builder.note("the length of strings is not enforced")
    if not all(isinstance(type_, String) for type_ in limited):
        builder.note("a string that looks like a value of another allowed type is read as one, whatever its limits")


def _lists_strings(type_: ValueType) -> bool:
    return isinstance(type_, Constant) and all(isinstance(value, str) for value in type_.values)


def split_at(sample: str, text: str) -> tuple[str, str]:
    """Return the text before and after the last occurrence of the sample."""
    before, found, after = text.rpartition(sample)
    assert found, f"{sample!r} is not in {text!r}"
    return before, after
