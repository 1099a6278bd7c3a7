"""Response templates: what they contain, and dialects that are read from them."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest

import interlingua as il
from interlingua.errors import BadInput, NotExpressible
from interlingua.exports.exporter import export
from interlingua.exports.formats.dialect_json import write_dialect
from tests.support.export_cases import DIALECTS


def template_of(dialect: il.Dialect) -> Any:
    try:
        return export("response-template", dialect, start_anchor="<|assistant|>").content
    except NotExpressible:
        return None


TEMPLATES = {dialect.name: (dialect, template) for dialect in DIALECTS if (template := template_of(dialect))}
NOT_CARRIED = {dialect.name for dialect in DIALECTS} - set(TEMPLATES)
TAGGED = [
    name for name, (_, template) in TEMPLATES.items() if template["fields"]["tool_calls"]["content"] == "xml-inline"
]


def test_template_of_hermes() -> None:
    _, template = TEMPLATES["hermes"]
    assert (template["version"], template["start_anchor"]) == (1, "<|assistant|>")
    assert template["fields"]["tool_calls"] == {
        "open": "<tool_call>",
        "close": "</tool_call>",
        "content": "json",
        "repeats": True,
        "transform": {
            "type": "function",
            "function": {"name": "{content.name}", "arguments": "{content.arguments}"},
        },
    }


@pytest.mark.parametrize("name", TAGGED)
def test_pattern_finds_params_of_all_types(name: str) -> None:
    dialect, template = TEMPLATES[name]
    arguments = {"s": "a b", "n": 7, "b": True, "z": None, "l": [1, "x"], "o": {"k": "v"}}
    text = il.render(il.Reply(parts=[il.Call("call_0", "f", json.dumps(arguments))]), dialect)
    pattern = template["fields"]["tool_calls"]["content_args"]["tag_pattern"]
    found = {match["key"]: match["value"] for match in re.finditer(pattern, text, re.S)}
    assert list(found) == list(arguments)
    assert found["s"] == "a b"
    assert json.loads(found["l"]) == [1, "x"]


@pytest.mark.parametrize("name", sorted(NOT_CARRIED))
def test_what_templates_cannot_carry_has_a_reason(name: str) -> None:
    dialect = next(dialect for dialect in DIALECTS if dialect.name == name)
    with pytest.raises(NotExpressible, match=r"\w+ \w+"):
        export("response-template", dialect)


# ── import ────────────────────────────────────────────────────────────────────────────────────────────────────────────


def read_back(template: Any) -> il.Dialect | None:
    try:
        return il.load_dialect(json.dumps({"chat_template": "…", "response_template": template}))
    except BadInput:
        return None


READ_BACK = {name: dialect for name, (_, template) in TEMPLATES.items() if (dialect := read_back(template))}


def test_most_templates_are_read_back() -> None:
    assert len(READ_BACK) >= 30, sorted(set(TEMPLATES) - set(READ_BACK))


@pytest.mark.parametrize("name", READ_BACK)
def test_dialect_that_is_read_back_reads_the_same(name: str) -> None:
    original, _ = TEMPLATES[name]
    written = write_dialect(original)
    for example in written["examples"]:
        reply = il.parse(example["text"], READ_BACK[name], tools=written["tools"])
        calls = [{"name": call.name, "arguments": json.loads(call.arguments)} for call in reply.calls]
        assert calls == example["reply"]["calls"], example["name"]
        for actual, expected in ((reply.text, "text"), (reply.reasoning, "reasoning")):
            assert actual.strip() == example["reply"][expected].strip(), example["name"]


def test_tokenizer_config_is_a_dialect_file(tmp_path: Path) -> None:
    path = tmp_path / "tokenizer_config.json"
    path.write_text(json.dumps({"response_template": TEMPLATES["hermes"][1]}), encoding="utf-8")
    text = '<tool_call>\n{"name": "ls", "arguments": {}}\n</tool_call>'
    [call] = il.parse(text, il.load_dialect(path), tools=[{"type": "function", "function": {"name": "ls"}}]).calls
    assert (call.name, call.arguments) == ("ls", "{}")


@pytest.mark.parametrize(
    ("template", "message"),
    [
        ({}, "it has no field tool_calls"),
        ({"fields": {"tool_calls": {"content": "toml"}}}, "tool_calls: content 'toml'"),
        ({"fields": {"tool_calls": {"content": "json", "open_pattern": "a(?:b|c)"}}}, "the pattern"),
        ({"fields": {"tool_calls": {"content": "json"}}}, "tool_calls: the open_pattern '' has no group `name`"),
        (
            {
                "fields": {
                    "tool_calls": {
                        "open_pattern": "<c>(?P<name>.*)",
                        "content": "json",
                        "content_args": {"string_delims": [1]},
                    }
                }
            },
            "tool_calls: string_delims is [1]",
        ),
        (
            {
                "fields": {
                    "tool_calls": {
                        "open_pattern": "<s><c=(?P<name>.*)>",
                        "content": "xml-inline",
                        "content_args": {"tag_pattern": "<p=(?P<key>.*)>(?P<value>.*)</p>"},
                    }
                }
            },
            "tool_calls: no closing tag for '<s>'",
        ),
    ],
)
def test_unknown_parts_of_templates_are_named(template: Any, message: str) -> None:
    with pytest.raises(BadInput, match=rf"response_template: {re.escape(message)}"):
        il.load_dialect(json.dumps({"response_template": template}))


def test_empty_marker_of_a_template_is_refused() -> None:
    template = {"fields": {"tool_calls": {"open": "<c>", "content": "json"}, "content": {"close": ["</s>", ""]}}}
    with pytest.raises(BadInput, match="a marker is missing or empty"):
        il.load_dialect(json.dumps({"response_template": template}))
