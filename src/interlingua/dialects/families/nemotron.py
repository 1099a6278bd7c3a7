"""Nemotron Nano v2, and the Llama Nemotrons Nano, Super and Ultra (NVIDIA). Nemotron 3 uses the Qwen3-Coder format.

    <TOOLCALL>[{"name": "get_weather", "arguments": {"city": "Paris"}}]</TOOLCALL>

The tags are ordinary text. The prompt opens the thinking. If text precedes the calls, Nano v2 ends its turn between
them and starts another one.
"""

from __future__ import annotations

from interlingua.parsing.dialect import Dialect, Span
from interlingua.parsing.shapes.json_envelope.grammar import JsonEnvelope

DIALECT = Dialect(
    name="nemotron",
    summary="Nemotron Nano v2, Llama Nemotron: an array in <TOOLCALL> tags",
    models=("*nemotron-nano*", "*nemotron-super*", "*nemotron-ultra*"),
    shape=JsonEnvelope(open=("<TOOLCALL>",), close=("</TOOLCALL>",), together=True, lead="[", between=", ", tail="]"),
    thinking=(Span("<think>", "</think>", inside="\n", after="\n\n"),),
    noise=("<SPECIAL_12>\n<SPECIAL_11>Assistant\n", "<SPECIAL_12>", "<|eot_id|>"),
    special_tokens=False,
    trim="\n",
    lead="\n",
    sample="<think>\nTwo cities.\n</think>\n\n"
    '<TOOLCALL>[{"name": "get_weather", "arguments": {"city": "Paris"}}, '
    '{"name": "get_weather", "arguments": {"city": "São Paulo"}}]</TOOLCALL>',
)
