"""Replies, mutations and hostile tools for tests of exported grammars, whoever judges the texts."""

from __future__ import annotations

import json
from collections.abc import Iterable
from functools import cache
from typing import Any

from hypothesis import strategies as st

import interlingua as il
from interlingua.common.schema.validation import validation_errors
from interlingua.core.reply import Call, Part, Reasoning, Reply, Text
from interlingua.core.tool_choice import ToolChoice, read_tool_choice
from interlingua.core.tools import Tool
from interlingua.exports.schema_reader import read_value_type
from interlingua.exports.schema_writer import write_schema
from interlingua.exports.value_types import (
    AnyValue,
    Array,
    Boolean,
    Constant,
    Null,
    Number,
    Object,
    Reference,
    String,
    Union,
    ValueType,
)
from tests.support.harness import USER_DIALECTS

DIALECTS = [*(dialect for dialect in il.dialects() if dialect.shape), *USER_DIALECTS.values()]
"""All dialects with calls, also those of users."""


def function(name: str, schema: Any) -> dict[str, Any]:
    return {"type": "function", "function": {"name": name, "parameters": schema}}


def closed(properties: dict[str, Any], *required: str) -> dict[str, Any]:
    return {
        "type": "object",
        "properties": properties,
        "required": list(required),
        "additionalProperties": False,
    }


TOOLS = [
    function(
        "get_weather",
        closed(
            {
                "city": {"type": "string"},
                "unit": {"enum": ["c", "f"]},
                "days": {"type": "integer"},
                "flag": {"type": "boolean"},
                "tags": {"type": "array", "items": {"type": "string"}},
                "where": closed({"lat": {"type": "number"}, "name": {"type": "string"}}, "lat"),
                "mix": {"type": ["string", "number"]},
            },
            "city",
        ),
    ),
    function("now", closed({})),
    function(
        "mcp__fs-v2__write.file", closed({"path": {"type": "string"}, "text": {"type": "string"}}, "path", "text")
    ),
]
"""Tools with params of every type."""
CHOICES: dict[str, Any] = {
    "auto": "auto",
    "required": "required",
    "one tool": "mcp__fs-v2__write.file",
    "allowed tools": ToolChoice("auto", ("now", "get_weather")),
    "required among allowed tools": ToolChoice("required", ("now", "get_weather")),
    "none": "none",
}


def nested_arrays(depth: int) -> dict[str, Any]:
    return {"type": "array", "items": nested_arrays(depth - 1)} if depth else {"type": "integer"}


