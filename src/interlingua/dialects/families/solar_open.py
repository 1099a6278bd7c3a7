"""Solar Open (Upstage).

    <|think|>Two cities.<|end|><|begin|>assistant<|tool_calls|><|tool_call:begin|>a1b2c3d4e5<|tool_call:name|>
    get_weather<|tool_call:args|>{"city": "Paris"}<|tool_call:end|><|calls|>         (written on one line)

The markers are single tokens. Thinking, text (`<|content|>…<|end|>`) and calls are separate messages: each but the
first starts with `<|begin|>assistant`. The model writes ids. `<|calls|>` ends the turn, so servers usually drop it.

Solar Open 2 and Solar Pro 4 write each param between tokens, without ids and without types:

    <|tool_call:start|>get_weather
    <|tool_arg:start|>city<|tool_arg:value|>Paris<|tool_arg:end|>
    <|tool_call:end|>

The prompt opens the thinking. Seen in the field: a call inside thinking; a missing `<|tool_arg:end|>` or
`<|tool_call:end|>`. Source: the parsers of Upstage's vLLM and SGLang forks (`solar_open2`).
"""

from __future__ import annotations

from interlingua.parsing.dialect import Dialect, Span
from interlingua.parsing.shapes.framed_json.grammar import FramedJson
from interlingua.parsing.shapes.tagged_params.grammar import TaggedParams
from interlingua.parsing.shapes.tagged_params.tag import Tag

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
SOLAR_OPEN2 = Dialect(
    name="solar_open2",
    summary="Solar Open 2, Solar Pro 4: special tokens around each param",
    models=("*solar-open2*", "*solar-open-2*", "*solar-pro-4*", "*solar-pro4*"),
    shape=TaggedParams(
        call=Tag(open=("<|tool_call:start|>",), close=("<|tool_call:end|>",)),
        param=Tag(open=("<|tool_arg:start|>",), end=("<|tool_arg:value|>",), close=("<|tool_arg:end|>",)),
        call_gap="\n",
        param_gap="\n",
    ),
    thinking=(Span("<|think:start|>", "<|think:end|>"),),
    noise=("<|im:end|>", "<|im:start|>assistant", "<|im:start|>", "<|im:content|>", "<|endoftext|>"),
    trim="\n",
    lead="\n",
    sample="<|think:start|>Two cities.<|think:end|>Let me look.\n"
    "<|tool_call:start|>get_weather\n<|tool_arg:start|>city<|tool_arg:value|>Paris<|tool_arg:end|>\n"
    "<|tool_call:end|>\n<|tool_call:start|>get_weather\n"
    "<|tool_arg:start|>city<|tool_arg:value|>São Paulo<|tool_arg:end|>\n"
    "<|tool_arg:start|>days<|tool_arg:value|>3<|tool_arg:end|>\n<|tool_call:end|>",
)
