"""A JSON string that is never closed does not swallow the calls behind it; a call quoted in a string stays data."""

from __future__ import annotations

import json

import pytest

import interlingua as il
from interlingua.dialects.registry import get_dialect
from tests.support.growth import check_growth
from tests.support.harness import cut_variants, tool

TOOLS = [tool("write", {"text": "string"}), tool("run", {"x": "integer"})]
FIRST, SECOND = '{"text": "abc"}', '{"x": 1}'
DIALECTS = (
    "kimi_k2",
    "deepseek_v3",
    "deepseek_v31",
    "harmony",
    "mistral_v11",
    "mistral_v13",
    "plamo3",
    "inkling",
    "internlm2",
    "solar_open",
    "gigachat31",
    "gigachat3",
    "hermes",
    "ernie45",
    "longcat",
    "rwkv",
    "granite_20b_fc",
    "functionary_v31",
    "functionary_v32",
)
"""All dialects whose arguments are JSON, with markers between two calls."""
SECTION, SECTION_END = "<|tool_calls_section_begin|>", "<|tool_calls_section_end|>"
OPEN, SEPARATOR, CLOSE = "<|tool_call_begin|>", "<|tool_call_argument_begin|>", "<|tool_call_end|>"


def native_calls(dialect: str, *calls: tuple[str, str]) -> str:
    return il.render(il.Reply(parts=[il.Call(f"call_{n}", *call) for n, call in enumerate(calls, 1)]), dialect)


def kimi_call(name: str, number: int, args: str) -> str:
    return f"{OPEN}functions.{name}:{number}{SEPARATOR}{args}{CLOSE}"


def parse_in_every_cut(text: str, dialect: str, step: int = 1) -> il.Reply:
    whole = il.parse(text, dialect, tools=TOOLS)
    for cut_name, pieces in list(cut_variants(text))[::step]:
        parser = il.Parser(dialect, tools=TOOLS)
        reply = il.fold([event for piece in pieces for event in parser.feed(piece)] + parser.close())
        assert reply == whole, f"{cut_name}\n  got:      {reply}\n  expected: {whole}"
    return whole


def rows_of(reply: il.Reply) -> list[tuple[str, str, bool]]:
    return [(call.name, call.arguments, call.complete) for call in reply.calls]


@pytest.mark.one_row_in(4)
@pytest.mark.parametrize("dialect", DIALECTS)
def test_calls_behind_an_unclosed_string_survive(dialect: str) -> None:
    text = native_calls(dialect, ("write", FIRST), ("run", SECOND), ("run", "{}")).replace('abc"', "abc")
    reply = parse_in_every_cut(text, dialect)
    (name, arguments, complete), *others = rows_of(reply)
    assert (name, complete) == ("write", False)
    assert arguments.startswith('{"text": "abc')
    assert "run" not in arguments
    assert others == [("run", SECOND, True), ("run", "{}", True)]
    assert "string-not-closed" in {finding.kind for finding in reply.findings}
    assert reply.text == ""


@pytest.mark.one_row_in(4)
@pytest.mark.parametrize("dialect", DIALECTS)
def test_quotes_that_are_not_escaped_do_not_swallow_the_next_call(dialect: str) -> None:
    text = native_calls(dialect, ("write", FIRST), ("run", SECOND)).replace("abc", 'say "abc')
    assert rows_of(parse_in_every_cut(text, dialect))[-1] == ("run", SECOND, True)


@pytest.mark.one_row_in(4)
@pytest.mark.parametrize("dialect", DIALECTS)
@pytest.mark.parametrize("step", [pytest.param(1, marks=pytest.mark.slow), 7])
def test_calls_quoted_in_a_string_stay_data(dialect: str, step: int) -> None:
    quoted = native_calls(dialect, ("write", FIRST), ("run", SECOND), ("run", "{}"))
    for suffix in ("", " and so on", "\n" + quoted):
        args = json.dumps({"text": quoted + suffix, "x": 1}, ensure_ascii=False)
        reply = parse_in_every_cut(native_calls(dialect, ("write", args), ("run", SECOND)), dialect, step)
        assert rows_of(reply) == [("write", args, True), ("run", SECOND, True)]
        assert not reply.findings


