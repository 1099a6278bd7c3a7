"""GigaChat 3, 3.1 and 3.5 (Sber).

    <|message_sep|>

    function call<|role_sep|>
    {"name": "get_weather", "arguments": {"city": "Paris"}}

In GigaChat 3 a call is a message of its own, with the role `function call`. 3.1 has a token for that, and writes
`<|function_call|>{…}`. The templates support one call per turn.

GigaChat 3.5 writes DeepSeek's DSML with the token `｜GCML｜`, several calls per turn. The prompt opens its thinking.

    <｜GCML｜tool_calls>
    <｜GCML｜invoke name="get_weather">
    <｜GCML｜parameter name="city" string="true">Paris</｜GCML｜parameter>
    </｜GCML｜invoke>
    </｜GCML｜tool_calls>

Source for 3.5: its parsers in vLLM, SGLang and llama.cpp, and its chat template.
"""

from __future__ import annotations

from interlingua.dialects.families import dsml
from interlingua.parsing.dialect import Dialect, Span
from interlingua.parsing.shapes.json_envelope.grammar import JsonEnvelope

GIGACHAT3 = Dialect(
    name="gigachat3",
    summary="GigaChat 3: a call is a message of its own",
    models=("*gigachat3-*",),
    shape=JsonEnvelope(open=("<|message_sep|>\n\nfunction call<|role_sep|>", "function call<|role_sep|>"), lead="\n"),
    noise=("<|message_sep|>", "</s>"),
    sample="Let me look.<|message_sep|>\n\nfunction call<|role_sep|>\n"
    '{"name": "get_weather", "arguments": {"city": "Paris"}}<|message_sep|>\n\nfunction call<|role_sep|>\n'
    '{"name": "get_weather", "arguments": {"city": "São Paulo"}}',
)
GIGACHAT31 = Dialect(
    name="gigachat31",
    summary="GigaChat 3.1: the token <|function_call|> and an object",
    models=("*gigachat3.1*",),
    shape=JsonEnvelope(open=("<|function_call|>",)),
    noise=("<|message_sep|>", "</s>"),
    sample='Let me look.<|function_call|>{"name": "get_weather", "arguments": {"city": "Paris"}}'
    '<|function_call|>{"name": "get_weather", "arguments": {"city": "São Paulo"}}',
)
GCML = "｜GCML｜"
GIGACHAT35 = Dialect(
    name="gigachat35",
    summary="GigaChat 3.5: DSML with the token GCML",
    models=("*gigachat3.5*",),
    shape=dsml.dsml(("tool_calls",), (GCML,)),
    thinking=(Span("<think>", "</think>", after="\n\n"),),
    noise=("<|message_sep|>", "</s>"),
    trim="\n",
    lead="\n\n",
    caveats="A value is cut where it contains `</｜GCML｜parameter>` followed by text that can follow a param, or a "
    "line that opens another param of the tool. It is also cut where it contains the end of its call followed by "
    "text that can follow a call, or the start of a call of an offered tool.",
    sample="<think>Two cities.</think>\n\nLet me look.\n\n" + dsml.sample("tool_calls", GCML),
)
