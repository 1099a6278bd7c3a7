"""Writer for arguments as literals of a dialect, the inverse of the readers."""

from __future__ import annotations

import re
from dataclasses import dataclass
from json.encoder import encode_basestring as quoted
from typing import Any

from interlingua import events as ev
from interlingua.common.jsontext.codec import read_json, write_json
from interlingua.common.jsontext.literals import MAX_DEPTH
from interlingua.core.options import Limits
from interlingua.core.reply import Call
from interlingua.core.tools import ToolSet
from interlingua.errors import RenderError
from interlingua.parsing.dialect import Grammar
from interlingua.parsing.event_sink import EventSink
from interlingua.parsing.markers import compile_markers
from interlingua.parsing.text_buffer import TextBuffer

__all__ = ["LiteralWriter", "check_reads_back"]

_BARE_KEY_PATTERN = re.compile(r"[\w.\-]+")


@dataclass(frozen=True)
class LiteralWriter:
    """Format in which one dialect writes values."""

    quote: str
    keywords: tuple[str, str, str]
    """The keywords for true, false and null."""
    comma: str = ", "
    colon: str = ": "
    escapes: bool = True
    """True if special characters in strings are escaped, and keys are quoted."""
    sort_keys: bool = False
    """True if keys are sorted, as in chat templates that iterate with `dictsort`."""

    def write_value(self, value: Any, depth: int = 0) -> str:
        if depth > MAX_DEPTH:
            raise RenderError(f"arguments nested deeper than {MAX_DEPTH} levels cannot be parsed", "nest them less")
        if isinstance(value, str):
            return self._write_string(value)
        if value is None or isinstance(value, bool):
            true, false, null = self.keywords
            return null if value is None else true if value else false
        if isinstance(value, dict):
            members = (
                f"{self.write_key(key)}{self.colon}{self.write_value(member, depth + 1)}"
                for key, member in self.ordered_items(value)
            )
            return "{" + self.comma.join(members) + "}"
        if isinstance(value, list):
            return "[" + self.comma.join(self.write_value(item, depth + 1) for item in value) + "]"
        return write_json(value)

    def ordered_items(self, members: dict[str, Any]) -> list[tuple[str, Any]]:
        """Return the members in the order in which they are written."""
        items = list(members.items())
        return sorted(items, key=lambda item: item[0].lower()) if self.sort_keys else items

    def write_key(self, key: str) -> str:
        """Write the key of a member of an object."""
        return key if not self.escapes and _BARE_KEY_PATTERN.fullmatch(key) else self._write_string(key)

    def _write_string(self, text: str) -> str:
        if self.escapes:
            text = quoted(text)[1:-1]
            if self.quote != '"':
                text = text.replace('\\"', '"').replace(self.quote, "\\" + self.quote)
        return self.quote + text + self.quote


def check_reads_back(
    grammar: Grammar, opener: str, text: str, calls: list[Call], values_are_text: bool = False
) -> None:
    """Raise `RenderError` if the text written after the opener would be parsed differently."""
    source = TextBuffer()
    source.push(text)
    source.close()
    marks = compile_markers(*grammar.openers, *grammar.strays)
    sink = EventSink(source, marks, marks, ToolSet(), Limits())
    source.start_recording("")
    for _ in grammar.read(opener, source, sink):
        pass
    names: list[str] = []
    arguments: list[str] = []
    incomplete: set[int] = set()
    for event in sink.drain():
        if isinstance(event, ev.CallStart):
            names.append(event.name)
            arguments.append("")
        elif isinstance(event, ev.ArgsDelta):
            arguments[event.index] += event.text
        elif isinstance(event, ev.CallEnd) and not event.complete:
            incomplete.add(event.index)
    for n, call in enumerate(calls):
        if names[n : n + 1] != [call.name]:
            raise RenderError(f"a call named {call.name!r} would be parsed differently", "rename the tool")
        expected, actual = read_json(call.arguments, dict), read_json(arguments[n], dict)
        if values_are_text:
            expected, actual = _values_as_text(expected), _values_as_text(actual)
        if expected != actual or n in incomplete:
            raise RenderError(f"the arguments of {call.name!r} would be parsed differently", "remove the markers")


def _values_as_text(members: dict[str, Any] | None) -> dict[str, str]:
    return {key: value if isinstance(value, str) else write_json(value) for key, value in (members or {}).items()}
