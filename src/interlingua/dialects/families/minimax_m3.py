"""MiniMax M3.

    ]<]minimax[>[<tool_call>
    ]<]minimax[>[<invoke name="get_weather">]<]minimax[>[<city>Paris]<]minimax[>[</city>]<]minimax[>[</invoke>
    ]<]minimax[>[</tool_call>

Every tag follows the token `]<]minimax[>[`. A param's tag is its name; objects and arrays are trees of such tags, with
`item` as the tag of array elements. Leaf values have no types, an empty one may be `""` or `{}`, and params that are
null are omitted. A reply without thinking starts with `</mm:think>`. Seen in the field: a missing opening tag of the
first param.
"""

from __future__ import annotations

from interlingua.parsing.dialect import Dialect, Span
from interlingua.parsing.shapes.tagged_params.grammar import TaggedParams
from interlingua.parsing.shapes.tagged_params.tag import Tag

NS = "]<]minimax[>["

DIALECT = Dialect(
    name="minimax_m3",
    summary="MiniMax M3: trees of tags, each after a token",
    models=("*minimax-m3*",),
    shape=TaggedParams(
        call=Tag(open=(f"{NS}<invoke ",), attribute=("name",), end=(">",), close=(f"{NS}</invoke>",)),
        param=Tag(open=(f"{NS}<",), end=(">",), close=(f"{NS}</",)),
        sections=(Span(f"{NS}<tool_call>", f"{NS}</tool_call>"),),
        nested=True,
        call_gap="\n",
    ),
    thinking=(Span("<mm:think>", "</mm:think>"),),
    noise=("[e~[", NS),
    trim="\n",
    caveats="Leaf values have no types, and an empty one has no hint at all: without a known schema, `3` is a number "
    "and an empty value is an object.",
    sample=f"<mm:think>Two cities.</mm:think>Let me look.{NS}<tool_call>\n"
    f'{NS}<invoke name="get_weather">{NS}<city>Paris{NS}</city>{NS}</invoke>\n'
    f'{NS}<invoke name="get_weather">{NS}<city>São Paulo{NS}</city>{NS}<days>3{NS}</days>{NS}</invoke>\n'
    f"{NS}</tool_call>",
)
