"""Mistral 7B v0.3, Nemo, Mixtral 8x22B, Large 2 and Small up to 3.1: the tokenizers v3 and v7.

    [TOOL_CALLS][{"name": "get_weather", "arguments": {"city": "Paris"}, "id": "VvvODy9mT"}]

The marker is one token. The id, if there is one, follows the arguments, so short arguments are buffered until it
arrives. It has nine letters and digits, and the servers accept no other ids back. Some gateways add `[/TOOL_CALLS]`.
"""

from __future__ import annotations

from interlingua.parsing.dialect import Dialect, Span
from interlingua.parsing.shapes.json_envelope.grammar import JsonEnvelope

DIALECT = Dialect(
    name="mistral_v3",
    summary="Mistral Nemo, 7B v0.3, Large 2, Small 3.1: [TOOL_CALLS] and an array, ids from the model",
    models=(
        "mistral",
        "mistral:7b*",
        "*mistral-7b-instruct-v0.3*",
        "*mistral-7b-instruct-v03*",
        "*mistral-nemo*",
        "*mixtral*8x22b*",
        "*mistralai/mistral-large",
        "*mistral-large*2407*",
        "*mistral-large*2411*",
        "*mistral-small*2501*",
        "mistral-small:*",
        "*mistral-small-3.1*",
        "*mistral-small3.1*",
        "*mistral-small-2503*",
        "*mistral-small-31-*",
        "*ministral*2410*",
        "*codestral-22b*",
        "*pixtral*",
    ),
    shape=JsonEnvelope(
        open=("[TOOL_CALLS]",),
        close=("[/TOOL_CALLS]",),
        id_keys=("id",),
        call='{"name": $name, "arguments": $args, "id": $id}',
        together=True,
        lead="[",
        between=", ",
        tail="]",
        write_close=False,
    ),
    thinking=(Span("<think>", "</think>", inside="\n", after="\n"),),
    noise=("</s>",),
    trim="\n",
    ids="nine",
    caveats="The id follows the arguments. Arguments longer than `Limits.header` are sent before the id arrives, and "
    "another id is generated for the call.",
    sample="<think>\nTwo cities.\n</think>\n"
    '[TOOL_CALLS][{"name": "get_weather", "arguments": {"city": "Paris"}, "id": "VvvODy9mT"}, '
    '{"name": "get_weather", "arguments": {"city": "São Paulo"}, "id": "abcdefgh1"}]',
)
