"""Texts that xgrammar's built-in structural tags allow: every style, every type of value, any white space.

Engines constrain models with these tags, so each describes what a model can write. `{params}` is the place of the
params in a call, `{json}` the place of all arguments as JSON. White space is allowed between params and around values
that are not strings, and around the tokens of JSON.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

import pytest

import interlingua as il
from tests.support.harness import random_cut_variants, tool

SCHEMA: dict[str, Any] = {
    "s": "string",
    "i": "integer",
    "n": "number",
    "b": "boolean",
    "z": {"type": ["integer", "null"]},
    "e": {"enum": ["on", "off", 3, None]},
    "c": {"const": "fixed"},
    "o": {"type": "object", "properties": {"k": {"type": "string"}}},
    "l": {"type": "array", "items": {"type": "integer"}},
    "u": {"anyOf": [{"type": "string"}, {"type": "array"}]},
    "any": {},
}
TOOLS = [tool("f", SCHEMA), tool("now", [])]
ARGUMENTS: dict[str, dict[str, Any]] = {
    "no params": {},
    "a word": {"s": "Paris"},
    "lines and white space": {"s": "  two\nlines \n", "i": 5},
    "an empty string": {"s": "", "c": "fixed"},
    "a string that looks like a number": {"s": "42", "i": 42},
    "a string that looks like null": {"s": "null", "z": None},
    "a string that looks like JSON": {"s": '{"k": 1}', "o": {"k": "v"}},
    "markup": {"s": "a < b && c > d </x> <y>", "n": -1.5},
    "scalars": {"i": -7, "n": 3, "b": True, "z": 4},
    "an enum of several types": {"e": "on", "z": None},
    "a number of an enum": {"e": 3, "b": False},
    "null of an enum": {"e": None},
    "empty containers": {"o": {}, "l": []},
    "containers": {"l": [1, 2], "o": {"k": "a, b"}},
    "a string of a union": {"u": "x"},
    "an array of a union": {"u": ["x", "y"]},
    "a string of any type": {"any": "x y"},
    "a tree of any type": {"any": [1, {"a": None}]},
    "params that are not declared": {"extra": "free", "more": [1]},
}
JSON_TYPES: dict[type, str] = {
    str: "string",
    int: "number",
    float: "number",
    bool: "boolean",
    list: "array",
    dict: "object",
}

WriteParam = Callable[[str, Any, str], str]
"""Writes a param: its key, its value, and the white space that is allowed there."""


class Style(NamedTuple):
    dialect: str
    call: str
    write_param: WriteParam | None = None
    prefill: str = ""
    parts: tuple[str, ...] = ()
    """Thinking and text before the call."""


def raw(value: Any, space: str) -> str:
    return value if isinstance(value, str) else space + write_json(value, space) + space


def write_json(value: Any, space: str) -> str:
    return json.dumps(value, indent=2 if space and value else None)


def around(head: str, close: str) -> WriteParam:
    """Write a param as an element. `{key}`, `{flag}` (of strings), `{type}` and `{space}` are replaced in its head."""

    def write(key: str, value: Any, space: str) -> str:
        filled = head.replace("{key}", key).replace("{flag}", str(isinstance(value, str)).lower())
        filled = filled.replace("{type}", JSON_TYPES.get(type(value), "null")).replace("{space}", space)
        return filled + raw(value, space) + close

    return write


def cohere_value(key: str, value: Any, space: str) -> str:
    """Write an element of Cohere's notation, with a name in objects and without one in arrays."""
    kinds: dict[type, str] = {str: "raw", dict: "dict", list: "list"}
    kind = kinds.get(type(value), "json")
    name = f' name="{key}"' if key else ""
    if isinstance(value, dict):
        content = space + space.join(cohere_value(inner, item, space) for inner, item in value.items()) + space
    elif isinstance(value, list):
        content = space + space.join(cohere_value("", item, space) for item in value) + space
    else:
        content = raw(value, space)
    return f'<cofl:value{name} type="{kind}">{content}</cofl:value>'