HOSTILE_TOOLS: dict[str, dict[str, Any]] = {
    "no schema": {"type": "function", "function": {"name": "f"}},
    "an empty schema": function("f", {}),
    "any object": function("f", {"type": "object"}),
    "any value": function("f", closed({"x": {}, "y": True})),
    "a schema that is no object": function("f", {"type": "string"}),
    "a union of objects": function("f", {"anyOf": [closed({"a": {"type": "string"}}, "a"), closed({"b": {}}, "b")]}),
    "a tree": function(
        "f",
        {
            **closed({"root": {"$ref": "#/$defs/node"}}, "root"),
            "$defs": {
                "node": closed(
                    {"name": {"type": "string"}, "children": {"type": "array", "items": {"$ref": "#/$defs/node"}}},
                    "name",
                )
            },
        },
    ),
    "a reference that does not exist": function("f", closed({"x": {"$ref": "#/$defs/none"}})),
    "a reference to itself": function("f", closed({"x": {"$ref": "#/properties/x"}})),
    "a required member of its own type": function("f", {**closed({"x": {"$ref": "#"}}, "x")}),
    "types in Python's words": function(
        "f", closed({"a": {"type": "str"}, "b": {"type": "int"}, "c": {"type": "list"}})
    ),
    "arrays in arrays": function("f", closed({"a": nested_arrays(20)})),
    "params of two notations": function("f", closed({"a": {"type": "integer"}, "b": {"type": "string"}, "c": {}})),
    "arrays of strings or of integers": function(
        "f",
        closed(
            {
                "a": {
                    "anyOf": [
                        {"type": "array", "items": {"type": "string"}},
                        {"type": "array", "items": {"type": "integer"}},
                        {"type": "string"},
                    ]
                }
            }
        ),
    ),
    "a long enum": function("f", closed({"a": {"enum": [f"value-{n}" for n in range(3000)]}}, "a")),
    "nullable": function("f", closed({"a": {"type": "string", "nullable": True}, "b": {"type": ["integer", "null"]}})),
    "an enum of all types": function("f", closed({"a": {"enum": ["x", 1, 1.5, True, None, [1], {"k": "v"}]}}, "a")),
    "an enum of numbers": function("f", closed({"a": {"enum": [0.1, -0.5, 2**53 + 1, 2**64, 10**30, 7]}}, "a")),
    "an enum that looks like markup": function("f", closed({"a": {"enum": ["</a>", "<b>", '"', "\\", "\n", ""]}}, "a")),
    "constants": function("f", closed({"a": {"const": "x"}, "b": {"const": 7}}, "a", "b")),
    "limits": function(
        "f",
        closed(
            {
                "a": {"type": "string", "minLength": 2, "maxLength": 4},
                "b": {"type": "integer", "minimum": 0, "maximum": 9},
                "c": {"type": "array", "items": {"type": "integer"}, "minItems": 1, "maxItems": 3},
            },
            "c",
        ),
    ),
    "limits beyond exact numbers": function(
        "f",
        closed(
            {
                "a": {"type": "integer", "minimum": -(2**63), "maximum": 2**64 - 1},
                "b": {"type": "number", "maximum": 1e300, "exclusiveMinimum": -(10**400)},
            }
        ),
    ),
    "a tuple": function(
        "f",
        closed({"a": {"type": "array", "prefixItems": [{"type": "integer"}, {"type": "string"}], "items": False}}, "a"),
    ),
    "all of": function(
        "f", {"allOf": [closed({"a": {"type": "string"}}, "a"), {"properties": {"b": {"type": "integer"}}}]}
    ),
    "keywords that no grammar enforces": function(
        "f", closed({"a": {"type": "string", "pattern": "^x+$", "format": "uuid"}, "b": {"not": {"type": "string"}}})
    ),
    "members of any name": function("f", {"type": "object", "additionalProperties": {"type": "integer"}}),
    "thirty optional params": function("f", closed({f"p{n}": {"type": "string"} for n in range(30)})),
    "keys with punctuation": function("f", closed({"a-b": {"type": "string"}, "c.d": {"type": "integer"}}, "a-b")),
    "a key with a space": function("f", closed({"a b": {"type": "string"}}, "a b")),
    "a key with markup": function("f", closed({"</a>": {"type": "string"}}, "</a>")),
    "a key with quotes": function("f", closed({"a\"'": {"type": "string"}}, "a\"'")),
    "a name with punctuation": function("a.b-c_d", closed({"x": {"type": "string"}})),
    "a name with a number": function("f:0", closed({})),
    "a name with a space": function("a b", closed({})),
    "a name with markup": function("</tool_call>", closed({})),
    "a name with a quote": function('a"b', closed({})),
    "a name in Greek": function("λ_βάθος", closed({"x": {"type": "string"}})),
    "a long name": function("f" * 200, closed({})),
    "words that the dialects use": function("arguments", closed({"name": {"type": "string"}, "item": {}, "type": {}})),
    "invalid keywords": function(
        "f",
        {"type": "object", "properties": {"a": {"type": 7, "enum": [], "minLength": "x", "items": 5}}, "required": "a"},
    ),
}

# ── replies ───────────────────────────────────────────────────────────────────────────────────────────────────────────

_SCRAPS = [
    "<",
    ">",
    "</",
    "|",
    "[",
    "]",
    "{",
    "}",
    "(",
    ")",
    "\\",
    '"',
    "'",
    "\n",
    " ",
    "&",
    "=",
    ",",
    ":",
    "0",
    "null",
]
_plain_text = st.lists(
    st.text(st.characters(exclude_categories=["Cs", "Cc"]), max_size=5) | st.sampled_from([*_SCRAPS, "é", "🚀", "```"]),
    max_size=5,
).map("".join)


