"""The parser on two channels: thinking and content come in pieces of one reply, each in its field."""

from __future__ import annotations

import pytest

from interlingua.core.reply import Call, Part, Reasoning, Text, fold
from interlingua.core.tools import Tool, ToolSet
from interlingua.dialects.registry import get_dialect
from interlingua.parsing.parser import NativeTextParser
from interlingua.parsing.text_buffer import Channel

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
    "the rest of a call at the start of the thinking": (
        [("ls:0<|tool_call_argument_begin|>{}<|tool_calls_section_end|>", R), ("b", T)],
        [Call("ls:0", "ls", "{}"), Text("b")],
    ),
    "the rest of a call after thinking": (
        [("hm", R), ("ls:0<|tool_call_argument_begin|>{}<|tool_calls_section_end|>", T)],
        [Reasoning("hm"), Call("ls:0", "ls", "{}")],
    ),
    "a header that has not begun goes on in content": (
        [("<|tool_calls_section_begin|><|tool_call_begin|>", R), (OPEN.split("begin|>")[-2].split("<")[0], T)],
        [Text("functions.ls:0")],
    ),
    "prose for arguments, then an answer": (
        [(OPEN + "prose", R), ("Hi", T), ("bye", T)],
        [Call("functions.ls:0", "ls", "prose"), Text("Hibye")],
    ),
    "null for arguments, then an answer": ([(OPEN + "null", R), ("Hi", T)], [CALL, Text("Hi")]),
    "a tool's name across the seam": ([("l", R), ("s: done", T)], [Reasoning("l"), Text("s: done")]),
    "a tool's name at the end of the thinking": ([("ls:", R), (" the list", T)], [Reasoning("ls:"), Text(" the list")]),
    "a tool's name and number across the seam": ([("ls:1", R), ("5 apples", T)], [Reasoning("ls:1"), Text("5 apples")]),
    "the rest of a call, never closed": (
        [('ls:1<|tool_call_argument_begin|>{"a":"Q"}', R), ("The answer", T)],
        [Reasoning('ls:1{"a":"Q"}'), Text("The answer")],
    ),
    "a closer never spans the seam": (
        [(OPEN + "{}<|tool_c", R), ("all_end|>X", T)],
        [CALL, Reasoning("<|tool_c"), Text("all_end|>X")],
    ),
    "a brace that begins an answer": ([(OPEN + "{}", R), ("} hello", T)], [CALL, Text("} hello")]),
    "thinking markers inside the thinking field mean nothing": ([("<think>a</think>b", R)], [Reasoning("ab")]),
}


@pytest.mark.parametrize(("pieces", "parts"), ROWS.values(), ids=ROWS)
def test_two_channels(pieces: list[tuple[str, Channel]], parts: list[Part]) -> None:
    for cut in (lambda text: [text], list):
        parser = NativeTextParser(get_dialect("kimi_k2"), ToolSet([Tool("ls")]))
        events = [event for text, channel in pieces for part in cut(text) for event in parser.feed(part, channel)]
        assert fold(events + parser.close()).parts == parts


SEAMS: dict[str, tuple[str, list[tuple[str, Channel]], list[Part]]] = {
    "what may be a marker or an array is text of its channel": (
        "mistral_v3",
        [("[TOOL", T), ("s]", R)],
        [Text("[TOOL"), Reasoning("s]")],
    ),
    "what follows a call that is none is text of its own channel": (
        "olmo3",
        [('<function_calls>ls("")', R), ("\ng", T)],
        [Reasoning('<function_calls>ls("")'), Text("\ng")],
    ),
}


@pytest.mark.parametrize(("dialect", "pieces", "parts"), SEAMS.values(), ids=SEAMS)
def test_seams(dialect: str, pieces: list[tuple[str, Channel]], parts: list[Part]) -> None:
    for cut in (lambda text: [text], list):
        parser = NativeTextParser(get_dialect(dialect), ToolSet([Tool("ls")]))
        events = [event for text, at in pieces for part in cut(text) for event in parser.feed(part, at)]
        assert fold(events + parser.close()).parts == parts
