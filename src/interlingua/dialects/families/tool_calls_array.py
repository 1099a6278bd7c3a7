"""Jamba 1.5 to 1.7 (AI21), Hunyuan A13B (Tencent), Apriel 1.5 and 1.6 (ServiceNow).

    <tool_calls>[{"name": "get_weather", "arguments": {"city": "Paris"}}]</tool_calls>

The tags are ordinary text. Hunyuan may put its answer between `<answer>` and `</answer>`. Apriel starts its thinking
with a phrase (from 1.6 on the prompt contains the phrase) and ends it with `[BEGIN FINAL RESPONSE]`.

MiniMax M1 writes one object per line, without the array's brackets.
"""

from __future__ import annotations

from interlingua.parsing.dialect import Dialect, Span
from interlingua.parsing.shapes.json_envelope.grammar import JsonEnvelope

THINK = Span("<think>", "</think>", inside="\n", after="\n")

DIALECT = Dialect(
    name="tool_calls_array",
    summary="Jamba, Hunyuan A13B, Apriel: an array in <tool_calls> tags",
    models=("*hunyuan-a13b*", "*jamba*", "*apriel*"),
    shape=JsonEnvelope(
        open=("<tool_calls>",), close=("</tool_calls>",), together=True, lead="[", between=", ", tail="]"
    ),
    thinking=(THINK, Span("Here are my reasoning steps:\n", "[BEGIN FINAL RESPONSE]")),
    text=(Span("", ""), Span("<answer>", "</answer>")),
    noise=("[END FINAL RESPONSE]", "<|end|>", "<|eos|>", "</s>"),
    special_tokens=False,
    trim="\n",
    lead="\n",
    caveats="`Here are my reasoning steps:` and `[BEGIN FINAL RESPONSE]` switch to thinking and back anywhere in a "
    "reply, and `<answer>` is dropped.",
    sample="<think>\nTwo cities.\n</think>\nLet me look.\n"
    '<tool_calls>[{"name": "get_weather", "arguments": {"city": "Paris"}}, '
    '{"name": "get_weather", "arguments": {"city": "São Paulo"}}]</tool_calls>',
)
MINIMAX_M1 = Dialect(
    name="minimax_m1",
    summary="MiniMax M1: one object per line, in <tool_calls> tags",
    models=("*minimax-m1*",),
    shape=JsonEnvelope(
        open=("<tool_calls>",), close=("</tool_calls>",), together=True, lead="\n", between="\n", tail="\n"
    ),
    thinking=(THINK,),
    noise=("<end_of_sentence>",),
    special_tokens=False,
    trim="\n",
    lead="\n",
    sample="<think>\nTwo cities.\n</think>\n"
    '<tool_calls>\n{"name": "get_weather", "arguments": {"city": "Paris"}}\n'
    '{"name": "get_weather", "arguments": {"city": "São Paulo"}}\n</tool_calls>',
)
