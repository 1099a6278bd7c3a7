"""Calls in code spans and code blocks: quotes are text, byte for byte; wrapped calls that end a reply are calls."""

from __future__ import annotations

import re

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import interlingua as il
from interlingua import events as ev
from interlingua.core.options import Limits, Options
from interlingua.core.reply import Reasoning, Text
from interlingua.dialects.registry import get_dialect
from tests.support.budget import examples
from tests.support.growth import check_growth
from tests.support.quotes import NATIVE, TOOLS, cut_texts, parse_pieces, write_call

each_dialect = pytest.mark.parametrize("dialect", NATIVE, ids=lambda dialect: dialect.name)
few_or_many_cuts = pytest.mark.parametrize("cuts", [1, pytest.param(6, marks=pytest.mark.slow)])
BEFORE_AND_AFTER: dict[str, tuple[str, str]] = {
    "block": ("Models write this:\n\n```xml\n", "\n```\n\nThat is all."),
    "block at the start": ("```\n", "\n```\nThat is all."),
    "longer block": ("So:\n````md\n", "\n````\nThat is all."),
    "tildes": ("So:\n~~~\n", "\n~~~~\nThat is all."),
    "block in a list": ("- So:\n\n   ~~~\n   ", "\n   ~~~\n\nThat is all."),
    "text before and after it in its block": ("~~~\nFirst:\n", "\nand last.\n~~~\nThat is all."),
    "two quotes": ("~~~\n{call}\n~~~\n~~~\n", "\n~~~\nThat is all."),
    "span": ("A call is `", "` in short."),
    "longer span": ("A call is ``", "`` in short."),
    "span with spaces": ("A call is ````` ", " ````` in short."),
    "two spans": ("A call is `{call}` or `", "`, in short."),
}
WRAPPED: dict[str, tuple[str, str]] = {
    "block": ("I look.\n\n```xml\n", "\n```"),
    "block at the start": ("````tool_call\n", "\n````\n"),
    "tildes": ("So:\n~~~\n", "\n~~~\n\n"),
    "block that is never closed": ("So:\n~~~\n", ""),
    "span": ("So `", "`"),
    "longer span": ("So ``", "``\n"),
}


def is_quotable(call: str, before: str) -> bool:
    """Return whether the delimiter can quote the call: the call does not end its code itself."""
    delimiter = (re.findall(r"`+|~+", before) or [""])[-1]
    if "~" in delimiter:
        return True
    if len(delimiter) > 2 and re.search(r"(?m)^ *$", before):
        return not re.search(rf"(?m)^ *{delimiter}`*\s*$", call)
    starts_block = re.search(r"(?m)^ {0,3}```", call)
    return "\n\n" not in call and not starts_block and not call.endswith("`")


@pytest.mark.one_row_in(5)
@each_dialect
@pytest.mark.parametrize("form", BEFORE_AND_AFTER)
@few_or_many_cuts
def test_quoted_call_is_text(dialect: il.Dialect, form: str, cuts: int) -> None:
    call = write_call(dialect)
    before, after = BEFORE_AND_AFTER[form]
    before = before.replace("{call}", call)
    if not is_quotable(call, before):
        pytest.skip("the call cannot be quoted in this form")
    if form == "block at the start" and getattr(dialect.shape, "bare", False):
        pytest.skip("JSON in a code block at the start is a notation of the dialect")
    text = before + call + after
    for pieces in cut_texts(text, cuts):
        assert parse_pieces(dialect, pieces).parts == [Text(text)], pieces


@each_dialect
def test_quoted_call_is_reported(dialect: il.Dialect) -> None:
    reply = parse_pieces(dialect, [f"So:\n~~~\n\n{write_call(dialect)}\n~~~\nThat is all."])
    assert [finding.kind for finding in reply.findings] == ["quoted-call"]


