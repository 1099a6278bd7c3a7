"""Header templates: reading, writing, and errors for invalid templates."""

from __future__ import annotations

import re
from typing import Any

import pytest

from interlingua.core.reply import Call
from interlingua.core.tools import ToolSet
from interlingua.errors import RenderError, UsageError
from interlingua.parsing.dialect import Span
from interlingua.parsing.shapes.framed_json.grammar import FramedJson
from interlingua.parsing.shapes.framed_json.header_template import compile_headers
from tests.support.harness import tool

KIMI = ("functions.{name}:{n}",)
MISTRAL = ("{name}[CALL_ID]{id}", "{name}")
SOLAR = ("{id}<|tool_call:name|>{name}",)

READ: list[tuple[tuple[str, ...], str, tuple[str | None, str | None]]] = [
    (("{name}",), " ls \n", (None, "ls")),
    (("{name}",), "", (None, None)),
    (MISTRAL, "ls[CALL_ID]a1B2c3D4e", ("a1B2c3D4e", "ls")),
    (MISTRAL, " ls [CALL_ID] a1 ", ("a1", "ls")),
    (MISTRAL, "ls", (None, "ls")),
    (MISTRAL, "[CALL_ID]a1", ("a1", None)),
    (MISTRAL, "ls[CALL_ID]", (None, "ls")),
    (MISTRAL, "ls[CALL_ID]a[CALL_ID]b", ("lsab", None)),
    (SOLAR, "a1<|tool_call:name|>ls", ("a1", "ls")),
    (SOLAR, "a1", ("a1", None)),
    (("<{name}>",), "<ls>", (None, "ls")),
    (("<{name}>",), "<ls> x", (None, None)),
    (("<{name}>",), "ls>", (None, None)),
    (KIMI, "functions.ls:3", ("functions.ls:3", "ls")),
    (KIMI, "ls:3", ("ls:3", "ls")),
    (KIMI, "functions_ls_3", ("functions_ls_3", "ls")),
    (KIMI, "call_59ad", ("call_59ad", None)),
    (KIMI, "3", ("3", None)),
    (KIMI, "ls", (None, "ls")),
]


@pytest.mark.parametrize(("templates", "text", "read"), READ, ids=[f"{row[0][0]} {row[1]}" for row in READ])
def test_read(templates: tuple[str, ...], text: str, read: tuple[str | None, str | None]) -> None:
    header = compile_headers(templates).read(text, ToolSet())
    assert (header.id, header.name) == read


WRITTEN = [
    (("{name}",), Call("x", "ls", "{}"), "ls"),
    (MISTRAL, Call("a1", "ls", "{}"), "ls[CALL_ID]a1"),
    (MISTRAL, Call("", "ls", "{}"), "ls"),
    (SOLAR, Call("a1", "ls", "{}"), "a1<|tool_call:name|>ls"),
    (KIMI, Call("functions.ls:7", "ls", "{}"), "functions.ls:7"),
    (KIMI, Call("call_1", "ls", "{}"), "functions.ls:2"),
]


@pytest.mark.parametrize(("templates", "call", "written"), WRITTEN, ids=[row[2] for row in WRITTEN])
def test_write(templates: tuple[str, ...], call: Call, written: str) -> None:
    assert compile_headers(templates).write(call, 2) == written


@pytest.mark.parametrize(
    ("templates", "call"),
    [
        (("{name}",), Call("x", " ls", "{}")),
        (("{name}",), Call("x", "", "{}")),
        (MISTRAL, Call("a1", "l[CALL_ID]s", "{}")),
        (SOLAR, Call("", "ls", "{}")),
        (KIMI, Call("x", "", "{}")),
    ],
)
def test_header_that_would_be_parsed_differently_is_refused(templates: tuple[str, ...], call: Call) -> None:
    with pytest.raises(RenderError) as caught:
        compile_headers(templates).write(call, 0)
    assert caught.value.hint


def test_only_numbered_headers_can_begin_a_reply() -> None:
    offer = ToolSet([tool("ls")])
    assert compile_headers(KIMI).header_prefixes(offer) == ("ls:", "functions.ls:")
    assert compile_headers(MISTRAL).header_prefixes(offer) == ()


INVALID: list[tuple[Any, str]] = [
    (("{nam}",), "a header has no field {nam}"),
    (("{}",), "a header has no field {}"),
    (("name",), "one {name}"),
    (("{id}",), "one {name}"),
    (("{name}:{name}",), "one {name}"),
    (("{name}<{id}>{id}",), "each other field at most once"),
    (("{id}{name}",), "two fields without a separator"),
    (("{name}}",), "unbalanced brace"),
    (("{n}:{name}",), "a header with {n} must be"),
    (("{name}:{n}|{id}",), "a header with {n} must be"),
    (("{name}:{n}>",), "a header with {n} must be"),
    (("{name}:{n}", "{name}"), "must be the only template"),
    ((), "tuple of header templates is empty"),
    ("{name}", "a tuple of templates"),
    ((5,), "a header's template is str, not int"),
]


@pytest.mark.parametrize(("templates", "message"), INVALID, ids=[message for _, message in INVALID])
def test_invalid_template_is_refused_with_a_hint(templates: Any, message: str) -> None:
    with pytest.raises(UsageError, match=re.escape(message)) as caught:
        FramedJson(open=("<",), header=templates, sections=(Span("[", "]"),))
    assert caught.value.hint