DSML_PARAM = around('<｜DSML｜parameter name="{key}" string="{flag}">', "</｜DSML｜parameter>")
STYLES = {
    "llama": Style("llama3_json", '{"name": "f", "parameters": {json}}'),
    "kimi": Style(
        "kimi_k2",
        "Hm.</think><|tool_calls_section_begin|><|tool_call_begin|>functions.f:0<|tool_call_argument_begin|>{json}"
        "<|tool_call_end|><|tool_calls_section_end|>",
        prefill="<think>",
        parts=("Hm.",),
    ),
    "kimi_k3": Style(
        "kimi_k3",
        "Hm.<|close|>think<|sep|><|open|>response<|sep|>Look.<|close|>response<|sep|><|open|>tools<|sep|>"
        '<|open|>call tool="f" index="1"<|sep|>{params}<|close|>call<|sep|>'
        "<|close|>tools<|sep|><|close|>message<|sep|>",
        around('<|open|>argument key="{key}" type="{type}"<|sep|>', "<|close|>argument<|sep|>"),
        "<|open|>think<|sep|>",
        ("Hm.", "Look."),
    ),
    "deepseek_r1": Style(
        "deepseek_v3",
        "Hm.</think><｜tool▁calls▁begin｜><｜tool▁call▁begin｜>function<｜tool▁sep｜>f\n```json\n{json}\n```"
        "<｜tool▁call▁end｜><｜tool▁calls▁end｜>",
        prefill="<think>",
        parts=("Hm.",),
    ),
    "deepseek_v3_1": Style(
        "deepseek_v31",
        "Look.<｜tool▁calls▁begin｜><｜tool▁call▁begin｜>f<｜tool▁sep｜>{json}<｜tool▁call▁end｜><｜tool▁calls▁end｜>",
        parts=("Look.",),
    ),
    "qwen_3_5": Style(
        "qwen3_coder",
        "Hm.</think>\n\n<tool_call>\n<function=f>\n{params}\n</function>\n</tool_call>",
        around("<parameter={key}>", "</parameter>"),
        "<think>\n",
        ("Hm.",),
    ),
    "qwen_3": Style("hermes", 'Look.<tool_call>\n{"name": "f", "arguments": {json}}\n</tool_call>', parts=("Look.",)),
    "exaone": Style("hermes", '<tool_call>{"name": "f", "arguments": {json}}</tool_call>'),
    "harmony": Style(
        "harmony",
        "<|channel|>analysis<|message|>Hm.<|end|><|start|>assistant<|channel|>commentary to=functions.f"
        "<|constrain|>json<|message|>{json}<|call|>",
        parts=("Hm.",),
    ),
    "harmony, recipient in the role": Style(
        "harmony", " to=functions.f<|channel|>commentary <|constrain|>json<|message|>{json}<|call|>"
    ),
    "harmony, type without a token": Style(
        "harmony", " to=functions.f<|channel|>commentary json<|message|>{json}<|call|>"
    ),
    "harmony, built-in tool": Style("harmony", "<|channel|>commentary to=f code<|message|>{json}<|call|>"),
    "deepseek_v3_2": Style(
        "deepseek_v32",
        '\n\n<｜DSML｜function_calls>\n<｜DSML｜invoke name="f">\n{params}</｜DSML｜invoke>\n</｜DSML｜function_calls>',
        DSML_PARAM,
    ),
    "deepseek_v4": Style(
        "deepseek_v4",
        'Hm.</think>\n\n<｜DSML｜tool_calls>\n<｜DSML｜invoke name="f">\n{params}</｜DSML｜invoke>\n'
        "</｜DSML｜tool_calls>",
        DSML_PARAM,
        "<think>",
        ("Hm.",),
    ),
    "SGLang's tag of DeepSeek V4.1": Style(
        "deepseek_v41",
        '\n\n<｜DSML｜ calls>\n<｜DSML｜ invoke name="f">{json}</｜DSML｜ invoke>\n</｜DSML｜ calls>',
    ),
    "minimax": Style(
        "minimax_m2",
        'Hm.</think>\n\n\n<minimax:tool_call>\n<invoke name="f">\n{params}</invoke>\n</minimax:tool_call>',
        around('<parameter name="{key}">', "</parameter>"),
        "<think>",
        ("Hm.",),
    ),
    "glm_4_7": Style(
        "glm47",
        "Hm.</think><tool_call>f{params}</tool_call>",
        around("<arg_key>{key}</arg_key>{space}<arg_value>", "</arg_value>"),
        "<think>",
        ("Hm.",),
    ),
    "gemma_4": Style("gemma4", "<|channel>thought\nHm.<channel|><|tool_call>call:f{json}<tool_call|>", parts=("Hm.",)),
    "cohere": Style(
        "cohere_cmd5",
        'Hm.<|END_THINKING|><cofl:tool_calls><cofl:tool_call id="0" name="f">{params}</cofl:tool_call>'
        "</cofl:tool_calls>",
        cohere_value,
        "<|START_THINKING|>",
        ("Hm.",),
    ),
}


def write_call(style: Style, arguments: dict[str, Any], space: str) -> str:
    if style.write_param is not None:
        params = space.join(style.write_param(key, value, space) for key, value in arguments.items())
        return style.call.replace("{params}", params)
    members = (f'"{key}"{space}:{space}{write_json(value, space)}' for key, value in arguments.items())
    return style.call.replace("{json}", space + "{" + space + f"{space},{space}".join(members) + space + "}" + space)


def cases() -> Iterator[tuple[str, str, str]]:
    for style in STYLES:
        for arguments in ARGUMENTS:
            yield from ((style, arguments, space) for space in ("", "\n", " \t\n"))


@pytest.mark.one_row_in(5)
@pytest.mark.parametrize(("style_name", "arguments_name", "space"), list(cases()))
def test_text_that_structural_tag_allows(style_name: str, arguments_name: str, space: str) -> None:
    style, arguments = STYLES[style_name], ARGUMENTS[arguments_name]
    text = write_call(style, arguments, space)
    reply = il.parse(text, style.dialect, tools=TOOLS, prefill=style.prefill)
    assert [(call.name, call.complete) for call in reply.calls] == [("f", True)], text
    # As text, so that 1 is not equal to true.
    assert json.dumps(json.loads(reply.calls[0].arguments)) == json.dumps(arguments), text
    assert tuple(part.text for part in reply.parts if not isinstance(part, il.Call)) == style.parts
    assert not reply.findings
    for _, pieces in [("per character", list(text)), *random_cut_variants(text, 3)]:
        parser = il.Parser(style.dialect, tools=TOOLS, prefill=style.prefill)
        assert il.fold([event for piece in pieces for event in parser.feed(piece)] + parser.close()) == reply, pieces
