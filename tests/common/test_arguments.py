"""One call's arguments: an object passes as it comes, what is none is held and mended."""

from __future__ import annotations

import pytest

from interlingua.common.jsontext.arguments import ArgumentsStream

ROWS = {
    "an object": (['{"a', '":1}'], ['{"a', '":1}'], "", []),
    "outer white space": ([" \n", ' {"a":1}', "\n "], ["", '{"a":1}', ""], "", []),
    "nothing": ([], [], "{}", []),
    "white space": ([" "], [""], "{}", []),
    "null": (["nu", "ll"], ["", ""], "{}", []),
    "an array": (["[1", "]"], ["[1", "]"], "", ["bad-arguments"]),
    "a number": (["12"], [""], "12", ["bad-arguments"]),
    "prose": (["ls ", "-l {}"], ["", ""], "ls -l {}", ["bad-arguments"]),
    "an object in a string": (['"{\\"a\\"', ': 1}"'], ["", ""], '{"a": 1}', ["unwrapped-arguments"]),
    "a string": (['"a"'], [""], '"a"', ["bad-arguments"]),
    "half a surrogate in a string": (['"\\ud83d"'], [""], '"\\ud83d"', ["bad-arguments"]),
    "not quite JSON": (["{'a'", ": 1}"], ["{'a'", ": 1}"], "", ["bad-arguments"]),
    "a brace too few": (['{"a": {}'], ['{"a": {}'], "", ["bad-arguments"]),
}


@pytest.mark.parametrize(("pieces", "passed", "at_end", "notes"), ROWS.values(), ids=ROWS)
def test_what_goes_on_and_when(pieces: list[str], passed: list[str], at_end: str, notes: list[str]) -> None:
    args = ArgumentsStream(max_buffered=1000)
    assert [args.feed(piece)[0] for piece in pieces] == passed
    assert args.end() == at_end
    assert [kind for kind, _ in args.notes] == notes


def test_what_comes_after_an_object_is_not_its() -> None:
    args = ArgumentsStream(max_buffered=1000)
    assert args.feed('{"a":1}} {"b"') == ('{"a":1}', '} {"b"')
    assert args.feed(":2}") == ("", ":2}")


def test_a_cut_gives_out_what_was_held() -> None:
    args = ArgumentsStream(max_buffered=1000)
    args.feed(" nul")
    assert args.flush() == "nul"
    assert args.notes == []


def test_what_is_held_is_bounded() -> None:
    args = ArgumentsStream(max_buffered=5)
    assert [args.feed("abc")[0], args.feed("def")[0], args.feed("g")[0]] == ["", "abcdef", "g"]
    assert args.end() == ""
    assert [kind for kind, _ in args.notes] == ["bad-arguments"]
