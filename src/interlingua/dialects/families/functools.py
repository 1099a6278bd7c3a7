"""Firefunction v2 (Fireworks) and, in some builds, Phi-4-mini (Microsoft).

     functools[{"name": "get_weather", "arguments": {"city": "Paris"}}]

The word `functools` is ordinary text, with a space before it. Phi-4-mini's own template writes only the objects,
separated by a comma.
"""

from __future__ import annotations

from interlingua.parsing.dialect import Dialect
from interlingua.parsing.shapes.json_envelope.grammar import JsonEnvelope

DIALECT = Dialect(
    name="functools",
    summary="Firefunction v2: the word functools and an array",
    models=("*firefunction*",),
    shape=JsonEnvelope(
        open=(" functools[", "functools[", " functools{", "functools{"), together=True, between=", ", tail="]"
    ),
    noise=("<|eot_id|>",),
    special_tokens=False,
    sample='Let me look. functools[{"name": "get_weather", "arguments": {"city": "Paris"}}, '
    '{"name": "get_weather", "arguments": {"city": "São Paulo"}}]',
)
PHI4 = Dialect(
    name="phi4",
    summary="Phi-4-mini: JSON objects without markers",
    models=("*phi-4-mini*", "*phi4-mini*"),
    shape=JsonEnvelope(
        open=("<|tool_call|>", "functools[", "functools{"),
        close=("<|/tool_call|>",),
        bare=True,
        together=True,
        between=",",
    ),
    noise=("<|end|>",),
    special_tokens=False,
    lead="\n",
    caveats="JSON with a tool's name and arguments at the start of the answer or of a line is always a call, even if "
    "the model meant it as text. In the middle of a line it is a call only if nothing but calls follows it.",
    sample='{"name": "get_weather", "arguments": {"city": "Paris"}},'
    '{"name": "get_weather", "arguments": {"city": "São Paulo"}}',
)
