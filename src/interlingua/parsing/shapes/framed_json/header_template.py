"""Templates for the header of a call, the text before its arguments: `{name}`, `{name}[CALL_ID]{id}`, …

The text between two fields is a marker. A template with `{n}` is different: the whole header is the id of the call, and
the id contains the name.
"""

from __future__ import annotations

import re
from typing import Protocol

from interlingua.core.reply import Call
from interlingua.core.tools import ToolSet
from interlingua.errors import RenderError, UsageError, expect_type
from interlingua.parsing.event_sink import CallHeader
from interlingua.parsing.markers import compile_markers

__all__ = ["HeaderTemplates", "compile_headers"]

HEADER_FIELDS = ("name", "id", "n")
EXAMPLE_HINT = 'for example "{name}", "{name}[CALL_ID]{id}" or "functions.{name}:{n}"'

_FIELD_PATTERN = re.compile(r"\{([^{}]*)\}")
_GENERATED_ID_PATTERN = re.compile(r"(?:call|toolu|chatcmpl-tool)[_-].*|\d*")


class HeaderTemplates(Protocol):
    """Compiled templates."""

    marks: tuple[str, ...]
    """The markers inside a header."""

    def read(self, text: str, offer: ToolSet) -> CallHeader:
        """Parse a header. Its name is None if no name is found."""
        ...

    def write(self, call: Call, number: int) -> str:
        """Write the header of a call. `number` is the number of calls before it in the reply."""
        ...

    def header_prefixes(self, offer: ToolSet) -> tuple[str, ...]:
        """Return the possible beginnings of a header for each offered tool, up to the number if it has one."""
        ...


def compile_headers(templates: tuple[str, ...]) -> HeaderTemplates:
    """Compile the templates of one shape.

    Raises:
        UsageError: A template is invalid.
    """
    expect_type(templates, tuple, "headers are a tuple of templates", EXAMPLE_HINT)
    if not templates:
        raise UsageError("the tuple of header templates is empty", EXAMPLE_HINT)
    compiled = [_HeaderTemplate(template) for template in templates]
    numbered = next((template for template in compiled if "n" in template.fields), None)
    if numbered is None:
        return _MarkedHeaders(compiled)
    if len(compiled) > 1 or numbered.fields != ("name", "n") or numbered.literals[-1]:
        raise UsageError(
            f"a header with {{n}} must be the only template, contain {{name}} and end with {{n}}: {numbered.text!r}",
            EXAMPLE_HINT,
        )
    return _NumberedHeaders(numbered)


class _HeaderTemplate:
    def __init__(self, text: str) -> None:
        expect_type(text, str, "a header's template is str", EXAMPLE_HINT)
        parts = _FIELD_PATTERN.split(text)
        self.text = text
        self.fields = tuple(parts[1::2])
        self.literals = tuple(parts[0::2])
        for field in self.fields:
            if field not in HEADER_FIELDS:
                raise UsageError(f"a header has no field {{{field}}}: {text!r}", "the fields are {name}, {id} and {n}")
        if any("{" in literal or "}" in literal for literal in self.literals):
            raise UsageError(f"unbalanced brace in a header: {text!r}", EXAMPLE_HINT)
        if self.fields.count("name") != 1 or len(set(self.fields)) < len(self.fields):
            raise UsageError(f"a header has one {{name}}, and each other field at most once: {text!r}", EXAMPLE_HINT)
        if not all(self.literals[1:-1]):
            raise UsageError(f"a header has two fields without a separator between them: {text!r}", EXAMPLE_HINT)

    def write(self, values: dict[str, str]) -> str:
        written = (literal + values[field] for literal, field in zip(self.literals, self.fields, strict=False))
        return "".join(written) + self.literals[-1]

    def read(self, text: str) -> dict[str, str] | None:
        """Parse a header with this template, ignoring whitespace around fields. Return None if it does not match."""
        values: dict[str, str] = {}
        remainder = text.strip()
        if not remainder.startswith(self.literals[0]):
            return None
        remainder = remainder[len(self.literals[0]) :]
        for field, literal in zip(self.fields, self.literals[1:], strict=True):
            value, separator, remainder = remainder.partition(literal) if literal else (remainder, "", "")
            values[field] = value.strip()
            if separator != literal or (not values[field] and field != "id"):
                return None
        return None if remainder.strip() else values


