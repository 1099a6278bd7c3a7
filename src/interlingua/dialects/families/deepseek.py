"""DeepSeek V3 and R1 with their distills, and V3.1. Cogito v2.1 (Deep Cogito) uses the format of V3.

    <｜tool▁calls▁begin｜><｜tool▁call▁begin｜>function<｜tool▁sep｜>get_weather
    ```json
    {"city": "Paris"}
    ```<｜tool▁call▁end｜><｜tool▁calls▁end｜>                                                        (V3, R1)

    <｜tool▁calls▁begin｜><｜tool▁call▁begin｜>get_weather<｜tool▁sep｜>{"city": "Paris"}<｜tool▁call▁end｜>
    <｜tool▁calls▁end｜>                                               (V3.1; written on one line)

The markers are single tokens, with the full-width bar U+FF5C and the block U+2581. Distilled models, which learned them
as text, write look-alike characters. There are no ids. Seen in the field: no section; a section without
`tool▁call▁begin`; no fence; a fence without its newlines; each version's form from a model of the other version. The
prompt of R1 opens the thinking; that of V3.1 opens it, or opens and closes it.
"""

from __future__ import annotations

from interlingua.parsing.dialect import Dialect, Span
from interlingua.parsing.shapes.framed_json.grammar import FramedJson

LOOKS = (("｜", "▁"), ("｜", "_"), ("｜", " "), ("｜", r"\_"), ("|", "▁"), ("|", "_"))
"""Spellings of the bar and the block; the genuine ones first."""


def spelled(*markers: str) -> tuple[str, ...]:
    return tuple(marker.replace("｜", bar).replace("▁", block) for marker in markers for bar, block in LOOKS)


SECTIONS = (
    *map(Span, spelled("<｜tool▁calls▁begin｜>"), spelled("<｜tool▁calls▁end｜>")),
    Span("<｜tool▁calls｜>", ""),
)
OPEN = spelled("<｜tool▁call▁begin｜>")
TYPED_OPEN = spelled("<｜tool▁call▁begin｜>function<｜tool▁sep｜>", "function<｜tool▁sep｜>")
SEPARATOR = spelled("<｜tool▁sep｜>")
CLOSE = spelled("<｜tool▁call▁end｜>")
FENCES = (Span("\n```json", "```", inside="\n"), Span("```", "```"))
NOISE = ("<｜end▁of▁sentence｜>",)

V3 = Dialect(
    name="deepseek_v3",
    summary="DeepSeek V3, R1 and its distills: special tokens, JSON in a fence, no ids",
    models=(
        "deepseek*r1*",
        "*[/.]deepseek*r1*",
        "deepseek*v3",
        "*[/.]deepseek*v3",
        "deepseek*v3:*",
        "deepseek*v3-[!12v]*",
        "*/deepseek*v3-[!12v]*",
        "deepseek*v3-2[0-9]*",
        "deepseek/deepseek-chat",
        "*deepseek-v2.5*",
        "*cogito*671b*",
        "*cogito-2.1*",
        "*cogito-v2.1*",
    ),
    shape=FramedJson(
        open=TYPED_OPEN + OPEN,
        header=("{name}",),
        args=("", *SEPARATOR),
        close=CLOSE,
        sections=SECTIONS,
        fences=FENCES,
        between="\n",
    ),
    thinking=(Span("<think>", "</think>", inside="\n", after="\n\n"),),
    noise=NOISE,
    trim="\n",
    sample="<think>\nTwo cities.\n</think>\n\nLet me check.<｜tool▁calls▁begin｜>"
    '<｜tool▁call▁begin｜>function<｜tool▁sep｜>get_weather\n```json\n{"city": "Paris"}\n```<｜tool▁call▁end｜>\n'
    '<｜tool▁call▁begin｜>function<｜tool▁sep｜>get_weather\n```json\n{"city": "São Paulo"}\n```<｜tool▁call▁end｜>'
    "<｜tool▁calls▁end｜>",
)

V31 = Dialect(
    name="deepseek_v31",
    summary="DeepSeek V3.1: special tokens, no ids",
    models=("*deepseek*v3.1*", "*deepseek*v3p1*", "*deepseek*v3-1*", "*deepseek.v3-v1*", "*deepseek*v3.2-exp*"),
    shape=FramedJson(
        open=OPEN + TYPED_OPEN,
        header=("{name}",),
        args=SEPARATOR,
        close=CLOSE,
        sections=SECTIONS,
        fences=(Span("", ""), *FENCES),
    ),
    thinking=(Span("<think>", "</think>"),),
    noise=NOISE,
    sample="<think>Two cities.</think><｜tool▁calls▁begin｜>"
    '<｜tool▁call▁begin｜>get_weather<｜tool▁sep｜>{"city": "Paris"}<｜tool▁call▁end｜>'
    '<｜tool▁call▁begin｜>get_weather<｜tool▁sep｜>{"city": "São Paulo"}<｜tool▁call▁end｜>'
    "<｜tool▁calls▁end｜>",
)
