"""Parser on two channels: an upstream sends thinking and content of one reply in separate fields."""

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
    "partial marker at a channel change is text of its channel": (
        [("a<thi", R), ("nk>b", T)],
        [Reasoning("a<thi"), Text("nk>b")],
    ),
    "a section in thinking, then content": (
        [("a" + OPEN + "{}" + CLOSE, R), ("b", T)],
        [Reasoning("a"), CALL, Text("b")],
    ),
    "a call that begins in thinking and continues in content": (
        [("a" + OPEN, R), ("{}" + CLOSE, T), ("b", R)],
        [Reasoning("a"), CALL, Reasoning("b")],
    ),
    "whitespace between a section and the next channel": (
        [(OPEN + "{}" + CLOSE + "\n", R), ("\n", T), ("b", T)],
        [CALL, Reasoning("\n"), Text("\nb")],
    ),
    "whitespace before a section, after a channel change": (
        [("a", R), ("\n\n" + OPEN + "{}" + CLOSE, T)],
        [Reasoning("a"), CALL],
    ),
    "prefix of a tool name at a channel change": ([("l", R), ("x", T)], [Reasoning("l"), Text("x")]),
    "whitespace where a closer may follow": ([(OPEN + "{} ", R), ("b", T)], [CALL, Reasoning(" "), Text("b")]),
    "a header cut off by a channel change": (
        [("I could write <|tool_call_begin|> here", R), ("The answer.", T)],
        [Reasoning("I could write  here"), Text("The answer.")],
    ),
    "partial closer at a channel change": (
        [(OPEN + "{} <|tool_ca", R), ("Hello", T)],
        [CALL, Reasoning(" <|tool_ca"), Text("Hello")],
    ),
    "a call without arguments, then text": ([(OPEN, R), ("Hello", T)], [CALL, Text("Hello")]),
    "whitespace in thinking, then content": ([(" ", R), ("Hello", T)], [Reasoning(" "), Text("Hello")]),
    "a call without its opener at the start of thinking": (
        [("ls:0<|tool_call_argument_begin|>{}<|tool_calls_section_end|>", R), ("b", T)],
        [Call("ls:0", "ls", "{}"), Text("b")],
    ),
    "a call without its opener after thinking": (
        [("hm", R), ("ls:0<|tool_call_argument_begin|>{}<|tool_calls_section_end|>", T)],
        [Reasoning("hm"), Call("ls:0", "ls", "{}")],
    ),
    "an empty header that continues in content": (
        [("<|tool_calls_section_begin|><|tool_call_begin|>", R), (OPEN.split("begin|>")[-2].split("<")[0], T)],
        [Text("functions.ls:0")],
    ),
    "prose as arguments, then text": (
        [(OPEN + "prose", R), ("Hi", T), ("bye", T)],
        [Call("functions.ls:0", "ls", "prose"), Text("Hibye")],
    ),
    "null as arguments, then text": ([(OPEN + "null", R), ("Hi", T)], [CALL, Text("Hi")]),
    "a tool name across a channel change": ([("l", R), ("s: done", T)], [Reasoning("l"), Text("s: done")]),
    "a tool name at the end of thinking": ([("ls:", R), (" the list", T)], [Reasoning("ls:"), Text(" the list")]),
    "a tool name and number across a channel change": (
        [("ls:1", R), ("5 apples", T)],
        [Reasoning("ls:1"), Text("5 apples")],
    ),
    "a call without opener and closer is text": (
        [('ls:1<|tool_call_argument_begin|>{"a":"Q"}', R), ("The answer", T)],
        [Reasoning('ls:1{"a":"Q"}'), Text("The answer")],
    ),
    "a closer never spans two channels": (
        [(OPEN + "{}<|tool_c", R), ("all_end|>X", T)],
        [CALL, Reasoning("<|tool_c"), Text("all_end|>X")],
    ),
    "a brace at the start of the content": ([(OPEN + "{}", R), ("} hello", T)], [CALL, Text("} hello")]),
    "thinking markers inside the thinking field are dropped": ([("<think>a</think>b", R)], [Reasoning("ab")]),
}


