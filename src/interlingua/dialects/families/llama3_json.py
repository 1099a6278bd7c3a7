"""Llama 3.1, 3.2 and 3.3 (Meta), and Llama 4 if its prompt asks for JSON.

    {"name": "get_weather", "parameters": {"city": "Paris"}}

Usually the object is the whole reply; only the token `<|python_tag|>` sometimes precedes it. So an answer that is JSON
looks much the same. It is a call if the text starts with it and it contains a tool's name and arguments; later in the
text only if it is on a line of its own. Several calls are separated by `; `, or by nothing.
"""

from __future__ import annotations

from interlingua.parsing.dialect import Dialect
from interlingua.parsing.shapes.json_envelope.grammar import JsonEnvelope

DIALECT = Dialect(
    name="llama3_json",
    summary="Llama 3.1 to 3.3: a JSON object without markers",
    models=("*llama-3.[123]*", "*llama3.[123]*", "*llama3-[123]-*", "*llama-v3p[123]*", "*llama-3_[123]-*"),
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
    caveats="JSON with a tool's name and arguments at the start of the answer or of a line is always a call, even if "
    "the model meant it as text. In the middle of a line it is a call only if nothing but calls follows it.",
    sample='{"name": "get_weather", "parameters": {"city": "Paris"}}; '
    '{"name": "get_weather", "parameters": {"city": "São Paulo"}}',
)
