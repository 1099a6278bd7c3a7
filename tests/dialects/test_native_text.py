"""parse, render and Parser: round trips, independence of cuts for any text, and the limits."""

from __future__ import annotations

import json
import re
from itertools import pairwise
from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

import interlingua as il
from interlingua import events as ev
from interlingua.core.reply import Call, Part, Reasoning, Reply, Text
from interlingua.dialects.registry import get_dialect
from interlingua.errors import RenderError, UnknownDialect, UsageError
from interlingua.parsing.markers import compile_markers
from tests.support.harness import tool

KIMI = get_dialect("kimi_k2")
MARKS = compile_markers(*KIMI.markers)

# ── parse(render(x)) == x ───────────────────────────────────────────────────────────────────────────────────────────

hostile = st.sampled_from([*KIMI.markers, "functions.", ":0", "call_", "<", "|>", "<|", "\\", '"', "{", "}", "\n", " "])
chars = st.text(st.characters(exclude_categories=["Cs"]), max_size=6)
texts = st.lists(chars | hostile, min_size=1, max_size=6).map("".join)
plain_texts = texts.filter(lambda text: text.strip() and not MARKS.search(text, 0))
names = st.from_regex(r"[A-Za-z0-9_.:\-]{1,24}", fullmatch=True) | st.sampled_from(
    ["functions", "functions.x", "a:1", "a:b", "3", "call_59ad", "mcp__x-y__z", "日本語", "a b", "functions_Bash_2"]
)
values: st.SearchStrategy[Any] = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | texts,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(texts, inner, max_size=3),
    max_leaves=8,
)
layouts: st.SearchStrategy[dict[str, Any]] = st.sampled_from(
    [{}, {"indent": 2}, {"separators": (",", ":")}, {"ensure_ascii": False}]
)


@st.composite
def calls(draw: st.DrawFn) -> Call:
    arguments = draw(st.dictionaries(texts, values, max_size=4))
    return Call("", draw(names), json.dumps(arguments, **draw(layouts)))


@st.composite
def replies(draw: st.DrawFn) -> Reply:
    """Replies without adjacent parts of one kind, which would be merged."""
    drawn: list[Part] = draw(st.lists(plain_texts.map(Text) | plain_texts.map(Reasoning) | calls(), max_size=6))
    parts = drawn[:1] + [b for a, b in pairwise(drawn) if type(a) is not type(b) or isinstance(b, Call)]
    numbered = [
        Call(f"functions.{part.name}:{n}", part.name, part.arguments) if isinstance(part, Call) else part
        for n, part in enumerate(parts)
    ]
    called = any(isinstance(part, Call) for part in numbered)
    return Reply(parts=numbered, stop_reason="tool_calls" if called else "stop")


def streamed(pieces: list[str], **options: Any) -> Reply:
    parser = il.Parser("kimi_k2", **options)
    return il.fold([event for piece in pieces for event in parser.feed(piece)] + parser.close())


def pieces_of(text: str, cuts: list[int]) -> list[str]:
    places = sorted(cut % (len(text) + 1) for cut in cuts)
    return [text[a:b] for a, b in zip([0, *places], [*places, len(text)], strict=True)]


@given(replies(), st.lists(st.integers(0, 10_000), max_size=8))
def test_render_parse_round_trip(reply: Reply, cuts: list[int]) -> None:
    written = il.render(reply, "kimi_k2")
    assert il.parse(written, "kimi_k2") == reply
    assert streamed(pieces_of(written, cuts)) == reply


def test_render_replaces_id_without_the_name() -> None:
    reply = Reply(parts=[Call("call_1", "ls", "{}"), Call("toolu_2", "rm", "{}")])
    written = il.render(reply, "kimi_k2")
    assert [call.id for call in il.parse(written, "kimi_k2").calls] == ["functions.ls:0", "functions.rm:1"]


