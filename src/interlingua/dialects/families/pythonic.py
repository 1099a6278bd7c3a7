"""Python calls without markers: Llama 4, ToolACE and others whose prompt asks for it.

    [get_weather(city="Paris", unit="c"), get_weather(city="São Paulo", days=3)]

The whole reply is a list of calls, or the list is in `<|python_start|>…<|python_end|>`. Text before and after it is
kept. Values are Python or JSON literals. Everything is ordinary text. If the tools are known, only offered tools are
called; a list in the middle of a text, or with unknown tools, is accepted only when it is complete.

Llama 4's template puts every value in quotes, and does not escape quotes inside. So a string is converted, without a
finding, if the schema requires another type; and a quote ends a string only before `, key=`, or before `)` and text
that can follow a call. A value that contains exactly this is cut there: the format is ambiguous. Sometimes Llama 4
writes its calls as JSON, like Llama 3: these are parsed, too.
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
    caveats="Quotes inside strings are not escaped: a string is cut where it contains a quote followed by `, key=`, "
    "or by `)` and text that can follow a call. A list of calls of offered tools is treated as calls, "
    "even if the answer quotes it without back-ticks.",
    sample='[get_weather(city="Paris", unit="c"), get_weather(city="São Paulo", days=3)]',
)
