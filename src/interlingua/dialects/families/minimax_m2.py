"""MiniMax M2 to M2.7.

    <minimax:tool_call>
    <invoke name="get_weather">
    <parameter name="city">Paris</parameter>
    </invoke>
    </minimax:tool_call>

The outer pair is a token, the tags inside are ordinary text; quotes around names may be single or missing. Values are
written literally. The prompt opens the thinking. Seen in the field: an invoke without the wrapper, or in Claude's
`<function_calls>`.
"""

from __future__ import annotations

from interlingua.parsing.dialect import Dialect, Span
from interlingua.parsing.shapes.tagged_params.grammar import TaggedParams
from interlingua.parsing.shapes.tagged_params.tag import Tag

DIALECT = Dialect(
    name="minimax_m2",
    summary="MiniMax M2 to M2.7: XML-like tags",
    models=("*minimax-m2*",),
    shape=TaggedParams(
        call=Tag(open=("<invoke ",), attribute=("name",), end=(">",), close=("</invoke>",)),
        param=Tag(open=("<parameter ",), attribute=("name",), end=(">",), close=("</parameter>",)),
        sections=(
            Span("<minimax:tool_call>", "</minimax:tool_call>"),
            Span("<function_calls>", "</function_calls>"),
        ),
        call_gap="\n",
        param_gap="\n",
    ),
    thinking=(Span("<think>", "</think>", inside="\n", after="\n\n"),),
    noise=("[e~[",),
    special_tokens=False,
    trim="\n",
    lead="\n",
    sample="<think>\nTwo cities.\n</think>\n\nLet me look.\n<minimax:tool_call>\n"
    '<invoke name="get_weather">\n<parameter name="city">Paris</parameter>\n</invoke>\n'
    '<invoke name="get_weather">\n<parameter name="city">São Paulo</parameter>\n'
    '<parameter name="days">3</parameter>\n</invoke>\n</minimax:tool_call>',
)
