"""JsonScanner. Each row is scanned whole, one character at a time and in every two-piece cut, with the same outcome."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any, NamedTuple

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from interlingua.common.jsontext.scanner import MAX_DEPTH, MAX_SCALAR_CHARS, JsonScanner


class Outcome(NamedTuple):
    """Result of a scan. `end` is the value's end, or the end of the text if the value never ended."""

    ended: bool
    problem: str | None
    end: int
    offset: int
    first: str


def scan_pieces(pieces: list[str]) -> Outcome:
    """Scan the pieces like a caller without markers: every unknown character is skipped."""
    scanner = JsonScanner()
    before = 0
    pos = 0
    for piece in pieces:
        pos = scanner.scan(piece, 0)
        while pos < len(piece) and not scanner.ended:
            after = scanner.skip_char(piece, pos)
            assert after == pos + 1
            pos = scanner.scan(piece, after)
            assert pos >= after
        if scanner.ended:
            break
        before += len(piece)
        pos = 0
    scanner.finish()
    return Outcome(scanner.ended, scanner.problem, before + pos, scanner.offset, scanner.first_char)


def cuttings(text: str) -> Iterator[list[str]]:
    yield list(text)
    for cut in range(len(text) + 1):
        yield [text[:cut], text[cut:]]


def scan_all_cuts(text: str) -> Outcome:
    uncut = scan_pieces([text])
    for pieces in cuttings(text):
        assert (pieces, scan_pieces(pieces)) == (pieces, uncut)
    assert uncut.offset == uncut.end
    return uncut


def is_json(text: str) -> bool:
    def refuse(constant: str) -> None:
        raise ValueError(constant)

    try:
        json.loads(text, parse_constant=refuse)
    except ValueError:
        return False
    return True


def assert_same_as_json_module(text: str, outcome: Outcome) -> None:
    right = outcome.ended and outcome.problem is None
    assert (text[: outcome.end], right, outcome.problem) == (
        text[: outcome.end],
        is_json(text[: outcome.end]),
        outcome.problem,
    )


RIGHT = [
    "{}",
    "[]",
    '""',
    "0",
    "-0",
    "12",
    "-1.5e+10",
    "1E5",
    "0.0e-0",
    "true",
    "false",
    "null",
    ' \t\r\n {"a" : [ 1 , 2 ] , "b":{ } , "c" : null } ',
    '{"a":1,"b":"two","c":[true,false,null,-0.5e1],"d":{"e":{"f":[]}}}',
    '{"a":{"a":{"a":[[],[{}],{"":""}]}},"b":1}',
    '[1,2,"3",4.0,{"k":"v"},[5],6]',
    '["\\"\\\\\\/\\b\\f\\n\\r\\t"]',
    '"\\u0041\\uD83D\\ude00 \\ud800"',
    '{"<|call_end|>": "</tool_call> { [ \' ` , :"}',
    '"é 😀 \x7f \u2028"',
    '{"\\u0061": "\\\\"}',
    "[" + "1," * 300 + "1]",
    "{" + '"a":1,' * 300 + '"a":1}',
]


@pytest.mark.parametrize("text", RIGHT)
def test_valid_json_has_no_problem(text: str) -> None:
    outcome = scan_all_cuts(text)
    assert is_json(text)
    assert outcome == (True, None, len(text.rstrip()), len(text.rstrip()), text.lstrip()[0])


BESIDE = [
    # the value, and the text after it
    ("{}", "}"),
    ("{}", "<|tool_call_end|>"),
    (' {"a": 1}', " and so on"),
    ('"a"', '"b"'),
    ("[1]", ",2]"),
    ("12", " 3"),
    ("12", "<"),
    ("12", "}"),
    ("12", '"'),
    ("null", ","),
    ("true", "[]"),
    ("-1", "é"),
]


@pytest.mark.parametrize(("value", "rest"), BESIDE)
def test_text_after_value_is_not_consumed(value: str, rest: str) -> None:
    assert scan_all_cuts(value + rest) == (True, None, len(value), len(value), value.lstrip()[0])


