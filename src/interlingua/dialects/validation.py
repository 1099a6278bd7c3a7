"""Validation of a user-defined dialect beyond its types: the markers compile, and the sample survives a round trip."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator
from contextlib import suppress
from itertools import zip_longest
from typing import Any, cast

from interlingua.core.reply import Call
from interlingua.core.tools import ToolSet
from interlingua.dialects.native_text import parse, render
from interlingua.errors import BadInput, RenderError
from interlingua.parsing.dialect import Dialect, Shape
from interlingua.parsing.markers import compile_markers

__all__ = ["check_dialect", "shape_name", "shortened_repr"]


def shape_name(shape: Shape) -> str:
    """Return the name of a shape in dialect files."""
    return shape.NAME


def check_dialect(dialect: Dialect, source_name: str) -> None:
    """Raise BadInput if the dialect does not compile, or does not parse and render its own sample unchanged."""
    not_lowercase = [glob for glob in dialect.models if glob != glob.lower()]
    if not_lowercase:
        raise BadInput(
            f"{source_name}: models: {not_lowercase[0]!r} is not in lower case", f"write {not_lowercase[0].lower()!r}"
        )
    try:
        _check_shape(dialect, source_name)
        if dialect.grammar and dialect.sample:
            _check_sample(dialect, source_name)
    except (LookupError, ValueError) as error:  # empty markers, invalid templates
        if not isinstance(error, IndexError):
            problem = f"it cannot be used: {type(error).__name__}: {error}"
            raise BadInput(
                f"{source_name}: shape: {problem}", "compare it with `interlingua dialects show NAME`"
            ) from error
        path = next(_empty_fields(dialect), "shape")
        raise BadInput(
            f"{source_name}: {path}: a marker is missing or empty", "write it, or leave the field out"
        ) from error


def _check_shape(dialect: Dialect, source_name: str) -> None:
    grammar, shape = dialect.grammar, cast(Any, dialect.shape)  # any shape is a dataclass
    compile_markers(*dialect.markers, *(grammar.inner_markers if grammar else ()))
    if grammar is None:
        return
    for field in dataclasses.fields(shape):
        if field.default is dataclasses.MISSING and getattr(shape, field.name) == "":
            path = f"shape.{shape_name(shape)}.{field.name}"
            raise BadInput(f"{source_name}: {path}: this is empty", "write the marker")
    if not (grammar.openers or grammar.first_openers(ToolSet())):
        raise BadInput(f"{source_name}: shape: no marker opens a call", 'add one, for example: open: "<tool_call>"')
    with suppress(RenderError):  # some shapes require an id or arguments
        grammar.write([Call("", "ls", "{}")], 0)


def _check_sample(dialect: Dialect, source_name: str) -> None:
    reply = parse(dialect.sample, dialect)
    if not reply.calls:
        seen = f"; it was parsed as {shortened_repr(reply.text)}" if reply.text else ""
        raise BadInput(f"{source_name}: sample: contains no call{seen}", "compare the markers with the sample")
    try:
        written = render(reply, dialect)
    except RenderError as error:
        raise BadInput(f"{source_name}: sample: its reply cannot be rendered: {error}", error.hint) from error
    if written != dialect.sample:
        offset = next(n for n, (a, b) in enumerate(zip_longest(written, dialect.sample)) if a != b)
        raise BadInput(
            f"{source_name}: sample: parsed and rendered, it differs from character {offset} on: "
            f"{shortened_repr(written[offset:])} instead of {shortened_repr(dialect.sample[offset:])}",
            "the sample must equal the rendered text: put whitespace around markers into a span's inside and after,"
            " or remove it",
        )


def _empty_fields(value: Any, path: str = "") -> Iterator[str]:
    """Yield the paths of fields that contain an empty marker or no marker."""
    for field in dataclasses.fields(value):
        inner, field_path = getattr(value, field.name), f"{path}.{field.name}".lstrip(".")
        if inner == field.default:
            continue
        if inner in ("", ()) or (isinstance(inner, tuple) and "" in inner):
            yield field_path
        for item in inner if isinstance(inner, tuple) else (inner,):
            if dataclasses.is_dataclass(item):
                name = getattr(item, "NAME", "")
                yield from _empty_fields(item, f"{field_path}.{name}" if name else field_path)


def shortened_repr(text: str) -> str:
    return repr(text if len(text) <= 40 else f"{text[:40]}…")
