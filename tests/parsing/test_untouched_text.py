"""Replies to requests without tools: their text comes out byte for byte; only the structure of the turn is removed."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import interlingua as il
from interlingua.core.reply import Part, Reasoning, Text
from tests.support.budget import examples
from tests.support.quotes import NATIVE, cut_texts, parse_pieces, write_call

each_dialect = pytest.mark.parametrize("dialect", NATIVE, ids=lambda dialect: dialect.name)


def quote_everything(dialect: il.Dialect) -> str:
    """Return a text that quotes all markers of the dialect, and a whole call in several ways."""
    call = write_call(dialect)
    inner = dialect.grammar.inner_markers if dialect.grammar else ()
    markers = " ".join(dict.fromkeys((*dialect.markers, *inner)))
    return (
        f'Markers:{markers}\n\n{call}\n\nSAMPLE = \'{call}{call}\'\n```\n{call}\n```\n"<think>", "</think>"\n\nEnd.\n'
    )


@pytest.mark.one_row_in(5)
@each_dialect
def test_text_that_quotes_everything_is_unchanged(dialect: il.Dialect) -> None:
    text = quote_everything(dialect)
    for pieces in cut_texts(text, 8):
        reply = parse_pieces(dialect, pieces, [])
        assert (reply.parts, reply.findings) == ([Text(text)], []), pieces


@pytest.mark.one_row_in(5)
@each_dialect
@pytest.mark.parametrize("step", [pytest.param(1, marks=pytest.mark.slow), 5])
def test_call_as_the_whole_text_is_unchanged(dialect: il.Dialect, step: int) -> None:
    if dialect.router is not None:
        pytest.skip("a message with a recipient is structure")
    text = "Look: " + write_call(dialect)
    for end in range(len(text), 0, -step):
        cut = text[:end]
        if end == len(text) or not cut.rstrip().endswith(dialect.noise):
            for pieces in ([cut], list(cut)):
                assert parse_pieces(dialect, pieces, []).text == cut, pieces


@pytest.mark.one_row_in(5)
@each_dialect
def test_longer_marker_at_the_start_is_unchanged(dialect: il.Dialect) -> None:
    lead = {*dialect.noise, *(span.open for span in (*dialect.thinking, *dialect.text))}
    for marker in dialect.markers:
        if marker not in lead and marker.startswith(dialect.noise):
            text = f"{marker} is a marker."
            for pieces in cut_texts(text, 2):
                assert parse_pieces(dialect, pieces, []).parts == [Text(text)], pieces


def test_whitespace_before_a_marker_that_is_text_stays() -> None:
    for pieces in cut_texts("<think>Hm.</think>A\n <think> is a marker."):
        reply = parse_pieces("hermes", pieces, [])
        assert reply.parts == [Reasoning("Hm."), Text("A\n <think> is a marker.")], pieces


def test_tag_of_a_dialect_with_messages_is_text_at_the_end() -> None:
    text = "x = 1\n</atem:function_calls>"
    for pieces in cut_texts(text):
        assert parse_pieces("muse", pieces, []).parts == [Text(text)], pieces


@pytest.mark.one_row_in(5)
@each_dialect
def test_end_of_turn_tokens_are_removed(dialect: il.Dialect) -> None:
    text = quote_everything(dialect).rstrip()
    for marker in dialect.noise:
        for pieces in cut_texts(f"{text}{marker} {dialect.noise[0]}\n", 2):
            reply = parse_pieces(dialect, pieces, [])
            assert reply.parts == [Text(text)], pieces
            assert {finding.kind for finding in reply.findings} == {"noise"}


@pytest.mark.one_row_in(5)
@pytest.mark.parametrize("dialect", [dialect for dialect in NATIVE if dialect.thinking], ids=lambda d: d.name)
def test_leading_thinking_is_thinking(dialect: il.Dialect) -> None:
    text = quote_everything(dialect)
    for span in dialect.thinking:
        thoughts = f"A call: {write_call(dialect).replace(span.close, '')}"
        parts: list[Part] = [Reasoning(thoughts), Text(text)]
        for pieces in cut_texts(f"{span.open}{thoughts}{span.close}{text}", 3):
            assert parse_pieces(dialect, pieces, []).parts == parts, pieces
        parser = il.Parser(dialect, [], prefill=span.open)
        assert il.fold(parser.feed(f"{thoughts}{span.close}{text}") + parser.close()).parts == parts


@pytest.mark.parametrize("dialect", [dialect for dialect in NATIVE if dialect.text], ids=lambda d: d.name)
def test_markers_around_the_text_are_removed(dialect: il.Dialect) -> None:
    for span in dialect.text:
        if span.open:
            for pieces in cut_texts(f"{span.open}Hello <think>.{span.close}", 2):
                assert parse_pieces(dialect, pieces, []).parts == [Text("Hello <think>.")], pieces


def test_messages_of_gpt_oss_are_parsed() -> None:
    call = '<|channel|>commentary to=functions.ls <|constrain|>json<|message|>{"a": 1}<|call|>'
    quote = f"A call: {call} and <|end|> or <|return|>."
    text = (
        "<|channel|>analysis<|message|>Hm.<|end|><|start|>assistant<|channel|>commentary<|message|>First.<|end|>"
        f"<|start|>assistant<|channel|>final<|message|>{quote}<|return|>"
    )
    for pieces in cut_texts(text):
        reply = parse_pieces("harmony", pieces, [])
        assert reply.reasoning == "Hm."
        assert reply.text == "First." + quote


def test_unknown_tools_are_not_the_same_as_no_tools() -> None:
    call = '<tool_call>\n{"name": "ls", "arguments": {}}\n</tool_call>'
    assert [made.name for made in parse_pieces("hermes", [call], None).calls] == ["ls"]
    assert parse_pieces("hermes", [call], []).parts == [Text(call)]


@pytest.mark.one_row_in(5)
@pytest.mark.hypothesis
@pytest.mark.parametrize("dialect", NATIVE, ids=lambda dialect: dialect.name)
@settings(max_examples=examples(50))
@given(data=st.data())
def test_any_text_between_words_is_unchanged(dialect: il.Dialect, data: st.DataObject) -> None:
    call = write_call(dialect)
    fragments = [call, call[: len(call) // 2], call[len(call) // 2 :], *dialect.markers, "`", "\n", "\n\n", " ", "so"]
    pieces = ["Say: ", *data.draw(st.lists(st.sampled_from(fragments), max_size=12)), " end."]
    text = "".join(pieces)
    for cut in ([text], list(text), pieces):
        assert parse_pieces(dialect, cut, []).parts == [Text(text)]
