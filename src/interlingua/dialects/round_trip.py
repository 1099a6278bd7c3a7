"""Check that the native text of a reply is parsed as the same reply."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from typing import Any

from interlingua.common.jsontext.codec import read_full_object
from interlingua.core.options import Options
from interlingua.core.reply import Call, Part, fold
from interlingua.core.tools import ToolSet
from interlingua.errors import RenderError
from interlingua.parsing.choice_pipeline import ChoicePipeline
from interlingua.parsing.dialect import Dialect
from interlingua.parsing.markers import MarkerSet, compile_markers

__all__ = ["check_round_trip"]

_WORD = re.compile(r"[\w.:-]{1,128}")
_WORD_DISTANCE = 80
_MAX_WORDS = 200
_JSON_TYPES: dict[type, str] = {str: "string", bool: "boolean", int: "number", float: "number", list: "array"}


def check_round_trip(parts: Sequence[Part], written: str, dialect: Dialect) -> None:
    """Raise `RenderError` if the text is parsed as a different reply.

    Strings are compared twice: with the tools of the calls on offer, and with all tools and params that the strings
    name. Other values are not compared, because their types depend on the schemas.
    """
    calls = [part for part in parts if isinstance(part, Call)]
    strings = [text for call in calls for text in _strings(read_full_object(call.arguments) or {})]
    marker_set = compile_markers(*dialect.markers, *(dialect.grammar.inner_markers if dialect.grammar else ()))
    has_markers = any(marker_set.search(text, 0) for text in strings)
    texts = [part.text for part in parts if not isinstance(part, Call)]
    words = _words_after_markers([*strings, *texts], marker_set) if has_markers else []
    for offer in [_offer(calls, []), _offer(calls, words)] if has_markers else [None]:
        parsed_parts = _parse(written, dialect, offer)
        if has_markers:
            _check_strings(calls, [part for part in parsed_parts if isinstance(part, Call)], dialect)
        if _comparable(parsed_parts, dialect) != _comparable(parts, dialect):
            raise RenderError(
                f"written in {dialect.name!r}, this reply would be parsed as a different one",
                "remove text that looks like markup, or use another dialect",
            )


def _check_strings(calls: Sequence[Call], parsed_calls: Sequence[Call], dialect: Dialect) -> None:
    """Raise `RenderError` if a string in the arguments is parsed as a different one."""
    for call, parsed_call in zip(calls, parsed_calls, strict=False):
        wanted, found = read_full_object(call.arguments) or {}, read_full_object(parsed_call.arguments) or {}
        changed = [key for key in wanted if isinstance(wanted[key], str) and found.get(key) != wanted[key]]
        if changed or parsed_call.complete != call.complete:
            param = f"the param {changed[0]!r}" if changed else "a param"
            raise RenderError(
                f"{param} of {call.name!r} contains markup that {dialect.name!r} cannot carry: it would be parsed as "
                "the end of the value, or as ambiguous",
                "remove the markup, or use another dialect",
            )


def _parse(text: str, dialect: Dialect, tools: list[dict[str, Any]] | None) -> Sequence[Part]:
    pipeline = ChoicePipeline(dialect, ToolSet(tools), Options())
    return fold(pipeline.process_text(text) + pipeline.end_of_text()).parts


def _comparable(parts: Iterable[Part], dialect: Dialect) -> list[tuple[type, str]]:
    """Return the content of a reply that must survive: its texts without layout, and the names of calls."""
    texts = ((part, part.name if isinstance(part, Call) else part.text.strip(dialect.trim)) for part in parts)
    return [(type(part), text) for part, text in texts if text.strip()]


def _offer(calls: Sequence[Call], words: Sequence[str]) -> list[dict[str, Any]]:
    """Return the tools of these calls, and tools and params with these names.

    A word such as `functions.NAME` is left out, because it would be another name of the same tool.
    """
    names = tuple(separator + call.name for call in calls for separator in ".:")
    schemas: dict[str, dict[str, Any]] = {word: {} for word in words if not word.endswith(names)}
    for call in calls:
        params = {key: {"type": _json_type(value)} for key, value in (read_full_object(call.arguments) or {}).items()}
        schemas[call.name] = {**{word: {"type": "string"} for word in words}, **schemas.get(call.name, {}), **params}
    return [{"name": name, "parameters": {"type": "object", "properties": params}} for name, params in schemas.items()]


def _json_type(value: Any) -> str:
    return "null" if value is None else _JSON_TYPES.get(type(value), "object")


def _words_after_markers(strings: Iterable[str], markers: MarkerSet) -> list[str]:
    words: dict[str, None] = {}
    for text in strings:
        for match in markers.find_all(text):
            words.update(dict.fromkeys(_WORD.findall(text, match.end(), match.end() + _WORD_DISTANCE)))
            if len(words) > _MAX_WORDS:
                break
    return list(words)[:_MAX_WORDS]


def _strings(value: Any) -> list[str]:
    """Return all strings in a JSON value."""
    if isinstance(value, str):
        return [value]
    members = value.values() if isinstance(value, dict) else value if isinstance(value, list) else ()
    return [text for member in members for text in _strings(member)]