@pytest.mark.one_row_in(5)
@each_dialect
@pytest.mark.parametrize(
    ("before", "after"),
    [("The literal `", "` header is what the model writes."), ("So:\n~~~\n", "\n~~~\nis what the model writes.")],
    ids=["span", "block"],
)
@pytest.mark.parametrize("step", [pytest.param(1, marks=pytest.mark.slow), 5])
def test_quoted_beginning_of_a_call_is_text(dialect: il.Dialect, before: str, after: str, step: int) -> None:
    call = write_call(dialect)
    for end in range(1, len(call), step):
        start = call[:end]
        if is_quotable(start, before):
            text = before + start + after
            for pieces in ([text], list(text)):
                assert parse_pieces(dialect, pieces).parts == [Text(text)], pieces


@pytest.mark.one_row_in(5)
@each_dialect
@pytest.mark.parametrize("share", [0.5, 1])
def test_real_call_after_a_quoted_one(dialect: il.Dialect, share: float) -> None:
    call = write_call(dialect)
    if not il.parse("So:\n\n" + call, dialect, TOOLS).calls:
        pytest.skip("the call needs a message of its own")
    quote = call[: int(len(call) * share)]
    text = f"So:\n~~~~\n{quote}\n~~~~\nNow I call it.\n\n"
    for pieces in cut_texts(text + call, 2):
        reply = parse_pieces(dialect, pieces)
        assert reply.text.startswith(text.rstrip())
        assert [(made.name, made.complete) for made in reply.calls] == [("get_weather", True)]


def write_wrapped_call(dialect: il.Dialect, name: str = "get_weather", arguments: str = '{"city": "Paris"}') -> str:
    """Return a call as a model may wrap it in code. The header of a message of Muse would be text before the call."""
    call = write_call(dialect, name, arguments)
    return call.partition("<|message|>")[2] if dialect.name == "muse" else call


@pytest.mark.one_row_in(5)
@each_dialect
@pytest.mark.parametrize("form", WRAPPED)
@few_or_many_cuts
def test_wrapped_call_at_the_end_is_a_call(dialect: il.Dialect, form: str, cuts: int) -> None:
    call = write_wrapped_call(dialect)
    before, after = WRAPPED[form]
    lead = "So: " if "span" in form else "So:\n\n"
    if not is_quotable(call, before) or not il.parse(lead + call, dialect, TOOLS).calls:
        pytest.skip("the call cannot be written in this form")
    for end_of_turn in ("", *dialect.noise[:1]):
        replies = [parse_pieces(dialect, pieces) for pieces in cut_texts(before + call + after + end_of_turn, cuts)]
        assert all(reply == replies[0] for reply in replies)
        assert [(made.name, made.complete) for made in replies[0].calls] == [("get_weather", True)]
        assert "Paris" in replies[0].calls[0].arguments
        assert replies[0].text.startswith(before.rstrip())


@pytest.mark.one_row_in(5)
@each_dialect
def test_several_wrapped_calls(dialect: il.Dialect) -> None:
    paris, list_files = write_wrapped_call(dialect), write_wrapped_call(dialect, "ls", '{"path": "src"}')
    text = f"I look.\n~~~~\n{paris}\n~~~~\n\n~~~~xml\n{list_files}\n~~~~\n"
    for pieces in cut_texts(text, 3):
        reply = parse_pieces(dialect, pieces)
        assert [(made.name, made.complete) for made in reply.calls] == [("get_weather", True), ("ls", True)]
        assert len({made.id for made in reply.calls}) == 2
        assert {finding.kind for finding in reply.findings} >= {"call-in-code"}


TEXT_BEFORE: dict[str, tuple[str, str]] = {
    "block": ("Here is test.md:\n\n~~~\n# How to call tools\nWrite this:\n", "\n~~~"),
    "same line of a block": ("So:\n~~~md\nAssistant: ", "\n~~~\n"),
    "block that is never closed": ("So:\n~~~\n\nx = 1\n\n", ""),
    "opening line": ("So:\n~~~ x = ", "\n~~~"),
    "shorter delimiter": ("So:\n~~~~\n~~~\n", "\n~~~~"),
    "span": ("It is `x = ", "`"),
    "longer span": ("It is ``` x\ny\n", "```"),
}


