"""DeepSeek V3.1.

    <｜tool▁calls▁begin｜><｜tool▁call▁begin｜>get_weather<｜tool▁sep｜>{"city": "Paris"}<｜tool▁call▁end｜>
    <｜tool▁calls▁end｜>                                                  (written on one line)

The markers are single tokens, with the full-width bar U+FF5C and the block U+2581. The header is the name; there is no
id. The prompt opens the thinking, or opens and closes it.
"""

from __future__ import annotations

from interlingua.dialect import Dialect, Span
from interlingua.reply import Call
from interlingua.shapes.framed_json import FramedJson
from interlingua.sink import Header
from interlingua.tools import Offer


def read_header(text: str, _: Offer) -> Header:
    name = text.strip()
    return Header(name, None, name or None)


def write_header(call: Call, _: int) -> str:
    return call.name


DIALECT = Dialect(
    name="deepseek_v31",
    summary="DeepSeek V3.1: special tokens, no ids",
    models=("*deepseek*v3.1*", "*deepseek*v3p1*", "*deepseek*v3-1*", "*deepseek*v3_1*"),
    shape=FramedJson(
        open=("<｜tool▁call▁begin｜>",),
        args=("<｜tool▁sep｜>",),
        close=("<｜tool▁call▁end｜>",),
        sections=(Span("<｜tool▁calls▁begin｜>", "<｜tool▁calls▁end｜>"),),
        read_header=read_header,
        write_header=write_header,
    ),
    thinking=(Span("<think>", "</think>"),),
    noise=("<｜end▁of▁sentence｜>",),
    sample="<think>Two cities.</think><｜tool▁calls▁begin｜>"
    '<｜tool▁call▁begin｜>get_weather<｜tool▁sep｜>{"city": "Paris"}<｜tool▁call▁end｜>'
    '<｜tool▁call▁begin｜>get_weather<｜tool▁sep｜>{"city": "São Paulo"}<｜tool▁call▁end｜>'
    "<｜tool▁calls▁end｜>",
)