SLIPS = [
    # the text; whether the value ends; the problem
    ("", False, "empty"),
    ("  \n", False, "empty"),
    ("{", False, "ended with 1 bracket open at character 1"),
    ('{"a":[1', False, "ended with 2 brackets open at character 7"),
    ('{"a', False, "ended inside a string at character 3"),
    ('["\\u00', False, "ended inside a string at character 6"),
    ('["\\', False, "ended inside a string at character 3"),
    ("[1, 2", False, "ended with 1 bracket open at character 5"),
    # separators
    ("[1 2]", True, "expected ',' or ']', found '2' at character 3"),
    ("[1,]", True, "expected a value, found ']' at character 3"),
    ("[,1]", True, "expected a value or ']', found ',' at character 1"),
    ("[1,,2]", True, "expected a value, found ',' at character 3"),
    ("[1:2]", True, "expected ',' or ']', found ':' at character 2"),
    ("[:]", True, "expected a value or ']', found ':' at character 1"),
    ('{"a":1,}', True, "expected a string key, found '}' at character 7"),
    ("{,}", True, "expected a string key or '}', found ',' at character 1"),
    ('{"a":1 "b":2}', True, "expected ',' or '}', found '\"' at character 7"),
    ('{"a":1:2}', True, "expected ',' or '}', found ':' at character 6"),
    ('{"a":1,:2}', True, "expected a string key, found ':' at character 7"),
    ('{"a" 1}', True, "expected ':' after a key, found '1' at character 5"),
    ('{"a" "b"}', True, "expected ':' after a key, found '\"' at character 5"),
    ('{"a", "b":1}', True, "expected ':' after a key, found ',' at character 4"),
    ('{"a"}', True, "expected ':' after a key, found '}' at character 4"),
    ('{"a" {"b":1}}', True, "expected ':' after a key, found '{' at character 5"),
    ('{"a":}', True, "expected a value, found '}' at character 5"),
    ('{"a":,"b":1}', True, "expected a value, found ',' at character 5"),
    ('{"a"::1}', True, "expected a value, found ':' at character 5"),
    # keys
    ("{a:1}", True, "expected a string key or '}', found 'a' at character 1"),
    ("{1:1}", True, "expected a string key or '}', found '1' at character 1"),
    ('{{"a":1}}', True, "expected a string key or '}', found '{' at character 1"),
    ('{"a":1,[2]:3}', True, "expected a string key, found '[' at character 7"),
    # brackets
    ("[1}", True, "expected ',' or ']', found '}' at character 2"),
    ('{"a":1]', True, "expected ',' or '}', found ']' at character 6"),
    ('{"a":[1}}', True, "expected ',' or ']', found '}' at character 7"),
    ("{]", True, "expected a string key or '}', found ']' at character 1"),
    # scalars
    ("01", True, "expected a value, found '01' at character 0"),
    ("[-]", True, "expected a value, found '-' at character 1"),
    ("[1.]", True, "expected a value, found '1.' at character 1"),
    ("[.5]", True, "expected a value, found '.5' at character 1"),
    ("[+1,2]", True, "expected a value, found '+1' at character 1"),
    ("[1e]", True, "expected a value, found '1e' at character 1"),
    ("[1,2.,3]", True, "expected a value, found '2.' at character 3"),
    ('{"a":1,"b":1e+,"c":2}', True, "expected a value, found '1e+' at character 11"),
    ("[nul]", True, "expected a value, found 'nul' at character 1"),
    ('{"a":True}', True, "expected a value, found 'True' at character 5"),
    ("NaN", True, "expected a value, found 'NaN' at character 0"),
    ("[-Infinity]", True, "expected a value, found '-Infinity' at character 1"),
    ("hello {}", True, "expected a value, found 'hello' at character 0"),
    ("[" + "x" * 50 + "]", True, f"expected a value, found '{'x' * 40}' at character 1"),
    # strings
    ('["\\x41"]', True, "expected an escape after '\\', found 'x' at character 3"),
    ('["\\u12"]', True, "expected 4 hex digits after '\\u', found '\"' at character 6"),
    ('["\\u12g4"]', True, "expected 4 hex digits after '\\u', found 'g' at character 6"),
    ('["\\u12\\n"]', True, "expected 4 hex digits after '\\u', found '\\\\' at character 6"),
    ('["\\U0041"]', True, "expected an escape after '\\', found 'U' at character 3"),
    ('"\\\n"', True, "expected an escape after '\\', found '\\n' at character 2"),
    ('["a\nb"]', True, "raw control character '\\n' in a string at character 3"),
    ('["\x00"]', True, "raw control character '\\x00' in a string at character 2"),
    ('{"a\tb":1,"c":2}', True, "raw control character '\\t' in a string at character 3"),
    # unknown characters
    ("['a']", True, "expected a value or ']', found \"'\" at character 1"),
    ("[1, <2]", True, "expected a value, found '<' at character 4"),
    ("[1|]", True, "expected ',' or ']', found '|' at character 2"),
    ("[12é]", True, "expected ',' or ']', found 'é' at character 3"),
    ("[1\xa0]", True, "expected ',' or ']', found '\\xa0' at character 2"),
    ("\ufeff{}", True, "expected a value, found '\\ufeff' at character 0"),
    ("``` {}", True, "expected a value, found '`' at character 0"),
    ("}{}", True, "expected a value, found '}' at character 0"),
    (" ,1", True, "expected a value, found ',' at character 1"),
    (":", False, "expected a value, found ':' at character 0"),
    # only the first problem is reported
    ("[1,,<'x']", True, "expected a value, found ',' at character 3"),
    ("[<", False, "expected a value or ']', found '<' at character 1"),
]