@pytest.mark.one_row_in(5)
@each_dialect
@pytest.mark.parametrize("form", TEXT_BEFORE)
def test_call_after_other_text_in_its_code_is_text(dialect: il.Dialect, form: str) -> None:
    call = write_call(dialect)
    before, after = TEXT_BEFORE[form]
    if not is_quotable(call, before) or ("span" in form and "`" in call):
        pytest.skip("the call cannot be quoted in this form")
    text = before + call + after
    for pieces in cut_texts(text, 3):
        reply = parse_pieces(dialect, pieces)
        assert (reply.calls, reply.text.rstrip()) == ([], strip_noise(text, dialect)), pieces


def strip_noise(text: str, dialect: il.Dialect) -> str:
    """Return the text without white space and end-of-turn tokens at its end."""
    text = text.rstrip()
    while dialect.noise and text.endswith(dialect.noise):
        text = next(text.removesuffix(noise).rstrip() for noise in dialect.noise if text.endswith(noise))
    return text


BARE_JSON = '{"name": "get_weather", "parameters": {"city": "Paris"}}'


@pytest.mark.parametrize("dialect", ["llama3_json", "xlam", "phi4"])
@pytest.mark.parametrize("before", ["The user`s config ", "Use ``` or ", "The user`s\nconfig "])
@pytest.mark.parametrize("after", [" is wrong.\n", " is wrong.\n\nAnd so on."])
def test_json_behind_an_unpaired_back_tick_is_text(dialect: str, before: str, after: str) -> None:
    text = before + BARE_JSON + after
    for pieces in cut_texts(text):
        assert parse_pieces(dialect, pieces).parts == [Text(text)], pieces


@pytest.mark.one_row_in(5)
@each_dialect
@pytest.mark.parametrize("before", ["I don`t know.\n", "Use ``` as fence.\n", "I don`t\nknow.\n"])
@pytest.mark.parametrize("after", ["", "\nDone."])
def test_unpaired_back_tick_on_an_earlier_line(dialect: il.Dialect, before: str, after: str) -> None:
    call = write_call(dialect)
    plain = parse_pieces(dialect, [before.replace("`", "x") + call + after])
    for pieces in cut_texts(before + call + after, 3):
        reply = parse_pieces(dialect, pieces)
        assert reply.text.replace("`", "x") == plain.text
        assert [(made.name, made.complete) for made in reply.calls] == [
            (made.name, made.complete) for made in plain.calls
        ], pieces


@pytest.mark.one_row_in(5)
@each_dialect
@pytest.mark.parametrize("before", ["The ` key. ", "Use `ls` and ` then ", "Not `` but "])
@pytest.mark.parametrize("after", ["", "\n\nDone, `really`."])
def test_unpaired_back_tick_on_the_same_line(dialect: il.Dialect, before: str, after: str) -> None:
    """Also if the notation of the dialect has a code block of its own."""
    call = write_call(dialect)
    plain = parse_pieces(dialect, [before.replace("`", "x") + call + after])
    for pieces in cut_texts(before + call + after, 3):
        reply = parse_pieces(dialect, pieces)
        assert reply.text.replace("`", "x") == plain.text.replace("`", "x")
        assert [(made.name, made.complete) for made in reply.calls] == [
            (made.name, made.complete) for made in plain.calls
        ], pieces


