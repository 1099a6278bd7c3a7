"""The YAML of cassettes: every value is read as it was written, and texts stay readable."""

from __future__ import annotations

from typing import Any

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from interlingua.cassettes.yaml_writer import write_yaml

TEXTS = st.text(st.characters(codec="utf-8")) | st.text(" \n\t-:#|>ab'\"{}[]*&!%@`\\\r\x85\u2028é😀")
VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | TEXTS,
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(TEXTS, inner, max_size=4),
    max_leaves=20,
)


@given(VALUES)
def test_yaml_is_read_as_it_was_written(value: Any) -> None:
    for loader in (yaml.SafeLoader, getattr(yaml, "CSafeLoader", yaml.SafeLoader)):
        assert yaml.load(write_yaml({"value": value}), loader) == {"value": value}


@pytest.mark.parametrize("item", [1, "text", "two\nlines\n", [], ["a", {"b": 1}], {"c": ["d"]}])
@pytest.mark.parametrize("key", ["k" * 2000, "k " * 600, "é\n" * 600])
def test_long_key_is_read_as_it_was_written(key: str, item: Any) -> None:
    value = {key: item, "list": [{key: item, "after": 1}, {"before": 1, key: {key: item}}]}
    for loader in (yaml.SafeLoader, getattr(yaml, "CSafeLoader", yaml.SafeLoader)):
        assert yaml.load(write_yaml(value), loader) == value


@given(st.lists(st.sampled_from(["a" * 100, {"k": ["b" * 90, "c\n" * 50]}, ["d" * 90], {"n": 1}]), max_size=6))
def test_repeated_values_are_read_as_they_were_written(values: list[Any]) -> None:
    assert yaml.safe_load(write_yaml({"values": values, "again": values})) == {"values": values, "again": values}


@pytest.mark.parametrize(
    ("value", "text"),
    [
        ({"a": "one\ntwo \n\n  three"}, "a: |-\n  one\n  two \n\n    three\n"),
        ({"a": "one\n\n"}, "a: |+\n  one\n\n"),
        ({"a": "  one\ntwo\n"}, "a: |2\n    one\n  two\n"),
        ({"a": [{"b": 1, "c": "d"}, "e"]}, "a:\n- b: 1\n  c: d\n- e\n"),
        (
            {"a": "yes", "b": "1.5", "c": "x: y", "d": "", "e": "12:30:00"},
            'a: "yes"\nb: "1.5"\nc: "x: y"\nd: ""\ne: "12:30:00"\n',
        ),
        ({"a": {}, "b": [], "c": None, "d": 1e-7}, "a: {}\nb: []\nc: null\nd: 1.0e-07\n"),
        ({"a": "What is it?", "b": "/tmp/x", "c": "tab\tin"}, 'a: What is it?\nb: /tmp/x\nc: "tab\\tin"\n'),
        ({"tools": ["x" * 80, "x" * 80]}, f"tools:\n- &tool-1 {'x' * 80}\n- *tool-1\n"),
        ({"a": '{"b": "c"}', "d": 'it\'s "so"'}, 'a: \'{"b": "c"}\'\nd: it\'s "so"\n'),
        ({"a": '"it\'s"'}, "a: '\"it''s\"'\n"),
        ({"a": ["line\r\n"]}, 'a:\n- "line\\r\\n"\n'),
    ],
)
def test_layout(value: Any, text: str) -> None:
    assert write_yaml(value) == text
