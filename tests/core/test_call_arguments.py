"""Parsing and validation of a call's arguments, and the error messages for the model."""

from __future__ import annotations

import json
import time
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from interlingua.common.jsontext.partial import parse_partial
from interlingua.common.jsontext.repair import repair_arguments
from interlingua.core.call_arguments import RepairPolicy
from interlingua.core.reply import Call
from interlingua.errors import BadInput, CallError, UsageError
from interlingua.events import Finding

READ = {
    "type": "function",
    "function": {
        "name": "read",
        "parameters": {
            "type": "object",
            "properties": {
                "path": {"type": "string"},
                "limit": {"type": "integer", "minimum": 1},
                "mode": {"enum": ["r", "w"]},
                "edits": {
                    "type": "array",
                    "items": {"type": "object", "properties": {"old": {"type": "string"}}, "required": ["old"]},
                },
            },
            "required": ["path"],
            "additionalProperties": False,
        },
    },
}


AGAIN = "send the complete call again"
NOT = "the arguments are not JSON"
TOO_DEEP = "the arguments do not match the schema, and are nested too deeply to locate the error"


def call(arguments: str) -> Call:
    return Call("call_1", "read", arguments)


@pytest.mark.parametrize(
    ("arguments", "kind", "problem"),
    [
        ("", "empty", "the arguments are empty: send a JSON object with `path`"),
        (" \n", "empty", "the arguments are empty: send a JSON object with `path`"),
        ("null", "empty", "the arguments are empty: send a JSON object with `path`"),
        ('{"path": 1e400}', "not-json", "the arguments cannot be parsed: the number 1e400 is too large"),
        ('{"path": "a', "cut", f"the arguments were cut off at character 11, inside a string: {AGAIN}"),
        ('{"path": "a"', "cut", f"the arguments were cut off at character 12: {AGAIN}"),
        ('{"path": "a",', "cut", f"the arguments were cut off at character 13: {AGAIN}"),
        ('{\n"path": "a" "limit": 5}', "not-json", f"{NOT}: expected ',' or '}}', found '\"' (line 2, column 13)"),
        ('{"path": nope}', "not-json", f"{NOT}: expected a value, found 'nope' (line 1, column 10)"),
        ('{"path": "a"} so', "not-json", "the arguments are a JSON object followed by other text (line 1, column 14)"),
        ("[1]", "not-object", "the arguments should be a JSON object but are [1]"),
        ('"a"', "not-object", 'the arguments should be a JSON object but are "a"'),
        ("{}", "misfit", "`path` is missing: it is required (a string)"),
        ('{"path": 5}', "misfit", "`path` should be a string but is 5"),
        ('{"path": "a", "limit": "5"}', "misfit", '`limit` should be an integer but is "5"'),
        ('{"path": "a", "limit": 0}', "misfit", "`limit`: 0 is less than the minimum of 1"),
        ('{"path": "a", "mode": "x"}', "misfit", '`mode` should be one of "r", "w" but is "x"'),
        ('{"path": "a", "edits": [{}]}', "misfit", "`edits[0].old` is missing: it is required (a string)"),
        (
            '{"path": "a", "lines": 5}',
            "misfit",
            "the object has unknown keys: `lines`; allowed keys: `path`, `limit`, `mode`, `edits`",
        ),
    ],
)  # fmt: skip
def test_problem_messages(arguments: str, kind: str, problem: str) -> None:
    with pytest.raises(CallError) as raised:
        call(arguments).parse(READ)
    assert (raised.value.name, raised.value.kind, raised.value.problems) == ("read", kind, [problem])
    assert str(raised.value) == f"The call of 'read' was not run.\n- {problem}"


@pytest.mark.parametrize("repair", ["never", "safe"])
@pytest.mark.parametrize(
    ("arguments", "problem"),
    [
        ('{"path": "a"}', f"the reply ended inside this call: {AGAIN}"),
        ("{}", f"the reply ended inside this call: {AGAIN}"),
        ("", f"the reply ended inside this call: {AGAIN}"),
        ('{"path": "a",}', f"the reply ended inside this call: {AGAIN}"),
        ('{"path": "a', f"the arguments were cut off at character 11, inside a string: {AGAIN}"),
    ],
)
def test_incomplete_call_is_cut(arguments: str, problem: str, repair: RepairPolicy) -> None:
    with pytest.raises(CallError) as raised:
        Call("call_1", "read", arguments, complete=False).parse(READ, repair=repair)
    assert (raised.value.kind, raised.value.problems) == ("cut", [problem])


