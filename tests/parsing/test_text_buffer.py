"""TextBuffer: copying, taking and accepting text, and the text that stays buffered."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from typing import Any

import pytest

from interlingua.common.jsontext.scanner import JsonScanner
from interlingua.parsing.json_copy import copy_json
from interlingua.parsing.lookahead import SortedWords
from interlingua.parsing.markers import MarkerSet
from interlingua.parsing.text_buffer import Channel, Read, TextBuffer

MARKS = MarkerSet("<a>", "<a><b>", "</a>", "[X]")


def drive(make: Callable[[TextBuffer], Read[Any]], pieces: Iterable[str]) -> tuple[Any, str]:
    """Return the result of the reader, and the text that it did not consume."""
    source = TextBuffer()
    reader = make(source)
    remaining = [*pieces]
    try:
        next(reader)
        while remaining:
            source.push(remaining.pop(0))
            next(reader)
        source.close()
        next(reader)
    except StopIteration as stop:
        return stop.value, source.buffered + "".join(remaining)
    raise AssertionError("the reader waits for more text after the end")


def drive_both(make: Callable[[TextBuffer], Read[Any]], text: str) -> tuple[Any, str]:
    """Feed the text whole and character by character, and require the same result."""
    whole = drive(make, [text])
    assert drive(make, text) == whole, "per character"
    return whole


def run_copy_until(text: str) -> tuple[str, str | None, str]:
    """Return the text that copy_until copies, the marker, and the rest."""
    out: list[str] = []

    def make(source: TextBuffer) -> Read[str | None]:
        out.clear()
        return source.copy_until(MARKS, lambda text, _: out.append(text))

    marker, rest = drive_both(make, text)
    return "".join(out), marker, rest


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("abc<a>def", ("abc", "<a>", "def")),
        ("abc<a><c>", ("abc", "<a>", "<c>")),
        ("abc<a><b>d", ("abc", "<a><b>", "d")),
        ("abc<a>", ("abc", "<a>", "")),
        ("abc<a><", ("abc", "<a>", "<")),
        ("abc", ("abc", None, "")),
        ("ab<", ("ab<", None, "")),
        ("a<b</a>", ("a<b", "</a>", "")),
        ("<<a>", ("<", "<a>", "")),
        ("  [X] ", ("", "[X]", " ")),
        (" a [X]", (" a ", "[X]", "")),
        ("  ", ("", None, "  ")),
        ("", ("", None, "")),
    ],
)
def test_copy_until(text: str, expected: tuple[str, str | None, str]) -> None:
    assert run_copy_until(text) == expected


def test_partial_marker_is_text_when_the_channel_changes() -> None:
    out: list[tuple[str, Channel]] = []
    source = TextBuffer()
    reader = source.copy_until(MARKS, lambda text, channel: out.append((text, channel)))
    source.push("hm <", Channel.REASONING)
    next(reader)
    source.push("a> b", Channel.TEXT)
    with pytest.raises(StopIteration) as stop:
        next(reader)
    assert stop.value.value == ""
    assert out == [("hm ", Channel.REASONING), ("<", Channel.REASONING)]
    assert source.buffered == "a> b"


@pytest.mark.parametrize(
    ("text", "limit", "expected"),
    [
        ("abc[X]d", 9, (("abc", "[X]"), "d")),
        ("abc[X]d", 3, (("abc", "[X]"), "d")),
        ("abcd[X]e", 3, (("abcd", None), "[X]e")),
        ("abcdef[X]", 3, (("abcd", None), "ef[X]")),
        ("ab", 3, (("ab", None), "")),
        ("ab<", 3, (("ab<", None), "")),
    ],
)
def test_take_until(text: str, limit: int, expected: object) -> None:
    assert drive_both(lambda source: source.take_until(MARKS, limit), text) == expected


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("[X]a", ("[X]", "a")),
        (" \n[X]a", ("[X]", "a")),
        (" a[X]", (None, " a[X]")),
        (" [", (None, " [")),
        (" ", (None, " ")),
        (" <a><b> ", ("<a><b>", " ")),
        (" <a><", ("<a>", "<")),
        (" " * 400 + "[X]", (None, " " * 400 + "[X]")),
    ],
)
def test_accept(text: str, expected: object) -> None:
    assert drive_both(lambda source: source.accept(MARKS), text) == expected


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("[X]a", ("[X]", "a")),
        (" [X]a", (None, " [X]a")),
        ("[", (None, "[")),
        ("", (None, "")),
        ("<a><b> ", ("<a><b>", " ")),
        ("<a><", ("<a>", "<")),
    ],
)
def test_accept_here(text: str, expected: object) -> None:
    assert drive_both(lambda source: source.accept_here(MARKS), text) == expected


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("ls:x", ("ls:", "x")),
        (" lsx:y", ("lsx:", "y")),
        ("ls", (None, "ls")),
        ("hello", (None, "hello")),
        ("", (None, "")),
        (" " * 400 + "ls:", (None, " " * 400 + "ls:")),
    ],
)
def test_accept_word(text: str, expected: object) -> None:
    words = ("ls:", "lsx:")
    assert drive_both(lambda source: source.accept_word(words), text) == expected
    assert drive_both(lambda source: source.accept_word(SortedWords(words)), text) == expected


@pytest.mark.parametrize(("text", "char"), [(" x", "x"), ("  ", ""), (" " * 400 + "x", " ")])
def test_peek_after_space_consumes_nothing(text: str, char: str) -> None:
    assert drive_both(lambda source: source.peek_after_space(), text) == (char, text)


def test_remove_from_also_removes_markers_formed_by_removal() -> None:
    assert MARKS.remove_from("a<<a>a>b[X]") == "ab"


def test_skip_space_and_take_while() -> None:
    assert drive_both(lambda source: source.skip_space(), " \n x") == ("x", "x")
    assert drive_both(lambda source: source.skip_space(), "  ") == ("", "")
    assert drive_both(lambda source: source.take_while(re.compile("[012]*+")), "120x") == ("120", "x")
    assert drive_both(lambda source: source.take_while(re.compile("[012]*+")), "12") == ("12", "")


@pytest.mark.parametrize(
    ("text", "limit", "expected"),
    [
        ('{"a": "<a>"} rest', 99, ('{"a": "<a>"}', None, " rest", True)),
        ('{"a": 1<a>', 99, ('{"a": 1', "<a>", "", False)),
        ('{"a": 1<b}', 99, ('{"a": 1<b}', None, "", True)),
        ('{"a": 1<a><b>c', 99, ('{"a": 1', "<a><b>", "c", False)),
        ('{"a": 1<a><', 99, ('{"a": 1', "<a>", "<", False)),
        ('{"a": 1<', 99, ('{"a": 1<', None, "", False)),
        ('{"a": "bcd"}', 8, ('{"a": "b', "", 'cd"}', False)),
        ('{"a": 1}', 8, ('{"a": 1}', None, "", True)),
        ('{"a": 1', 7, ('{"a": 1', None, "", False)),
    ],
)
def test_copy_json(text: str, limit: int, expected: object) -> None:
    out: list[str] = []
    scanners: list[JsonScanner] = []

    def make(source: TextBuffer) -> Read[str | None]:
        out.clear()
        scanners.append(JsonScanner())
        return copy_json(source, scanners[-1], MARKS, out.append, limit)

    marker, rest = drive_both(make, text)
    assert ("".join(out), marker, rest, scanners[-1].ended) == expected
