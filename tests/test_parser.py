"""The parser on two channels: thinking and content come in pieces of one reply, each in its field."""

from __future__ import annotations

import pytest

from interlingua.dialects import dialect_named
from interlingua.parser import Parser
from interlingua.reply import Call, Part, Reasoning, Text, fold
from interlingua.source import Channel
from interlingua.tools import Offer, Tool

T, R = Channel.TEXT, Channel.REASONING
OPEN = "<|tool_calls_section_begin|><|tool_call_begin|>functions.ls:0<|tool_call_argument_begin|>"
CLOSE = "<|tool_call_end|><|tool_calls_section_end|>"
CALL = Call("functions.ls:0", "ls", "{}")

ROWS: dict[str, tuple[list[tuple[str, Channel]], list[Part]]] = {
    "thinking, then content": ([("a", R), ("b", T)], [Reasoning("a"), Text("b")]),
    "half a marker at the seam is text of its channel": (
        [("a<thi", R), ("nk>b", T)],
        [Reasoning("a<thi"), Text("nk>b")],
    ),
    "a section in thinking, then content": (
        [("a" + OPEN + "{}" + CLOSE, R), ("b", T)],
        [Reasoning("a"), CALL, Text("b")],
    ),
    "a call that begins in thinking and goes on in content": (
        [("a" + OPEN, R), ("{}" + CLOSE, T), ("b", R)],
        [Reasoning("a"), CALL, Reasoning("b")],
    ),
    "white space between a section and the next channel": (
        [(OPEN + "{}" + CLOSE + "\n", R), ("\n", T), ("b", T)],
        [CALL, Reasoning("\n"), Text("\nb")],
    ),
    "white space before a section, after a seam": (
        [("a", R), ("\n\n" + OPEN + "{}" + CLOSE, T)],
        [Reasoning("a"), CALL],
    ),
    "what may be a tool's name at the seam": ([("l", R), ("x", T)], [Reasoning("l"), Text("x")]),
    "white space where a closer may come": ([(OPEN + "{} ", R), ("b", T)], [CALL, Reasoning(" "), Text("b")]),
    "a header that breaks off where the channel changes": (
        [("I could write <|tool_call_begin|> here", R), ("The answer.", T)],
        [Reasoning("I could write  here"), Text("The answer.")],
    ),
    "half a closer where the channel changes": (
        [(OPEN + "{} <|tool_ca", R), ("Hello", T)],
        [CALL, Reasoning(" <|tool_ca"), Text("Hello")],
    ),
    "arguments that never come, then an answer": ([(OPEN, R), ("Hello", T)], [CALL, Text("Hello")]),
    "white space, then content": ([(" ", R), ("Hello", T)], [Reasoning(" "), Text("Hello")]),
    "the rest of a call after thinking": (
        [("hm", R), ("ls:0<|tool_call_argument_begin|>{}<|tool_calls_section_end|>", T)],
        [Reasoning("hm"), Call("ls:0", "ls", "{}")],
    ),
    "thinking markers inside the thinking field mean nothing": ([("<think>a</think>b", R)], [Reasoning("ab")]),
}


@pytest.mark.parametrize(("pieces", "parts"), ROWS.values(), ids=ROWS)
def test_two_channels(pieces: list[tuple[str, Channel]], parts: list[Part]) -> None:
    for cut in (lambda text: [text], list):
        parser = Parser(dialect_named("kimi_k2"), Offer([Tool("ls")]))
        events = [event for text, channel in pieces for part in cut(text) for event in parser.feed(part, channel)]
        assert fold(events + parser.close()).parts == parts
