"""Calls, and parts of calls, that a string of a `literals` call quotes: data, or an incomplete call with a finding."""

from __future__ import annotations

import json
import time
from collections.abc import Callable
from typing import Any, NamedTuple

import pytest
from hypothesis import given, settings
from hypothesis import strategies as some

import interlingua as il
from interlingua.core.options import Limits
from interlingua.core.reply import Text
from interlingua.core.tools import ToolSet
from interlingua.dialects.registry import get_dialect
from interlingua.errors import RenderError
from interlingua.parsing.parser import NativeTextParser
from interlingua.parsing.text_buffer import Channel
from tests.support.budget import examples
from tests.support.growth import check_growth
from tests.support.harness import Case, check_all_cuts, cut_variants, tool

PARAMS = ("path", "content", "mode")
TOOLS = [tool("write", PARAMS), tool("get_weather", PARAMS)]


class Syntax(NamedTuple):
    """The markers of a dialect, and calls written with them as a model writes them: nothing is escaped."""

    dialect: str
    open: str
    close: str
    quote: str
    end_of_turn: str

    def call(self, name: str, **params: str) -> str:
        return (
            self.head(name)
            + ",".join(f"{key}:{self.quote}{value}{self.quote}" for key, value in params.items())
            + ("}" + self.close)
        )

    def head(self, name: str) -> str:
        return f"{self.open}call:{name}{{"

    @property
    def tail(self) -> str:
        return f"{self.quote}}}{self.close}"

    def with_quotes(self, text: str) -> str:
        """Return the text with `"` for each quote token: inside a string, the model may have meant either."""
        return text.replace(self.quote, '"') if '"' in self.quote else text


GEMMA4 = Syntax("gemma4", "<|tool_call>", "<tool_call|>", '<|"|>', "<turn|>")
FUNCTIONGEMMA = Syntax("functiongemma", "<start_function_call>", "<end_function_call>", "<escape>", "<end_of_turn>")
each_dialect = pytest.mark.parametrize("s", [GEMMA4, FUNCTIONGEMMA], ids=lambda s: s.dialect)


def parse(text: str, s: Syntax) -> il.Reply:
    return il.parse(text, s.dialect, TOOLS)


def outcome(reply: il.Reply) -> tuple[list[tuple[str, Any, bool]], str, list[str]]:
    calls = [(call.name, json.loads(call.arguments), call.complete) for call in reply.calls]
    return calls, reply.text, [finding.kind for finding in reply.findings]


def check_in_every_cut(text: str, s: Syntax) -> il.Reply:
    """Parse the text in every cut, assert that the replies are equal, and return the reply."""
    reply = parse(text, s)
    parts = [
        {"call": part.name, "id": "made", "args": part.arguments, **({} if part.complete else {"complete": False})}
        if isinstance(part, il.Call)
        else {type(part).__name__.lower(): part.text}
        for part in reply.parts
    ]
    findings = [finding.kind for finding in reply.findings]
    check_all_cuts(
        Case(
            name="cuts", dialect=s.dialect, text=text, tools=TOOLS, parts=parts, stop=reply.stop_reason or "stop",
            findings=findings,
        )
    )  # fmt: skip
    return reply


# ── values that come back exactly ─────────────────────────────────────────────────────────────────────────────────

EXACT: dict[str, Callable[[Syntax], str]] = {
    "a call in prose": lambda s: f"Docs:\n{s.call('get_weather', path='Paris')}\nend",
    "only a call": lambda s: s.call("get_weather", path="Paris"),
    "two calls": lambda s: s.call("write", path="a", content="b") + s.call("nope", x="y") + "\n",
    "a call of an unknown tool": lambda s: f"a {s.call('nope', x='y')} b",
    "a tail in prose": lambda s: f"a{s.tail} b",
    "only a tail": lambda s: s.tail,
    "two tails": lambda s: f"a{s.tail}{s.tail}b",
    "a call and a tail": lambda s: f"{s.call('nope', x='y')}\n{s.tail}b",
    "a tail and a call": lambda s: f"a{s.tail} b {s.call('get_weather', path='Paris')} c",
    "closers": lambda s: f"a }}{s.close} b {s.close}",
    "the head of a call": lambda s: f"a {s.head('NAME')} b",
    "the head of a call and brackets": lambda s: f"a {s.head('NAME')}…}} b",
    "an opener": lambda s: f"a {s.open} b",
    "a call that quotes a call": lambda s: s.call("write", content=f"x {s.call('nope', y='z')} y"),
}


