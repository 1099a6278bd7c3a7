"""Dialect files: every built-in dialect survives a round trip, and errors name the place in the file."""

from __future__ import annotations

import dataclasses
import random
import re
from contextlib import suppress
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

import interlingua as il
from interlingua.cli.dialects.show import dialect_yaml
from interlingua.common.yaml_reader import MAX_DEPTH, MAX_TEXT_CHARS
from interlingua.dialects.registry import get_dialect
from interlingua.errors import BadInput, UsageError
from interlingua.parsing.shapes.tagged_params.grammar import TaggedParams
from interlingua.parsing.shapes.tagged_params.tag import Tag
from tests.support.budget import sample
from tests.support.harness import USER_DIALECTS

MY_MODEL = """\
name: my_model
summary: "My Model: calls in tags"
models: "*my-model*"
shape:
  tagged_params:
    call: {open: "<call=", end: ">", close: "</call>"}
    param: {open: "<arg=", end: ">", close: "</arg>"}
thinking: ["<think>", "</think>"]
noise: "<|end|>"
sample: <think>Hm.</think><call=ls><arg=path>/</arg></call>
"""


def test_load_file(tmp_path: Path) -> None:
    path = tmp_path / "my_model.yaml"
    path.write_text(MY_MODEL, encoding="utf-8")
    dialect = il.load_dialect(path)
    assert dialect == il.load_dialect(str(path)) == il.load_dialect(MY_MODEL)
    assert dialect == il.Dialect(
        name="my_model",
        summary="My Model: calls in tags",
        models=("*my-model*",),
        shape=TaggedParams(
            call=Tag(open=("<call=",), end=(">",), close=("</call>",)),
            param=Tag(open=("<arg=",), end=(">",), close=("</arg>",)),
        ),
        thinking=(il.Span("<think>", "</think>"),),
        noise=("<|end|>",),
        sample="<think>Hm.</think><call=ls><arg=path>/</arg></call>",
    )
    assert [call.name for call in il.parse("<call=ls></call><|end|>", dialect).calls] == ["ls"]


def test_byte_order_mark_is_ignored(tmp_path: Path) -> None:
    path = tmp_path / "my_model.yaml"
    path.write_text(MY_MODEL, encoding="utf-8-sig")
    assert il.load_dialect(path) == il.load_dialect(MY_MODEL)


def test_dialect_without_calls() -> None:
    dialect = il.load_dialect('{name: quiet, summary: only thinking, thinking: ["<t>", "</t>"]}')
    assert il.parse("<t>Hm.</t>Yes.", dialect).reasoning == "Hm."


SHORT_FORMS = {
    "one span": ('["<think>", "</think>"]', (il.Span("<think>", "</think>"),)),
    "one mapping": ('{open: "<t>", close: "</t>", after: "\\n"}', (il.Span("<t>", "</t>", after="\n"),)),
    "a list of one": ('[["<think>", "</think>"]]', (il.Span("<think>", "</think>"),)),
    "several": ('[["<a>", "</a>"], {open: "<b>", close: "</b>"}]', (il.Span("<a>", "</a>"), il.Span("<b>", "</b>"))),
    "none": ("[]", ()),
}


@pytest.mark.parametrize(("value", "thinking"), SHORT_FORMS.values(), ids=SHORT_FORMS)
def test_short_forms(value: str, thinking: tuple[il.Span, ...]) -> None:
    assert il.load_dialect(f"name: x\nsummary: y\nthinking: {value}").thinking == thinking


@pytest.mark.one_row_in(5)
@pytest.mark.parametrize("dialect", [*il.dialects(), *USER_DIALECTS.values()], ids=lambda dialect: dialect.name)
def test_every_dialect_survives_yaml_round_trip(dialect: il.Dialect) -> None:
    assert il.load_dialect(dialect_yaml(dialect)) == dialect


@given(st.text(max_size=30), st.lists(st.text(min_size=1, max_size=8), max_size=4))
def test_any_text_survives_yaml_round_trip(text: str, markers: list[str]) -> None:
    dialect = il.Dialect("x", text, noise=tuple(markers), sample=text)
    assert il.load_dialect(dialect_yaml(dialect)) == dialect


def changed(old: str, new: str) -> str:
    assert MY_MODEL.count(old) == 1
    return MY_MODEL.replace(old, new)


