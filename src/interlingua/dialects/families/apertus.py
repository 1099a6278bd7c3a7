"""Apertus (Swiss AI).

    <|tools_prefix|>[{"get_weather": {"city": "Paris"}}]<|tools_suffix|>

All markers are tokens. The name is the only key of the call's object.
"""

from __future__ import annotations

from interlingua.parsing.dialect import Dialect, Span
from interlingua.parsing.shapes.json_envelope.grammar import JsonEnvelope

DIALECT = Dialect(
    name="apertus",
    summary="Apertus: special tokens, and the name is the object's key",
    models=("*apertus*",),
    shape=JsonEnvelope(
        open=("<|tools_prefix|>",),
        close=("<|tools_suffix|>",),
        args_keys=("arguments",),
        name_is_key=True,
        call="{$name: $args}",
        together=True,
        lead="[",
        between=", ",
        tail="]",
    ),
    thinking=(Span("<|inner_prefix|>", "<|inner_suffix|>"),),
    noise=("<|assistant_end|>",),
    sample="<|inner_prefix|>Two cities.<|inner_suffix|>Let me look."
    '<|tools_prefix|>[{"get_weather": {"city": "Paris"}}, {"get_weather": {"city": "São Paulo"}}]<|tools_suffix|>',
)