@pytest.mark.slow
@each_dialect
@pytest.mark.parametrize("name", EXACT)
def test_value_comes_back_exactly_in_every_cut(name: str, s: Syntax) -> None:
    check_exact_value(name, s, check_in_every_cut)


@each_dialect
@pytest.mark.parametrize("name", EXACT)
def test_value_comes_back_exactly(name: str, s: Syntax) -> None:
    check_exact_value(name, s, parse)


def check_exact_value(name: str, s: Syntax, read: Callable[[str, Syntax], il.Reply]) -> None:
    value = EXACT[name](s)
    for params in ({"path": "p", "content": value}, {"content": value, "path": "p"}, {"path": value, "content": value}):
        text = s.call("write", **params)
        assert outcome(read(text, s)) == ([("write", params, True)], "", [])
        next_call = s.call("get_weather", path="q")
        assert outcome(read(text + next_call, s)) == (
            [("write", params, True), ("get_weather", {"path": "q"}, True)],
            "",
            [],
        )
        assert outcome(read(text + s.end_of_turn, s)) == ([("write", params, True)], "", ["noise"])


# ── values whose end is ambiguous ─────────────────────────────────────────────────────────────────────────────────

AMBIGUOUS: dict[str, Callable[[Syntax], str]] = {
    "the start of a call, up to a value": lambda s: s.call("write", content=f"a {s.head('nope')}x:{s.quote}b"),
    "the start of a call, up to a quote": lambda s: s.call("write", content=f"a {s.head('nope')}x:"),
    "the end of a call, and text behind the call": lambda s: s.call("write", content=f"a{s.tail} b") + " Done.",
    "a param that the call already has": lambda s: s.call("write", content=f"a{s.quote},content:{s.quote}b"),
    "a quote and the start of a call": lambda s: s.call(
        "write", content=f"a{s.quote}{s.head('get_weather')}path:{s.quote}b"
    ),
}


@pytest.mark.slow
@each_dialect
@pytest.mark.parametrize("name", AMBIGUOUS)
def test_ambiguous_value_makes_call_incomplete_in_every_cut(name: str, s: Syntax) -> None:
    check_ambiguous_value(name, s, check_in_every_cut)


@each_dialect
@pytest.mark.parametrize("name", AMBIGUOUS)
def test_ambiguous_value_makes_call_incomplete(name: str, s: Syntax) -> None:
    check_ambiguous_value(name, s, parse)


def check_ambiguous_value(name: str, s: Syntax, read: Callable[[str, Syntax], il.Reply]) -> None:
    reply = read(AMBIGUOUS[name](s), s)
    assert not any(call.complete for call in reply.calls)
    assert {finding.kind for finding in reply.findings} & {"ambiguous-value", "cut-short"}


@each_dialect
def test_finding_names_the_param(s: Syntax) -> None:
    reply = parse(s.call("write", path="p", content=f"a {s.head('nope')}x:{s.quote}b"), s)
    assert [finding.message for finding in reply.findings] == [
        "the value of 'content' quotes a part of a call: its end is ambiguous"
    ]


@each_dialect
def test_calls_behind_ambiguous_value_are_incomplete(s: Syntax) -> None:
    """They may be quoted in that value."""
    text = s.call("write", content=f"a{s.quote},content:{s.quote}b") + s.call("get_weather", path="x")
    assert [call.complete for call in parse(text, s).calls] == [False, False]


# ── text behind a call ────────────────────────────────────────────────────────────────────────────────────────────


@each_dialect
def test_text_behind_call_is_held_back_no_further_than_the_limit(s: Syntax) -> None:
    limits = Limits(held=200)
    text = s.call("write", content="a") + " x" * 300 + s.call("get_weather", path="b")
    for pieces in ([text], list(text)):
        parser = il.Parser(s.dialect, TOOLS, options=il.Options(limits=limits))
        calls, rest, findings = outcome(
            il.fold([event for piece in pieces for event in parser.feed(piece)] + parser.close())
        )
        assert calls == [("write", {"content": "a"}, False), ("get_weather", {"path": "b"}, False)]
        assert rest.strip() == "x " * 299 + "x"
        assert findings == ["ambiguous-value"]


