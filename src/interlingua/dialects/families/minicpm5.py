"""MiniCPM5 (OpenBMB).

    <function name="get_weather"><param name="city">Paris</param></function>

A value with markup or line breaks is in `<![CDATA[…]]>`. Lists, dicts and constants are in Python's notation.
"""

from __future__ import annotations

from interlingua.parsing.dialect import Dialect, Span
from interlingua.parsing.shapes.tagged_params.grammar import TaggedParams
from interlingua.parsing.shapes.tagged_params.tag import Tag

DIALECT = Dialect(
    name="minicpm5",
    summary="MiniCPM5: tags with CDATA",
    models=("*minicpm5*",),
    shape=TaggedParams(
        call=Tag(open=("<function ",), attribute=("name",), end=(">",), close=("</function>",)),
        param=Tag(open=("<param ",), attribute=("name",), end=(">",), close=("</param>",)),
        quote=Span("<![CDATA[", "]]>"),
        call_gap="\n",
    ),
    thinking=(Span("<think>", "</think>", inside="\n", after="\n\n"),),
    noise=("<|im_end|>", "<|im_start|>", "<|im_start|>assistant"),
    special_tokens=False,
    trim="\n",
    lead="\n",
    sample="<think>\nTwo cities.\n</think>\n\nLet me look.\n"
    '<function name="get_weather"><param name="city">Paris</param></function>\n'
    '<function name="get_weather"><param name="city">São Paulo</param><param name="days">3</param></function>',
)
