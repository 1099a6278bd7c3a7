"""Hermes 2, 3 and 4 (Nous Research), and models with the same format: Qwen2.5, Qwen3 and QwQ, Granite 4, MiMo-VL,
Bielik, Reka, EXAONE 4, Ling 2.5 and 2.6, Ring 2.5, Cogito v1.

    <tool_call>
    {"name": "get_weather", "arguments": {"city": "Paris"}}
    </tool_call>

The tags are ordinary text to most of these models, so prose may contain them. Seen in the field: `</tool_call>` in a
JSON string, `parameters` instead of `arguments`, arguments before the name or as a string, several objects in one tag,
a missing brace or closer, no tag at all from small models, and thinking that only mentions the tag.

ERNIE 4.5 (Baidu) puts its answer between `<response>` and `</response>`. LongCat (Meituan) has tags of its own.
"""

from __future__ import annotations

from interlingua.parsing.dialect import Dialect, Span
from interlingua.parsing.shapes.json_envelope.grammar import JsonEnvelope

THINK = Span("<think>", "</think>", inside="\n", after="\n\n")

DIALECT = Dialect(
    name="hermes",
    summary="Hermes, Qwen2.5, Qwen3, QwQ, Granite 4: JSON objects in <tool_call> tags",
    models=(
        "*hermes-[2-4]*",
        "*hermes[2-4]*",
        "*qwen2*",
        "*qwen-2*",
        "*qwen3*",
        "*qwen-3*",
        "*qwq*",
        "*qwen-max*",
        "*qwen-plus*",
        "*qwen-turbo*",
        "*kimi-dev*",
        "*granite-4[.-]*",
        "*granite4*",
        "*mimo-vl*",
        "*mimo-7b*",
        "*bielik*",
        "*trinity-nano*",
        "*trinity-mini*",
        "*trinity-large*",
        "*reka-edge*",
        "*llama-3-groq*",
        "*llama3-groq*",
        "*smollm3*",
        "*groq*tool-use*",
        "*exaone-4*",
        "*exaone4*",
        "*k-exaone*",
        "ling-2.[56]*",
        "*/ling-2.[56]*",
        "ring-2.5*",
        "*/ring-2.5*",
        "*step3-vl*",
        "*cogito*",
    ),
    shape=JsonEnvelope(open=("<tool_call>",), close=("</tool_call>",), lead="\n", between="\n", tail="\n"),
    thinking=(THINK,),
    noise=("<|im_end|>", "<|im_start|>", "<|im_start|>assistant", "<|end_of_text|>"),
    special_tokens=False,
    trim="\n",
    lead="\n",
    sample="<think>\nTwo cities.\n</think>\n\nLet me look.\n"
    '<tool_call>\n{"name": "get_weather", "arguments": {"city": "Paris"}}\n</tool_call>\n'
    '<tool_call>\n{"name": "get_weather", "arguments": {"city": "São Paulo"}}\n</tool_call>',
)
ERNIE45 = Dialect(
    name="ernie45",
    summary="ERNIE 4.5 thinking: like hermes, with the answer in <response> tags",
    models=("*ernie-4.5*",),
    shape=DIALECT.shape,
    thinking=(THINK,),
    text=(Span("<response>", "</response>", inside="\n"),),
    noise=("</s>",),
    special_tokens=False,
    trim="\n",
    lead="\n\n",
    caveats="`<response>` and `</response>` are dropped anywhere in a reply.",
    sample="<think>\nTwo cities.\n</think>\n\n"
    '<tool_call>\n{"name": "get_weather", "arguments": {"city": "Paris"}}\n</tool_call>\n'
    '<tool_call>\n{"name": "get_weather", "arguments": {"city": "São Paulo"}}\n</tool_call>',
)
LONGCAT = Dialect(
    name="longcat",
    summary="LongCat Flash: like hermes, in <longcat_tool_call> tags",
    models=("*longcat*",),
    shape=JsonEnvelope(
        open=("<longcat_tool_call>",), close=("</longcat_tool_call>",), lead="\n", between="\n", tail="\n"
    ),
    thinking=(Span("<longcat_think>", "</longcat_think>", inside="\n", after="\n\n"), Span("<think>", "</think>")),
    noise=("</longcat_s>",),
    special_tokens=False,
    trim="\n",
    lead="\n",
    sample="<longcat_think>\nTwo cities.\n</longcat_think>\n\n"
    '<longcat_tool_call>\n{"name": "get_weather", "arguments": {"city": "Paris"}}\n</longcat_tool_call>\n'
    '<longcat_tool_call>\n{"name": "get_weather", "arguments": {"city": "São Paulo"}}\n</longcat_tool_call>',
)