@each_dialect
@pytest.mark.parametrize("per_character", [False, True])
def test_text_of_the_other_channel_does_not_belong_to_the_value(s: Syntax, per_character: bool) -> None:
    parser = NativeTextParser(get_dialect(s.dialect), ToolSet(TOOLS))
    events = []
    for text, channel in ((s.call("write", content="a") + " So.", Channel.REASONING), ("Done." + s.tail, Channel.TEXT)):
        for piece in text if per_character else [text]:
            events += parser.feed(piece, channel)
    reply = il.fold(events + parser.close())
    assert [(call.arguments, call.complete) for call in reply.calls] == [('{"content": "a"}', True)]
    assert (reply.reasoning.strip(), reply.text) == ("So.", "Done.}")


# ── any text ──────────────────────────────────────────────────────────────────────────────────────────────────────


def fragments(s: Syntax) -> list[str]:
    return [
        s.call("get_weather", path="Paris"), s.call("nope", x="1", y="2"), s.call("write", content="a", path="b"),
        s.head("ls") + "}" + s.close, s.head("get_weather") + "n:3}" + s.close, s.head("write") + "content:" + s.quote,
        s.head("nope"), s.head("get_weather") + "path:", s.tail, f"{s.quote},path:{s.quote}",
        f"{s.quote},mode:{s.quote}", s.quote, "}" + s.close, s.close, s.open, s.end_of_turn, "{", "}", '"', "a",
        "b, c: d", " ", "\n",
    ]  # fmt: skip


@each_dialect
@settings(max_examples=examples(2000), deadline=None)
@given(data=some.data())
def test_any_value_is_exact_or_call_is_incomplete(s: Syntax, data: some.DataObject) -> None:
    values = some.lists(some.sampled_from(fragments(s)) | some.text(max_size=3), max_size=6).map("".join)
    params = some.dictionaries(some.sampled_from(PARAMS), values, min_size=1)
    calls = data.draw(
        some.lists(some.tuples(some.sampled_from(["write", "get_weather"]), params), min_size=1, max_size=2)
    )
    text = "".join(s.call(name, **values) for name, values in calls) + data.draw(some.sampled_from(["", " Done."]))
    reply = parse(text, s)
    assert reply == stream(text, s)
    written = [(name, {key: s.with_quotes(value) for key, value in values.items()}) for name, values in calls]
    for call in reply.calls:
        if not call.complete:
            assert {finding.kind for finding in reply.findings} & {"ambiguous-value", "cut-short"}
            return
        arguments = json.loads(call.arguments)
        if (call.name, {key: s.with_quotes(str(value)) for key, value in arguments.items()}) not in written:
            # The text is the same as that of other calls, or of calls with a missing quote, bracket or closer.
            repaired = {"value-not-closed", "mended-arguments"} & {finding.kind for finding in reply.findings}
            assert repaired or is_written_in(text, call.name, arguments, s)
            return


def is_written_in(text: str, name: str, arguments: dict[str, Any], s: Syntax) -> bool:
    params = ",".join(
        f"{key}:{s.quote}{value}{s.quote}" if isinstance(value, str) else f"{key}:{json.dumps(value)}"
        for key, value in arguments.items()
    )
    return s.with_quotes(s.head(name) + params) in s.with_quotes(text)


def stream(text: str, s: Syntax) -> il.Reply:
    parser = il.Parser(s.dialect, TOOLS)
    return il.fold([event for char in text for event in parser.feed(char)] + parser.close())


# ── linear time ───────────────────────────────────────────────────────────────────────────────────────────────────