def test_incomplete_call_round_trip() -> None:
    reply = Reply(parts=[Call("functions.ls:0", "ls", '{"a', complete=False)])
    parsed = il.parse(il.render(reply, "kimi_k2"), "kimi_k2")
    assert parsed.parts == reply.parts
    assert parsed.stop_reason == "length"


@pytest.mark.parametrize(
    "parts",
    [
        [Text("a <|tool_call_end|> b")],
        [Reasoning("a </think> b")],
        [Call("x", "two\nlines", "{}")],
        [Call("x", "a<|tool_call_argument_begin|>b", "{}")],
        [Call("x", "a<think>b", "{}")],
        [Call("x", "ls", "prose </think> x")],
        [Text("<thi"), Text("nk>hello")],
        [Call("x", "ls", '{"a": <|tool_call_end|>')],
        [Call("x", "ls", "{", complete=False), Text("more")],
    ],
)
def test_unrenderable_parts_raise(parts: list[Part]) -> None:
    with pytest.raises(RenderError):
        il.render(Reply(parts=parts), "kimi_k2")


def test_standard_dialect_renders_only_text() -> None:
    assert il.render(Reply(parts=[Text("hi")]), "standard") == "hi"
    for part in (Reasoning("hm"), Call("x", "ls", "{}")):
        with pytest.raises(RenderError):
            il.render(Reply(parts=[part]), "standard")


# ── random text ─────────────────────────────────────────────────────────────────────────────────────────────────────

SCRAPS = ["functions.ls:0", "ls:", "ls", "3", '{"a": "', '"}', "{}", "null", " ", "\n", "<|tool", "<｜"]
NATIVE = [dialect for dialect in il.dialects() if dialect.shape]
soups = st.sampled_from(NATIVE).flatmap(
    lambda dialect: st.tuples(
        st.just(dialect),
        st.lists(st.sampled_from([*dialect.markers, *SCRAPS]) | chars, max_size=14).map("".join),
    )
)
offers = st.sampled_from([None, [], [tool("ls", ["a"])], [tool("ls", ["a"]), tool("rm", ["b"])]])


def parse_pieces(dialect: il.Dialect, pieces: list[str], offer: list[dict[str, Any]] | None) -> Reply:
    parser = il.Parser(dialect, tools=offer)
    return il.fold([event for piece in pieces for event in parser.feed(piece)] + parser.close())


@given(soups, offers, st.lists(st.integers(0, 10_000), max_size=8))
@example((KIMI, 'ls:3{}<|tool_call_argument_begin|>{"a": "<|tool_call_end|>'), [tool("ls", ["a"])], [3])
def test_random_markers(soup: tuple[il.Dialect, str], offer: list[dict[str, Any]] | None, cuts: list[int]) -> None:
    """Any sequence of markers: never raises, legal event order, same result for all cuts. No marker stays in the text,
    unless no tool was offered: then nothing is a call, and markers are text."""
    dialect, text = soup
    uncut = il.parse(text, dialect, tools=offer)
    assert parse_pieces(dialect, list(text), offer) == uncut
    assert parse_pieces(dialect, pieces_of(text, cuts), offer) == uncut
    if offer == []:
        assert not uncut.calls
        return
    for part in uncut.parts:
        if not isinstance(part, Call) and dialect.special_tokens:
            assert not compile_markers(*dialect.tokens).search(part.text, 0) or _made_by_dropping(text, dialect)


def _made_by_dropping(text: str, dialect: il.Dialect) -> bool:
    """Return whether a marker exists only because another one inside it was dropped. A stream cannot retract its first
    half."""
    return compile_markers(*dialect.markers).remove_from(text) != re.sub(
        "|".join(map(re.escape, dialect.markers)), "", text
    )


@given(chars, st.lists(st.integers(0, 100), max_size=5))
def test_text_without_markers_is_unchanged(text: str, cuts: list[int]) -> None:
    for dialect in NATIVE:
        if not compile_markers(*dialect.markers).search(text, 0):
            assert parse_pieces(dialect, pieces_of(text, cuts), None).text == text
    assert il.parse(text, "standard").text == text


