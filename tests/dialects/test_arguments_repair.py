"""Arguments that are almost JSON, in every dialect that writes them as JSON."""

from __future__ import annotations

import json

import pytest

import interlingua as il
from interlingua.errors import RenderError
from tests.support.harness import cut_variants, tool

TOOLS = [tool("write", {"text": "string", "n": "array"})]
VALUE = {"text": "a\r\n\tb", "n": [1, True, None], "z": {}}
VALID = json.dumps(VALUE)
ALMOST_JSON = '{"text": "a\r\n\tb", "n": [1, True, None, ], "z": {},\n}'
CORRECTED = '{"text": "a\\r\\n\\tb", "n": [1, true, null ], "z": {}\n}'
UNCLOSED = '{"text": "a\r\n\tb", "n": [1, True, None'


def native_text(dialect: str) -> str:
    """Return a call and a text behind it; "" if the dialect does not write the arguments as JSON."""
    try:
        text = il.render(il.Reply(parts=[il.Call("call_1", "write", VALID), il.Call("call_2", "write", "{}")]), dialect)
    except RenderError:
        return ""
    return text if text.count(VALID) == 1 else ""


JSON_DIALECTS = [dialect.name for dialect in il.list_dialects() if native_text(dialect.name)]


def test_most_dialects_write_json() -> None:
    assert {"kimi_k2", "deepseek_v3", "hermes", "harmony", "mistral_v11", "llama3_json"} <= set(JSON_DIALECTS)


@pytest.mark.parametrize("dialect", JSON_DIALECTS)
@pytest.mark.parametrize("step", [pytest.param(1, marks=pytest.mark.slow), 10])
def test_almost_json_is_repaired_in_every_cut(dialect: str, step: int) -> None:
    text = native_text(dialect).replace(VALID, ALMOST_JSON)
    whole = il.parse(text, dialect, tools=TOOLS)
    assert [call.complete for call in whole.calls] == [True, True]
    assert json.loads(whole.calls[0].arguments) == VALUE
    kinds = [finding.kind for finding in whole.findings]
    assert kinds.count("repaired-arguments") == 3
    assert "bad-arguments" not in kinds
    for cut_name, pieces in list(cut_variants(text))[::step]:
        parser = il.Parser(dialect, tools=TOOLS)
        reply = il.fold([event for piece in pieces for event in parser.feed(piece)] + parser.close())
        assert reply == whole, cut_name


@pytest.mark.parametrize("dialect", JSON_DIALECTS)
def test_exact_arguments_are_sent_as_written(dialect: str) -> None:
    text = native_text(dialect).replace(VALID, ALMOST_JSON)
    parser = il.Parser(dialect, tools=TOOLS, options=il.Options(arguments="exact"))
    reply = il.fold(parser.feed(text) + parser.close())
    assert reply.calls[0].arguments == ALMOST_JSON
    assert "bad-arguments" in {finding.kind for finding in reply.findings}


@pytest.mark.parametrize("dialect", ["kimi_k2", "deepseek_v3", "deepseek_v31", "hermes", "harmony"])
@pytest.mark.parametrize("unclosed", [UNCLOSED, UNCLOSED + ",", UNCLOSED + " ,\n"], ids=["bare", "comma", "space"])
def test_missing_brackets_are_added_before_the_closer(dialect: str, unclosed: str) -> None:
    text = native_text(dialect).replace(VALID, unclosed)
    text = text.replace(unclosed + "}", unclosed)  # an envelope's own brace would close the object, not the array
    whole = il.parse(text, dialect, tools=TOOLS)
    assert json.loads(whole.calls[0].arguments) == {"text": "a\r\n\tb", "n": [1, True, None]}
    assert [call.complete for call in whole.calls] == [True, True]
    assert {finding.kind for finding in whole.findings} >= {"repaired-arguments"}
    for cut_name, pieces in cut_variants(text):
        parser = il.Parser(dialect, tools=TOOLS)
        reply = il.fold([event for piece in pieces for event in parser.feed(piece)] + parser.close())
        assert reply == whole, cut_name


def test_call_without_a_tool_is_sent_as_text_as_written() -> None:
    text = native_text("kimi_k2").replace(VALID, ALMOST_JSON)
    assert ALMOST_JSON in il.parse(text, "kimi_k2", tools=[]).text


def test_arguments_that_a_parser_would_correct_are_not_written() -> None:
    for args in (ALMOST_JSON, UNCLOSED, UNCLOSED + ","):
        with pytest.raises(RenderError, match="would be corrected"):
            il.render(il.Reply(parts=[il.Call("call_1", "write", args)]), "kimi_k2")