@pytest.mark.parametrize(("text", "ended", "problem"), SLIPS)
def test_invalid_json_is_reported_and_scan_continues(text: str, ended: bool, problem: str) -> None:
    outcome = scan_all_cuts(text)
    assert (outcome.ended, outcome.problem) == (ended, problem)
    assert_same_as_json_module(text, outcome)


ODD = [
    # the text, and the position where the scan stops for the caller
    ('{"a": 1<|call_end|>', 7),
    ('{"a": "<|call_end|>"<|call_end|>', 20),
    ("[1, 'a']", 4),
    ("<", 0),
    (" }", 1),
    ("[1 2 : , } <", 10),  # the brackets are closed (wrongly): the value has ended
    ("[1 2 : , <", 9),
]


@pytest.mark.parametrize(("text", "stop"), ODD)
def test_scan_stops_at_possible_marker(text: str, stop: int) -> None:
    for pieces in cuttings(text[:stop]):
        scanner = JsonScanner()
        for piece in pieces:
            assert scanner.scan(piece, 0) == len(piece)
        assert scanner.scan(text, stop) == stop
        assert scanner.scan(text, stop) == stop
        assert scanner.offset == stop


def test_scan_after_end_consumes_nothing() -> None:
    scanner = JsonScanner()
    assert [scanner.scan("xx{}{}", 2), scanner.scan("xx{}{}", 4), scanner.scan("", 0)] == [4, 4, 0]
    assert (scanner.ended, scanner.problem, scanner.offset) == (True, None, 2)


def test_top_level_scalar_ends_at_next_character() -> None:
    scanner = JsonScanner()
    assert (scanner.scan("12", 0), scanner.ended) == (2, False)
    assert (scanner.scan("3 ", 0), scanner.ended, scanner.offset) == (1, True, 3)


def in_pieces(text: str, size: int) -> list[str]:
    return [text[start : start + size] for start in range(0, len(text), size)]


SIZES = [1, 7, 4096, 4097, 10**6]
TOO_LONG = "a number or literal longer than 4096 characters at character 3"


@pytest.mark.parametrize("size", SIZES)
@pytest.mark.parametrize(
    ("depth", "problem"),
    [
        (MAX_DEPTH, None),
        (MAX_DEPTH + 1, "more than 1000 brackets open at character 5000"),
        (5 * MAX_DEPTH, "more than 1000 brackets open at character 5000"),
    ],
)
def test_nesting_beyond_max_depth_is_tracked(size: int, depth: int, problem: str | None) -> None:
    text = '{"a":' * depth + "1" + "}" * depth
    assert scan_pieces(in_pieces(text + "}", size)) == (True, problem, len(text), len(text), "{")


@pytest.mark.parametrize("size", SIZES)
@pytest.mark.parametrize(
    ("scalar", "problem"),
    [
        ("1" * MAX_SCALAR_CHARS, None),
        ("1" * (MAX_SCALAR_CHARS + 1), TOO_LONG),
        ("1" * 20_000, TOO_LONG),
        ("1" * 2000 + "." + "1" * 2000 + "e" + "1" * 94, None),
        ("1" * 2000 + "." + "1" * 2000 + "e" + "1" * 95, TOO_LONG),
    ],
)
def test_number_length_is_bounded(size: int, scalar: str, problem: str | None) -> None:
    text = f"[1,{scalar},2]"
    assert scan_pieces(in_pieces(text, size)) == (True, problem, len(text), len(text), "[")


