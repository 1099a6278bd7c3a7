"""Arguments as literals: written arguments survive a round trip, and others are refused."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as some

import interlingua as il
from interlingua.core.options import Limits
from interlingua.errors import RenderError
from tests.support.harness import tool

DIALECTS = ["gemma4", "functiongemma", "pythonic", "lfm2", "olmo3"]
each_dialect = pytest.mark.parametrize("dialect", DIALECTS)

scalars = some.none() | some.booleans() | some.integers() | some.floats(allow_nan=False, allow_infinity=False)
texts = some.text(some.characters(codec="utf-8"), max_size=20) | some.sampled_from(
    [
        "'",
        '"',
        "\\",
        '\\"',
        "', b='",
        '")]',
        "\n",
        "}<tool_call|>",
        "<|tool_call_end|>",
        "</function_calls>",
        "[x](y)",
        "f(x), g.h(a='b')]",
        '<function_calls>f(a="b")</function_calls>',
        "\x00",
    ]
)
values = some.recursive(
    scalars | texts,
    lambda inner: some.lists(inner, max_size=3) | some.dictionaries(texts, inner, max_size=3),
    max_leaves=8,
)
arguments = some.dictionaries(some.sampled_from(["a", "b_1", "größe", "x-y"]), values, max_size=4)


def written(dialect: str, *calls: tuple[str, dict[str, Any]]) -> str:
    parts = [il.Call(id=f"c{n}", name=name, arguments=json.dumps(args)) for n, (name, args) in enumerate(calls)]
    return il.render(il.Reply(parts=list(parts)), dialect)


def read(dialect: str, text: str) -> list[tuple[str, dict[str, Any]]]:
    return [(call.name, json.loads(call.arguments)) for call in il.parse(text, dialect).calls if call.complete]


escaping_dialect = pytest.mark.parametrize(
    ("dialect", "opener", "closer"),
    [
        ("lfm2", "<|tool_call_start|>[", "]<|tool_call_end|>"),
        ("olmo3", "<function_calls>", "</function_calls>"),
        ("pythonic", "[", "]"),
    ],
)


@escaping_dialect
@given(some.lists(some.integers(0, 9), max_size=6))
def test_escaped_quotations_of_calls_are_data(dialect: str, opener: str, closer: str, choice: list[int]) -> None:
    call = f'{opener}g(a="x", b="y"){closer}'
    parts = [call, f"{opener}g(", 'g(a="', '")' + closer, '")', '"), g(a="', '", b="', '")\ng(a="', "x", "\n"]
    value = "".join(parts[n] for n in choice)
    tools = [tool(name, ["a", "b"]) for name in ("f", "g")]
    text = f'{opener}f(a={json.dumps(value)}, b="c"), g(a="x"){closer}'
    reply = il.parse(text, dialect, tools)
    expected = [("f", {"a": value, "b": "c"}), ("g", {"a": "x"})]
    assert [(call.name, json.loads(call.arguments)) for call in reply.calls if call.complete] == expected
    assert not reply.findings


@each_dialect
@given(arguments, arguments)
def test_round_trip(dialect: str, first: dict[str, Any], second: dict[str, Any]) -> None:
    calls = [("f", first), ("g.h", second)]
    try:
        text = written(dialect, *calls)
    except RenderError:
        return
    if dialect == "functiongemma":  # there all values are text, and only the schema gives their types
        assert [(name, list(args)) for name, args in read(dialect, text)] == [
            (name, list(args)) for name, args in calls
        ]
    else:
        assert read(dialect, text) == calls


@pytest.mark.parametrize(
    ("dialect", "args"),
    [
        ("gemma4", {"a": "say \"hi\", 'x' {y} [z]\n", "b": {"c d": [1, "two", None, {"e": True}]}, "f": -1.5}),
        ("functiongemma", {"a": "Paris", "b": 3, "c": [1, 2]}),
        ("pythonic", {"a": "say \"hi\", b='c') ]\\ \n\t", "b": {"c d": [1, "two", None, {"e": True}]}}),
        ("lfm2", {"a": "it's \"x\", b='c')]\\ \n\t", "b": {"c d": [1, "two", None, {"e": True}]}}),
        ("olmo3", {"a": 'say "hi")\n</function_calls>', "b": {"c d": [1, "two", None, {"e": True}]}}),
    ],
)
def test_round_trip_of_ordinary_arguments(dialect: str, args: dict[str, Any]) -> None:
    assert read(dialect, written(dialect, ("f", args))) == [("f", args)]


@pytest.mark.parametrize(
    ("dialect", "name", "args"),
    [
        ("gemma4", "two words", {}),
        ("gemma4", "f", {"a": 'x<|"|>,b:1'}),
        ("gemma4", "f", {"a,b": 1}),
        ("functiongemma", "f", {"a": "x<escape>,b:<escape>"}),
        ("pythonic", "a(b", {}),
        ("pythonic", "f", {"a b)": 1}),
        ("lfm2", "1f", {}),
        ("olmo3", "", {}),
        ("olmo3", "f", {"a=b": 1}),
    ],
)
def test_call_that_would_be_parsed_differently_is_refused(dialect: str, name: str, args: dict[str, Any]) -> None:
    with pytest.raises(RenderError):
        written(dialect, (name, args))


@each_dialect
def test_incomplete_arguments_are_refused(dialect: str) -> None:
    for call in (il.Call(id="c", name="f", arguments='{"a": '), il.Call(id="c", name="f", arguments="[]")):
        with pytest.raises(RenderError, match="not a complete JSON object"):
            il.render(il.Reply(parts=[call]), dialect)


@pytest.mark.parametrize("dialect", ["gemma4", "pythonic", "lfm2", "olmo3"])
def test_arguments_nested_too_deep_are_refused(dialect: str) -> None:
    deep: list[Any] = []
    for _ in range(100):
        deep = [deep]
    with pytest.raises(RenderError):
        written(dialect, ("f", {"a": deep}))


@each_dialect
@pytest.mark.parametrize("over", ["flush", "error"])
def test_limits(dialect: str, over: Any) -> None:
    text = written(dialect, ("f", {"a": "x" * 100, "b": 1})) + "Done."
    limits = Limits(held=60, args=60, over=over)
    parser = il.Parser(dialect, options=il.Options(limits=limits))
    reply = il.fold([event for char in text for event in parser.feed(char)] + parser.close())
    assert not [call for call in reply.calls if call.complete]
    if over == "error":
        assert reply.failure is not None
    else:
        assert reply.text.endswith("Done.")
        assert "over-limit" in [finding.kind for finding in reply.findings]
