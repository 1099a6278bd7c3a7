"""Structural tags of xgrammar, which vLLM and SGLang take in requests."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, assert_never

from interlingua.exports.formats.ebnf import EbnfWriter, text_as_macro
from interlingua.exports.grammar import (
    Chars,
    Choice,
    Grammar,
    Json,
    Literal,
    Node,
    Repeat,
    Rule,
    Sequence,
    Text,
)
from interlingua.exports.schema_writer import has_exact_schema, write_schema

__all__ = ["write_structural_tag"]


def write_structural_tag(grammar: Grammar, notes: list[str]) -> dict[str, Any]:
    """Write a grammar as a structural tag. `notes` receives what the tag does not enforce."""
    return {"type": "structural_tag", "format": _TagWriter(grammar.rules, notes).write(grammar.root)}


class _TagWriter:
    def __init__(self, rules: Mapping[str, Node], notes: list[str]) -> None:
        self._rules = rules
        self._notes = notes

    def write(self, node: Node) -> dict[str, Any]:
        if _needs_ebnf(node):
            writer = EbnfWriter(self._rules, text_as_macro)
            written = writer.write(node)
            self._notes += writer.notes
            return {"type": "grammar", "grammar": written}
        match node:
            case Literal(text):
                return {"type": "const_string", "value": text}
            case Text(excluded):
                return {"type": "any_text", "excludes": list(excluded)}
            case Json(type_):
                return {"type": "json_schema", "json_schema": write_schema(type_)}
            case Sequence(parts):
                return {"type": "sequence", "elements": [self.write(part) for part in parts]}
            case Choice(options):
                return {"type": "or", "elements": [self.write(option) for option in options]}
            case Repeat():
                return self._write_repeat(node)
            case Chars() | Rule():
                raise AssertionError(node)
            case _:
                assert_never(node)

    def _write_repeat(self, node: Repeat) -> dict[str, Any]:
        content = self.write(node.item)
        match node.min, node.max:
            case 1, 1:
                return content
            case 0, 1:
                return {"type": "optional", "content": content}
            case ((0 | 1), None) if node.separator:
                return _write_separated(content, node)
            case 0, None:
                return {"type": "star", "content": content}
            case 1, None:
                return {"type": "plus", "content": content}
            case least, most:
                return {"type": "repeat", "min": least, "max": -1 if most is None else most, "content": content}


def _write_separated(content: dict[str, Any], node: Repeat) -> dict[str, Any]:
    """Write items with a separator: once if that is possible, else the first one and the others."""
    if not _is_unlimited(content):
        tag = {"type": "tag", "begin": "", "content": content, "end": ""}
        some = {"separator": node.separator, "at_least_one": node.min == 1}
        return {"type": "tags_with_separator", "tags": [tag], **some}
    separator = {"type": "const_string", "value": node.separator}
    others = {"type": "star", "content": {"type": "sequence", "elements": [separator, content]}}
    items = {"type": "sequence", "elements": [content, others]}
    return items if node.min else {"type": "optional", "content": items}


def _is_unlimited(format_: dict[str, Any]) -> bool:
    """Return whether xgrammar requires an end after this format in a tag: it could go on for ever."""
    match format_["type"]:
        case "star" | "plus" | "tags_with_separator":
            return True
        case "repeat":
            return format_["max"] < 0 or _is_unlimited(format_["content"])
        case "optional":
            return format_["content"]["type"] == "any_text" or _is_unlimited(format_["content"])
        case "sequence" | "or":
            return any(map(_is_unlimited, format_["elements"]))
        case _:
            return False


def _needs_ebnf(node: Node) -> bool:
    """Return whether a node is written as EBNF: a character, a rule, JSON that engines would take for other JSON, or a
    choice or repetition that contains them.
    """
    match node:
        case Chars() | Rule():
            return True
        case Json(type_):
            return not has_exact_schema(type_)
        case Choice(options):
            return any(map(_contains_ebnf, options))
        case Repeat(item, least, most, separator):
            return _contains_ebnf(item) or (separator != "" and (least > 1 or most not in (None, 1)))
        case _:
            return False


def _contains_ebnf(node: Node) -> bool:
    return any(
        isinstance(part, Chars | Rule) or (isinstance(part, Json) and _needs_ebnf(part))
        for part in (node.parts if isinstance(node, Sequence) else (node,))
    )