# ── streaming ───────────────────────────────────────────────────────────────────────────────────────────────────────


def test_name_and_arguments_are_streamed() -> None:
    parser = il.Parser("kimi_k2")
    assert parser.feed("<|tool_calls_section_begin|><|tool_call_begin|>functions.ls:0<|tool_call_argument_") == []
    assert parser.feed("begin|>") == [ev.CallStart(0, "functions.ls:0", "ls")]
    assert parser.feed('{"pa') == [ev.ArgsDelta(0, '{"pa')]
    assert parser.feed('th": "\\') == [ev.ArgsDelta(0, 'th": "\\')]
    assert parser.feed('n<|tool_call_end|>"}') == [ev.ArgsDelta(0, 'n<|tool_call_end|>"}'), ev.CallEnd(0)]
    assert parser.feed("<|tool_call_end|>") == []
    assert parser.close()[-1] == ev.Stop("tool_calls")


def test_partial_marker_is_released_when_it_cannot_match() -> None:
    parser = il.Parser("kimi_k2")
    assert parser.feed("a <|tool_cal") == [ev.TextDelta("a ")]
    assert parser.held == "<|tool_cal"
    assert parser.feed("ibre") == [ev.TextDelta("<|tool_calibre")]
    assert parser.feed("<thin") == []
    assert parser.close() == [ev.TextDelta("<thin"), ev.Stop("stop")]


def test_closed_parser_raises() -> None:
    parser = il.Parser("kimi_k2")
    parser.close()
    for use in (parser.close, lambda: parser.feed("x")):
        with pytest.raises(UsageError, match="closed"):
            use()


def test_unknown_dialect_suggests_the_nearest_name() -> None:
    with pytest.raises(UnknownDialect) as caught:
        il.parse("", "kimi_k2x")
    assert "kimi_k2" in caught.value.hint


# ── limits ──────────────────────────────────────────────────────────────────────────────────────────────────────────

OPEN = "<|tool_calls_section_begin|><|tool_call_begin|>"
ARGS = "<|tool_call_argument_begin|>"
NEXT = "<|tool_call_begin|>functions.rm:1<|tool_call_argument_begin|>{}<|tool_call_end|><|tool_calls_section_end|>"
OVER = {
    "header": (OPEN + "x" * 50 + NEXT, il.Limits(header=20)),
    "arguments": (OPEN + "functions.ls:0" + ARGS + '{"a": "' + "x" * 50 + '"}' + NEXT, il.Limits(args=20)),
    "arguments that are not JSON": (OPEN + "functions.ls:0" + ARGS + "x" * 50 + NEXT, il.Limits(held=20)),
}


@pytest.mark.parametrize(("text", "limits"), OVER.values(), ids=OVER)
def test_limit_flushes_buffer_and_restarts_parsing(text: str, limits: il.Limits) -> None:
    options = il.Options(limits=limits)
    uncut = streamed([text], options=options)
    assert streamed(list(text), options=options) == uncut
    assert "over-limit" in [finding.kind for finding in uncut.findings]
    assert uncut.calls[-1] == Call("functions.rm:1", "rm", "{}")
    everything = uncut.text + "".join(call.arguments for call in uncut.calls)
    assert everything.count("x") == 50, "nothing is lost"
    assert [call.complete for call in uncut.calls[:-1]] == [False] * (len(uncut.calls) - 1)


@pytest.mark.parametrize(("text", "limits"), OVER.values(), ids=OVER)
def test_limit_ends_reply_with_over_error(text: str, limits: il.Limits) -> None:
    options = il.Options(limits=il.Limits(header=limits.header, held=limits.held, args=limits.args, over="error"))
    uncut = streamed([text], options=options)
    assert uncut.failure is not None
    assert "longer than 20 characters" in uncut.failure.message
    assert [call.complete for call in uncut.calls] in ([], [False])
    assert streamed(list(text), options=options).failure == uncut.failure


