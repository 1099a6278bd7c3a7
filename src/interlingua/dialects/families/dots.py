"""dots (rednote).

    <dots_function_call><invoke name="get_weather"><parameter name="city">Paris</parameter></invoke>
    </dots_function_call>                                                                     (on one line)

An invoke may contain one JSON object instead of params.
"""

from __future__ import annotations

from interlingua.parsing.dialect import Dialect, Span
from interlingua.parsing.shapes.tagged_params.grammar import TaggedParams
from interlingua.parsing.shapes.tagged_params.tag import Tag

DIALECT = Dialect(
    name="dots",
    summary="dots: tags in a wrapper of its own",
    models=("*dots3*", "*dots.llm*"),
    shape=TaggedParams(
        call=Tag(open=("<invoke ",), attribute=("name",), end=(">",), close=("</invoke>",)),
        param=Tag(open=("<parameter ",), attribute=("name",), end=(">",), close=("</parameter>",)),
        sections=(Span("<dots_function_call>", "</dots_function_call>"),),
    ),
    thinking=(Span("<think>", "</think>"),),
    special_tokens=False,
    trim="\n",
    sample='<think>One city.</think>Let me look.<dots_function_call><invoke name="get_weather">'
    '<parameter name="city">Paris</parameter></invoke></dots_function_call>',
)
