"""ValueCoercion. Rows: a param's schema, the raw text that a model wrote for it, and the expected JSON."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from interlingua.common.schema.coercion import ConvertedValue, DeclaredType, ValueCoercion
from interlingua.core.tools import Tool, ToolSet

DEFS = {
    "id": {"type": "integer"},
    "again": {"$ref": "#/$defs/id"},
    "point": {"type": "object", "properties": {"x": {"type": "number"}}},
    "circle": {"$ref": "#/$defs/circle"},
    "wheel": {"anyOf": [{"$ref": "#/$defs/wheel"}, {"$ref": "#/$defs/wheel"}]},
    "a/b c": {"type": "boolean"},
    "list": [{"type": "null"}],
    "mode": {"enum": ["r", "w"]},
}


def coercion(schema: object) -> ValueCoercion:
    tool = {"properties": {"p": schema}, "$defs": DEFS, "definitions": DEFS}
    return ToolSet([Tool("t", tool)]).coercion_for("t", "p")


def typed(*types: str) -> dict[str, Any]:
    return {"type": list(types)}


def any_of(*schemas: object) -> dict[str, Any]:
    return {"anyOf": list(schemas)}


STRING, INTEGER, NUMBER, BOOLEAN, NULL, OBJECT, ARRAY = (
    {"type": name} for name in ("string", "integer", "number", "boolean", "null", "object", "array")
)
BIG = "123456789012345678901234567890"


MODE = {"type": "string", "enum": ["r", "w", " padded "]}
NULL_OR_WORD = any_of({"const": "null"}, NULL)


@pytest.mark.parametrize(
    ("schema", "text", "declared", "expected"),
    [
        # Whitespace around a listed value is dropped, unless the value is listed with it.
        (MODE, "\t\tw\r", "", '"w"'),
        (MODE, "\nw\n", "string", '"w"'),
        (MODE, " padded ", "", '" padded "'),
        (MODE, '"w"', "", '"w"'),
        (MODE, " other ", "", '" other "'),
        ({"const": "w"}, " w", "", '"w"'),
        ({"enum": [1, 2]}, " 2\n", "", "2"),
        ({"$ref": "#/$defs/mode"}, " w ", "", '"w"'),
        ({"$ref": "#/$defs/mode", "nullable": True}, " w ", "", '"w"'),
        ({"$ref": "#/$defs/mode", "nullable": True}, " null ", "", "null"),
        (any_of({"$ref": "#/$defs/mode"}, NULL), "\tw", "", '"w"'),
        # The type that the text declares decides where the schema allows several.
        (NULL_OR_WORD, "null", "json", "null"),
        (NULL_OR_WORD, "null", "string", '"null"'),
        (NULL_OR_WORD, '"null"', "json", '"null"'),
        (typed("string", "null"), "null", "string", '"null"'),
        (typed("string", "integer"), "5", "string", '"5"'),
        (typed("string", "integer"), "5", "json", "5"),
        (any_of({"enum": ["true"]}, BOOLEAN), "true", "json", "true"),
        (any_of({"enum": ["true"]}, BOOLEAN), "true", "string", '"true"'),
        (INTEGER, "5", "string", "5"),
        (STRING, "5", "json", '"5"'),
    ],
)
def test_convert_listed_and_declared_values(schema: object, text: str, declared: DeclaredType, expected: str) -> None:
    assert coercion(schema).convert(text, declared) == ConvertedValue(expected)


@pytest.mark.parametrize(
    ("schema", "text", "expected"),
    [
        # A string is verbatim, whatever it looks like.
        (STRING, "  indented\n", '"  indented\\n"'),
        (STRING, "null", '"null"'),
        (STRING, "123", '"123"'),
        (STRING, '"quoted"', '"\\"quoted\\""'),
        (STRING, "", '""'),
        (STRING, "\ud83d", '"\\ud83d"'),
        ({"enum": ["a", "1"]}, "1", '"1"'),
        ({"const": "true"}, "true", '"true"'),
        # Numbers keep their digits.
        (INTEGER, "5", "5"),
        (INTEGER, " -5\n", "-5"),
        (INTEGER, "5.0", "5"),
        (INTEGER, "-5.00", "-5"),
        (INTEGER, "0.0", "0"),
        (INTEGER, "1e3", "1000"),
        (INTEGER, "1.5E+1", "15"),
        (INTEGER, "120e-1", "12"),
        (INTEGER, "0e-5", "0"),
        (INTEGER, "0.001e3", "1"),
        (INTEGER, BIG, BIG),
        (INTEGER, f"{BIG}.0", BIG),
        (NUMBER, "5", "5"),
        (NUMBER, "5.0", "5.0"),
        (NUMBER, "1e3", "1e3"),
        (NUMBER, BIG, BIG),
        # Booleans and null as Python, JSON and shells print them.
        *((BOOLEAN, text, "true") for text in ("true", "True", "TRUE", " true\n")),
        *((BOOLEAN, text, "false") for text in ("false", "False", "FALSE")),
        (NULL, "null", "null"),
        (NULL, "None", "null"),
        # Objects and arrays: unchanged JSON, Python literals, either inside a string.
        (OBJECT, ' {"a":1.50} ', '{"a":1.50}'),
        (OBJECT, "{'a': True}", '{"a": true}'),
        (OBJECT, '"{\\"a\\": 1}"', '{"a": 1}'),
        (OBJECT, "\"{'a': 1}\"", '{"a": 1}'),
        (ARRAY, "[1, 'x']", '[1, "x"]'),
        (ARRAY, "(1, 2)", "[1, 2]"),
        (ARRAY, '"[1]"', "[1]"),
        # Nullable, in all its spellings.
        *((schema, "null", "null") for schema in (typed("string", "null"), any_of(STRING, NULL))),
        (STRING | {"nullable": True}, "None", "null"),
        ({"$ref": "#/$defs/id", "nullable": True}, "None", "null"),
        (typed("string", "null"), "5", '"5"'),
        (typed("string", "null"), '{"a": 1}', '"{\\"a\\": 1}"'),
        (typed("string", "null"), "nullable", '"nullable"'),
        (typed("integer", "null"), "5", "5"),
        # Unions: other types take precedence over strings, but only without loss.
        (typed("string", "integer"), "123", "123"),
        (typed("string", "integer"), "02134", '"02134"'),
        (typed("string", "integer"), "5.0", '"5.0"'),
        (typed("string", "number"), "5.0", "5.0"),
        (typed("string", "number"), "1.2.3", '"1.2.3"'),
        (typed("string", "boolean"), "True", "true"),
        (any_of(STRING, OBJECT), '{"a": 1}', '{"a": 1}'),
        (any_of(STRING, OBJECT), "{not json}", '"{not json}"'),
        (any_of(STRING, OBJECT), "[1]", '"[1]"'),
        ({"oneOf": [ARRAY, INTEGER]}, "[1]", "[1]"),
        ({"oneOf": [ARRAY, INTEGER]}, "1.0", "1"),
        (any_of(any_of(INTEGER, NULL), BOOLEAN), "null", "null"),
        # Constraints that apply together are intersected.
        ({"allOf": [typed("string", "integer"), typed("integer", "null")]}, "null", '"null"!'),
        ({"allOf": [NUMBER, INTEGER]}, "5.0", "5"),
        ({"type": "object", "anyOf": [{"required": ["a"]}, {"required": ["b"]}]}, "{'a': 1}", '{"a": 1}'),
        ({"allOf": [{"$ref": "#/$defs/id"}], "description": "…"}, "5.0", "5"),
        # Choices.
        ({"enum": [1, "a", None, True]}, "1", "1"),
        ({"enum": [1, "a", None, True]}, "a", '"a"'),
        ({"enum": [1, "a", None, True]}, "None", "null"),
        ({"enum": [1, "a", None, True]}, "True", "true"),
        ({"enum": [1, "a", None, True]}, '"a"', '"a"'),
        ({"enum": [1, "a", None, True]}, "else", '"else"'),
        ({"enum": ["1", 2]}, "1", '"1"'),
        ({"enum": ["1", 2]}, "2", "2"),
        ({"enum": ["1", 1]}, "1", "1"),  # ambiguous: handled like any union
        ({"enum": [1, 2], "type": "integer"}, "2.0", "2"),
        ({"enum": [0.5, 1]}, "0.5", "0.5"),
        ({"enum": ["a"], "type": "string", "nullable": True}, "null", "null"),
        ({"enum": ["a", None], "type": "string"}, "None", '"None"'),
        (any_of({"const": "auto"}, INTEGER), "auto", '"auto"'),
        (any_of({"const": "auto"}, INTEGER), "5", "5"),
        ({"const": None}, "None", "null"),
        ({"enum": [[1], {"a": 1}]}, "[1]", "[1]"),
        # References.
        ({"$ref": "#/$defs/id"}, "5.0", "5"),
        ({"$ref": "#/definitions/again"}, "5.0", "5"),
        ({"$ref": "#/$defs/a~1b%20c"}, "True", "true"),
        ({"$ref": "#/$defs/list/0"}, "None", "null"),
        ({"$ref": "#"}, "{'p': 1}", '{"p": 1}'),
        # Type names of other languages, and implied types.
        ({"type": "STRING"}, "123", '"123"'),
        ({"type": "int"}, "5.0", "5"),
        ({"type": "dict"}, "{'a': 1}", '{"a": 1}'),
        ({"properties": {"a": {}}}, "{'a': 1}", '{"a": 1}'),
        ({"items": {}}, "['a']", '["a"]'),
    ],
)
def test_convert_matching_text(schema: Any, text: str, expected: str) -> None:
    value = coercion(schema).convert(text)
    assert value.json == expected.rstrip("!")
    assert (value.problem is not None) == expected.endswith("!")


@pytest.mark.parametrize(
    ("schema", "text", "expected"),
    [
        *(
            (INTEGER, text, "an integer")
            for text in ("02134", "+5", "5.5", "1e-3", "1e99999", "2024-01-01", "", "five")
        ),
        *((INTEGER, text, "an integer") for text in ("0x1f", "1_000", "true", "null", "٣", "5.", "NaN")),
        *((NUMBER, text, "a number") for text in ("NaN", "Infinity", ".5", "1,5", '"5"')),
        *((BOOLEAN, text, "a boolean") for text in ("yes", "1", "tRUE", '"true"')),
        *((NULL, text, "null") for text in ("nil", "NULL", "")),
        *((OBJECT, text, "an object") for text in ("[1]", "{a: 1}", "", "x", '"x"', '"[1]"', '{"a": NaN}', "{" * 99)),
        *((ARRAY, text, "an array") for text in ('{"a": 1}', "1, 2", "(1)", '"')),
        (typed("integer", "null"), "x", "null or an integer"),
        (any_of(NUMBER, OBJECT), "x", "an object or a number"),
        ({"enum": [1, 2]}, "x", "an integer"),
    ],
)
def test_text_of_wrong_type_stays_a_string(schema: Any, text: str, expected: str) -> None:
    problem = f"expected {expected}, found {text[:40]!r}; kept as a string"
    assert coercion(schema).convert(text) == ConvertedValue(json.dumps(text, ensure_ascii=False), problem)


STRANGE: dict[str, list[Any]] = {
    "type": [None, 5, {}, [], ["string", 5], [["string"]], "any", {"string": 1}],
    "enum": [5, [], {}, "ab", [object()], [float("nan")], [10**5000, "a"]],
    "anyOf": [5, [], {}, [5], [{}], "ab", [STRING, {}]],
    "oneOf": [5, [], {}, [5], [{}], "ab"],
    "allOf": [5, [], {}, [5], [{}], "ab", [STRING, INTEGER]],
    "$ref": [5, "", "#id", "#/", "#/$defs", "#/$defs/none/x", "https://x/#", ["#"], "#/$defs/circle", "#/$defs/wheel"],
    "properties": [5, [STRING]],
    "nullable": [True],
}
UNKNOWN: list[Any] = [
    *({}, True, False, None, 5, "string", [STRING], {"description": "…"}, {"type": "string", "const": 5}),
    *({word: keyword} for word, strange in STRANGE.items() for keyword in strange),
    *({"$ref": f"#/$defs/list/{index}"} for index in ("1", "-1", "x", "9" * 5000)),
    typed("string", "number", "boolean", "null", "object", "array"),
]


@pytest.mark.parametrize("schema", UNKNOWN)
def test_schema_without_facts_is_untyped(schema: Any) -> None:
    guess = coercion(schema)
    assert guess.is_untyped
    assert not guess.is_string_only
    assert guess.kind == "any"
    assert guess.member("a").is_untyped
    assert guess.item.is_untyped


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("5", "5"),
        (" 5.0\n", "5.0"),
        (BIG, BIG),
        ("true", "true"),
        ("null", "null"),
        ('{"a": 1}', '{"a": 1}'),
        ("[]", "[]"),
        ("02134", '"02134"'),
        ("+5", '"+5"'),
        ("True", '"True"'),
        ("None", '"None"'),
        ("{'a': 1}", "\"{'a': 1}\""),
        ('"quoted"', '"\\"quoted\\""'),
        ("plain prose", '"plain prose"'),
        ("NaN", '"NaN"'),
        ("", '""'),
        (" ", '" "'),
    ],
)
def test_untyped_param_accepts_json_values(text: str, expected: str) -> None:
    assert coercion({}).convert(text) == ConvertedValue(expected)


@pytest.mark.parametrize(
    ("schema", "streams", "kind"),
    [
        (STRING, True, "string"),
        ({"enum": ["a", "b"]}, True, "string"),
        ({"const": "a"}, True, "string"),
        (any_of(STRING, {"const": "a"}), True, "string"),
        ({"type": "string", "enum": ["a", None]}, True, "string"),
        (typed("string", "null"), False, "string"),
        ({"enum": ["a", None]}, False, "string"),
        (INTEGER, False, "scalar"),
        (NULL, False, "scalar"),
        (typed("string", "integer"), False, "scalar"),
        (OBJECT, False, "object"),
        (any_of(OBJECT, NULL), False, "object"),
        (ARRAY, False, "array"),
        (any_of(OBJECT, ARRAY), False, "any"),
        (any_of(OBJECT, STRING), False, "any"),
    ],
)
def test_kind_and_string_only(schema: Any, streams: bool, kind: str) -> None:
    resolved = coercion(schema)
    assert (resolved.is_string_only, resolved.is_untyped, resolved.kind) == (streams, False, kind)


@pytest.mark.parametrize(
    ("schema", "starts", "excluded"),
    [
        ({}, "{[-0123456789tfn", "\"'(TFNaxé+<"),
        (STRING, "", '{["5tnx'),
        (INTEGER, '5-x{"', ""),  # an error is known only at the end of the text
        (typed("string", "null"), "nN", '{["5tx'),
        (typed("string", "integer"), "5-", '{["ntx'),
        (any_of(STRING, OBJECT), '{("', "[5tnx"),
        ({"enum": ["a", 5]}, '5"', "axtn"),
    ],
)
def test_can_be_value_by_first_character(schema: Any, starts: str, excluded: str) -> None:
    resolved = coercion(schema)
    assert [char for char in starts if not resolved.can_be_value(char)] == []
    assert [char for char in excluded if resolved.can_be_value(char)] == []
    assert resolved.can_be_value("") is not resolved.is_string_only


SCALARS: st.SearchStrategy[Any] = (
    st.none() | st.booleans() | st.integers(-9, 9) | st.sampled_from(["a", "1", "null", "True", "5.0"])
)
SCHEMAS: st.SearchStrategy[Any] = st.deferred(
    lambda: (
        st.sampled_from([STRING, INTEGER, NUMBER, BOOLEAN, NULL, OBJECT, ARRAY, {}, {"$ref": "#/$defs/id"}])
        | st.lists(SCALARS, min_size=1).map(lambda choices: {"enum": choices})
        | st.lists(SCHEMAS, min_size=1, max_size=3).map(lambda branches: {"anyOf": branches})
    )
)
TEXTS = (
    st.text()
    | SCALARS.map(str)
    | SCALARS.map(json.dumps)
    | st.lists(SCALARS).map(repr)
    | st.lists(SCALARS).map(json.dumps)
)


@given(SCHEMAS, TEXTS)
def test_text_forwarded_early_equals_converted_text(schema: Any, text: str) -> None:
    resolved = coercion(schema)
    value = resolved.convert(text)
    json.loads(value.json)
    if not resolved.can_be_value(text.strip()[:1]):
        assert (json.loads(value.json), value.problem) == (text, None)


ANYTHING = st.recursive(
    SCALARS,
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(
            st.sampled_from(
                ["type", "enum", "const", "anyOf", "allOf", "$ref", "properties", "items", "nullable", "p"]
            ),
            inner,
        )
    ),
)


@given(ANYTHING, st.text())
def test_no_schema_raises(schema: Any, text: str) -> None:
    resolved = ValueCoercion(schema, schema)
    for each in (resolved, resolved.member("p"), resolved.item):
        json.loads(each.convert(text).json)
        each.can_be_value(text[:1])


TREE = {
    "properties": {
        "tree": {"$ref": "#"},
        "rows": {"type": "array", "items": {"type": "array", "items": INTEGER}},
        "pair": {"prefixItems": [STRING, INTEGER]},
        "old_pair": {"items": [STRING, STRING]},
        "shape": any_of(
            {"properties": {"kind": {"const": "dot"}, "at": {"$ref": "#/$defs/point"}}},
            {"properties": {"kind": {"const": "box"}, "at": NULL}, "additionalProperties": False},
        ),
        "map": {"type": "object", "additionalProperties": INTEGER, "properties": {"": STRING}},
        "open": {"type": "object", "additionalProperties": True},
    },
    "$defs": DEFS,
}


@pytest.mark.parametrize(
    ("path", "text", "expected"),
    [
        (["tree", "tree", "rows"], "(1,)", "[1]"),
        (["rows", 0, 0], "5.0", "5"),
        (["pair", 0], "5", "5"),
        (["pair", 0], "5.0", '"5.0"'),
        (["old_pair", 0], "5", '"5"'),
        (["shape", "kind"], "null", '"null"'),
        (["shape", "at"], "{'x': 1}", '{"x": 1}'),
        (["shape", "at"], "None", "null"),
        (["shape", "at", "x"], "5.0", "5.0"),
        (["shape", "else"], "5.0", "5.0"),
        (["map", "any"], "5.0", "5"),
        (["map", ""], "5", '"5"'),
        (["map", "other"], "5.0", "5"),
        (["open", "any"], "None", '"None"'),
        (["else", "any", 0], "None", '"None"'),
    ],
)
def test_coercion_of_nested_params(path: list[str | int], text: str, expected: str) -> None:
    resolved = ValueCoercion(TREE, TREE)
    for step in path:
        resolved = resolved.member(step) if isinstance(step, str) else resolved.item
    assert resolved.convert(text) == ConvertedValue(expected)


def test_coercions_are_cached() -> None:
    offer = ToolSet([Tool("t", TREE)])
    copy = ToolSet(offer)
    assert offer.coercion_for("t", "rows") is copy.coercion_for("t", "rows")
    assert offer.coercion_for("t", "rows").item is offer.coercion_for("t", "rows").item
    assert offer.coercion_for("t", "invented") is offer.coercion_for("t", "made up")


@pytest.mark.parametrize(
    ("offer", "tool", "key", "declared"),
    [
        (ToolSet(None), "t", "rows", False),
        (ToolSet([]), "t", "rows", False),
        (ToolSet([Tool("t", TREE)]), "u", "rows", False),
        (ToolSet([Tool("t", TREE)]), "t", "none", False),
        (ToolSet([Tool("t", TREE)]), "t", "rows", True),
        (ToolSet([Tool("t", {"allOf": [TREE]})]), "t", "rows", True),
        (ToolSet([Tool("t")]), "t", "rows", False),
    ],
)
def test_undeclared_param_is_untyped(offer: ToolSet, tool: str, key: str, declared: bool) -> None:
    assert offer.has_param(tool, key) is declared
    assert offer.coercion_for(tool, key).is_untyped is not declared


def test_additional_properties_schema() -> None:
    offer = ToolSet([Tool("t", {"properties": {"a": STRING}, "additionalProperties": INTEGER})])
    assert not offer.has_param("t", "b")
    assert offer.coercion_for("t", "b").convert("5.0") == ConvertedValue("5")
    assert offer.coercion_for("t", "a").convert("5.0") == ConvertedValue('"5.0"')


def test_very_deep_schema_is_ignored() -> None:
    deep: Any = STRING
    for _ in range(5000):
        deep = {"allOf": [deep]}
    assert coercion(deep).is_untyped
    assert coercion(any_of(*[{"const": number} for number in range(900)])).convert("5.0") == ConvertedValue("5")
