"""JsonCorrector: errors with one possible meaning are corrected as the text streams; valid JSON passes unchanged."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from interlingua.common.jsontext.corrector import JsonCorrector, correct_json
from interlingua.common.jsontext.scanner import JsonScanner
from tests.support.cuts import single_units
from tests.support.growth import check_growth

CONTROL, COMMA, LITERAL, BRACKET, WRONG = "control", "comma", "True", "missing", "replaced"

ROWS: dict[str, tuple[str, str, list[str]]] = {
    "valid": ('{"a": [1, true, "x\\ny"] , "b":null}', '{"a": [1, true, "x\\ny"] , "b":null}', []),
    "line break": ('{"a": "x\ny"}', '{"a": "x\\ny"}', [CONTROL]),
    "CR LF": ('{"a": "x\r\ny"}', '{"a": "x\\r\\ny"}', [CONTROL]),
    "tab": ('{"a": "\t"}', '{"a": "\\t"}', [CONTROL]),
    "backspace, form feed, NUL, escape": ('["\b\f\0\x1b"]', '["\\b\\f\\u0000\\u001b"]', [CONTROL]),
    "in a key": ('{"a\nb": 1}', '{"a\\nb": 1}', [CONTROL]),
    "after an escaped backslash": ('["\\\\\n"]', '["\\\\\\n"]', [CONTROL]),
    "white space between tokens": ('{\n\t"a":\r\n1\n}', '{\n\t"a":\r\n1\n}', []),
    "DEL and line separator are valid": ('["\x7f\u2028"]', '["\x7f\u2028"]', []),
    "trailing comma in an object": ('{"a": 1,}', '{"a": 1}', [COMMA]),
    "trailing comma in an array": ("[1, 2 ,\n ]", "[1, 2 \n ]", [COMMA]),
    "trailing commas, nested": ('{"a": [{"b": "c",}, ], }', '{"a": [{"b": "c"} ] }', [COMMA]),
    "comma in a string": ('{"a": ",}"}', '{"a": ",}"}', []),
    "Python literals": ('{"a": True, "b": [False,None]}', '{"a": true, "b": [false,null]}', [LITERAL]),
    "Python literals in a string": ('["True", "None"]', '["True", "None"]', []),
    "everything": ('{"a":"\n","b":[True,],}', '{"a":"\\n","b":[true]}', [CONTROL, LITERAL, COMMA]),
    "wrong bracket": ('{"a": 1]', '{"a": 1}', [WRONG]),
    "wrong bracket, nested": ('{"a": {"b": [1]], "c": 2]', '{"a": {"b": [1]}, "c": 2}', [WRONG]),
    # not corrected
    "bracket of an outer array": ('{"a": [{"b": 1], "c": 2}', '{"a": [{"b": 1], "c": 2}', []),
    "wrong bracket after a key": ('{"a"]', '{"a"]', []),
    "wrong bracket in an empty object": ("{]", "{]", []),
    "brace in an array": ('{"a": [1}', '{"a": [1}', []),
    "control character after a backslash": ('["\\\n"]', '["\\\n"]', []),
    "control character inside an escape": ('["\\u00\n"]', '["\\u00\n"]', []),
    "NaN and Infinity": ('{"a": NaN, "b": Infinity, "c": -Infinity}', '{"a": NaN, "b": Infinity, "c": -Infinity}', []),
    "only a comma": ("[,]", "[,]", []),
    "two commas": ("[1,,]", "[1,,]", []),
    "comma before the wrong bracket": ('{"a": [1,}', '{"a": [1,}', []),
    "value without its key": ('{"a":}', '{"a":}', []),
    "Python literal as a key": ("{None: 1}", "{None: 1}", []),
    "word that begins like a literal": ("[Nonesuch, Truer]", "[Nonesuch, Truer]", []),
    "single quotes": ("{'a': True,}", "{'a': True,}", []),
    "behind a quote that is not escaped": ('["say "hi"\n",]', '["say "hi"\n",]', []),
    "corrected before a problem": ('["\n", x, "\n"]', '["\\n", x, "\n"]', [CONTROL]),
}
MISSING_BRACKETS: dict[str, tuple[str, str, list[str]]] = {
    "object": ('{"a": 1', '{"a": 1}', [BRACKET]),
    "nested": ('{"a": [1, {"b": "c"}', '{"a": [1, {"b": "c"}]}', [BRACKET]),
    "behind a literal": ('{"a": [True', '{"a": [true]}', [LITERAL, BRACKET]),
    "white space at the end": ('{"a": 1 \n', '{"a": 1 \n}', [BRACKET]),
    "comma in an object": ('{"a": 1,', '{"a": 1}', [COMMA, BRACKET]),
    "comma in an array": ('{"a": [1,', '{"a": [1]}', [COMMA, BRACKET]),
    "comma behind a bracket": ('{"a": [1],', '{"a": [1]}', [COMMA, BRACKET]),
    "comma and white space": ('{"a": [True, \n', '{"a": [true \n]}', [LITERAL, COMMA, BRACKET]),
    "two kinds of commas": ('{"a": [1,], "b": 2,', '{"a": [1], "b": 2}', [COMMA, BRACKET]),
    "complete": ('{"a": 1}', '{"a": 1}', []),
    # a value may be missing, too
    "open string": ('{"a": "b', '{"a": "b', []),
    "open escape": ('{"a": "b\\', '{"a": "b\\', []),
    "two commas": ('{"a": [1,,', '{"a": [1,,', []),
    "only a comma": ('{"a": [,', '{"a": [,', []),
    "comma behind a key": ('{"a",', '{"a",', []),
    "comma behind a colon": ('{"a":,', '{"a":,', []),
    "comma behind half a literal": ('{"a": tru,', '{"a": tru,', []),
    "colon": ('{"a":', '{"a":', []),
    "key": ('{"a"', '{"a"', []),
    "nothing in the brackets": ('{"a": [', '{"a": [', []),
    "half a literal": ('{"a": tru', '{"a": tru', []),
    "half a Python literal": ('{"a": Tru', '{"a": Tru', []),
    "number that may go on": ('{"a": 1.', '{"a": 1.', []),
    "wrong bracket": ('{"a": [1}', '{"a": [1}', []),
}


def correct_pieces(pieces: list[str], *, closed: bool = False) -> tuple[list[str], list[str]]:
    """Return the corrected pieces with the rest at the end, and the notes."""
    scanner = JsonScanner(corrects=True)
    corrector = JsonCorrector(scanner)
    corrected = []
    for piece in pieces:
        scanner.scan_all(piece)
        corrected.append(corrector.correct(piece))
    rest = corrector.close_brackets() if closed else ""
    scanner.finish()
    return [*corrected, rest + corrector.correct("")], corrector.notes


def check_every_cut(text: str, expected: str, kinds: list[str], *, closed: bool) -> None:
    cuts = [[text], single_units(text), *([text[:n], text[n:]] for n in range(1, len(text)))]
    for pieces in cuts:
        corrected, notes = correct_pieces(pieces, closed=closed)
        assert "".join(corrected) == expected, pieces
        assert len(notes) == len(kinds), pieces
        assert all(kind in note for kind, note in zip(kinds, notes, strict=True)), (pieces, notes)


@pytest.mark.parametrize(("text", "expected", "kinds"), ROWS.values(), ids=ROWS)
def test_corrections(text: str, expected: str, kinds: list[str]) -> None:
    check_every_cut(text, expected, kinds, closed=False)
    assert correct_json(text)[0] == expected


@pytest.mark.parametrize(("text", "expected", "kinds"), MISSING_BRACKETS.values(), ids=MISSING_BRACKETS)
def test_missing_brackets(text: str, expected: str, kinds: list[str]) -> None:
    check_every_cut(text, expected, kinds, closed=True)


@pytest.mark.parametrize(
    ("pieces", "forwarded"),
    [
        (['{"a": 1,', ' "b"', ": 2}"], ['{"a": 1', ', "b"', ": 2}", ""]),
        (['{"a": 1,', " ", "\n", '"b": 2}'], ['{"a": 1', "", "", ', \n"b": 2}', ""]),
        (["[1,", " ", "]"], ["[1", "", " ]", ""]),
        (['{"a": 1, "b"', ": 2}"], ['{"a": 1, "b"', ": 2}", ""]),
        (['{"a": "x,', ' y"}'], ['{"a": "x,', ' y"}', ""]),
        (["[tr", "ue", "]"], ["[tr", "ue", "]", ""]),
        (["[T", "ru", "e", ", 1]"], ["[", "", "", "true, 1]", ""]),
        (["[N", "aN]"], ["[", "NaN]", ""]),
        (['["a\n', 'b"]'], ['["a\\n', 'b"]', ""]),
    ],
)
def test_only_text_that_may_be_corrected_waits(pieces: list[str], forwarded: list[str]) -> None:
    assert correct_pieces(pieces)[0] == forwarded


def test_held_text_is_released_unchanged_if_text_is_cut() -> None:
    scanner = JsonScanner(corrects=True)
    corrector = JsonCorrector(scanner)
    scanner.scan_all('{"a": 1, ')
    assert corrector.correct('{"a": 1, ') == '{"a": 1'
    assert list(corrector.held_pieces) == [", "]
    assert corrector.release() == ", "


json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(),
    lambda children: st.lists(children, max_size=4) | st.dictionaries(st.text(), children, max_size=4),
    max_leaves=12,
)
containers = st.lists(json_values, max_size=4) | st.dictionaries(st.text(), json_values, max_size=4)


def write_almost_json(value: Any, draw: st.DataObject) -> str:
    """Write a value with errors that can be corrected."""
    white: str = draw.draw(st.sampled_from(["", " ", "\n  ", "\r\n"]))
    if isinstance(value, bool) or value is None:
        return str(draw.draw(st.sampled_from([str(value), json.dumps(value)])))
    if isinstance(value, str):
        raw = draw.draw(st.booleans())
        escaped = json.dumps(value, ensure_ascii=draw.draw(st.booleans()))
        for code in range(0x20):
            escaped = _unescape(escaped, chr(code)) if raw else escaped
        return escaped
    if isinstance(value, list | dict):
        opener, closer = "[]" if isinstance(value, list) else "{}"
        items = (
            [write_almost_json(item, draw) for item in value]
            if isinstance(value, list)
            else [
                f"{write_almost_json(key, draw)}{white}:{white}{write_almost_json(value[key], draw)}" for key in value
            ]
        )
        trailing = "," + white if len(items) > 0 and draw.draw(st.booleans()) else ""
        return opener + white + f"{white},{white}".join(items) + white + trailing + closer
    return json.dumps(value)


def _unescape(text: str, control: str) -> str:
    """Write a control character raw, wherever its escape does not follow another backslash."""
    escape = json.dumps(control)[1:-1]
    parts = text.split("\\\\")
    return "\\\\".join(part.replace(escape, control) for part in parts)


@given(containers, st.data())
def test_almost_json_is_corrected_to_the_same_value_in_every_cut(value: Any, data: st.DataObject) -> None:
    text = write_almost_json(value, data)
    missing = 0
    if data.draw(st.booleans()):
        while text[-1:] in ("]", "}") and text[:-1].rstrip()[-1:] not in (",", "[", "{", "") and missing < 3:
            text, missing = text[:-1], missing + 1
            if not data.draw(st.booleans()):
                break
    pieces = cut_randomly(text, data)
    whole, notes = correct_pieces([text], closed=True)
    assert json.loads("".join(whole)) == value
    assert ("".join(correct_pieces(pieces, closed=True)[0]), correct_pieces(pieces, closed=True)[1]) == (
        "".join(whole),
        notes,
    )


@given(containers, st.sampled_from([None, 1, "\t"]), st.booleans(), st.data())
def test_valid_json_passes_byte_for_byte(value: Any, indent: Any, ascii_only: bool, data: st.DataObject) -> None:
    text = json.dumps(value, indent=indent, ensure_ascii=ascii_only)
    pieces = cut_randomly(text, data)
    corrected, notes = correct_pieces(pieces, closed=True)
    assert "".join(corrected) == text
    assert notes == []
    held = ""
    for piece, sent in zip(pieces, corrected[:-1], strict=True):
        body = (held + piece).rstrip()
        held = (held + piece)[len(sent) :]
        assert held == "" or (held.startswith(",") and body.endswith(",") and held.strip() == ",")


@given(st.text(alphabet='{}[],:"\\ntrueTFN1.-\n \t', max_size=40), st.data())
def test_any_text_has_the_same_result_in_every_cut(text: str, data: st.DataObject) -> None:
    pieces = cut_randomly(text, data)
    whole, notes = correct_pieces([text])
    cut, cut_notes = correct_pieces(pieces)
    assert ("".join(cut), cut_notes) == ("".join(whole), notes)


def cut_randomly(text: str, data: st.DataObject) -> list[str]:
    cuts = sorted(data.draw(st.lists(st.integers(0, len(text)), max_size=12)))
    return [text[a:b] for a, b in zip([0, *cuts], [*cuts, len(text)], strict=True)]


@pytest.mark.slow
@pytest.mark.parametrize("piece_length", [1, 10**9], ids=["per character", "whole"])
@pytest.mark.parametrize("unit", ["\n", "x\ty", "[1,],", ", ".rjust(40), "True, ", "  "], ids=repr)
def test_time_is_linear(unit: str, piece_length: int) -> None:
    in_string = unit.strip(" ") in ("\n", "x\ty")

    def correct(size: int) -> None:
        text = ('["' if in_string else "[1, ") + unit * (size // len(unit))
        correct_pieces([text[n : n + piece_length] for n in range(0, len(text), piece_length)])

    check_growth(correct, 20_000, 80_000, limit=10)
