"""tagged_params: streaming, limits, deeply nested values, and invalid shapes."""

from __future__ import annotations

import json

import pytest

import interlingua as il
from interlingua import events as ev
from interlingua.core.reply import Call, Reply
from interlingua.errors import RenderError, UsageError
from interlingua.parsing.shapes.tagged_params.grammar import TaggedParams
from interlingua.parsing.shapes.tagged_params.tag import Tag
from tests.support.harness import tool

TOOLS = [tool("write", {"path": "string", "content": "string", "mode": "integer", "meta": "object"})]


def args(events: list[ev.Event]) -> str:
    return "".join(event.text for event in events if isinstance(event, ev.ArgsDelta))


def test_string_value_is_streamed() -> None:
    parser = il.Parser("qwen3_coder", tools=TOOLS)
    assert parser.feed("<tool_call>\n<function=write") == []
    assert parser.feed(">")[0] == ev.CallStart(0, parser_id(parser), "write")
    assert args(parser.feed("\n<parameter=content>\nal")) == '{"content": "al'
    assert args(parser.feed('pha "x"')) == 'pha \\"x\\"'
    assert args(parser.feed("\n</par")) == ""
    assert args(parser.feed("k>")) == "\\n</park>"
    assert args(parser.feed("\n</parameter>\n<par")) == ""  # the text after the closer decides whether the value ends
    assert args(parser.feed("ameter=")) == ""
    assert args(parser.feed("mode>")) == '"'


def parser_id(_: il.Parser) -> str:
    return il.parse("<tool_call>\n<function=write>\n</function>\n</tool_call>", "qwen3_coder").calls[0].id


def test_non_string_value_is_emitted_at_its_closer() -> None:
    parser = il.Parser("glm47", tools=TOOLS)
    parser.feed("<tool_call>write<arg_key>mode</arg_key><arg_value>")
    assert args(parser.feed("42")) == ""
    assert args(parser.feed("0</arg_value><arg_key>")) == '{"mode": 420'


def test_buffered_value_over_the_limit_becomes_a_string() -> None:
    options = il.Options(limits=il.Limits(args=2000))
    parser = il.Parser("minimax_m2", tools=TOOLS, options=options)
    text = '<minimax:tool_call>\n<invoke name="write">\n<parameter name="meta">{"a": "' + "x" * 2100
    reply = il.fold(parser.feed(text) + parser.close())
    assert {"bad-value", "over-limit"} <= {finding.kind for finding in reply.findings}
    assert not reply.calls[0].complete


@pytest.mark.parametrize("depth", [10, 500])
def test_nested_values_of_any_depth(depth: int) -> None:
    ns = "]<]minimax[>["
    inner = f"{ns}<k>" * depth + "1" + f"{ns}</k>" * depth
    text = f'{ns}<tool_call>\n{ns}<invoke name="f">{inner}{ns}</invoke>\n{ns}</tool_call>'
    whole = il.parse(text, "minimax_m3")
    parser = il.Parser("minimax_m3")
    assert il.fold([event for char in text for event in parser.feed(char)] + parser.close()) == whole
    assert [call.name for call in whole.calls] == ["f"]


@pytest.mark.parametrize("arguments", ["[1]", '{"a": ', '{"a": "x</parameter>"}', '{"a b": 1}', '{"": 1}', '{"a>": 1}'])
def test_unwritable_arguments_raise_render_error(arguments: str) -> None:
    with pytest.raises(RenderError):
        il.render(Reply(parts=[Call("x", "write", arguments)]), "minimax_m2")


def test_incomplete_call_raises_render_error() -> None:
    with pytest.raises(RenderError, match="complete JSON object"):
        il.render(Reply(parts=[Call("x", "write", '{"a": "', complete=False)]), "qwen3_coder")


@pytest.mark.parametrize("empty", ["call.open", "call.close", "param.end"])
def test_shape_with_empty_markers_raises_usage_error(empty: str) -> None:
    call, param = Tag(open=("<a>",), close=("</a>",)), Tag(open=("<b>",), end=(":",), close=("</b>",))
    changed = {
        "call.open": (Tag(open=(), close=("</a>",)), param),
        "call.close": (Tag(open=("<a>",), close=("",)), param),
        "param.end": (call, Tag(open=("<b>",), close=("</b>",))),
    }
    with pytest.raises(UsageError, match=empty):
        TaggedParams(*changed[empty])


SECTIONS = '<tool_call>\n{"name": "ls"}\n</tool_call>\n<tool_call>\n<function=NAME>\n</tool_call>\nx\n<tool_call>'
QUOTED = [
    (
        "glm47",
        "<tool_call>say<arg_key>s</arg_key><arg_value>",
        "a <tool_call>ls</tool_call> b",
        "</arg_value></tool_call>",
    ),
    (
        "qwen3_coder",
        "<tool_call>\n<function=say>\n<parameter=s>\n",
        SECTIONS,
        "\n</parameter>\n</function>\n</tool_call>",
    ),
]


@pytest.mark.parametrize(("dialect", "before", "quoted", "after"), QUOTED)
def test_value_that_quotes_calls_is_exact(dialect: str, before: str, quoted: str, after: str) -> None:
    """These are not fixture rows: truncated right after the quoted call, they are values without a closer."""
    reply = il.parse(before + quoted + after, dialect, tools=[tool("say", ["s"]), tool("ls", [])])
    assert [call.arguments for call in reply.calls] == [json.dumps({"s": quoted})]
    assert reply.findings == []


def test_call_with_an_object_and_params_is_incomplete() -> None:
    text = '<tool_call>\n<function=write>\n{"path": "a"}\n<parameter=mode>\n3\n</parameter>\n</function>\n</tool_call>'
    parser = il.Parser("qwen3_coder", tools=TOOLS)
    streamed = il.fold([event for char in text for event in parser.feed(char)] + parser.close())
    for reply in (il.parse(text, "qwen3_coder", tools=TOOLS), streamed):
        assert [(call.arguments, call.complete) for call in reply.calls] == [('{"path": "a"}', False)]
        assert "after-arguments" in {finding.kind for finding in reply.findings}
