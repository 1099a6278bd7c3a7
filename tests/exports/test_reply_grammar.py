"""Grammars of replies in every dialect: they accept what `render` writes, and what they accept is read without loss."""

from __future__ import annotations

from collections import Counter
from contextlib import suppress
from functools import cache
from typing import Any

import pytest
from hypothesis import HealthCheck, given, reject, settings
from hypothesis import strategies as st

import interlingua as il
from interlingua.core.reply import Call, Part, Reasoning, Reply, Text
from interlingua.errors import BadInput, NotExpressible, RenderError
from interlingua.exports.matcher import Matcher
from interlingua.exports.reply_grammar import describe_reply
from interlingua.parsing.dialect import Dialect
from tests.support.budget import examples, sample
from tests.support.export_cases import (
    CHOICES,
    DIALECTS,
    HOSTILE_TOOLS,
    TOOLS,
    call_id,
    closed,
    find_problems,
    function,
    mutations,
    quotes_markup,
    replies,
    unenforced,
)
from tests.support.harness import find_dialect

WEATHER = function(
    "get_weather",
    closed(
        {
            "city": {"type": "string"},
            "unit": {"type": "string"},
            "days": {"type": "integer"},
            "units": {"type": "array", "items": {"type": "string"}},
        },
        "city",
    ),
)
by_dialect = pytest.mark.parametrize("dialect", DIALECTS, ids=lambda dialect: dialect.name)


def matcher(dialect: Dialect, choice: Any = "auto", tools: Any = TOOLS, **options: Any) -> Matcher:
    return Matcher(describe_reply(dialect, tools, choice, **options).grammar)


@cache
def shared_matcher(dialect: Dialect, choice: str) -> Matcher:
    return matcher(dialect, CHOICES[choice])


@by_dialect
def test_sample_is_accepted(dialect: Dialect) -> None:
    write = function("write", closed({"path": {"type": "string"}, "content": {"type": "string"}}))
    assert matcher(dialect, tools=[WEATHER, write]).accepts(dialect.sample)


@pytest.mark.one_row_in(4)
@by_dialect
def test_tool_choice(dialect: Dialect) -> None:
    weather = Call(call_id(dialect, "get_weather", 0), "get_weather", '{"city": "Paris"}')
    now = Call(call_id(dialect, "now", 1), "now", "{}")
    text = Text("Let me look.")
    matchers = {choice: matcher(dialect, CHOICES[choice]) for choice in CHOICES}
    any_text = {"none"} if dialect.name == "pythonic" else set()  # it has no marker, and no tools are known
    rows: dict[str, tuple[list[Part], set[str]]] = {
        "text": ([text], {"auto", "none", "allowed tools"}),
        "text and a call": ([text, now], {"auto", "allowed tools", *any_text}),
        "two calls": ([weather, now], {"auto", "required", "allowed tools", "required among allowed tools", *any_text}),
        "a call": ([weather], {"auto", "required", "allowed tools", "required among allowed tools", *any_text}),
        "nothing": ([], set() if dialect.router else {"auto", "none", "allowed tools"}),
    }
    for name, (parts, accepting) in rows.items():
        written = il.render(Reply(parts=parts), dialect)
        accepted = {choice for choice in CHOICES if matchers[choice].accepts(written)}
        assert accepted == accepting, name


@pytest.mark.one_row_in(4)
@by_dialect
def test_one_call_if_calls_are_not_parallel(dialect: Dialect) -> None:
    calls = [Call(call_id(dialect, "now", n), "now", "{}") for n in range(2)]
    for choice in ("auto", "required"):
        single = matcher(dialect, choice, parallel=False)
        assert single.accepts(il.render(Reply(parts=[calls[0]]), dialect))
        assert not single.accepts(il.render(Reply(parts=[*calls]), dialect))
    # One tool that must be called is called once.
    assert not matcher(dialect, "now").accepts(il.render(Reply(parts=[*calls]), dialect))


@pytest.mark.one_row_in(4)
@pytest.mark.parametrize("dialect", [d for d in DIALECTS if d.thinking or d.router], ids=lambda dialect: dialect.name)
def test_thinking(dialect: Dialect) -> None:
    call = Call(call_id(dialect, "now", 0), "now", "{}")
    written = il.render(Reply(parts=[Reasoning("Two cities."), call]), dialect)
    for choice in ("auto", "required"):
        assert matcher(dialect, choice).accepts(written)
        assert not matcher(dialect, choice, thinking=False).accepts(written)
    if dialect.thinking:  # the prompt opens the thinking
        prefill = dialect.thinking[0].open + dialect.thinking[0].inside
        rest = written.removeprefix(prefill)
        assert matcher(dialect, "required", prefill=prefill).accepts(rest)
        assert not matcher(dialect, "required", prefill=prefill).accepts(il.render(Reply(parts=[call]), dialect))
        assert matcher(dialect, "auto").accepts(rest)


def test_prefill_that_no_reply_has() -> None:
    with pytest.raises(NotExpressible, match="prefill"):
        describe_reply(find_dialect("hermes"), TOOLS, "required", prefill="Sure!")


def test_prefill_in_a_call() -> None:
    prefilled = matcher(find_dialect("hermes"), "required", prefill='<tool_call>\n{"name": "now"')
    assert prefilled.accepts(', "arguments": {}}\n</tool_call>')
    assert not prefilled.accepts(', "arguments": {"city": "Paris"}}\n</tool_call>')


