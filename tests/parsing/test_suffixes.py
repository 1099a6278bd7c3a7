"""Suffixes of tags that differ between checkpoints: learned from the text, in any dialect that declares one."""

from __future__ import annotations

import pytest

import interlingua as il
from interlingua.dialects.registry import get_dialect
from interlingua.parsing.suffixes import MAX_LEARNED_SUFFIXES, add_suffix, find_suffix
from tests.support.harness import tool

TOOLS = [tool("ls", ["path"])]
JSON_DIALECT = """\
name: acme
summary: "Acme: JSON in tags with a suffix"
shape: {json_envelope: {open: "<call:v1>", close: "</call:v1>"}}
thinking: ["<think:v1>", "</think:v1>"]
special_tokens: false
suffix: ":v1"
sample: '<think:v1>Hm.</think:v1><call:v1>{"name": "ls", "arguments": {}}</call:v1>'
"""


def section(suffix: str) -> str:
    return f"<tool_calls:{suffix}><tool_call:{suffix}>ls</tool_call:{suffix}></tool_calls:{suffix}>"


def test_number_of_suffixes_in_a_reply_is_limited() -> None:
    suffixes = [f"s{n}" for n in range(MAX_LEARNED_SUFFIXES + 2)]
    reply = il.parse(" ".join(map(section, suffixes)), "hy4", tools=TOOLS)
    assert len(reply.calls) == MAX_LEARNED_SUFFIXES
    assert reply.text.strip() == " ".join(map(section, suffixes[MAX_LEARNED_SUFFIXES:]))


def test_added_suffix_is_read_but_not_written() -> None:
    dialect = get_dialect("hy4")
    variant = add_suffix(dialect, ":other")
    assert il.render(il.parse(dialect.sample, variant), variant) == dialect.sample
    assert len(il.parse(dialect.sample.replace("6124c78e", "other"), variant).calls) == 2


@pytest.mark.parametrize(
    ("prefill", "suffix"),
    [("<think:a1>", ":a1"), ("<think:a1>x</think:a1><think:b2>", ":b2"), ("<think>", ""), ("<think:a1", ""), ("", "")],
)
def test_suffix_of_prefill(prefill: str, suffix: str) -> None:
    assert find_suffix(get_dialect("hy4"), prefill) == suffix


@pytest.mark.parametrize("piece_length", [1, 3, 1000])
def test_suffix_in_dialect_file(piece_length: int) -> None:
    text = il.load_dialect(JSON_DIALECT).sample.replace(":v1", ":v2")
    parser = il.Parser(il.load_dialect(JSON_DIALECT), tools=TOOLS)
    pieces = [text[at : at + piece_length] for at in range(0, len(text), piece_length)]
    reply = il.fold([event for piece in pieces for event in parser.feed(piece)] + parser.close())
    assert (reply.reasoning, reply.text, [call.name for call in reply.calls]) == ("Hm.", "", ["ls"])
