"""Kimi K2, K2-Thinking, K2.5 and their successors up to K2.7 (Moonshot AI).

    <think></think><|tool_calls_section_begin|><|tool_call_begin|>functions.get_weather:0<|tool_call_argument_begin|>
    {"city": "Paris"}<|tool_call_end|><|tool_calls_section_end|>          (written on one line)

The markers are single tokens. The header is the call's id, and only the id contains the name: `functions.NAME:N`, with
N counting over the whole conversation. Seen in the field: the section inside thinking that is never closed; ids without
`functions.`, with underscores, from other vendors (`call_59ad`), or only the number; the singular `tool_call_section`;
missing closers; only the end of a call reaching the client. From K2.5 on the prompt opens the thinking.
"""

from __future__ import annotations

from interlingua.parsing.dialect import Dialect, Span
from interlingua.parsing.shapes.framed_json.grammar import FramedJson

DIALECT = Dialect(
    name="kimi_k2",
    summary="Kimi K2, K2-Thinking, K2.5 to K2.7: special tokens, ids from the model",
    models=("*kimi*k2*", "*kimi-linear*", "*kimi-for-coding*", "*kimi-latest*", "*kimi-thinking*", "kimi", "k2p[5-9]*"),
    shape=FramedJson(
        open=("<|tool_call_begin|>",),
        header=("functions.{name}:{n}",),
        args=("<|tool_call_argument_begin|>",),
        close=("<|tool_call_end|>",),
        sections=(
            Span("<|tool_calls_section_begin|>", "<|tool_calls_section_end|>"),
            Span("<|tool_call_section_begin|>", "<|tool_call_section_end|>"),
        ),
    ),
    thinking=(
        Span("<think>", "</think>"),
        Span("◁think▷", "◁/think▷"),
        Span("<redacted_thinking>", "</redacted_thinking>"),
    ),
    noise=("<|im_end|>",),
    sample="<think>Two cities.</think><|tool_calls_section_begin|><|tool_call_begin|>functions.get_weather:0"
    '<|tool_call_argument_begin|>{"city": "Paris"}<|tool_call_end|><|tool_call_begin|>functions.get_weather:1'
    '<|tool_call_argument_begin|>{"city": "São Paulo"}<|tool_call_end|><|tool_calls_section_end|>',
)
