"""Python calls without markers: Llama 4, ToolACE and others whose prompt asks for it.

    [get_weather(city="Paris", unit="c"), get_weather(city="São Paulo", days=3)]

The whole reply is a list of calls, or it stands in `<|python_start|>…<|python_end|>`. Text before and after it is kept.
Values are literals of Python or JSON. All of this is ordinary text. Where tools are known, only those on offer are
called; a list in the middle of a text, or where tools are not known, counts once it has come to its end.

Llama 4's template puts every value in quotes, and does not escape quotes inside. So a string that the schema wants to
be something else is converted, without a finding; and a quote ends a string only before `, key=`, or before `)` and
what may follow a call. A value that holds just that is cut there: nobody can tell. Now and then Llama 4 writes its
calls as JSON, like Llama 3: these are read too.
"""

from __future__ import annotations

from interlingua.parsing.dialect import Dialect, Span
from interlingua.parsing.shapes.json_envelope.grammar import JsonEnvelope
from interlingua.parsing.shapes.literals.pythonic_grammar import Pythonic

DIALECT = Dialect(
    name="pythonic",
    summary="Llama 4, ToolACE: a list of Python calls, ordinary text",
    models=("*llama-4-*", "*llama4*", "*toolace*"),
    shape=Pythonic(
        sections=(Span("<|python_start|>", "<|python_end|>"), Span("<|python_tag|>", "<|python_end|>")),
        bare=True,
        escaped=False,
        quoted="typed",
        envelope=JsonEnvelope(open=("<|python_start|>", "<|python_tag|>"), close=("<|python_end|>",), bare=True),
    ),
    noise=("<|eot|>", "<|eom|>", "<|eot_id|>", "<|eom_id|>"),
    special_tokens=False,
    caveats="Quotes inside strings are not escaped: a string that holds a quote and then `, key=`, or `)` and what "
    "may follow a call, is cut there. A list of calls to offered tools is called, be it quoted in an answer.",
    sample='[get_weather(city="Paris", unit="c"), get_weather(city="São Paulo", days=3)]',
)