@pytest.mark.one_row_in(4)
@pytest.mark.parametrize("dialect", DIALECTS)
def test_markers_in_a_string_stay_data(dialect: str) -> None:
    markers = sorted(get_dialect(dialect).markers)
    texts = [first + second + end for first in markers for second in ("", *markers) for end in ("", "{", "{}", "f {")]
    for text in texts[:: max(1, len(texts) // 60)]:
        args = json.dumps({"text": text, "x": [text, 1]}, ensure_ascii=False)
        native = native_calls(dialect, ("write", args), ("run", SECOND))
        for pieces in ([native], list(native)):
            parser = il.Parser(dialect, tools=TOOLS)
            reply = il.fold([event for piece in pieces for event in parser.feed(piece)] + parser.close())
            assert rows_of(reply) == [("write", args, True), ("run", SECOND, True)], text


ORDINARY_TEXT = {
    "hermes": ("hermes", "<tool_call>", "</tool_call>"),
    "ernie45": ("ernie45", "<tool_call>", "</tool_call>"),
    "longcat": ("longcat", "<longcat_tool_call>", "</longcat_tool_call>"),
    "JSON of GLM": ("glm45", "<tool_call>", "</tool_call>"),
    "JSON of Qwen3-Coder": ("qwen3_coder", "<tool_call>", "</tool_call>"),
    "JSON of Muse": ("muse", "<atem:function_calls>", "</atem:function_calls>"),
    "array of Nemotron": ("nemotron", "<TOOLCALL>[", "]</TOOLCALL>"),
    "array of Mistral": ("mistral_v3", "[TOOL_CALLS][", "]"),
}
"""Dialects with an envelope of JSON between markers of ordinary text."""
FIRST_CALL, SECOND_CALL = '{"name":"write","arguments":{"text":"abc}}', '{"name":"run","arguments":{"x":1}}'


@pytest.mark.one_row_in(5)
@pytest.mark.parametrize(("dialect", "opener", "closer"), ORDINARY_TEXT.values(), ids=ORDINARY_TEXT)
@pytest.mark.parametrize("between", ["", "\n", " \n\n"])
def test_markers_of_ordinary_text_end_an_unclosed_string(dialect: str, opener: str, closer: str, between: str) -> None:
    reply = parse_in_every_cut(opener + FIRST_CALL + closer + between + opener + SECOND_CALL + closer, dialect)
    (first_name, _, first_complete), second = rows_of(reply)
    assert (first_name, first_complete) == ("write", False)
    assert second == ("run", '{"x":1}', True)
    assert "string-not-closed" in {finding.kind for finding in reply.findings}


@pytest.mark.one_row_in(3)
@pytest.mark.parametrize(("dialect", "opener", "closer"), ORDINARY_TEXT.values(), ids=ORDINARY_TEXT)
def test_envelope_quoted_in_a_string_stays_data(dialect: str, opener: str, closer: str) -> None:
    call = opener + SECOND_CALL + closer
    args = json.dumps({"text": f"{call}\n{call}"})
    reply = parse_in_every_cut(f'{opener}{{"name":"write","arguments":{args}}}{closer}\n{call}', dialect)
    assert rows_of(reply) == [("write", args, True), ("run", '{"x":1}', True)]


def test_python_prompt_does_not_end_a_string_with_unescaped_quotes() -> None:
    text = '>>>write\n{"text": "\n>>> f({"a": 1})\n>>> config\n{"b": 2}"}'
    assert [call.name for call in parse_in_every_cut(text, "functionary_v32").calls] == ["write"]


PLACES = {
    "in an array": '{"x": ["a", "b',
    "in a nested object": '{"x": {"y": {"z": "b',
    "in a key": '{"x": 1, "y',
    "empty": '{"x": "',
    "with a backslash at its end": '{"x": "a\\',
}


@pytest.mark.parametrize("args", PLACES.values(), ids=PLACES)
def test_place_of_the_unclosed_string(args: str) -> None:
    text = SECTION + kimi_call("write", 0, args) + kimi_call("run", 1, SECOND) + SECTION_END
    assert rows_of(parse_in_every_cut(text, "kimi_k2")) == [("write", args, False), ("run", SECOND, True)]


KIMI_ENDS = {
    "closer and section end": (CLOSE + SECTION_END, '{"text": "a'),
    "closer only": (CLOSE, '{"text": "a'),
    "section end only": (SECTION_END, '{"text": "a'),
    "end of the turn": (CLOSE + SECTION_END + "<|im_end|>", '{"text": "a'),
    "white space": (f"\n{CLOSE}\n{SECTION_END}\n", '{"text": "a\\n'),
}


@pytest.mark.parametrize(("end", "arguments"), KIMI_ENDS.values(), ids=KIMI_ENDS)
def test_markers_at_the_end_of_the_text_are_not_part_of_the_arguments(end: str, arguments: str) -> None:
    reply = parse_in_every_cut(SECTION + OPEN + "functions.write:0" + SEPARATOR + '{"text": "a' + end, "kimi_k2")
    assert rows_of(reply) == [("write", arguments, False)]
    assert (reply.text, reply.stop_reason) == ("", "length")


def test_truncated_quotation_makes_no_call() -> None:
    quoted = SECTION + kimi_call("write", 0, FIRST) + kimi_call("run", 1, SECOND) + SECTION_END
    args = json.dumps({"text": quoted})
    text = SECTION + kimi_call("write", 0, args) + SECTION_END
    start = text.index(args)
    for end in range(start, start + len(args)):
        reply = il.parse(text[:end], "kimi_k2", tools=TOOLS)
        assert [(call.name, call.complete) for call in reply.calls] in ([("write", False)], []), text[:end]
        # The closing brace is added if all params are complete.
        assert all(args.startswith(call.arguments.removesuffix("}")) for call in reply.calls)
        assert reply.text == ""


def test_two_unclosed_strings() -> None:
    text = SECTION + kimi_call("write", 0, '{"text": "a') + kimi_call("write", 1, '{"text": "b')
    text += kimi_call("run", 2, "{ }") + kimi_call("run", 3, SECOND) + SECTION_END
    rows = rows_of(parse_in_every_cut(text, "kimi_k2"))
    assert rows == [
        ("write", '{"text": "a', False),
        ("write", '{"text": "b', False),
        ("run", "{ }", True),
        ("run", SECOND, True),
    ]


def test_text_that_waits_is_released_at_once() -> None:
    parser = il.Parser("kimi_k2", tools=TOOLS)
    parser.feed(SECTION + OPEN + "functions.write:0" + SEPARATOR + '{"text": "')
    waits = {
        "a < b": "",
        "a <": "<",
        "x": "",
        CLOSE: CLOSE,
        " ": CLOSE + " ",
        "!": "",
        CLOSE + OPEN + "functions.run:1" + SEPARATOR + "{": CLOSE + OPEN + "functions.run:1" + SEPARATOR + "{",
        '\\"x': "",
    }
    for piece, held in waits.items():
        parser.feed(piece)
        assert parser.held == held, piece


@pytest.mark.slow
@pytest.mark.parametrize("piece_length", [1, 7, 10**9])
@pytest.mark.parametrize(
    "unit",
    [
        "<|",
        CLOSE,
        CLOSE + OPEN,
        kimi_call("run", 1, "{}"),
        CLOSE + OPEN + "functions.run:1" + SEPARATOR + '{\\"x\\"',
        CLOSE + OPEN + "x" * 100,
        CLOSE + " " * 100,
    ],
)
def test_time_is_linear_in_strings_full_of_markers(unit: str, piece_length: int) -> None:
    def parse(size: int) -> None:
        value = unit * (size // len(unit))
        text = f'{SECTION}{OPEN}functions.write:0{SEPARATOR}{{"text": "{value}"}}{CLOSE}'
        parser = il.Parser("kimi_k2", tools=TOOLS)
        pieces = [text[n : n + piece_length] for n in range(0, len(text), piece_length)]
        events = [event for piece in pieces for event in parser.feed(piece)] + parser.close()
        assert len(il.fold(events).calls) == 1

    check_growth(parse, 20_000, 80_000, limit=10)


def repeated_heads(dialect: str, count: int) -> dict[str, str]:
    """Return texts with calls that have no closer."""
    head, _, closers = native_calls(dialect, ("write", FIRST)).partition('abc"}')
    return {
        "no closer": head * count,
        "closers at the end": head * count + closers * count,
        "one closer at the end": head * count + '"}' + closers,
        "a back-tick before each": ("`" + head) * count,
        "strings that are closed": (head + '"') * count,
    }


@pytest.mark.slow
@pytest.mark.parametrize("dialect", DIALECTS)
@pytest.mark.parametrize("case", repeated_heads("kimi_k2", 1))
def test_repeated_heads_are_the_same_in_every_cut(dialect: str, case: str) -> None:
    parse_in_every_cut(repeated_heads(dialect, 3)[case], dialect)


@pytest.mark.slow
@pytest.mark.parametrize("piece_length", [1, 10**9])
@pytest.mark.parametrize("dialect", DIALECTS)
@pytest.mark.parametrize("case", repeated_heads("kimi_k2", 1))
def test_time_is_linear_in_calls_without_a_closer(dialect: str, case: str, piece_length: int) -> None:
    def parse(count: int) -> None:
        text = repeated_heads(dialect, count)[case]
        parser = il.Parser(dialect, tools=TOOLS)
        for start in range(0, len(text), piece_length):
            parser.feed(text[start : start + piece_length])
        parser.close()

    count = 50 if piece_length == 1 else 500
    check_growth(parse, count, 4 * count, limit=8)
