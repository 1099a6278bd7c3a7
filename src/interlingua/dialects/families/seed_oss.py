"""Seed-OSS (ByteDance): Qwen3-Coder's tags with values inline.

    <seed:tool_call>
    <function=get_weather>
    <parameter=city>Paris</parameter>
    </function>
    </seed:tool_call>

A line break inside a value is part of the value. The template prints Python's notation for lists and dicts. Notes on
the thinking budget are in `<seed:cot_budget_reflect>`, inside the thinking.
"""

from __future__ import annotations

from interlingua.parsing.dialect import Dialect, Span
from interlingua.parsing.shapes.tagged_params.grammar import TaggedParams
from interlingua.parsing.shapes.tagged_params.tag import Tag

DIALECT = Dialect(
    name="seed_oss",
    summary="Seed-OSS: Qwen3-Coder's tags with values inline",
    models=("*seed-oss*",),
    shape=TaggedParams(
        call=Tag(open=("<function=",), end=(">",), close=("</function>",)),
        param=Tag(open=("<parameter=",), end=(">",), close=("</parameter>",)),
        sections=(Span("<seed:tool_call>", "</seed:tool_call>"),),
        shared_section=False,
        call_gap="\n",
        param_gap="\n",
    ),
    thinking=(Span("<seed:think>", "</seed:think>", after="\n"),),
    noise=("<seed:eos>",),
    special_tokens=False,
    trim="\n",
    lead="\n\n",
    sample="<seed:think>Two cities.</seed:think>\nLet me look.\n\n"
    "<seed:tool_call>\n<function=get_weather>\n<parameter=city>Paris</parameter>\n</function>\n</seed:tool_call>\n"
    "<seed:tool_call>\n<function=get_weather>\n<parameter=city>São Paulo</parameter>\n"
    "<parameter=days>3</parameter>\n</function>\n</seed:tool_call>",
)