@pytest.mark.parametrize("dialect", ["deepseek_v3", "rwkv", "command_r_plus"])
@pytest.mark.parametrize("delimiter", ["`", "``"])
def test_quoted_call_with_a_code_block_in_its_notation_is_text(dialect: str, delimiter: str) -> None:
    text = f"A call is {delimiter} {write_call(get_dialect(dialect))} {delimiter} in short."
    for pieces in cut_texts(text):
        assert parse_pieces(dialect, pieces).parts == [Text(text)], pieces


MESSAGES = {
    "muse": (" to=user<|message|>{}<|eom|>", "<|start|>assistant to=user<|message|>Next.<|eom|>", "<|start|>assistant"),
    "harmony": (
        "<|channel|>final<|message|>{}<|end|>",
        "<|start|>assistant<|channel|>final<|message|>Next.<|end|>",
        "<|start|>assistant",
    ),
}
"""A message with a text, the next one, and the beginning of a message with a call."""


@pytest.mark.parametrize("text", ["I don`t know.", "Use ``` here.", "A block:\n```\nls"])
@pytest.mark.parametrize("name", MESSAGES)
def test_code_ends_with_its_message(name: str, text: str) -> None:
    dialect = next(native for native in NATIVE if native.name == name)
    message, next_message, call_start = MESSAGES[name]
    for after, expected in (("", text), (next_message, text + "Next.")):
        for pieces in cut_texts(message.format(text) + after + call_start + write_call(dialect), 3):
            reply = parse_pieces(dialect, pieces)
            assert (reply.text, [made.complete for made in reply.calls]) == (expected, [True]), pieces
            assert not reply.findings


@pytest.mark.parametrize("dialect", ["rwkv", "command_r_plus", "deepseek_v3"])
def test_two_calls_with_fences_after_an_unpaired_back_tick(dialect: str) -> None:
    shape = next(native for native in NATIVE if native.name == dialect)
    call = write_call(shape)
    for pieces in cut_texts(f"don`t worry\n{call}\n{call}"):
        assert [made.complete for made in parse_pieces(dialect, pieces).calls] == [True, True], pieces


@each_dialect
def test_quoted_call_after_a_real_one(dialect: il.Dialect) -> None:
    call, quoted = write_call(dialect), write_call(dialect, "ls", '{"path": "/"}')
    before = "I did `"
    if not is_quotable(quoted, before) or "`" in quoted or dialect.router is not None:
        pytest.skip("the call cannot be quoted in this form")
    for pieces in cut_texts(f"{call}\n{before}{quoted}` for you.", 3):
        reply = parse_pieces(dialect, pieces)
        assert [made.name for made in reply.calls] == ["get_weather"], pieces
        assert f"{before}{quoted}` for you." in reply.text


@each_dialect
def test_quoted_call_after_a_section_that_was_not_closed(dialect: il.Dialect) -> None:
    call, quoted = write_call(dialect), write_call(dialect, "ls", '{"path": "/"}')
    before = "I did `"
    closer = next((stray for stray in sorted(dialect.strays, key=len, reverse=True) if call.endswith(stray)), "")
    if not closer or not is_quotable(quoted, before) or "`" in quoted or dialect.router is not None:
        pytest.skip("the call cannot be quoted in this form")
    for pieces in cut_texts(f"{call.removesuffix(closer)}\n{before}{quoted}` for you.", 3):
        assert [made.name for made in parse_pieces(dialect, pieces).calls] == ["get_weather"], pieces


def test_blank_line_in_a_marker_does_not_end_a_span() -> None:
    marker = "<|message_sep|>\n\nfunction call<|role_sep|>\n"
    text = f'The `{marker}{{"name": "ls", "arguments": {{"path": "/"}}}}` header is it.'
    for pieces in cut_texts(text):
        assert parse_pieces("gigachat3", pieces).parts == [Text(text)], pieces


@each_dialect
def test_wrapped_call_of_a_tool_that_was_not_offered_is_text(dialect: il.Dialect) -> None:
    text = f"So:\n~~~\n{write_call(dialect, 'remove', '{}')}\n~~~"
    for pieces in cut_texts(text, 3):
        assert parse_pieces(dialect, pieces).parts == [Text(text)], pieces


