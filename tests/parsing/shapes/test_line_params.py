"""line_params: streaming, limits, other notations of the shape, and what cannot be written."""

from __future__ import annotations

import json
from typing import Any

import pytest

import interlingua as il
from interlingua import events as ev
from interlingua.core.options import Options
from interlingua.core.reply import Call, Reply
from interlingua.core.tools import ToolSet
from interlingua.errors import RenderError, UsageError
from interlingua.parsing.parser import NativeTextParser
from interlingua.parsing.shapes.line_params.grammar import LineParams
from interlingua.parsing.text_buffer import Channel
from tests.support.harness import USER_DIALECTS, cut_variants, tool

LINES, INDENTED_LINES = USER_DIALECTS["lines"], USER_DIALECTS["indented_lines"]
TOOLS = [tool("write", {"path": "string", "content": "string", "mode": "integer", "meta": "object"})]


def arguments(events: list[ev.Event]) -> str:
    return "".join(event.text for event in events if isinstance(event, ev.ArgsDelta))


def test_string_value_is_streamed() -> None:
    parser = il.Parser(LINES, tools=TOOLS)
    assert parser.feed("@@call write\ncont") == []
    assert arguments(parser.feed("ent: al")) == '{"content": "al'
    assert arguments(parser.feed('pha "x"')) == 'pha \\"x\\"'
    assert arguments(parser.feed("\n@@e")) == ""
    assert arguments(parser.feed("ver")) == "\\n@@ever"
    assert arguments(parser.feed("\nmod")) == ""
    assert arguments(parser.feed("el is: x")) == "\\nmodel is: x"
    assert arguments(parser.feed("\nmode: 3")) == '"'
    assert arguments(parser.feed("\n@@end\n")) == ', "mode": 3}'


def test_closer_with_more_on_its_line_is_text() -> None:
    text = "@@call write\ncontent: a\n@@ending\n@@end of it\n@@end"
    for _, pieces in cut_variants(text):
        parser = il.Parser(LINES, tools=TOOLS)
        reply = il.fold([event for piece in pieces for event in parser.feed(piece)] + parser.close())
        assert json.loads(reply.calls[0].arguments) == {"content": "a\n@@ending\n@@end of it"}


def test_buffered_value_over_the_limit_becomes_a_string() -> None:
    parser = il.Parser(LINES, tools=TOOLS, options=Options(limits=il.Limits(args=2000)))
    lines = ("x" * 50 + "\n") * 60
    reply = il.fold(parser.feed('@@call write\nmeta: {"a":\n' + lines + "mode: 1\n@@end") + parser.close())
    assert "bad-value" in {finding.kind for finding in reply.findings}
    assert reply.calls[0].arguments.startswith('{"meta": "{\\"a\\":\\nxxx')


def test_change_of_the_channel_ends_a_call() -> None:
    parser = NativeTextParser(LINES, ToolSet(TOOLS))
    events = parser.feed("@@call write\npath: a\ncont", Channel.REASONING) + parser.feed("Hello.") + parser.close()
    assert ev.CallEnd(0, complete=False) in events
    assert events[-1] == ev.TextDelta("Hello.")


def test_change_of_the_channel_after_the_closer() -> None:
    parser = NativeTextParser(LINES, ToolSet(TOOLS))
    events = parser.feed("@@call write\npath: a\n@@end", Channel.REASONING) + parser.feed("Hello.") + parser.close()
    assert ev.CallEnd(0, complete=True) in events
    assert events[-1] == ev.TextDelta("Hello.")


@pytest.mark.parametrize(
    ("shape", "text"),
    [
        (LineParams(open=("[[tool]]\nname: ",), close=("[[/tool]]",)), "[[tool]]\nname: write\npath: a b\n[[/tool]]"),
        (LineParams(open=("Action: ",), close=("End",)), "Action: write\npath: a b\nEnd"),
        (LineParams(open=("! ",), close=(".",), separators=("\t",)), "! write\npath\ta b\n."),
    ],
)
def test_other_notations(shape: LineParams, text: str) -> None:
    dialect = il.Dialect("mine", "Mine: lines", shape=shape, special_tokens=False, lead="\n")
    for _, pieces in cut_variants(f"Hm.\n{text}"):
        parser = il.Parser(dialect, tools=TOOLS)
        reply = il.fold([event for piece in pieces for event in parser.feed(piece)] + parser.close())
        assert [(call.name, call.arguments) for call in reply.calls] == [("write", '{"path": "a b"}')]
        assert il.render(reply, dialect) == f"Hm.\n{text}"


@pytest.mark.parametrize(
    "value",
    [
        "",
        "\n",
        "\n\na",
        "a\n",
        "a\n\nb\n",
        "  a",
        "a\n  b: c\n",
        "@@end",
        "path: x",
        "\r",
        "a\r\n",
        "\r\nb\r",
        "1",
        "{",
    ],
)
@pytest.mark.parametrize("dialect", USER_DIALECTS.values(), ids=lambda dialect: dialect.name)
def test_strings_survive_a_round_trip(dialect: il.Dialect, value: str) -> None:
    call = Call("x", "write", json.dumps({"content": value, "path": value}))
    reply = il.parse(il.render(Reply(parts=[call]), dialect), dialect, TOOLS)
    assert json.loads(reply.calls[0].arguments) == {"content": value, "path": value}


@pytest.mark.parametrize("value", ["a\n@@end", "a\nmode: 3", "\npath:", "a\n@@end \t", "a\n@@end<|stop|>", "<|stop|>"])
def test_lines_that_would_end_a_value_raise_render_error(value: str) -> None:
    with pytest.raises(RenderError, match=r"'content' contains .*, which would end it"):
        il.render(Reply(parts=[Call("x", "write", json.dumps({"content": value}))]), LINES)


def test_indented_value_can_contain_any_line() -> None:
    value = "a\n<<end>>\nmode = 3\n<<call write>>\n"
    written = il.render(Reply(parts=[Call("x", "write", json.dumps({"content": value}))]), INDENTED_LINES)
    assert json.loads(il.parse(written, INDENTED_LINES, TOOLS).calls[0].arguments) == {"content": value}


@pytest.mark.parametrize(("name", "args"), [("a b", "{}"), ("", "{}"), ("ls", '{"a b": 1}'), ("ls", "[1]")])
def test_unwritable_names_and_keys_raise_render_error(name: str, args: str) -> None:
    with pytest.raises(RenderError):
        il.render(Reply(parts=[Call("x", name, args)]), LINES)


@pytest.mark.parametrize(
    "fields",
    [
        {"open": ()},
        {"close": ("",)},
        {"separators": ()},
        {"separators": ("-> ",)},
        {"separators": (":\n",)},
        {"indent": "> "},
    ],
)
def test_invalid_shapes_raise_usage_error(fields: dict[str, Any]) -> None:
    with pytest.raises(UsageError):
        LineParams(**{"open": ("@@call ",), "close": ("@@end",), **fields})
