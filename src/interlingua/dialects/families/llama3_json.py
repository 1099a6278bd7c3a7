"""Llama 3.1, 3.2 and 3.3 (Meta), and Llama 4 where it is asked for JSON.

    {"name": "get_weather", "parameters": {"city": "Paris"}}

The object is the whole reply, mostly: there is nothing before it but, now and then, the token `<|python_tag|>`. So an
answer that is JSON looks much the same. It is a call if a text begins with it and it has a tool's name and arguments;
further down only if it has a line to itself. Several calls have `; ` between them, or nothing.
"""

from __future__ import annotations

from interlingua.parsing.dialect import Dialect
from interlingua.parsing.shapes.json_envelope.grammar import JsonEnvelope

DIALECT = Dialect(
    name="llama3_json",
    summary="Llama 3.1 to 3.3: a JSON object without markers",
    models=("*llama-3.[123]*", "*llama3.[123]*", "*llama3-[123]-*", "*llama-v3p[123]*"),
    shape=JsonEnvelope(
        open=("<|python_tag|>",),
        bare=True,
        call='{"name": $name, "parameters": $args}',
        together=True,
        between="; ",
    ),
    noise=("<|eom_id|>", "<|eot_id|>", "<|eot|>"),
    special_tokens=False,
    lead="\n",
    caveats="JSON with a tool's name and arguments is a call where the answer, or a line of it, begins with it, "
    "whatever it was meant as. In the middle of a line it is text.",
    sample='{"name": "get_weather", "parameters": {"city": "Paris"}}; '
    '{"name": "get_weather", "parameters": {"city": "São Paulo"}}',
)