@pytest.mark.one_row_in(5)
@each_dialect
@pytest.mark.parametrize(
    "before",
    ["I use the `get_weather` tool.\n\n", "I use the `get_weather tool.\n\n", "```py\nx = 1\n```\n", "~~~\nx\n~~~\n\n"],
)
def test_call_outside_code_is_streamed(dialect: il.Dialect, before: str) -> None:
    call = write_call(dialect)
    parser = il.Parser(dialect, tools=TOOLS)
    parser.feed(before)
    events = [event for char in call for event in parser.feed(char)]
    if not any(isinstance(event, ev.CallStart) for event in events):  # such a call is tentative anywhere
        alone = il.Parser(dialect, tools=TOOLS)
        alone.feed("Text.\n\n")
        assert not any(isinstance(event, ev.CallStart) for char in call for event in alone.feed(char))
    reply = il.fold([*events, *parser.close()])
    assert [(made.name, made.complete) for made in reply.calls] == [("get_weather", True)]


@pytest.mark.parametrize("dialect", [dialect for dialect in NATIVE if dialect.thinking], ids=lambda d: d.name)
def test_quotes_in_thinking(dialect: il.Dialect) -> None:
    span, call = dialect.thinking[0], write_call(dialect)
    if span.close in call:
        pytest.skip("the call contains the end of the thinking")
    thoughts = f"The format is:\n~~~\n{call}\n~~~\nSo, an odd ` and a ~~~ here"
    for pieces in cut_texts(f"{span.open}{thoughts}{span.close}Hello.", 3):
        assert parse_pieces(dialect, pieces).parts == [Reasoning(thoughts), Text("Hello.")], pieces


def test_call_in_a_block_of_the_thinking_that_ends_the_reply() -> None:
    call = write_call(il.dialects()[0])
    dialect = il.dialects()[0]
    span = dialect.thinking[0]
    reply = parse_pieces(dialect, [f"{span.open}Now:\n~~~\n{call}\n~~~\n{span.close}"])
    assert [made.name for made in reply.calls] == ["get_weather"]


HERMES_CALL = '<tool_call>\n{"name": "get_weather", "arguments": {"city": "Paris"}}\n</tool_call>'
HERMES_ROWS: dict[str, tuple[str, list[str], list[str]]] = {
    "thinking markers in back-ticks": ("Close it with `</think>`, open it with `<think>`. So.", [], []),
    "end-of-turn token in back-ticks": ("The turn ends with `<|im_end|>`, always.", [], []),
    "end-of-turn token in a block that is never closed": ("```py\nx = 1\n", ["<|im_end|>"], ["noise"]),
    "a name before the call in its block": (f"```\nAssistant: {HERMES_CALL}\n```\nis a log.", [], ["quoted-call"]),
    "odd back-tick on the line before a call, and text after it": (f"A ` here.\n{HERMES_CALL}", [" Done."], []),
    "JSON in a block, with text after it": (
        '```json\n{"name": "get_weather", "arguments": {"city": "Paris"}}\n```\nis what a call looks like.',
        [],
        ["quoted-call"],
    ),
    "text in the block after a call": (f"```\n{HERMES_CALL} # comment\n```", [], ["quoted-call"]),
    "a real call after a wrapped one": (f"```\n{HERMES_CALL}\n```\n", [HERMES_CALL], ["quoted-call"]),
}


@pytest.mark.parametrize("row", HERMES_ROWS)
def test_hermes_rows(row: str) -> None:
    text, more, findings = HERMES_ROWS[row]
    full = text + "".join(more)
    calls = 1 if more and "noise" not in findings else 0
    expected = text if not calls or "quoted-call" in findings else text.removesuffix(HERMES_CALL) + more[0]
    for pieces in cut_texts(full):
        reply = parse_pieces("hermes", pieces)
        assert [finding.kind for finding in reply.findings] == findings
        assert len(reply.calls) == calls
        assert reply.text.replace("\n", "") == expected.replace("\n", "")
        if not more:
            assert reply.parts == [Text(text)]