@cache
def strings(dialect: il.Dialect, *, markup: bool) -> st.SearchStrategy[str]:
    """Return strings, also with the dialect's own markup or parts of it."""
    if not markup:
        return _plain_text
    markers = st.sampled_from([*dialect.markers, *(dialect.grammar.inner_markers if dialect.grammar else ())])
    parts = st.builds(lambda marker, length: marker[:length], markers, st.integers(1, 12))
    return st.lists(_plain_text | markers | parts, max_size=3).map("".join)


def values(type_: ValueType, text: st.SearchStrategy[str], depth: int = 3) -> st.SearchStrategy[Any]:
    """Return values of a type, with the members of objects in their order."""
    match type_:
        case AnyValue():
            return text | st.integers(-9, 9) | st.booleans()
        case Null():
            return st.none()
        case Boolean():
            return st.booleans()
        case Number(is_integer, minimum, maximum):
            if is_integer:
                return st.integers(None if minimum is None else int(minimum), None if maximum is None else int(maximum))
            return st.floats(-1e9 if minimum is None else minimum, 1e9 if maximum is None else maximum)
        case String(min_length, max_length):
            return text.map(lambda value: value.ljust(min_length, "x")[:max_length])
        case Constant(choices):
            return st.sampled_from(choices)
        case Array(first, item, min_items, max_items):
            most = min(max_items or 3, 3) - len(first) if item and depth else 0
            others = st.lists(
                values(item or AnyValue(), text, depth - 1),
                min_size=max(0, min_items - len(first)),
                max_size=max(0, most),
            )
            return st.tuples(st.tuples(*(values(inner, text, depth - 1) for inner in first)), others).map(
                lambda pair: [*pair[0], *pair[1]]
            )
        case Object(members, other):
            return _objects(members, other, text, depth)
        case Union(types):
            return st.one_of(*(values(inner, text, depth) for inner in types))
        case Reference():
            return st.deferred(lambda: values(type_.type, text, depth - 1))


def _objects(members: Any, other: ValueType | None, text: st.SearchStrategy[str], depth: int) -> st.SearchStrategy[Any]:
    kept = [member for member in members if member.is_required or depth > 0]
    fields = {member.key: values(member.type, text, depth - 1) for member in kept}
    required = {member.key for member in kept if member.is_required}
    order = {member.key: n for n, member in enumerate(members)}
    known = st.fixed_dictionaries(
        {key: value for key, value in fields.items() if key in required},
        optional={key: value for key, value in fields.items() if key not in required},
    ).map(lambda found: dict(sorted(found.items(), key=lambda pair: order[pair[0]])))
    if other is None or depth <= 0:
        return known
    more = st.dictionaries(st.sampled_from(["zq", "zr"]), values(other, text, depth - 1), max_size=2)
    return st.tuples(known, more).map(lambda pair: {**pair[0], **pair[1]})


def call_id(dialect: il.Dialect, name: str, number: int) -> str:
    if dialect.ids == "nine":
        return f"abcdefgh{number}"
    return f"functions.{name}:{number}" if dialect.name == "kimi_k2" else f"call_{number}abc"


@st.composite
def replies(
    draw: st.DrawFn, dialect: il.Dialect, tools: Iterable[Any], choice: Any = "auto", *, markup: bool = False
) -> Reply:
    """Return replies that the tool choice allows, with arguments that fit the schemas."""
    chosen = read_tool_choice(choice) or ToolChoice()
    text = strings(dialect, markup=markup)
    offered = [tool for tool in map(Tool.read, tools) if not chosen.names or tool.name in chosen.names]
    parts: list[Part] = []
    thinks = bool(dialect.thinking) or dialect.router is not None
    if thinks and draw(st.booleans()):
        parts.append(Reasoning("Two cities."))
    if chosen.mode != "required" and draw(st.booleans()):
        parts.append(Text("Let me look."))
    least = 1 if chosen.mode == "required" else 0
    most = 0 if chosen.mode == "none" else 1 if least and len(offered) == 1 else 3
    for number, tool in enumerate(draw(st.lists(st.sampled_from(offered), min_size=least, max_size=most))):
        type_ = argument_type(tool)
        arguments = json.dumps(draw(values(type_, text)), ensure_ascii=False)
        parts.append(Call(call_id(dialect, tool.name, number), tool.name, arguments))
    return Reply(parts=parts)


