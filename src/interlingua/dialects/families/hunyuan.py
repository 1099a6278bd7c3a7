"""Hunyuan Hy3 and Hy4 (Tencent).

    <tool_calls:opensource>
    <tool_call:opensource>get_weather<tool_sep:opensource>
    <arg_key:opensource>city</arg_key:opensource>
    <arg_value:opensource>Paris</arg_value:opensource>
    </tool_call:opensource>
    </tool_calls:opensource>

The layout of GLM, with a separator after the name and a suffix on every tag; some builds omit the suffix. Hy4 has no
separator and no line breaks. The suffix belongs to the checkpoint: `6124c78e` is common, also in replies of Hy3. It is
learned from the first tag that has one. Seen in the field: no `<tool_calls>` around the calls; a reply that only closes
the thinking, because the prompt opened it; the markup of a call in the reasoning.

Source for Hy4: its parsers in vLLM (`hy_v4`) and SMG, and public transcripts.
"""

from __future__ import annotations

from interlingua.parsing.dialect import Dialect, Span
from interlingua.parsing.shapes.tagged_params.grammar import TaggedParams
from interlingua.parsing.shapes.tagged_params.tag import Tag

HY3_SUFFIXES = (":opensource", "")
HY4_SUFFIXES = (":6124c78e", "")


def spellings(tag: str, suffixes: tuple[str, ...]) -> tuple[str, ...]:
    return tuple(f"<{tag}{suffix}>" for suffix in suffixes)


def spans(tag: str, suffixes: tuple[str, ...]) -> tuple[Span, ...]:
    return tuple(Span(f"<{tag}{suffix}>", f"</{tag}{suffix}>") for suffix in suffixes)


HY3 = Dialect(
    name="hy3",
    summary="Hunyuan Hy3: tags with a suffix",
    models=("hy3*", "*/hy3*"),
    shape=TaggedParams(
        call=Tag(
            open=spellings("tool_call", HY3_SUFFIXES),
            end=spellings("tool_sep", HY3_SUFFIXES),
            close=spellings("/tool_call", HY3_SUFFIXES),
        ),
        param=Tag(
            open=spellings("arg_key", HY3_SUFFIXES),
            end=spellings("/arg_key", HY3_SUFFIXES),
            close=spellings("/arg_value", HY3_SUFFIXES),
        ),
        value_open=("\n<arg_value:opensource>", *spellings("arg_value", HY3_SUFFIXES)),
        sections=spans("tool_calls", HY3_SUFFIXES),
        call_gap="\n",
        param_gap="\n",
    ),
    thinking=spans("think", HY3_SUFFIXES),
    noise=("<｜hy_eos:opensource｜>", "<｜hy_eos｜>"),
    special_tokens=False,
    suffix=HY3_SUFFIXES[0],
    trim="\n",
    sample="<think:opensource>Two cities.</think:opensource>Let me look.<tool_calls:opensource>\n"
    "<tool_call:opensource>get_weather<tool_sep:opensource>\n<arg_key:opensource>city</arg_key:opensource>\n"
    "<arg_value:opensource>Paris</arg_value:opensource>\n</tool_call:opensource>\n"
    "<tool_call:opensource>get_weather<tool_sep:opensource>\n<arg_key:opensource>city</arg_key:opensource>\n"
    "<arg_value:opensource>São Paulo</arg_value:opensource>\n</tool_call:opensource>\n</tool_calls:opensource>",
)
HY4 = Dialect(
    name="hy4",
    summary="Hunyuan Hy4: tags with a suffix of the checkpoint, without line breaks",
    models=("hy4*", "*/hy4*"),
    shape=TaggedParams(
        call=Tag(open=spellings("tool_call", HY4_SUFFIXES), close=spellings("/tool_call", HY4_SUFFIXES)),
        param=Tag(
            open=spellings("arg_key", HY4_SUFFIXES),
            end=spellings("/arg_key", HY4_SUFFIXES),
            close=spellings("/arg_value", HY4_SUFFIXES),
        ),
        value_open=spellings("arg_value", HY4_SUFFIXES),
        sections=spans("tool_calls", HY4_SUFFIXES),
    ),
    thinking=spans("think", HY4_SUFFIXES),
    noise=("<｜hy_eos:6124c78e｜>", "<｜hy_eos｜>"),
    special_tokens=False,
    suffix=HY4_SUFFIXES[0],
    trim="\n",
    sample="<think:6124c78e>Two cities.</think:6124c78e>Let me look.<tool_calls:6124c78e>"
    "<tool_call:6124c78e>get_weather<arg_key:6124c78e>city</arg_key:6124c78e><arg_value:6124c78e>Paris"
    "</arg_value:6124c78e></tool_call:6124c78e>"
    "<tool_call:6124c78e>get_weather<arg_key:6124c78e>city</arg_key:6124c78e><arg_value:6124c78e>São Paulo"
    "</arg_value:6124c78e><arg_key:6124c78e>days</arg_key:6124c78e><arg_value:6124c78e>3</arg_value:6124c78e>"
    "</tool_call:6124c78e></tool_calls:6124c78e>",
)