@pytest.mark.parametrize("size", SIZES)
def test_end_of_too_long_number(size: int) -> None:
    text = "1" * 20_000
    problem = TOO_LONG.replace("3", "0")
    assert scan_pieces(in_pieces(text, size)) == (True, problem, len(text), len(text), "1")
    assert scan_pieces(in_pieces(text + "}", size)) == (True, problem, len(text), len(text), "1")


@pytest.mark.parametrize("size", SIZES)
def test_many_bad_escapes_in_one_string(size: int) -> None:
    text = '"' + "\\x" * 5000 + '"'
    problem = "expected an escape after '\\', found 'x' at character 2"
    assert scan_pieces(in_pieces(text, size)) == (True, problem, len(text), len(text), '"')


json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=4), inner, max_size=4),
    max_leaves=12,
)
layouts: st.SearchStrategy[dict[str, Any]] = st.fixed_dictionaries(
    {
        "indent": st.sampled_from([None, 0, 2, "\t"]),
        "separators": st.sampled_from([(",", ":"), (", ", ": "), (" ,\r\n", " : ")]),
        "ensure_ascii": st.booleans(),
    }
)


@given(json_values, layouts, st.text(" \t\n\r", max_size=2), st.text(max_size=8))
def test_end_of_any_value(value: object, layout: dict[str, Any], lead: str, rest: str) -> None:
    text = lead + json.dumps(value, **layout)
    if text[-1] not in '"]}' and rest[:1] not in ("", *" \n<}],:"):
        rest = " " + rest
    assert scan_all_cuts(text + rest) == (True, None, len(text), len(text), text.lstrip()[0])


structure = st.text("{}[],:\"\\ \n\tu0a1-+.eEtrufalsn<'é\x01", max_size=30)


@st.composite
def mutated(draw: st.DrawFn) -> str:
    """Valid JSON in which some places are overwritten, dropped, added to or cut off."""
    text = json.dumps(draw(json_values), **draw(layouts))
    for _ in range(draw(st.integers(0, 3))):
        start = draw(st.integers(0, len(text)))
        text = text[:start] + draw(structure.map(lambda s: s[:2])) + text[start + draw(st.integers(0, 2)) :]
    return text[: draw(st.just(len(text)) | st.integers(0, len(text)))]


@given(mutated() | structure | st.text())
@example('{"a":1,"b":01,"c":2}')
@example('["\\u123')
def test_no_problem_if_and_only_if_valid_json(text: str) -> None:
    outcome = scan_all_cuts(text)
    assert_same_as_json_module(text, outcome)
    if is_json(text):
        assert (outcome.ended, outcome.problem) == (True, None)


@given(mutated(), st.data())
def test_random_cuts_have_same_outcome(text: str, data: st.DataObject) -> None:
    cuts = sorted(data.draw(st.lists(st.integers(0, len(text)), max_size=8)))
    pieces = [text[start:end] for start, end in zip([0, *cuts], [*cuts, len(text)], strict=True)]
    assert scan_pieces(pieces) == scan_pieces([text])


def state(scanner: JsonScanner) -> list[object]:
    """All that a scanner knows; the offset of a piece is of use only inside that piece."""
    return [getattr(scanner, name) for name in JsonScanner.__slots__ if name != "_piece_offset"]


@given(st.lists(st.text('\\"u0Ae9n\n é}', max_size=4), min_size=1, max_size=8))
@example(["a\\", "u00", "e9b", "\\"])
@example(["\\", "x"])
def test_texts_inside_a_string_are_skipped_as_they_are_scanned(texts: list[str]) -> None:
    skipped, scanned = JsonScanner(corrects=True), JsonScanner(corrects=True)
    for scanner in (skipped, scanned):
        scanner.scan('{"a":"', 0)
    count = skipped.skip_string_texts(texts, "".join(texts))
    for text in texts[:count]:
        assert scanned.scan(text, 0) == len(text)
        assert scanned.in_string
        assert not scanned.corrections
    assert state(skipped) == state(scanned)
    if count < len(texts):  # the next text ends the string, or is not valid in it
        scanned.scan(texts[count], 0)
        assert not scanned.in_string or scanned.corrections or scanned.problem
