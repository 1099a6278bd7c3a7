"""Hunyuan Hy3 (Tencent).

    <tool_calls:opensource>
    <tool_call:opensource>get_weather<tool_sep:opensource>
    <arg_key:opensource>city</arg_key:opensource>
    <arg_value:opensource>Paris</arg_value:opensource>
    </tool_call:opensource>
    </tool_calls:opensource>

The layout of GLM, with a separator after the name and a suffix on every tag; some builds omit the suffix.
"""

from __future__ import annotations

from interlingua.parsing.dialect import Dialect, Span
from interlingua.parsing.shapes.tagged_params.grammar import TaggedParams
from interlingua.parsing.shapes.tagged_params.tag import Tag

SUFFIXES = (":opensource", "")


def spellings(tag: str) -> tuple[str, ...]:
    return tuple(f"<{tag}{suffix}>" for suffix in SUFFIXES)


DIALECT = Dialect(
    name="hy3",
    summary="Hunyuan Hy3: tags with a suffix",
    models=("hy3*", "*/hy3*"),
    shape=TaggedParams(
        call=Tag(open=spellings("tool_call"), end=spellings("tool_sep"), close=spellings("/tool_call")),
        param=Tag(open=spellings("arg_key"), end=spellings("/arg_key"), close=spellings("/arg_value")),
        value_open=("\n<arg_value:opensource>", *spellings("arg_value")),
        sections=tuple(Span(f"<tool_calls{suffix}>", f"</tool_calls{suffix}>") for suffix in SUFFIXES),
        call_gap="\n",
        param_gap="\n",
    ),
    thinking=tuple(Span(f"<think{suffix}>", f"</think{suffix}>") for suffix in SUFFIXES),
    noise=("<｜hy_eos:opensource｜>", "<｜hy_eos｜>"),
    special_tokens=False,
    trim="\n",
    caveats="A value is cut where it contains `</arg_value:opensource>` followed by text that can follow a param, or "
    "`<arg_key:opensource>` and another param of the tool. It is also cut where it contains the end of its "
    "call followed by text that can follow a call, or the start of a call of an offered tool.",
    sample="<think:opensource>Two cities.</think:opensource>Let me look.<tool_calls:opensource>\n"
    "<tool_call:opensource>get_weather<tool_sep:opensource>\n<arg_key:opensource>city</arg_key:opensource>\n"
    "<arg_value:opensource>Paris</arg_value:opensource>\n</tool_call:opensource>\n"
    "<tool_call:opensource>get_weather<tool_sep:opensource>\n<arg_key:opensource>city</arg_key:opensource>\n"
    "<arg_value:opensource>São Paulo</arg_value:opensource>\n</tool_call:opensource>\n</tool_calls:opensource>",
)