def test_whole_delivery_loses_no_text() -> None:
    text = "The literal `<tool_call>\n<function=get_weather>\n<parameter=city>\n` header is what the model writes."
    parser = il.Parser("qwen3_coder", TOOLS, options=Options(delivery="whole"))
    assert il.fold(parser.feed(text) + parser.close()).parts == [Text(text)]


@pytest.mark.parametrize("over", ["flush", "error"])
def test_hold_is_bounded(over: str) -> None:
    text = f"```\n{HERMES_CALL}\n{'x' * 5000}"
    for pieces in cut_texts(text, 2):
        parser = il.Parser("hermes", TOOLS, options=Options(limits=Limits(held=2000, over=over)))  # type: ignore[arg-type]
        events = [event for piece in pieces for event in parser.feed(piece)]
        reply = il.fold(events + parser.close())
        assert reply.calls == []
        if over == "flush":
            assert sum(len(event.text) for event in events if isinstance(event, ev.TextDelta)) > 2000
            assert reply.parts == [Text(text)]
            assert [finding.kind for finding in reply.findings] == ["over-limit"]
        else:
            assert reply.failure is not None


def test_long_wrapped_call_over_the_limit_is_text() -> None:
    call = '<tool_call>\n{"name": "get_weather", "arguments": {"city": "' + "x" * 5000 + '"}}\n</tool_call>'
    parser = il.Parser("hermes", TOOLS, options=Options(limits=Limits(held=2000)))
    text = f"```\n{call}\n```"
    assert il.fold(parser.feed(text) + parser.close()).parts == [Text(text)]


def test_text_in_a_block_is_streamed_if_it_is_no_call() -> None:
    parser = il.Parser("pythonic", TOOLS)
    sent = "".join(
        event.text
        for piece in ["```py\n", "x = [1, 2]\n", "y = [f(x)]\n", "z = 3\n"]
        for event in parser.feed(piece)
        if isinstance(event, ev.TextDelta)
    )
    assert sent == "```py\nx = [1, 2]\ny = [f(x)]\nz = 3"


@pytest.mark.slow
@each_dialect
def test_linear_time(dialect: il.Dialect) -> None:
    call = write_call(dialect)

    def parse(text: str) -> None:
        parse_pieces(dialect, [text[start : start + 50] for start in range(0, len(text), 50)])

    for unit in (f"~~~\n{call}\n~~~\nand `{call[:12]}` ", f"`{call[:9]} odd\n", "~~~\n" + call * 3 + "\n"):
        short = unit * (2000 // len(unit) + 1)
        check_growth(parse, short, short * 4, limit=9)


PIECES = ["`", "``", "```", "\n```\n", "\n~~~\n", "\n", "\n\n", " ", "so ", "x", "`get_weather`", "```xml\n"]


@pytest.mark.one_row_in(5)
@pytest.mark.hypothesis
@pytest.mark.parametrize("dialect", NATIVE, ids=lambda dialect: dialect.name)
@settings(max_examples=examples(50))
@given(data=st.data())
def test_split_does_not_matter(dialect: il.Dialect, data: st.DataObject) -> None:
    call = write_call(dialect)
    fragments = [
        call,
        call[: len(call) // 2],
        call[len(call) // 2 :],
        *dialect.markers[:8],
        *dialect.noise[:1],
        *PIECES,
    ]
    pieces = data.draw(st.lists(st.sampled_from(fragments), max_size=12))
    text = "".join(pieces)
    whole = parse_pieces(dialect, [text])
    assert parse_pieces(dialect, list(text)) == whole
    assert parse_pieces(dialect, pieces) == whole