def test_triggers() -> None:
    triggers = {
        "kimi_k2": ("<|tool_calls_section_begin|>",),
        "hermes": ("<tool_call>",),
        "pythonic": ("[get_weather(", "[now(", "[mcp__fs-v2__write.file("),
        "llama3_json": ('{"name"',),
        "harmony": ("<|channel|>",),
    }
    for name, expected in triggers.items():
        assert describe_reply(find_dialect(name), TOOLS).triggers == expected
        assert describe_reply(find_dialect(name), TOOLS, "required").triggers == ()


@pytest.mark.parametrize(
    ("tools", "choice", "message"),
    [
        (None, "auto", "no tools"),
        ([], "required", "there are no tools"),
        (TOOLS, "get_wether", "unknown tool"),
    ],
)
def test_wrong_tools(tools: Any, choice: Any, message: str) -> None:
    with pytest.raises(BadInput, match=message) as error:
        describe_reply(find_dialect("hermes"), tools, choice)
    assert error.value.hint


def test_a_dialect_without_calls() -> None:
    with pytest.raises(NotExpressible, match="no calls in text"):
        describe_reply(find_dialect("standard"), TOOLS)


# ── properties ────────────────────────────────────────────────────────────────────────────────────────────────────────

loose = settings(max_examples=examples(50, 5), suppress_health_check=list(HealthCheck))


@pytest.mark.one_row_in(29)
@pytest.mark.parametrize("choice", CHOICES)
@by_dialect
@loose
@given(st.data())
def test_what_render_writes_is_accepted(dialect: Dialect, choice: str, data: st.DataObject) -> None:
    reply = data.draw(replies(dialect, TOOLS, CHOICES[choice], markup=True))
    if dialect.router and not (reply.calls or reply.text):
        reject()  # a reply of messages ends with text or calls
    try:
        written = il.render(reply, dialect)
    except RenderError:
        reject()
    if not shared_matcher(dialect, choice).accepts(written):
        assert quotes_markup(reply, dialect) or dialect.name == "lines", written


@pytest.mark.one_row_in(11)
@pytest.mark.parametrize("choice", ["auto", "required"])
@by_dialect
@loose
@given(st.data())
def test_what_is_accepted_is_read_as_complete_calls(dialect: Dialect, choice: str, data: st.DataObject) -> None:
    reply = data.draw(replies(dialect, TOOLS, choice))
    try:
        written = il.render(reply, dialect)
    except RenderError:
        reject()
    mutated = data.draw(mutations(dialect, written))
    if shared_matcher(dialect, choice).accepts(mutated):
        assert find_problems(mutated, dialect, TOOLS, choice) == [], mutated


@pytest.mark.one_row_in(21)
@by_dialect
@settings(max_examples=examples(10, 1), suppress_health_check=list(HealthCheck))
@given(st.data())
def test_hostile_tools(dialect: Dialect, data: st.DataObject) -> None:
    for hostile in HOSTILE_TOOLS.values():
        try:
            described = describe_reply(dialect, [hostile], "required")
            reply = data.draw(replies(dialect, [hostile], "required"))
            written = il.render(reply, dialect)
        except (NotExpressible, RenderError):
            continue
        if not unenforced(described.notes):
            assert Matcher(described.grammar).accepts(written) or quotes_markup(reply, dialect), written
            assert find_problems(written, dialect, [hostile], "required", is_valid=False) == []


def test_text_after_a_call_on_lines_begins_on_the_next_line() -> None:
    """The parser takes a closing marker with text behind it for a part of the last value."""
    dialect = next(dialect for dialect in DIALECTS if dialect.name == "indented_lines")
    call = "<<call ping>>\n<<end>>"
    ping = {"name": "ping", "input_schema": {"type": "object", "additionalProperties": False}}
    matcher = Matcher(describe_reply(dialect, [ping], "auto").grammar)
    accepted = {text: matcher.accepts(call + text) for text in ("", "\nDone.", ">", " Done.", call, f"\n{call}\n")}
    assert accepted == {"": True, "\nDone.": True, ">": False, " Done.": False, call: True, f"\n{call}\n": True}


@pytest.mark.sampled
def test_hostile_tools_that_no_dialect_can_carry() -> None:
    """Every dialect refuses these tools, and every other tool is exported by some dialect."""
    refusals: dict[str, int] = Counter()
    dialects = sample(DIALECTS, 13)
    for dialect in dialects:
        for name, hostile in HOSTILE_TOOLS.items():
            with suppress(NotExpressible):
                describe_reply(dialect, [hostile], "required")
                continue
            refusals[name] += 1
    assert [name for name, count in refusals.items() if count == len(dialects)] == [
        "a reference to itself",
        "a required member of its own type",
    ]


def test_tags_have_the_suffix_of_the_prefill() -> None:
    dialect = find_dialect("hy4")
    prompted = describe_reply(dialect, TOOLS, "now", prefill="<think:0a1b>")
    call = "<tool_calls:0a1b><tool_call:0a1b>now</tool_call:0a1b></tool_calls:0a1b>"
    assert (Matcher(prompted.grammar).accepts(f"Hm.</think:0a1b>{call}"), prompted.notes) == (True, ())
    assert describe_reply(dialect, TOOLS, "now").notes == (
        "tags have the suffix ':6124c78e'; for another one, pass a prefill that has it",
    )
