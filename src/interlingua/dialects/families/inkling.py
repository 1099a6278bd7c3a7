"""Inkling (Thinking Machines).

    <|message_model|><|content_invoke_tool_json|>{"name":"get_weather","args":{"city":"Paris"}}<|end_message|>

A reply is a sequence of blocks. Each block has a type and an end, and all markers are tokens. The prompt may already
contain the first `<|message_model|>`.
"""

from __future__ import annotations

from interlingua.parsing.dialect import Dialect, Span
from interlingua.parsing.shapes.json_envelope.grammar import JsonEnvelope

DIALECT = Dialect(
    name="inkling",
    summary="Inkling: typed blocks, only special tokens",
    models=("*inkling*",),
    shape=JsonEnvelope(
        open=("<|message_model|><|content_invoke_tool_json|>", "<|content_invoke_tool_json|>"),
        close=("<|end_message|>",),
        call='{"name":$name,"args":$args}',
    ),
    thinking=(
        Span("<|message_model|><|content_thinking|>", "<|end_message|>"),
        Span("<|content_thinking|>", "<|end_message|>"),
    ),
    text=(
        Span("<|message_model|><|content_text|>", "<|end_message|>"),
        Span("<|content_text|>", "<|end_message|>"),
        Span("<|message_model|>", ""),
    ),
    noise=("<|content_model_end_sampling|>",),
    sample="<|message_model|><|content_thinking|>Two cities.<|end_message|>"
    "<|message_model|><|content_text|>Let me look.<|end_message|>"
    '<|message_model|><|content_invoke_tool_json|>{"name":"get_weather","args":{"city":"Paris"}}<|end_message|>'
    '<|message_model|><|content_invoke_tool_json|>{"name":"get_weather","args":{"city":"São Paulo"}}<|end_message|>',
)