LONG_TEXTS: dict[str, Callable[[Syntax, int], str]] = {
    "tails": lambda s, n: s.call("write", content=f"a{s.tail} b " * (n // 25)),
    "quoted calls": lambda s, n: s.call("write", content=f"x {s.call('nope', path='Paris')} y" * (n // 60)),
    "heads": lambda s, n: s.call("write", content=(s.head("write") + "content:" + s.quote) * (n // 40)),
    "nested calls": lambda s, n: (s.head("f") + "x:" + s.quote) * (n // 60) + "y" + s.tail * (n // 60),
    "calls and text": lambda s, n: (s.call("get_weather", path="Paris") + " prose ") * (n // 60),
    "calls of unknown tools": lambda s, n: s.call("nope", path="Paris") * (n // 60),
    "unclosed strings": lambda s, n: (s.head("write") + "path:" + s.quote + "a}" + s.close) * (n // 45),
    "quotes behind a call": lambda s, n: s.call("write", content="a") + f" {s.quote}}} " * (n // 8) + s.tail,
    "closers": lambda s, n: s.call("write", content=s.close * (n // 12)),
}


@pytest.mark.slow
@each_dialect
@pytest.mark.parametrize("name", LONG_TEXTS)
def test_long_texts_take_linear_time(name: str, s: Syntax) -> None:
    make_text = LONG_TEXTS[name]
    check_growth(lambda size: parse(make_text(s, size), s), 50_000, 200_000, limit=10)
    check_growth(lambda size: stream(make_text(s, size), s), 10_000, 40_000, limit=10)


@pytest.mark.slow
@each_dialect
@pytest.mark.parametrize("name", LONG_TEXTS)
def test_two_million_characters_take_seconds(name: str, s: Syntax) -> None:
    start = time.process_time()
    parse(LONG_TEXTS[name](s, 2_000_000), s)
    assert time.process_time() - start < 60


# ── rendering ─────────────────────────────────────────────────────────────────────────────────────────────────────


def render(s: Syntax, *parts: il.Call | Text) -> str:
    return il.render(il.Reply(parts=list(parts)), s.dialect)


def write_call(**params: str) -> il.Call:
    return il.Call(id="c", name="write", arguments=json.dumps(params))


@pytest.mark.parametrize("name", EXACT)
def test_quoted_parts_of_calls_are_rendered(name: str) -> None:
    value = EXACT[name](FUNCTIONGEMMA)  # Gemma 4 reads its quote token as `"` in some places
    text = render(FUNCTIONGEMMA, write_call(content=value, path="p"))
    assert text == FUNCTIONGEMMA.call("write", content=value, path="p")


@each_dialect
def test_ambiguous_values_are_not_rendered(s: Syntax) -> None:
    for value in (f"a{s.quote},mode:{s.quote}b", f"a {s.head('f')}x:{s.quote}b", f"a{s.tail}{s.call('f', x='y')} b"):
        with pytest.raises(RenderError):
            render(s, write_call(content=value))
    with pytest.raises(RenderError):
        render(s, write_call(content=f"a{s.tail} b"), Text("Done."))


AMBIGUOUS_QUOTES: dict[str, tuple[str, bool]] = {
    "a quotation and an unknown key": ("a<Q>b<Q>,key:<Q>c", False),
    "an unknown key that takes the next param": ("a<Q>,key:", True),
    "a comma and a bracket": ("a<Q>,}", True),
    "a comma, a bracket and text": ("a<Q>, } b", True),
}
"""Values with quote tokens, after which another reading of the call is possible; and whether the schema is known."""


@pytest.mark.parametrize("after", ["", ",path:<Q>p<Q>"])
@pytest.mark.parametrize(("value", "has_schema"), AMBIGUOUS_QUOTES.values(), ids=AMBIGUOUS_QUOTES)
def test_quotes_that_leave_the_end_of_a_string_open(value: str, has_schema: bool, after: str) -> None:
    written = f"<|tool_call>call:write{{content:<Q>{value}<Q>{after}}}<tool_call|>".replace("<Q>", GEMMA4.quote)
    tools = TOOLS if has_schema else None
    whole = il.parse(written, "gemma4", tools=tools)
    expected = {"content": value.replace("<Q>", '"')} | ({"path": "p"} if after else {})
    for call in whole.calls:
        is_exact = call.complete and json.loads(call.arguments) == expected
        is_reported = not call.complete and {"ambiguous-value", "cut-short"} & {f.kind for f in whole.findings}
        assert is_exact or is_reported, whole
    for cut_name, pieces in cut_variants(written):
        parser = il.Parser("gemma4", tools=tools)
        reply = il.fold([event for piece in pieces for event in parser.feed(piece)] + parser.close())
        assert reply == whole, cut_name


QUOTED_BEHIND_A_CALL = [" as in call:write{path:x}", "\nSee call:write{path:x} and so on", "call:write{path:x}"]


@each_dialect
@pytest.mark.parametrize("closed", [True, False])
@pytest.mark.parametrize("text", QUOTED_BEHIND_A_CALL)
def test_call_that_the_text_behind_a_call_quotes_does_not_run(s: Syntax, text: str, closed: bool) -> None:
    """It may also be part of a string of the call: then the call is incomplete."""
    quoted = text.replace("x", s.quote + "x" + s.quote) + (s.close if closed else "")
    for _, pieces in cut_variants(s.call("get_weather", path="Paris") + quoted):
        parser = il.Parser(s.dialect, tools=TOOLS)
        reply = il.fold([event for piece in pieces for event in parser.feed(piece)] + parser.close())
        (call,) = reply.calls
        assert call.name == "get_weather"
        if call.complete:
            assert (call.arguments, reply.text.strip()) == ('{"path": "Paris"}', text.strip())
        else:
            assert "ambiguous-value" in {finding.kind for finding in reply.findings}
