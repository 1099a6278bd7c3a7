"""What stands in a call before its arguments, as a template tells it: `{name}`, `{name}[CALL_ID]{id}`, …

What stands between two fields is a marker. Only a template with `{n}` is read otherwise: there all of the header is the
call's id, and the name is somewhere in it.
"""

from __future__ import annotations

import re
from typing import Protocol

from interlingua.core.reply import Call
from interlingua.core.tools import Offer
from interlingua.errors import RenderError, UsageError, expect
from interlingua.parsing.event_sink import Header
from interlingua.parsing.markers import markers

__all__ = ["Headers", "compile_headers"]

FIELDS = ("name", "id", "n")
EXAMPLE = 'for example "{name}", "{name}[CALL_ID]{id}" or "functions.{name}:{n}"'

_FIELD = re.compile(r"\{([^{}]*)\}")
_NAMELESS = re.compile(r"(?:call|toolu|chatcmpl-tool)[_-].*|\d*")


class Headers(Protocol):
    """Templates, compiled."""

    marks: tuple[str, ...]
    """The markers inside a header."""

    def read(self, text: str, offer: Offer) -> Header:
        """The header that this text is. Without a name if none can be told."""
        ...

    def write(self, call: Call, number: int) -> str:
        """The header of a call, given how many calls stand before it in the reply."""
        ...

    def beginnings(self, offer: Offer) -> tuple[str, ...]:
        """What a header of a call to an offered tool begins with, up to its number, if it has one."""
        ...


def compile_headers(templates: tuple[str, ...]) -> Headers:
    """Raises UsageError if a template is none."""
    expect(templates, tuple, "headers are a tuple of templates", EXAMPLE)
    if not templates:
        raise UsageError("a tuple of templates with none in it", EXAMPLE)
    read = [_Template(template) for template in templates]
    numbered = next((template for template in read if "n" in template.fields), None)
    if numbered is None:
        return _MarkedHeaders(read)
    if len(read) > 1 or numbered.fields != ("name", "n") or numbered.literals[-1]:
        raise UsageError(
            f"a header with {{n}} ends in it, holds {{name}} besides and stands alone: {numbered.text!r}", EXAMPLE
        )
    return _NumberedHeaders(numbered)


class _Template:
    def __init__(self, text: str) -> None:
        expect(text, str, "a header's template is str", EXAMPLE)
        parts = _FIELD.split(text)
        self.text = text
        self.fields = tuple(parts[1::2])
        self.literals = tuple(parts[0::2])
        for field in self.fields:
            if field not in FIELDS:
                raise UsageError(f"a header has no field {{{field}}}: {text!r}", "it has {name}, {id} and {n}")
        if any("{" in literal or "}" in literal for literal in self.literals):
            raise UsageError(f"a brace without its other half in a header: {text!r}", EXAMPLE)
        if self.fields.count("name") != 1 or len(set(self.fields)) < len(self.fields):
            raise UsageError(f"a header has one {{name}}, and each other field at most once: {text!r}", EXAMPLE)
        if not all(self.literals[1:-1]):
            raise UsageError(f"two fields of a header with nothing between them: {text!r}", EXAMPLE)

    def write(self, values: dict[str, str]) -> str:
        written = (literal + values[field] for literal, field in zip(self.literals, self.fields, strict=False))
        return "".join(written) + self.literals[-1]

    def read(self, text: str) -> dict[str, str] | None:
        """The fields of a header that is written like this, white space aside; None if it is not."""
        values: dict[str, str] = {}
        rest = text.strip()
        if not rest.startswith(self.literals[0]):
            return None
        rest = rest[len(self.literals[0]) :]
        for field, literal in zip(self.fields, self.literals[1:], strict=True):
            value, found, rest = rest.partition(literal) if literal else (rest, "", "")
            values[field] = value.strip()
            if found != literal or (not values[field] and field != "id"):
                return None
        return None if rest.strip() else values


class _MarkedHeaders:
    """Name and id stand between markers. The first template that fits is the one."""

    def __init__(self, templates: list[_Template]) -> None:
        self.marks = tuple({literal: None for template in templates for literal in template.literals if literal})
        self._templates = templates
        self._all = markers(*self.marks)
        self._has_id = any("id" in template.fields for template in templates)

    def read(self, text: str, offer: Offer) -> Header:  # noqa: ARG002 (a marker tells what is the name, not the offer)
        for template in self._templates:
            values = template.read(text)
            if values and not any(self._all.search(value, 0) for value in values.values()):
                return Header(text.strip(), values.get("id") or None, values["name"])
        nameless = self._all.without(text).strip()
        return Header(nameless, nameless or None if self._has_id else None, None)

    def write(self, call: Call, number: int) -> str:  # noqa: ARG002 (nothing is counted)
        for template in (template for template in self._templates if call.id or "id" not in template.fields):
            written = template.write({"name": call.name, "id": call.id})
            read = self.read(written, Offer())
            if (read.name, read.id or call.id) == (call.name, call.id):
                return written
        raise RenderError(f"a call of {call.name!r} with the id {call.id!r} cannot be written", "rename one of them")

    def beginnings(self, offer: Offer) -> tuple[str, ...]:  # noqa: ARG002 (one of these would be a mere word)
        return ()


class _NumberedHeaders:
    """All of the header is the id, `functions.NAME:N`, with N counting over the whole conversation.

    Models drift from it: the prefix left out, underscores for all else (`functions_NAME_2`), ids as other vendors make
    them (`call_59ad`), just the number. And as a header is telling even alone, its opener may be lost.
    """

    marks: tuple[str, ...] = ()

    def __init__(self, template: _Template) -> None:
        self._prefix, self._colon, _ = template.literals
        self._template = template
        self._underscored = re.compile(re.escape(self._prefix.rstrip(".")) + r"_(.+)_\d+")

    def read(self, text: str, offer: Offer) -> Header:
        header = "".join(line.strip() for line in text.strip().splitlines())
        stem, colon, number = header.rpartition(self._colon)
        numbered = bool(colon) and number.isdecimal()
        base = stem if numbered else header
        underscored = self._underscored.fullmatch(header)
        plain = underscored[1] if underscored else base.removeprefix(self._prefix)
        name = offer.pick((base, plain, header, header.removeprefix(self._prefix)))
        if name is None and plain.strip() and (numbered or not _NAMELESS.fullmatch(header)):
            name = plain
        id = header if numbered or underscored or name is None else None
        return Header(header, id or None, name)

    def write(self, call: Call, number: int) -> str:
        own = self.read(call.id, Offer())
        if (own.id, own.name) == (call.id, call.name):
            return call.id
        written = self._template.write({"name": call.name, "n": str(number)})
        if self.read(written, Offer()).name != call.name:
            raise RenderError(f"a call named {call.name!r} would be read back with another name", "rename the tool")
        return written

    def beginnings(self, offer: Offer) -> tuple[str, ...]:
        return tuple(f"{prefix}{name}{self._colon}" for name in offer.names for prefix in ("", self._prefix))
