"""InternLM 2 and 2.5, Intern-S1 (Shanghai AI Lab).

    <|action_start|><|plugin|>
    {"name": "get_weather", "arguments": {"city": "Paris"}}<|action_end|>

All markers are tokens. Intern-S1 writes a space between the first two. `parameters` is as common as `arguments`.
"""

from __future__ import annotations

from interlingua.parsing.dialect import Dialect, Span
from interlingua.parsing.shapes.json_envelope.grammar import JsonEnvelope

DIALECT = Dialect(
    name="internlm2",
    summary="InternLM 2, Intern-S1: special tokens around an object",
    models=("*internlm2*", "*intern-s1*"),
    shape=JsonEnvelope(
        open=("<|action_start|><|plugin|>", "<|action_start|> <|plugin|>"), close=("<|action_end|>",), lead="\n"
    ),
    thinking=(Span("<think>", "</think>"),),
    noise=("<|im_end|>", "<|im_start|>", "<|im_start|>assistant"),
    sample="<think>Two cities.</think>Let me look.<|action_start|><|plugin|>\n"
    '{"name": "get_weather", "arguments": {"city": "Paris"}}<|action_end|><|action_start|><|plugin|>\n'
    '{"name": "get_weather", "arguments": {"city": "São Paulo"}}<|action_end|>',
)