def argument_type(tool: Tool) -> ValueType:
    type_ = read_value_type(tool.schema, tool.name, [])
    options = type_.types if isinstance(type_, Union) else (type_,)
    objects = tuple(option for option in options if isinstance(option, Object))
    return Union(objects) if objects else Object((), AnyValue())


@st.composite
def mutations(draw: st.DrawFn, dialect: il.Dialect, text: str) -> str:
    """Return the text with one part removed, repeated, replaced or added, or cut off."""
    markers = [*dialect.markers, *(dialect.grammar.inner_markers if dialect.grammar else ())]
    start = draw(st.integers(0, len(text)))
    end = min(len(text), start + draw(st.integers(1, 12)))
    present = [marker for marker in markers if marker in text] or [text[start:end] or "x"]
    scrap = draw(st.sampled_from([*markers, *_SCRAPS, "x", "5", "true"]))
    marker = draw(st.sampled_from(present))
    return draw(
        st.sampled_from(
            [
                text[:start],
                text[:start] + text[end:],
                text[:start] + scrap + text[start:],
                text[:start] + scrap + text[end:],
                text[:end] + text[start:],
                text.replace(marker, "", 1),
                text.replace(marker, scrap, 1),
                text.replace(marker, marker[:-1], 1),
            ]
        )
    )


# ── what a constrained text must be ───────────────────────────────────────────────────────────────────────────────────

FINDINGS_OF_FREE_TEXT = {
    "after-arguments",
    "call-in-code",
    "call-without-name",
    "no-opener",
    "noise",
    "not-a-tool",
    "quoted-call",
    "stray-marker",
    "text-in-section",
}
"""Findings about text between calls, which a grammar leaves to the model if no call is required."""


def find_problems(
    text: str, dialect: il.Dialect, tools: Iterable[Any], choice: Any = "auto", *, is_valid: bool = True
) -> list[str]:
    """Return what is wrong with a text that a grammar accepts: a call that is not offered, incomplete or misfit.

    If the schemas of the tools are not valid, the arguments are compared with what was read from them.
    """
    chosen = read_tool_choice(choice) or ToolChoice()
    schemas = {
        tool.name: tool.schema if is_valid else write_schema(argument_type(tool)) for tool in map(Tool.read, tools)
    }
    reply = il.parse(text, dialect, tools=list(tools))
    accepted = () if chosen.mode == "required" else FINDINGS_OF_FREE_TEXT
    problems = [str(finding) for finding in reply.findings if finding.kind not in accepted]
    for call in reply.calls:
        if not call.complete:
            problems.append(f"{call.name} is incomplete")
        elif call.name not in schemas:
            problems.append(f"{call.name} is not offered")
        else:
            problems += validation_errors(json.loads(call.arguments), schemas[call.name], call.name)
    if chosen.mode == "required" and not reply.calls:
        problems.append("no call")
    return problems


def unenforced(notes: Iterable[str]) -> list[str]:
    """Return the notes without those that only name tools whose params are free, or the suffix of tags."""
    return [
        note
        for note in notes
        if not note.endswith("does not declare are possible") and not note.startswith("tags have the suffix")
    ]


def quotes_markup(reply: Reply, dialect: il.Dialect) -> bool:
    """Return whether a string of the reply contains markup of the dialect, which raw text cannot carry."""
    markers = {*dialect.markers, *(dialect.grammar.inner_markers if dialect.grammar else ())}
    return any(
        marker.strip() in part for call in reply.calls for part in [call.arguments] for marker in markers
    ) or any(json.dumps(marker)[1:-1] in call.arguments for call in reply.calls for marker in markers)
