"""GigaChat 3 and 3.1 (Sber). GigaChat 3.5 uses the DSML format.

    <|message_sep|>

    function call<|role_sep|>
    {"name": "get_weather", "arguments": {"city": "Paris"}}

In GigaChat 3 a call is a message of its own, with the role `function call`. 3.1 has a token for that, and writes
`<|function_call|>{…}`. The templates support one call per turn.
"""

from __future__ import annotations

from interlingua.parsing.dialect import Dialect
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