WRONG: dict[str, tuple[str, str, str]] = {
    # a file, part of the error message, part of the hint
    "no mapping": ("- name\n", ":1: expected a mapping, got a list", "for example: name: my_model"),
    "empty": ("\n\n", "is empty", "YAML"),
    "no YAML": ('name: "x\n', ":2: found unexpected end of stream", "double quotes"),
    "not printable": ("name: \0\n", "special characters are not allowed", "double quotes"),
    "two documents": ("name: x\n---\nname: y\n", "another document", "YAML"),
    "too long": ("#" * MAX_TEXT_CHARS + "\n#", f"the maximum is {MAX_TEXT_CHARS}", "right file"),
    "too deep": ("[" * 200 + "\n", f"deeper than {MAX_DEPTH} levels", "YAML"),
    "a field twice": (changed("noise:", "name: y\nnoise:"), ":9: duplicate field 'name'", "remove one"),
    "a glob without quotes": (changed('"*my-model*"', "*my-model*"), ":3: ", 'starts with * in quotes: "*…"'),
    "an alias": (changed('"*my-model*"', "*my-model"), ":3: aliases", 'starts with * in quotes: "*…"'),
    "an anchor": (changed('"*my-model*"', "&my-model"), ":3: anchors", 'starts with & in quotes: "&…"'),
    "a tag": (changed("my_model\n", "!!python/name:os.system\n"), ":1: tags", 'starts with ! in quotes: "!…"'),
    "a list as a name": ("? [a]\n: b\n", ":1: a field name", "`field: value`"),
    "a mistyped field": (changed("noise:", "nosie:"), ":9: nosie: unknown field", "did you mean 'noise'?"),
    "a mistyped field, by example": (changed("noise:", "nosie:"), "nosie", 'for example: noise: ["<|im_end|>"]'),
    "an unknown field": (changed("noise:", "xyz:"), "xyz: unknown field", "known: caveats, ids, "),
    "a mistyped field of a shape": (
        changed("    param:", "    parm:"),
        ":7: shape.tagged_params.parm: unknown field",
        "did you mean 'param'?",
    ),
    "deeper": (changed('{open: "<call="', '{opne: "<call="'), "shape.tagged_params.call.opne", "'open'? for example:"),
    "missing": ("name: x\n# no more", ":1: summary: required field is missing", "for example: summary: "),
    "missing in a shape, by example": (
        "name: x\nsummary: y\nshape: {framed_json: {open: x}}",
        "shape.framed_json.header: required field is missing",
        'for example: header: "functions.{name}:{n}"',
    ),
    "a closer, by example": (
        changed('close: "</call>"', 'closes: "</call>"'),
        "closes",
        'example: close: "<|close|>',
    ),
    "keys, by example": (
        "name: x\nsummary: y\nshape: {json_envelope: {open: x, name_key: y}}",
        "name_key: unknown field",
        'for example: name_keys: "name"',
    ),
    "missing in a shape": (
        changed('    param: {open: "<arg=", end: ">", close: "</arg>"}\n', ""),
        "shape.tagged_params.param: required field is missing; expected a mapping",
        "for example: param: {",
    ),
    "a number": (
        changed('"<|end|>"', "42"),
        "noise: expected a text, or a list of them, got the number 42; put it in quotes to make it text",
        "for example: noise: ",
    ),
    "a boolean": (changed('"<|end|>"', "yes"), "got the boolean yes; put it in quotes to make it text", "noise"),
    "nothing": (changed('"<|end|>"', ""), "noise: expected a text, or a list of them, got nothing", "noise"),
    "a list in a list": (changed('"<|end|>"', "[[x]]"), "noise.0: expected a text, got a list", "for example: noise"),
    "a list for a text": (
        changed("name: my_model", "name: [x]"),
        "name: expected a text, got a list",
        "name: my_model",
    ),
    "a text for a boolean": (
        changed("noise:", "special_tokens: maybe\nnoise:"),
        ":9: special_tokens: expected true or false, got the text 'maybe'",
        "for example: special_tokens: true",
    ),
    "a number for a boolean": (
        changed("noise:", "special_tokens: 3\nnoise:"),
        ":9: special_tokens: expected true or false, got the number 3",
        "for example: special_tokens: true",
    ),
    "a quotation mark, by example": (
        "name: x\nsummary: y\nshape: {pythonic: {quote: x}}",
        "shape.pythonic.quote: expected one of ', \", got the text 'x'",
        "for example: quote: '\"'",
    ),
    "a list of two, by example": (
        "name: x\nsummary: y\nshape: {pythonic: {words: [x, y]}}",
        "shape.pythonic.words: expected a list of 3, got a list",
        "for example: words: ['True', 'False', None]",
    ),
    "no such choice": (
        changed("noise:", "ids: ten\nnoise:"),
        "ids: expected one of call, nine, got the text 'ten'",
        "for example: ids: call",
    ),
    "a span of one": (
        changed(', "</think>"', ""),
        "thinking.0: expected a pair [open, close], got the text '<think>'",
        "[",
    ),
    "a span of three": (
        changed('"</think>"]', '"</think>", "x"]'),
        "thinking.0: expected a pair [open, close], got the text '<think>'",
        'for example: thinking: ["<think>", "</think>"]',
    ),
    "a shape without fields": (
        changed("shape:\n", "shape: tagged_params\nx:\n"),
        "expected a mapping with one shape",
        "{",
    ),
    "no shape": ("name: x\nsummary: y\nshape: {}", ":3: shape: expected exactly one shape, got none", "framed_json"),
    "two shapes": (
        changed("  tagged_params:", "  framed_json: {}\n  tagged_params:"),
        "expected exactly one shape, got framed_json, tagged_params",
        "one of: ",
    ),
    "no such shape": (
        changed("tagged_params:", "tagged_param:"),
        ":5: shape: unknown shape 'tagged_param'",
        "did you mean 'tagged_params'?",
    ),
    "a shape that is a text": (changed("  tagged_params:\n", "  tagged_params: x\nx:\n"), "shape.tagged_params: ", ""),
    "upper case": (
        changed('"*my-model*"', '"*My-Model*"'),
        "models: '*My-Model*' is not in lower case",
        "'*my-model*'",
    ),
    "an empty marker": (
        changed('"<|end|>"', '["<|end|>", ""]'),
        "noise: a marker is missing or empty",
        "leave the field",
    ),
    "an empty marker in a shape": (
        changed('"<call="', '""'),
        "shape.tagged_params: call.open is empty",
        "the marker",
    ),
    "no opener": (changed('"<call="', "[]"), "shape", ""),
    "a bad header": (
        "name: x\nsummary: y\nshape: {framed_json: {open: <call>, header: '{nme}'}}",
        ":3: shape.framed_json: a header has no field {nme}",
        "{name}",
    ),
    "a bad template": (
        "name: x\nsummary: y\nshape: {json_envelope: {open: <call>, call: '{$nme}'}}",
        "shape",
        "",
    ),
    "an empty role": (
        dialect_yaml(get_dialect("harmony")).replace('role: "assistant"', 'role: ""'),
        "shape.channels: role is empty",
        "the marker",
    ),
    "a sample that cannot be written": (
        changed("<call=ls>", "<call=ls>{}</call><call=ls>"),
        "sample: parsed and rendered, it differs",
        "the sample must",
    ),
    "a sample without calls": (
        changed("sample: <think>Hm.</think><call=ls>", "sample: <think>Hm.</think><call:ls>"),
        "sample: contains no call; it was parsed as '<call:ls>",
        "compare the markers",
    ),
    "a sample that is written otherwise": (
        changed("</call>\n", "</call>!<|end|>\n"),
        "sample: parsed and rendered, it differs from character 52 on: '' instead of '<|end|>'",
        "the sample must equal the rendered text",
    ),
}