def test_wrong_use_raises() -> None:
    with pytest.raises(UsageError, match="takes a tool, not str"):
        call("{}").parse("read")  # type: ignore[arg-type]
    with pytest.raises(UsageError, match="one of 'never', 'safe', not True"):
        call("{}").parse(repair=True)  # type: ignore[arg-type]


def test_mcp_tool_format() -> None:
    with pytest.raises(CallError, match="`path` is missing"):
        call("{}").parse({"name": "read", "inputSchema": {"type": "object", "required": ["path"]}})


def test_several_problems_are_reported_together() -> None:
    with pytest.raises(CallError) as raised:
        call('{"limit": "5", "mode": 3}').parse(READ)
    assert len(raised.value.problems) == 3


def test_valid_arguments_are_returned_as_object() -> None:
    assert call('{"path": "a", "limit": 5}').parse(READ) == {"path": "a", "limit": 5}
    assert call('{"path": "\\ud83d", "n": 123456789012345678901234567890}').parse() == {
        "path": "\ud83d",
        "n": 123456789012345678901234567890,
    }


@pytest.mark.parametrize(
    ("arguments", "problem"),
    [
        ('{"path": ["\\ud83d"]}', '`path` should be a string but is ["\ufffd"]'),
        ('{"path": ' + "[" * 300 + "]" * 300 + "}", TOO_DEEP),
    ],
)
def test_values_that_the_validator_rejects_are_reported(arguments: str, problem: str) -> None:
    with pytest.raises(CallError) as raised:
        call(arguments).parse(READ)
    assert raised.value.problems == [problem]


@pytest.mark.parametrize(
    ("arguments", "repaired"),
    [
        ('```json\n{"path": "a"}\n```', '{"path": "a"}'),
        ('{"path": "a",}', '{"path": "a"}'),
        ('{"path": "a, }", "edits": [1, 2, ], }', '{"path": "a, }", "edits": [1, 2 ] }'),
        ('{"path": "a"}{"path": "a"}', '{"path": "a"}'),
        ('{"path": "a"}\n{"path":"a"}', '{"path": "a"}'),
        ('"{\\"path\\": \\"a\\"}"', '{"path": "a"}'),
        ('{"path": "a\nb\tc"}', '{"path": "a\\nb\\tc"}'),
        ('```\n{"path": "a",}\n```', '{"path": "a"}'),
        ('```json\r\n{"path": "```"}\r\n  ```\n', '{"path": "```"}'),
        ('{"path": "a\\\\\nb"}', '{"path": "a\\\\\\nb"}'),
        ('{"path": "a",}{"path": "a",}', '{"path": "a"}'),
        ('{"path": "a\0", "edits": [True, None]}', '{"path": "a\\u0000", "edits": [true, null]}'),
    ],
)
def test_safe_repairs(arguments: str, repaired: str) -> None:
    with pytest.raises(CallError):
        call(arguments).parse()
    findings: list[Finding] = []
    assert call(arguments).parse(repair="safe", findings=findings) == json.loads(repaired)
    assert {finding.kind for finding in findings} == {"repaired-arguments"}
    assert repair_arguments(arguments) is not None
    assert repair_arguments(repaired) == (repaired, [])


@pytest.mark.parametrize(
    "arguments",
    [
        '{"path": "a"',
        '{"path": "a',
        '{"path": "a"}{"path": "b"}',
        "{path: 1}",
        "{'path': 'a'}",
        "",
        "[1,]",
        "```json\n{",
        "```json {} ```",
        '{"path": "make \\\n all"}',
        '{"path": "make \\\t all\n"}',
        '{"path": [,]}',
        "{ ,}",
        '{"path": [1,,]}',
        '{"path": true}{"path": 1}',
        '{"path": 0}{"path": false}',
        '{"path": 1}{"path": 1.0}',
        '{"path": 1e400}{"path": 1e400}',
    ],
)
def test_ambiguous_arguments_are_not_repaired(arguments: str) -> None:
    with pytest.raises(CallError):
        call(arguments).parse(repair="safe")


