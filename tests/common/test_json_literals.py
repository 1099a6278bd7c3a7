"""Conversion of mixed Python and JSON literals to JSON."""

from __future__ import annotations

import json
from time import process_time
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from interlingua.common.jsontext.literals import MAX_DEPTH, literal_to_json


@pytest.mark.parametrize(
    "text",
    [
        '{"a": [1, 2.50, -0, 1E+5, true, false, null, "x\\u00e9\\/\\"\'"], "b" :{}}',
        '{\n  "a": 1\r\n\t}',
        "123456789012345678901234567890",
        "1" * 5000,
        "1e999",
        '"\\ud83d"',
        '"\ud83d"',
        '""',
        "[]",
        '{"a": 1, "a": 2}',
        "[" * 500 + "]" * 500,
    ],
)
def test_json_is_unchanged(text: str) -> None:
    assert literal_to_json(text) == text
    assert literal_to_json(f" \n{text}\t\r\n") == text


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("{'a': True, 'b': [None, False]}", '{"a": true, "b": [null, false]}'),
        ("{'a': true, \"b\": None}", '{"a": true, "b": null}'),
        ("['x', \"it's\"]", '["x", "it\'s"]'),
        ("'say \"hi\"'", '"say \\"hi\\""'),
        ("'it\\'s'", '"it\'s"'),
        ("''", '""'),
        ("[1, 2, ]", "[1, 2 ]"),
        ("{'a': 1,}", '{"a": 1}'),
        ("()", "[]"),
        ("( )", "[ ]"),
        ("(1,)", "[1]"),
        ("(1, (2, 3))", "[1, [2, 3]]"),
        ("(1)", "1"),
        ("(" * MAX_DEPTH + "None" + ")" * MAX_DEPTH, "null"),
        ("( {'a': 1} )", '{"a": 1}'),
        ("{1: 'a', None: 2, True: 3, 1.5: 4}", '{"1": "a", "null": 2, "true": 3, "1.5": 4}'),
        (
            "[.5, 5., -.5, +5, 1e+16, 0.0, 12345678901234567890]",
            "[0.5, 5.0, -0.5, 5, 1e+16, 0.0, 12345678901234567890]",
        ),
        ("'''it's\n\"two\" lines'''", '"it\'s\\n\\"two\\" lines"'),
        ('"""a "b" c"""', '"a \\"b\\" c"'),
        ("''''a'''", '"\'a"'),
        (r"'\x41\u00e9\U0001f600\101\0\a\v\d+\\'", '"Aé😀A\\u0000\\u0007\\u000b\\\\d+\\\\"'),
        ("'one \\\nline'", '"one line"'),
        ('"a\nb\\/c"', '"a\\nb\\/c"'),  # a raw line break: neither JSON nor Python, but unambiguous
        ('"\\x41"', '"A"'),
        ("'\\ud83d\\ude00'", '"\\ud83d\\ude00"'),
    ],
)
def test_python_literals_become_json(text: str, expected: str) -> None:
    assert literal_to_json(text) == expected
    json.loads(expected)


@pytest.mark.parametrize(
    "text",
    [
        *("", " ", "hello", "hello world", "NaN", "Infinity", "-Infinity", "[nan]", "TRUE", "nil", "undefined"),
        *(
            "[",
            "]",
            "[1",
            "[1 2]",
            "[,]",
            "[1,,2]",
            "(,)",
            "[1)",
            "{",
            "{'a'}",
            "{'a' 1}",
            "{'a':}",
            "{a: 1}",
            "{1, 2}",
        ),
        *("{[1]: 2}", "{(1, 2): 3}", "{'a': 1 'b': 2}", "{'a': 1}}", "1, 2", "1 2", "'a' 'b'", "[] x"),
        *("02134", "0x1f", "1_000", "1j", ".", "-", "+", "e5", ".e5", "1e", "1.5.2", "2024-01-01", "--5", "٣"),
        *("'", "'a", '"a', "'a\\", "'a\\'", "'''a''", "b'a'", "r'a'", "f'a'"),
        *(r"'\x4'", r"'\u00e'", r"'\U00110000'", r"'\N{DASH}'"),
        *("f(1)", "__import__('os')", "[x for x in y]", "1 + 2", "[1] # one", "lambda: 0", "'%s' % 1"),
        "[" * MAX_DEPTH + "()" + "]" * MAX_DEPTH,
        "(" * 100_000,
    ],
)
def test_non_literals_are_rejected(text: str) -> None:
    assert literal_to_json(text) is None


SCALARS = st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text()
VALUES = st.recursive(SCALARS, lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner))


@given(VALUES, st.booleans(), st.sampled_from([None, 2]))
def test_any_valid_json_is_unchanged(value: Any, ascii_only: bool, indent: int | None) -> None:
    text = json.dumps(value, ensure_ascii=ascii_only, indent=indent)
    assert literal_to_json(text) == text


@given(VALUES)
def test_any_python_repr_is_converted(value: Any) -> None:
    text = literal_to_json(repr(value))
    assert text is not None
    assert json.loads(text) == value


# Text that is almost a literal reaches more code than random characters.
NEARLY = st.lists(
    st.sampled_from([*"{}[](),:'\"\\ \n0.5e-+xuUN", "'''", "True", "null", "\\u00e9", "a", "\ud83d"])
).map("".join)


@given(st.text() | NEARLY)
def test_result_is_valid_json_or_none(text: str) -> None:
    converted = literal_to_json(text)
    if converted is not None:
        json.loads(converted)
        assert literal_to_json(converted) == converted


@pytest.mark.one_row_in(5)
@pytest.mark.parametrize(
    "unit",
    ["[", "(1,", "'a', ", '"a\\n", ', "'\\", "'''", "1", "1.", "{'a':", "{'a': 1}, ", " ", "\\", "\n,", "a", '"', "''"],
)
@pytest.mark.parametrize("opener", ["", "[", "'", '"""'])
def test_long_text_takes_linear_time(opener: str, unit: str) -> None:
    text = opener + unit * (200_000 // len(unit))
    begin = process_time()
    literal_to_json(text)
    literal_to_json(f"{text}]")
    assert process_time() - begin < 3  # quadratic time would take minutes
