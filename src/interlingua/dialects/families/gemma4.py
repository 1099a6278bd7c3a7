"""Gemma 4, and FunctionGemma, which uses the same layout with other markers (Google).

    <|tool_call>call:get_weather{city:<|"|>Paris<|"|>,days:3}<tool_call|>
    <start_function_call>call:get_weather{city:<escape>Paris<escape>,days:<escape>3<escape>}<end_function_call>

The markers are single tokens, and so is the one around strings. Keys are bare, and the template sorts them. Thinking is
in `<|channel>thought … <channel|>`; its label may be missing. Seen in the field: strings without their opening quote
or without quotes; calls that a string quotes, which are data; plain `"` around strings; bare numbers where the schema
requires a string; missing closers. The quote token also occurs inside strings. It ends a string only before a param or
the end of the call; elsewhere it is read as `"`, with a finding.

FunctionGemma quotes every value. The schema determines the type; without a schema, JSON becomes a value.
"""

from __future__ import annotations

from interlingua.parsing.dialect import Dialect, Span
from interlingua.parsing.shapes.literals.grammar import Literals

GEMMA4 = Dialect(
    name="gemma4",
    summary="Gemma 4: special tokens, bare keys and a token for quotes",
    models=("*gemma-4-*", "*gemma4*", "*gemma-4", "*gemma-4[:n]*", "*diffusiongemma*"),
    shape=Literals(
        open="<|tool_call>",
        close="<tool_call|>",
        quote='<|"|>',
        words=("true", "false", "None"),
        in_order=True,
    ),
    thinking=(Span("<|channel>thought\n", "<channel|>"), Span("<|channel>", "<channel|>")),
    noise=("<|tool_response>", "<tool_response|>", "<turn|>", "<|turn>model\n", "<|turn>", "<eos>"),
    trim="\n",
    caveats="A string that contains the quote token followed by `,key:` is cut there. So is one that contains the end "
    "of a call and the start of the next one. If a string quotes half a call, the call is incomplete.",
    sample="<|channel>thought\nTwo cities.<channel|>Let me look."
    '<|tool_call>call:get_weather{city:<|"|>Paris<|"|>,unit:<|"|>c<|"|>}<tool_call|>'
    '<|tool_call>call:get_weather{city:<|"|>São Paulo<|"|>,days:3}<tool_call|>',
)

FUNCTIONGEMMA = Dialect(
    name="functiongemma",
    summary="FunctionGemma: like Gemma 4 with other tokens, all values quoted",
    models=("*functiongemma*",),
    shape=Literals(open="<start_function_call>", close="<end_function_call>", quote="<escape>", quoted="any"),
    noise=("<start_function_response>", "<end_function_response>", "<end_of_turn>", "<eos>"),
    caveats="All values are quoted: without a known schema, `3` is a number, even if the model meant a string.",
    sample="<start_function_call>call:get_weather{city:<escape>Paris<escape>,unit:<escape>c<escape>}<end_function_call>"
    "<start_function_call>call:get_weather{city:<escape>São Paulo<escape>,days:<escape>3<escape>}<end_function_call>",
)
