"""Calls that the end of the reply cuts off: their arguments and findings, in every dialect."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import pytest

import interlingua as il
from interlingua.common.jsontext.codec import read_json
from interlingua.dialects.registry import get_dialect
from tests.support.budget import PROFILE, sample
from tests.support.harness import tool

ARGUMENTS: dict[str, Any] = {"city": "Paris", "days": 12, "flag": True, "tags": ["a", "b"], "o": {"k": 1}}
TOOLS = [tool("f", {"city": "string", "days": "integer", "flag": "boolean", "tags": "array", "o": "object"})]
NAMES = [dialect.name for dialect in il.list_dialects() if dialect.grammar is not None]
JSON_SHAPES = ("framed_json", "json_envelope", "channels")


def write_calls(name: str, *calls: tuple[str, str]) -> str:
    """Return calls in the format of the dialect. Some dialects have ids of a certain format, some have none."""
    for id in ("functions.{}:{}", "abcdefgh{1}", ""):
        parts = [
            il.Call(id=id.format(tool, n), name=tool, arguments=arguments) for n, (tool, arguments) in enumerate(calls)
        ]
        try:
            return il.render(il.Reply(parts=[*parts]), name)
        except il.InterlinguaError:
            continue
    raise AssertionError(name)


def parse_both_ways(name: str, text: str, *, streamed: bool = True) -> Iterator[il.Reply]:
    """Yield the reply of the whole text, and of single characters."""
    for pieces in ([text], list(text)) if streamed else ([text],):
        parser = il.Parser(name, TOOLS)
        yield il.fold([event for piece in pieces for event in parser.feed(piece)] + parser.close())


@pytest.mark.one_row_in(5)
@pytest.mark.sampled
@pytest.mark.parametrize("name", NAMES)
def test_complete_params_of_truncated_call_are_json(name: str) -> None:
    """Arguments end inside a string, a number or a container, or they are the complete params as JSON."""
    text = write_calls(name, ("f", json.dumps(ARGUMENTS)))
    shape: Any = get_dialect(name).shape
    found_keys: set[int] = set()
    for end in sample(range(len(text)), 3):
        for reply in parse_both_ways(name, text[:end], streamed=end % 7 == 0):
            for call in (call for call in reply.calls if not call.complete):
                members = read_json(call.arguments, dict[str, Any])
                if members is not None:
                    is_cut_value = "value-not-closed" in (finding.kind for finding in reply.findings)
                    assert is_cut_value or all(ARGUMENTS[key] == members[key] for key in members), (text[:end], call)
                    found_keys.add(len(members))
                elif read_json(call.arguments + "}", dict) is not None:
                    assert call.arguments[-1:].isalnum(), (text[:end], call)  # may be the beginning of a number
                    assert shape.NAME in JSON_SHAPES, (text[:end], call)
    assert found_keys >= {1, 4} or PROFILE == "quick", found_keys


CLOSED = [
    ("qwen3_coder", "<tool_call>\n<function=f>\n<parameter=days>\n1\n</parameter>", '{"days": 1}'),
    ("qwen3_coder", "<tool_call>\n<function=f>\n<parameter=days>\n1\n</parameter>\n<para", '{"days": 1}'),
    ("qwen3_coder", "<tool_call>\n<function=f>\n<parameter=days>\n1\n</parameter>\n</func", '{"days": 1}'),
    ("qwen3_coder", "<tool_call>\n<function=f>\n<parameter=city>\nA\n</parameter>\n<para", '{"city": "A"}'),
    ("qwen3_coder", "<tool_call>\n<function=f>\n<parameter=city>\nA", '{"city": "A'),
    ("glm47", "<tool_call>f<arg_key>city</arg_key><arg_value>A</arg_value><arg_", '{"city": "A"}'),
    ("minimax_m2", '<minimax:tool_call>\n<invoke name="f">\n<parameter name="days">1</parameter>\n', '{"days": 1}'),
    ("gemma4", '<|tool_call>call:f{city:<|"|>A<|"|>,', '{"city": "A"}'),
    ("gemma4", "<|tool_call>call:f{o:{k:1", '{"o": {"k": '),
    ("pythonic", '[f(city="A",', '{"city": "A"}'),
    ("hermes", '<tool_call>{"name": "f", "arguments": {"city": "A"', '{"city": "A"}'),
    ("hermes", '<tool_call>{"name": "f", "arguments": {', "{}"),
    ("hermes", '<tool_call>{"name": "f", "arguments": {"days": 1', '{"days": 1'),
    ("hermes", '<tool_call>{"name": "f", "arguments": {"o": {"k": "x"', '{"o": {"k": "x"'),
    ("hermes", '<tool_call>{"name": "f", "arguments": {"city": "A",', '{"city": "A",'),
    ("mistral_v13", '[TOOL_CALLS]f[ARGS]{"tags": []', '{"tags": []}'),
]


@pytest.mark.parametrize(("name", "text", "arguments"), CLOSED)
def test_arguments_of_truncated_call(name: str, text: str, arguments: str) -> None:
    for reply in parse_both_ways(name, text):
        assert [(call.arguments, call.complete) for call in reply.calls] == [(arguments, False)]
        assert (reply.text, reply.stop_reason) == ("", "length")
        assert [finding.kind for finding in reply.findings] == ["cut-short"]


def test_truncated_call_is_not_delivered_whole() -> None:
    text = '[TOOL_CALLS]f[ARGS]{"tags": []'
    reply = il.parse(text, "mistral_v13", TOOLS, options=il.Options(delivery="whole"))
    assert reply.calls == []


# ── findings ──────────────────────────────────────────────────────────────────────────────────────────────────────────

PARIS = ("f", '{"city": "Paris"}')


def kinds(name: str, text: str) -> list[str]:
    return sorted({finding.kind for finding in il.parse(text, name, TOOLS).findings})


@pytest.mark.parametrize("name", NAMES)
def test_findings_of_truncated_call(name: str) -> None:
    one, two = write_calls(name, PARIS), write_calls(name, PARIS, PARIS)
    assert kinds(name, one[: one.index("Paris") + 3]) == ["cut-short"]
    assert kinds(name, two[: two.rindex("Paris") + 3]) == ["cut-short"]


@pytest.mark.parametrize("name", NAMES)
def test_findings_of_unknown_tool(name: str) -> None:
    """Special tokens show that it is a call. Behind ordinary text it may be prose, and bare JSON is just JSON."""
    dialect = get_dialect(name)
    text = write_calls(name, ("other", '{"city": "Paris"}'))
    is_bare_json = text.startswith(("{", "["))
    opener = (
        next((opener for opener in dialect.grammar.openers if text.startswith(opener)), "") if dialect.grammar else ""
    )
    is_token = not opener.startswith(dialect.in_prose) if opener else dialect.special_tokens
    expected = ["unknown-tool"] if is_token else ["not-a-tool"]
    assert kinds(name, text) == ([] if is_bare_json and text[1:2] in '{"' else expected)


def last_closer(name: str) -> tuple[str, str]:
    """Return a call without its last closer, and this closer; "" if its end is not a closer."""
    grammar = get_dialect(name).grammar
    assert grammar is not None
    text = write_calls(name, PARIS).rstrip()
    closers = [marker for marker, role in grammar.marker_roles.items() if role == "closer" and text.endswith(marker)]
    closer = max((marker for marker in closers if marker in grammar.strays), key=len, default="")
    return text.removesuffix(closer), closer


@pytest.mark.parametrize("name", [name for name in NAMES if last_closer(name)[1]])
def test_findings_of_closers(name: str) -> None:
    text, closer = last_closer(name)
    shape: Any = get_dialect(name).shape
    section_closers = {span.close for span in getattr(shape, "sections", ())}
    if closer in section_closers:
        assert kinds(name, text) == ["section-not-closed"]
    elif shape.NAME == "tagged_params":
        assert kinds(name, text) == ["cut-short"]  # only its closer shows that all params have come
    else:
        assert kinds(name, text) == []  # the arguments show the end of the call
    assert kinds(name, text + closer + closer) == ["stray-marker"]


@pytest.mark.parametrize("name", NAMES)
def test_findings_of_text_between_calls_of_a_section(name: str) -> None:
    shape: Any = get_dialect(name).shape
    text = write_calls(name, PARIS, PARIS)
    sections = [span for span in getattr(shape, "sections", ()) if span.open in text]
    if not sections or text.count(sections[0].open) > 1 or shape.NAME == "pythonic":
        pytest.skip("one section per call")
    grammar = get_dialect(name).grammar
    assert grammar is not None
    openers = [opener for opener in grammar.openers if text.count(opener) > 1]
    position = text.rindex(max(openers, key=len))
    assert kinds(name, text[:position] + "And: " + text[position:]) == ["text-in-section"]