class _MarkedHeaders:
    """Headers in which markers separate name and id. The first template that matches is used."""

    def __init__(self, templates: list[_HeaderTemplate]) -> None:
        self.marks = tuple({literal: None for template in templates for literal in template.literals if literal})
        self._templates = templates
        self._markers = compile_markers(*self.marks)
        self._has_id = any("id" in template.fields for template in templates)

    def read(self, text: str, offer: ToolSet) -> CallHeader:  # noqa: ARG002 (markers delimit the name)
        for template in self._templates:
            values = template.read(text)
            if values and not any(self._markers.search(value, 0) for value in values.values()):
                return CallHeader(text.strip(), values.get("id") or None, values["name"])
        header_text = self._markers.remove_from(text).strip()
        return CallHeader(header_text, header_text or None if self._has_id else None, None)

    def write(self, call: Call, number: int) -> str:  # noqa: ARG002 (calls have no numbers here)
        for template in (template for template in self._templates if call.id or "id" not in template.fields):
            written = template.write({"name": call.name, "id": call.id})
            read_back = self.read(written, ToolSet())
            if (read_back.name, read_back.id or call.id) == (call.name, call.id):
                return written
        raise RenderError(f"a call of {call.name!r} with the id {call.id!r} cannot be written", "change one of them")

    def header_prefixes(self, offer: ToolSet) -> tuple[str, ...]:  # noqa: ARG002 (a bare name is too common a word)
        return ()


class _NumberedHeaders:
    """Headers that are the id of the call: `functions.NAME:N`, with N counting over the whole conversation.

    Models deviate from it: they omit the prefix, use underscores as separators (`functions_NAME_2`), write ids in the
    format of other vendors (`call_59ad`), or only the number. Such a header is recognisable without its opener, so the
    opener may be lost.
    """

    marks: tuple[str, ...] = ()

    def __init__(self, template: _HeaderTemplate) -> None:
        self._prefix, self._separator, _ = template.literals
        self._template = template
        self._underscored_pattern = re.compile(re.escape(self._prefix.rstrip(".")) + r"_(.+)_\d+")

    def read(self, text: str, offer: ToolSet) -> CallHeader:
        header = "".join(line.strip() for line in text.strip().splitlines())
        stem, separator, number = header.rpartition(self._separator)
        is_numbered = bool(separator) and number.isdecimal()
        base = stem if is_numbered else header
        underscored = self._underscored_pattern.fullmatch(header)
        bare_name = underscored[1] if underscored else base.removeprefix(self._prefix)
        name = offer.first_offered((base, bare_name, header, header.removeprefix(self._prefix)))
        if name is None and bare_name.strip() and (is_numbered or not _GENERATED_ID_PATTERN.fullmatch(header)):
            name = bare_name
        id = header if is_numbered or underscored or name is None else None
        return CallHeader(header, id or None, name)

    def write(self, call: Call, number: int) -> str:
        id_header = self.read(call.id, ToolSet())
        if (id_header.id, id_header.name) == (call.id, call.name):
            return call.id
        written = self._template.write({"name": call.name, "n": str(number)})
        if self.read(written, ToolSet()).name != call.name:
            raise RenderError(f"a call named {call.name!r} would be parsed with a different name", "rename the tool")
        return written

    def header_prefixes(self, offer: ToolSet) -> tuple[str, ...]:
        return tuple(f"{prefix}{name}{self._separator}" for name in offer.names for prefix in ("", self._prefix))
