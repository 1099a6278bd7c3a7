"""Solar Open (Upstage).

    <|think|>Two cities.<|end|><|begin|>assistant<|tool_calls|><|tool_call:begin|>a1b2c3d4e5<|tool_call:name|>
    get_weather<|tool_call:args|>{"city": "Paris"}<|tool_call:end|><|calls|>         (written on one line)

The markers are single tokens. Thinking, text (`<|content|>…<|end|>`) and calls are separate messages: each but the
first starts with `<|begin|>assistant`. The model writes ids. `<|calls|>` ends the turn, so servers usually drop it.
"""

from __future__ import annotations

from interlingua.parsing.dialect import Dialect, Span
from interlingua.parsing.shapes.framed_json.grammar import FramedJson

DIALECT = Dialect(
    name="solar_open",
    summary="Solar Open: special tokens, ids from the model",
    models=("*solar-open-*",),
    shape=FramedJson(
        open=("<|tool_call:begin|>",),
        header=("{id}<|tool_call:name|>{name}",),
        args=("<|tool_call:args|>",),
        close=("<|tool_call:end|>",),
        sections=(Span("<|tool_calls|>", ""), Span("<|tool_calls|>", "<|calls|>")),
    ),
    thinking=(Span("<|think|>", "<|end|>", after="<|begin|>assistant"),),
    text=(Span("<|content|>", "<|end|>"), Span("<|begin|>assistant", "")),
    noise=("<|flush|>",),
    lead="<|begin|>assistant",
    sample="<|think|>Two cities.<|end|><|begin|>assistant<|content|>Let me check.<|end|><|begin|>assistant"
    "<|tool_calls|>"
    '<|tool_call:begin|>a1b2c3d4e5<|tool_call:name|>get_weather<|tool_call:args|>{"city": "Paris"}<|tool_call:end|>'
    '<|tool_call:begin|>f6g7h8i9j0<|tool_call:name|>get_weather<|tool_call:args|>{"city": "Oslo"}<|tool_call:end|>',
)
