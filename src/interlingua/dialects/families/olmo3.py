"""Olmo 3 (Ai2).

    <function_calls>get_weather(city="Paris", unit="c")
    get_weather(city="São Paulo", days=3)</function_calls>

One call per line, with JSON values. The markers are ordinary text, so only offered tools are called. The prompt of the
thinking models opens the thinking. Seen in the field: a Python list of calls between the markers.
"""

from __future__ import annotations

from interlingua.parsing.dialect import Dialect, Span
from interlingua.parsing.shapes.literals.pythonic_grammar import Pythonic

DIALECT = Dialect(
    name="olmo3",
    summary="Olmo 3: Python calls, one per line, in tags of ordinary text",
    models=("*olmo-3[.:-]*",),
    shape=Pythonic(
        sections=(Span("<function_calls>", "</function_calls>"),), lines=True, words=("true", "false", "null")
    ),
    thinking=(Span("<think>", "</think>"),),
    noise=("<|im_end|>", "<|im_start|>", "<|im_start|>assistant", "<|endoftext|>"),
    special_tokens=False,
    sample='<think>Two cities.</think>Let me look.<function_calls>get_weather(city="Paris", unit="c")\n'
    'get_weather(city="São Paulo", days=3)</function_calls>',
)