def test_hostile_schemas() -> None:
    def parse(schema: dict[str, Any], arguments: str) -> Any:
        return call(arguments).parse({"name": "read", "parameters": schema})

    slow = {"type": "object", "properties": {"a": {"type": "string", "pattern": "^(a+)+$"}}}
    began = time.perf_counter()
    with pytest.raises(CallError, match="`a`"):
        parse(slow, json.dumps({"a": "a" * 100_000 + "!"}))
    assert time.perf_counter() - began < 1
    lookbehind = {"type": "object", "properties": {"a": {"type": "string", "pattern": "(?<=x)y"}}}
    assert parse(lookbehind, '{"a": "z"}') == {"a": "z"}
    for schema in ({"type": "nope"}, {"$ref": "#/nowhere"}, {"$ref": "http://127.0.0.1:9/x.json"}):
        with pytest.raises(BadInput, match="the schema of the tool 'read'"):
            parse(schema, "{}")
    loop = {"$ref": "#/$defs/a", "$defs": {"a": {"properties": {"b": {"$ref": "#/$defs/a"}}}}}
    deep = '{"b":' * 900 + "1" + "}" * 900
    assert parse(loop, deep)


BEHIND = {"type": "string", "pattern": "(?<=x)y"}  # no linear-time engine supports lookbehind


@pytest.mark.parametrize(
    ("schema", "fits", "misfit"),
    [
        ({"properties": {"pattern": {"type": "string"}, "b": BEHIND}}, {"pattern": "z", "b": "z"}, {"pattern": 5}),
        (
            {"properties": {"a": {"type": "string", "pattern": "^z$"}, "b": BEHIND}},
            {"a": "z", "b": "z"},
            {"a": "y"},
        ),
        (
            {"properties": {"a": {"enum": [{"pattern": "(?=x)"}]}, "b": BEHIND}},
            {"a": {"pattern": "(?=x)"}},
            {"a": {}},
        ),
        ({"properties": {"a": {"items": {"anyOf": [BEHIND]}}}}, {"a": ["z"]}, {"a": [5]}),
        ({"properties": {"a": {"not": BEHIND}, "b": {"type": "string"}}}, {"a": "z"}, {"b": 5}),
        ({"properties": {"a": {"type": "string", "oneOf": [BEHIND, {"pattern": "z"}]}}}, {"a": "z"}, {"a": 5}),
        ({"properties": {"a": {"if": BEHIND, "then": False, "minLength": 1}}}, {"a": "z"}, {"a": ""}),
        (
            {"patternProperties": {"^z": {"type": "string"}, "(?<=x)y": {}}, "additionalProperties": False},
            {"xy": 1, "z": "a"},
            {"z": 1},
        ),
        ({"$defs": {"a": BEHIND}, "properties": {"a": {"$ref": "#/$defs/a"}}}, {"a": "z"}, {"a": 5}),
    ],
)
def test_only_unsupported_patterns_are_dropped(
    schema: dict[str, Any], fits: dict[str, Any], misfit: dict[str, Any]
) -> None:
    tool = {"name": "read", "parameters": schema}
    assert call(json.dumps(fits)).parse(tool) == fits
    with pytest.raises(CallError):
        call(json.dumps(misfit)).parse(tool)


@given(
    st.recursive(
        st.none() | st.booleans() | st.integers() | st.text(), lambda v: st.lists(v) | st.dictionaries(st.text(), v)
    )
)
def test_partial_never_raises_and_is_complete_at_the_end(value: Any) -> None:
    text = json.dumps({"x": value})
    for cut in range(len(text)):
        begun = parse_partial(text[:cut])
        assert begun is None or isinstance(begun, dict)
    assert parse_partial(text) == {"x": value}


@given(st.text(alphabet='{}[]",:\\u0ab1 \n`', max_size=40))
def test_parse_raises_only_call_errors(text: str) -> None:
    parse_partial(text)
    try:
        parsed = call(text).parse(repair="safe")
    except CallError:
        return
    assert isinstance(parsed, dict)


def test_long_text_takes_linear_time() -> None:
    for text in (
        '{"a": "' + "x" * 2_000_000,
        '"' + "\\" * 200_001,
        '"' + '\\"' * 200_000,
        "```a\n" + " " * 500_000 + "x",
        "```a\n" + "\n" * 500_000 + "x",
        '{"a": [' * 300_000,
        "{}" * 100_000,
        "," * 500_000,
        (", " * 300 + ",") * 1000,
    ):
        began = time.perf_counter()
        parse_partial(text)
        repair_arguments(text)
        assert time.perf_counter() - began < 20, text[:20]  # quadratic time would take hours
