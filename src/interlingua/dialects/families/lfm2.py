"""LFM2 and LFM2.5 (Liquid AI).

    <|tool_call_start|>[get_weather(city='Paris', unit='c'), get_weather(city='São Paulo', days=3)]<|tool_call_end|>

The markers are single tokens, with a list of Python calls between them, or a JSON list of names and arguments if the
prompt asks for it. Text follows the block. Servers that drop special tokens leave the bare list: at the start of a text
it is parsed, too, for offered tools.

The template does not escape quotes inside strings. So a quote ends a string only before `, key=`, or before `)` and
text that can follow a call. A value that contains exactly this is cut there: the format is ambiguous.
"""

from __future__ import annotations

from interlingua.parsing.dialect import Dialect, Span
from interlingua.parsing.shapes.json_envelope.grammar import JsonEnvelope
from interlingua.parsing.shapes.literals.pythonic_grammar import Pythonic

DIALECT = Dialect(
    name="lfm2",
    summary="LFM2, LFM2.5: a list of Python calls between special tokens",
    models=("*lfm2*", "*lfm-2*"),
    shape=Pythonic(
        sections=(Span("<|tool_call_start|>", "<|tool_call_end|>"),),
        quote="'",
        escaped=False,
        envelope=JsonEnvelope(open=("<|tool_call_start|>",), close=("<|tool_call_end|>",)),
    ),
    thinking=(Span("<think>", "</think>"),),
    noise=("<|im_end|>", "<|im_start|>", "<|im_start|>assistant", "<|endoftext|>"),
    caveats="Quotes inside strings are not escaped: a string is cut where it contains a quote followed by `, key=`, "
    "or by `)` and text that can follow a call.",
    sample="<think>Two cities.</think>"
    "<|tool_call_start|>[get_weather(city='Paris', unit='c'), get_weather(city='São Paulo', days=3)]<|tool_call_end|>"
    "Looking.",
)