def test_runaway_whitespace_is_not_buffered_without_limit() -> None:
    parser = il.Parser("kimi_k2")
    out = [event for _ in range(1000) for event in parser.feed(" ")]
    assert len(parser.held) < 300
    assert il.fold(out + parser.close()).text == " " * 1000


# ── wrong use ───────────────────────────────────────────────────────────────────────────────────────────────────────


ANY: Any = il  # without types, as in a program without a type checker
WRONG: dict[str, Any] = {
    "Options.delivery": lambda: ANY.Options(delivery="hole"),
    "Options.reasoning": lambda: ANY.Options(reasoning="maybe"),
    "Options.taken_ids": lambda: ANY.Options(taken_ids=[1]),
    "Limits.over": lambda: ANY.Limits(over="throw"),
    "Limits.header": lambda: ANY.Limits(header="1 KiB"),
    "a list of tools": lambda: ANY.parse("", "kimi_k2", tools="bash"),
    "not {'name'": lambda: ANY.parse("", "kimi_k2", tools={"name": "bash"}),
    "not 5": lambda: ANY.parse("", "kimi_k2", tools=5),
    "no dialect is called None": lambda: ANY.parse("", None),
    "no wire is called None": lambda: ANY.Translator(source=None),
    "text is str, not bytes": lambda: ANY.Parser("kimi_k2").feed(b"x"),
    "data is bytes, not str": lambda: ANY.Translator().feed("x"),
    "Limits.event: less than 1": lambda: ANY.Limits(event=0),
    "a model id is str, not NoneType": lambda: ANY.dialect_for(None),
    "no dialect is called ['a']": lambda: ANY.parse("x", ["a"]),
    "a reply is a Reply, not str": lambda: ANY.render("abc", "kimi_k2"),
    "options are an Options, not dict": lambda: ANY.Parser("kimi_k2", options={}),
    "options are an Options": lambda: ANY.Translator(options={}),
    "a reply is a dict, not NoneType": lambda: ANY.translate_reply(None),
}


@pytest.mark.parametrize(("message", "make"), WRONG.items(), ids=WRONG)
def test_wrong_use_raises_with_hint(message: str, make: Any) -> None:
    with pytest.raises(il.InterlinguaError, match=re.escape(message)) as caught:
        make()
    assert caught.value.hint


@pytest.mark.parametrize(
    ("make", "hint"),
    [
        (lambda: ANY.Options(delivery="hole"), "did you mean 'whole'?"),
        (lambda: ANY.Options(delivery=5), "known: stream, whole"),
        (lambda: ANY.Options(limits=5), "expected: Limits"),
        (lambda: ANY.Limits(header="1 KiB"), "expected: int"),
    ],
)
def test_hint_for_a_wrong_option_names_its_values(make: Any, hint: str) -> None:
    with pytest.raises(il.InterlinguaError) as caught:
        make()
    assert caught.value.hint == hint


def test_prefill_is_combined_with_options() -> None:
    parser = il.Parser("kimi_k2", prefill="<think>", options=il.Options(reasoning="as_content"))
    assert il.fold(parser.feed("hm</think>x") + parser.close()).text == "hm\n\nx"


def test_parsers_share_no_state() -> None:
    """Two parsers that are fed alternately return the same results as each one alone."""
    text, other_text = KIMI.sample, KIMI.sample.replace("Paris", "Oslo").replace("get_weather", "ls")
    first, second = il.Parser("kimi_k2"), il.Parser("kimi_k2")
    events: tuple[list[ev.Event], list[ev.Event]] = ([], [])
    for at in range(0, max(len(text), len(other_text)), 3):
        events[0].extend(first.feed(text[at : at + 3]))
        events[1].extend(second.feed(other_text[at : at + 3]))
    assert il.fold(events[0] + first.close()) == il.parse(text, "kimi_k2")
    assert il.fold(events[1] + second.close()) == il.parse(other_text, "kimi_k2")