@pytest.mark.parametrize(("pieces", "parts"), ROWS.values(), ids=ROWS)
def test_two_channels(pieces: list[tuple[str, Channel]], parts: list[Part]) -> None:
    for cut in (lambda text: [text], list):
        parser = NativeTextParser(get_dialect("kimi_k2"), ToolSet([Tool("ls")]))
        events = [event for text, channel in pieces for part in cut(text) for event in parser.feed(part, channel)]
        assert fold(events + parser.close()).parts == parts


GEMMA_CALL = Call("", "ls", '{"a": ""}')
CHANNEL_CHANGES: dict[str, tuple[str, list[tuple[str, Channel]], list[Part]]] = {
    "partial marker or array is text of its channel": (
        "mistral_v3",
        [("[TOOL", T), ("s]", R)],
        [Text("[TOOL"), Reasoning("s]")],
    ),
    "text after a refused call belongs to its own channel": (
        "olmo3",
        [('<function_calls>ls("")', R), ("\ng", T)],
        [Reasoning('<function_calls>ls("")'), Text("\ng")],
    ),
    "text after a call of Gemma, read again, belongs to its own channel": (
        "gemma4",
        [('<|tool_call>call:ls{a:<|"|><|"|>}<', T), ("zq", R)],
        [GEMMA_CALL, Text("<"), Reasoning("zq")],
    ),
    "text after a call of Gemma that two channels share": (
        "gemma4",
        [('<|tool_call>call:ls{a:<|"|>', T), ('<|"|>}<', R), ("zq", T)],
        [GEMMA_CALL, Reasoning("<"), Text("zq")],
    ),
    "an opener of Gemma never spans two channels": (
        "gemma4",
        [('<|tool_call>call:ls{a:<|"|><|"|>}<tool_c', R), ("all|><|t", T), ("ool_call>call:ls{a", R)],
        [GEMMA_CALL, Text("<|t"), Reasoning("ool_call>call:ls{a")],
    ),
    "the end of a turn of FunctionGemma never spans two channels": (
        "functiongemma",
        [("<start_function_call>call:ls{a:<escape><escape>}<end_function_call><end_of", T), ("_turn>", R)],
        [GEMMA_CALL, Text("<end_of"), Reasoning("_turn>")],
    ),
}


@pytest.mark.parametrize(("dialect", "pieces", "parts"), CHANNEL_CHANGES.values(), ids=CHANNEL_CHANGES)
def test_channel_changes(dialect: str, pieces: list[tuple[str, Channel]], parts: list[Part]) -> None:
    for cut in (lambda text: [text], list):
        parser = NativeTextParser(get_dialect(dialect), ToolSet([Tool("ls")]))
        events = [event for text, at in pieces for part in cut(text) for event in parser.feed(part, at)]
        assert fold(events + parser.close()).parts == parts


def test_closer_of_muse_never_spans_two_channels() -> None:
    """The text after the last value is read again, because the value is not closed."""
    text = (
        "<atem:invoke name=a<atem:parameter name=b><|eom|><|start|><atem:function_calls>"
        "<atem:invoke name=ls<atem:parameter name=a></ate"
    )
    for cut in (lambda text: [text], list):
        parser = NativeTextParser(get_dialect("muse"), ToolSet(None))
        events = [event for part in cut(text) for event in parser.feed(part)]
        events += [event for part in cut("m:function_calls><|eot|>") for event in parser.feed(part, R)]
        assert fold(events + parser.close()).parts == [
            Text("<atem:invoke name=a<atem:parameter name=b>"),
            Call("", "ls", '{"a": ""}'),
            Text("</ate"),
            Reasoning("m:function_calls>"),
        ]
