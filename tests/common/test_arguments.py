"""ArgumentsStream: a JSON object is forwarded as it arrives, anything else is buffered and repaired."""

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


@pytest.mark.parametrize(("pieces", "forwarded", "rest", "notes"), ROWS.values(), ids=ROWS)
def test_streamed_and_buffered_arguments(pieces: list[str], forwarded: list[str], rest: str, notes: list[str]) -> None:
    args = ArgumentsStream(max_buffered=1000)
    assert [args.feed(piece)[0] for piece in pieces] == forwarded
    assert args.end() == rest
    assert [kind for kind, _ in args.notes] == notes


def test_text_after_object_is_returned_separately() -> None:
    args = ArgumentsStream(max_buffered=1000)
    assert args.feed('{"a":1}} {"b"') == ('{"a":1}', '} {"b"')
    assert args.feed(":2}") == ("", ":2}")


def test_flush_returns_buffered_text_unchanged() -> None:
    args = ArgumentsStream(max_buffered=1000)
    args.feed(" nul")
    assert args.flush() == "nul"
    assert args.notes == []


def test_buffer_is_bounded() -> None:
    args = ArgumentsStream(max_buffered=5)
    assert [args.feed("abc")[0], args.feed("def")[0], args.feed("g")[0]] == ["", "abcdef", "g"]
    assert args.end() == ""
    assert [kind for kind, _ in args.notes] == ["bad-arguments"]