@pytest.mark.parametrize(("text", "message", "hint"), WRONG.values(), ids=WRONG)
def test_invalid_file_raises_with_message_and_hint(tmp_path: Path, text: str, message: str, hint: str) -> None:
    path = tmp_path / "my_model.yaml"
    path.write_bytes(text.encode())
    with pytest.raises(BadInput) as raised:
        il.load_dialect(path)
    assert message in str(raised.value)
    assert str(raised.value).startswith(str(path))
    assert hint in raised.value.hint
    assert raised.value.hint


@pytest.mark.sampled
def test_mutated_file_loads_or_raises_interlingua_error() -> None:
    dice = random.Random(0)
    texts = [re.sub(r"^ *# .*\n", "", dialect_yaml(dialect), flags=re.M) for dialect in il.dialects()]
    for _ in sample(range(600), 5):
        lines = dice.choice(texts).splitlines()
        at = dice.randrange(len(lines))
        name = lines[at].partition(":")[0]
        values = ("[]", '""', '[""]', "{}", "null", "3", "true", '"x"', '["a", "b"]', '["", ""]', '"{$x"')
        lines[at : at + 1] = dice.choice(([], [f"{name}: {dice.choice(values)}"]))
        with suppress(il.InterlinguaError):
            il.load_dialect("\n".join(lines) + "\n")


def test_unreadable_file_raises(tmp_path: Path) -> None:
    with pytest.raises(BadInput, match=r"no\.yaml: No such file"):
        il.load_dialect(tmp_path / "no.yaml")
    path = tmp_path / "latin.yaml"
    path.write_bytes("name: é".encode("latin-1"))
    with pytest.raises(BadInput, match=r"is not UTF-8: .* at byte 6"):
        il.load_dialect(path)
    with pytest.raises(UsageError, match="not int"):
        il.load_dialect(3)  # type: ignore[arg-type]


def test_builtin_name_may_be_reused() -> None:
    mine = il.load_dialect(dialect_yaml(dataclasses.replace(get_dialect("qwen3_coder"), noise=("<|mine|>",))))
    assert mine.name == "qwen3_coder"
    assert mine != get_dialect("qwen3_coder")
