"""Reader for structural tags: the grammar of the texts that a tag allows.

It reads what `structural_tag` writes, and the other formats that engines use for tool calls.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from interlingua.common.schema.resolver import as_list, as_mapping
from interlingua.errors import BadInput
from interlingua.exports.formats.ebnf_reader import read_ebnf
from interlingua.exports.grammar import (
    EMPTY,
    Grammar,
    GrammarBuilder,
    Json,
    Node,
    Repeat,
    Text,
    choice,
    literal,
    rename_rules,
    sequence,
)
from interlingua.exports.schema_reader import read_value_type

__all__ = ["read_structural_tag"]


def read_structural_tag(tag: object) -> Grammar:
    """Read a structural tag.

    Raises:
        BadInput: It is not a structural tag, or contains a format that this reader does not know.
        NotExpressible: One of its schemas cannot be a grammar.
    """
    fields = as_mapping(tag)
    if fields.get("type") != "structural_tag" or not isinstance(fields.get("format"), Mapping):
        raise BadInput("not a structural tag", 'write {"type": "structural_tag", "format": {…}}')
    builder = GrammarBuilder()
    return builder.build(_TagReader(builder).read(fields["format"], ()))


class _TagReader:
    def __init__(self, builder: GrammarBuilder) -> None:
        self._builder = builder

    def read(self, fields: object, ends: tuple[str, ...]) -> Node:
        """Read a format. `ends` are the ends of the tag around it, which text does not contain."""
        fields = as_mapping(fields)
        match fields.get("type"):
            case "const_string":
                return literal(str(fields["value"]))
            case "any_text":
                return Text((*map(str, as_list(fields.get("excludes"))), *ends))
            case "json_schema" if fields.get("style", "json") == "json":
                return Json(read_value_type(fields["json_schema"], "schema", self._builder.notes))
            case "grammar":
                return self._read_grammar(str(fields["grammar"]))
            case "sequence":
                return sequence(*(self.read(element, ends) for element in as_list(fields.get("elements"))))
            case "or":
                return choice(*(self.read(element, ends) for element in as_list(fields.get("elements"))))
            case "optional" | "star" | "plus" | "repeat" as name:
                return self._read_repeat(name, fields, ends)
            case "tag":
                return self._read_tag(fields)
            case "triggered_tags":
                return self._read_triggered_tags(fields, ends)
            case "tags_with_separator":
                return self._read_separated_tags(fields)
            case other:
                raise BadInput(f"unknown format in a structural tag: {other!r}", "see `interlingua export --help`")

    def _read_repeat(self, name: str, fields: Mapping[str, Any], ends: tuple[str, ...]) -> Node:
        limits: dict[str, tuple[int, int | None]] = {"optional": (0, 1), "star": (0, None), "plus": (1, None)}
        if name == "repeat":
            most = int(fields["max"])
            limits[name] = int(fields["min"]), None if most < 0 else most
        return Repeat(self.read(fields.get("content"), ends), *limits[name])

    def _read_grammar(self, text: str) -> Node:
        grammar = read_ebnf(text)
        prefix = f"{len(self._builder.rules)}."
        self._builder.rules.update({prefix + name: rename_rules(node, prefix) for name, node in grammar.rules.items()})
        return rename_rules(grammar.root, prefix)

    def _read_tag(self, fields: Mapping[str, Any]) -> Node:
        end = fields.get("end", "")
        ends = tuple(map(str, as_list(end) or [end]))
        content = self.read(fields.get("content"), tuple(filter(None, ends)))
        return sequence(literal(str(fields.get("begin", ""))), content, choice(*map(literal, ends)))

    def _read_triggered_tags(self, fields: Mapping[str, Any], ends: tuple[str, ...]) -> Node:
        excluded = (*as_list(fields.get("triggers")), *as_list(fields.get("excludes")), *ends)
        text, tags = Text(excluded), choice(*map(self._read_tag, as_list(fields.get("tags"))))
        first = tags if fields.get("at_least_one") else sequence(text, tags)
        more = EMPTY if fields.get("stop_after_first") else sequence(Repeat(sequence(text, tags)), text)
        reply = sequence(first, more)
        return reply if fields.get("at_least_one") else choice(reply, text)

    def _read_separated_tags(self, fields: Mapping[str, Any]) -> Node:
        tags = choice(*map(self._read_tag, as_list(fields.get("tags"))))
        most = 1 if fields.get("stop_after_first") else None
        return Repeat(tags, int(bool(fields.get("at_least_one"))), most, str(fields.get("separator", "")))
