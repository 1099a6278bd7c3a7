"""Params that are elements: `tagged_params`, with raw text, nested elements or typed elements as values."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from typing import Any, Literal, TypeAlias, assert_never

from interlingua.common.jsontext.codec import write_json
from interlingua.errors import NotExpressible
from interlingua.exports.arguments.base import SAMPLE_KEY, SAMPLE_STRING, ParamWriter, note_free_text, split_at
from interlingua.exports.grammar import (
    EMPTY,
    GrammarBuilder,
    Json,
    Node,
    Repeat,
    Text,
    choice,
    literal,
    optional,
    replace_in_literals,
    sequence,
    text_without,
)
from interlingua.exports.notations import KEY, note_other_keys
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
    ValueType,
    alternatives,
    union,
)
from interlingua.parsing.shapes.tagged_params.grammar import TaggedParams

__all__ = ["ElementArguments"]

Kind: TypeAlias = Literal["string", "number", "boolean", "null", "object", "array"]
WriteElement: TypeAlias = Callable[[Any], str]
"""Writes an element with this value."""

SAMPLES: dict[Kind, Any] = {
    "string": SAMPLE_STRING,
    "number": 7700077,
    "boolean": True,
    "null": None,
    "object": {},
    "array": [],
}
ITEM, UNDECLARED = "[]", "*"
"""Names of elements that are items of arrays, and of those whose key the schema does not declare."""
QUOTED_CHARS = ("<", "&", "\n")
"""Characters that `render` writes only inside quotes, if the dialect has them."""


class ElementArguments:
    def __init__(
        self, shape: TaggedParams, writer: ParamWriter, special_tokens: tuple[str, ...], builder: GrammarBuilder
    ) -> None:
        self._shape = shape
        self._writer = writer
        self._builder = builder
        self._has_elements_in_values = shape.nested or shape.nested_types is not None
        markers = (*shape.param.close, *shape.param.slips, *shape.param.open)
        # A special token with which a marker begins stands for all spellings of the marker.
        self._excluded = markers + tuple(
            token for token in special_tokens if any(marker.startswith(token) for marker in markers)
        )
        self.sample = json.dumps({SAMPLE_KEY: SAMPLE_STRING})
        self.written_sample = shape.param_gap + writer.write_param(SAMPLE_KEY, SAMPLE_STRING)

    def arguments(self, type_: Object) -> Node:
        def write_param(key: str) -> WriteElement:
            return partial(self._writer.write_param, key)

        return self._members(type_, literal(self._shape.param_gap), write_param)

    def _members(self, type_: Object, gap: Node, writer_of: Callable[[str], WriteElement]) -> Node:
        """Return the grammar of the members of an object. `writer_of` returns the writer of a member."""
        elements: list[Node] = []
        for member in type_.members:
            element = sequence(gap, self._element(member.key, writer_of(member.key), member.type))
            elements.append(element if member.is_required else optional(element))
        if type_.other is not None:
            if self._shape.nested:
                raise NotExpressible(
                    "an object whose keys the schema does not declare: each key is in the opening and the closing tag",
                    "declare the properties of all objects, or set additionalProperties to false",
                )
            note_other_keys(type_, self._builder)
            elements.append(Repeat(sequence(gap, self._element(UNDECLARED, writer_of(SAMPLE_KEY), type_.other))))
        return sequence(*elements)

    def _element(self, name: str, write: WriteElement, type_: ValueType) -> Node:
        """Return the grammar of one element.

        Args:
            name: The key of the value, or `ITEM` or `UNDECLARED`.
            write: Writes this element with a value.
            type_: The type of the value.
        """
        if self._has_elements_in_values and isinstance(type_, Reference | AnyValue):  # they may contain themselves
            label = type_.name if isinstance(type_, Reference) else "any"
            return self._builder.define(f"element {name} {label}", lambda: self._make_element(name, write, type_))
        return self._make_element(name, write, type_)

    def _make_element(self, name: str, write: WriteElement, type_: ValueType) -> Node:
        options: list[Node] = []
        types_by_frame: dict[tuple[str, str], list[ValueType]] = {}
        kinds = list(self._split_kinds(type_))
        self._note_strings(write, kinds)
        for kind, part in kinds:
            if isinstance(part, Constant):
                options += (literal(write(value)) for value in part.values)
            elif isinstance(part, Object | Array) and self._has_elements_in_values:
                options.append(self._nested_element(write, part))
            else:
                types_by_frame.setdefault(_frame(write, kind), []).append(part)
        options += (self._leaf_element(before, after, types) for (before, after), types in types_by_frame.items())
        element = choice(*options)
        return replace_in_literals(element, SAMPLE_KEY, KEY) if name == UNDECLARED else element

    def _note_strings(self, write: WriteElement, kinds: Sequence[tuple[Kind, ValueType]]) -> None:
        """Note what is not enforced of strings, and of values that are written like strings."""
        if any(isinstance(type_, String) for _, type_ in kinds):
            note_free_text((type_ for kind, type_ in kinds if self._is_like_string(write, kind)), self._builder)

    def _is_like_string(self, write: WriteElement, kind: Kind) -> bool:
        """Return whether only the schema tells the elements of this kind from those of strings."""
        if kind in ("object", "array") and self._has_elements_in_values:
            return self._shape.nested
        return _frame(write, kind) == _frame(write, "string")

    def _leaf_element(self, before: str, after: str, types: list[ValueType]) -> Node:
        """Return the grammar of values with this text around them. If the value may be a string, any text is one."""
        quote = self._shape.quote
        if any(isinstance(type_, String) for type_ in types):
            plain: Node = text_without((*self._excluded, *(QUOTED_CHARS if quote else ())))
            quoted: Node = Text((quote.close,)) if quote else plain
        else:
            plain = quoted = Json(union(*types))
        element = sequence(literal(before), plain, literal(after))
        if quote is None:
            return element
        return choice(element, sequence(literal(before + quote.open), quoted, literal(quote.close + after)))

    def _nested_element(self, write: WriteElement, type_: Object | Array) -> Node:
        """Return the grammar of an object or array, whose members or items are elements."""
        _, close = split_at(SAMPLE_STRING, write(SAMPLE_STRING))
        open_ = write({} if isinstance(type_, Object) else []).removesuffix(close)

        def write_inner(wrap: Callable[[Any], Any], value: Any) -> str:
            return write(wrap(value)).removeprefix(open_).removesuffix(close)

        def member_writer(key: str) -> WriteElement:
            return partial(write_inner, lambda value: {key: value})

        def item(inner: ValueType) -> Node:
            return self._element(ITEM, partial(write_inner, lambda value: [value]), inner)

        if isinstance(type_, Object):
            content = self._members(type_, EMPTY, member_writer)
        else:
            first = [item(inner) for inner in type_.first[: type_.max_items]]
            if first and self._shape.nested:
                self._builder.note("an empty item of a tuple may be read as an object")
            content = EMPTY if type_.item is None else self._repeat(item(type_.item), type_, len(first))
            for n, element in reversed(list(enumerate(first))):
                content = sequence(element, content)
                content = content if n < type_.min_items else optional(content)
        return sequence(literal(open_), content, literal(close))

    def _repeat(self, item: Node, type_: Array, items_before: int) -> Node:
        most = None if type_.max_items is None else max(0, type_.max_items - items_before)
        return Repeat(item, max(0, type_.min_items - items_before), most)

    def _split_kinds(self, type_: ValueType) -> Iterator[tuple[Kind, ValueType]]:
        """Split a type into types of one kind each. Constants are separate."""
        for inner in alternatives(type_):
            match inner:
                case AnyValue():
                    yield from (("string", String()), ("number", Number()), ("boolean", Boolean()), ("null", Null()))
                    if self._shape.nested:
                        self._builder.note("a value without a type is written without nested elements")
                    else:
                        yield from (("object", Object((), ANY_VALUE)), ("array", Array((), ANY_VALUE)))
                case String() | Constant():
                    yield "string", inner
                case Number():
                    yield "number", inner
                case Boolean():
                    yield "boolean", inner
                case Null():
                    yield "null", inner
                case Object():
                    yield "object", inner
                case Array():
                    yield "array", inner
                case _:
                    assert_never(inner)


def _frame(write: WriteElement, kind: Kind) -> tuple[str, str]:
    """Return the text of an element before and after a value of this kind."""
    sample = SAMPLES[kind]
    return split_at(sample if isinstance(sample, str) else write_json(sample), write(sample))
