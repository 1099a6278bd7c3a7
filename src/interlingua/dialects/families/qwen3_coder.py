"""Qwen3-Coder, Qwen3.5 and later; also Nemotron 3, Step 3.5, MiMo V2 and other models, and ZAYA1 (Zyphra).

    <tool_call>
    <function=get_weather>
    <parameter=city>
    Paris
    </parameter>
    </function>
    </tool_call>

`<tool_call>` is a token, the tags inside are ordinary text. A value is on lines of its own; MiMo writes it inline. The
template prints Python's `True` and `None`, and JSON for objects. From Qwen3.5 on the prompt opens the thinking. Seen in
the field: the call inside thinking that is never closed; no `<tool_call>` before `<function=`; `</parameter>` missing
or doubled; a Hermes object inside the same tags.

ZAYA1 writes `<zyphra_tool_call>` instead of `<tool_call>`. Source: its chat template, and the parser of Zyphra's vLLM.
"""

from __future__ import annotations

from interlingua.parsing.dialect import Dialect, Span
from interlingua.parsing.shapes.json_envelope.grammar import JsonEnvelope
from interlingua.parsing.shapes.tagged_params.grammar import TaggedParams
from interlingua.parsing.shapes.tagged_params.tag import Tag

THINKING = (Span("<think>", "</think>", inside="\n", after="\n\n"),)
NOISE = ("<|im_end|>", "<|im_start|>", "<|im_start|>assistant", "<|endoftext|>")


def xml_functions(section: Span) -> TaggedParams:
    """Return the shape with this tag around each call."""
    return TaggedParams(
        call=Tag(open=("<function=",), end=(">",), close=("</function>",)),
        param=Tag(open=("<parameter=",), end=(">",), close=("</parameter>",)),
        sections=(section,),
        inside=JsonEnvelope(open=(section.open,), close=(section.close,)),
        shared_section=False,
        lines=True,
        call_gap="\n",
        param_gap="\n",
    )


DIALECT = Dialect(
    name="qwen3_coder",
    summary="Qwen3-Coder, Qwen3.5 and later, Nemotron 3, Step 3.5, MiMo V2, Ornith, Intern-S2: XML-like tags",
    models=(
        "*qwen3-coder*",
        "*qwen-3-coder*",
        "*qwen3.[5-9]*",
        "*qwen3p[5-9]*",
        "*nemotron-3-nano*",
        "*nemotron-3-super*",
        "*nemotron-3-ultra*",
        "*nemotron-3-120b*",
        "*nemotron-3.5-*",
        "*nemotron-cascade-2*",
        "*nemotron-labs-3*",
        "step-3.[5-9]*",
        "*/step-3.[5-9]*",
        "*/step-3p[5-9]*",
        "*mimo-v2*",
        "*iquest-coder*",
        "ornith*",
        "*/ornith*",
        "*kolibri-1*",
        "*kolibri1*",
        "*intern-s2*",
        "*minicpm-v-4.6*",
        "*minicpm-v-4_6*",
        "*intellect-3*",
        "*berrylm*",
    ),
    shape=xml_functions(Span("<tool_call>", "</tool_call>")),
    thinking=THINKING,
    noise=NOISE,
    special_tokens=False,
    trim="\n",
    lead="\n\n",
    sample="<think>\nTwo cities.\n</think>\n\nLet me look.\n\n"
    "<tool_call>\n<function=get_weather>\n<parameter=city>\nParis\n</parameter>\n</function>\n</tool_call>\n"
    "<tool_call>\n<function=get_weather>\n<parameter=city>\nSão Paulo\n</parameter>\n</function>\n</tool_call>",
)
ZAYA = Dialect(
    name="zaya",
    summary="ZAYA1: like qwen3_coder, in <zyphra_tool_call> tags",
    models=("*zaya1*",),
    shape=xml_functions(Span("<zyphra_tool_call>", "</zyphra_tool_call>")),
    thinking=THINKING,
    noise=NOISE,
    special_tokens=False,
    trim="\n",
    lead="\n\n",
    sample="<think>\nTwo cities.\n</think>\n\nLet me look.\n\n"
    "<zyphra_tool_call>\n<function=get_weather>\n<parameter=city>\nParis\n</parameter>\n</function>\n"
    "</zyphra_tool_call>\n"
    "<zyphra_tool_call>\n<function=get_weather>\n<parameter=city>\nSão Paulo\n</parameter>\n</function>\n"
    "</zyphra_tool_call>",
)
