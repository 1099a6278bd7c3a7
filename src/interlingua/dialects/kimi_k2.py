"""Kimi K2, K2-Thinking, K2.5 and their successors up to K2.7 (Moonshot AI).

    <think></think><|tool_calls_section_begin|><|tool_call_begin|>functions.get_weather:0<|tool_call_argument_begin|>
    {"city": "Paris"}<|tool_call_end|><|tool_calls_section_end|>          (written on one line)

The markers are single tokens. The header is the call's id, and the name is only in there: `functions.NAME:N`, with N
counting over the whole conversation. Seen in the field: the section inside thinking that is never closed; ids without
`functions.`, with underscores, from other vendors (`call_59ad`), or just the number; the singular `tool_call_section`;
missing closers; only the end of a call reaching the client. From K2.5 on the prompt opens the thinking.
"""

from __future__ import annotations

import re

from interlingua.dialect import Dialect, Span
from interlingua.reply import Call
from interlingua.shapes.framed_json import FramedJson
from interlingua.sink import Header
from interlingua.tools import Offer

PREFIX = "functions."
_UNDERSCORED = re.compile(r"functions_(.+)_\d+")
_NAMELESS = re.compile(r"(?:call|toolu|chatcmpl-tool)[_-].*|\d*")


def read_header(text: str, offer: Offer) -> Header:
    header = "".join(line.strip() for line in text.strip().splitlines())
    stem, colon, number = header.rpartition(":")
    numbered = bool(colon) and number.isdecimal()
    base = stem if numbered else header
    underscored = _UNDERSCORED.fullmatch(header)
    plain = underscored[1] if underscored else base.removeprefix(PREFIX)
    name = offer.pick((base, plain, header, header.removeprefix(PREFIX)))
    if name is None and plain.strip() and (numbered or not _NAMELESS.fullmatch(header)):
        name = plain
    id = header if numbered or underscored or name is None else None
    return Header(header, id or None, name)


def write_header(call: Call, number: int) -> str:
    own = read_header(call.id, Offer())
    return call.id if (own.id, own.name) == (call.id, call.name) else f"{PREFIX}{call.name}:{number}"


def first_openers(offer: Offer) -> tuple[str, ...]:
    return tuple(f"{prefix}{name}:" for name in offer.names for prefix in ("", PREFIX))


DIALECT = Dialect(
    name="kimi_k2",
    summary="Kimi K2, K2-Thinking, K2.5 to K2.7: special tokens, ids from the model",
    models=("*kimi*k2*", "*kimi-linear*", "*kimi-for-coding*", "*kimi-latest*", "*kimi-thinking*", "kimi"),
    shape=FramedJson(
        open=("<|tool_call_begin|>",),
        args=("<|tool_call_argument_begin|>",),
        close=("<|tool_call_end|>",),
        sections=(
            Span("<|tool_calls_section_begin|>", "<|tool_calls_section_end|>"),
            Span("<|tool_call_section_begin|>", "<|tool_call_section_end|>"),
        ),
        read_header=read_header,
        write_header=write_header,
        first_openers=first_openers,
    ),
    thinking=(
        Span("<think>", "</think>"),
        Span("◁think▷", "◁/think▷"),
        Span("<redacted_thinking>", "</redacted_thinking>"),
    ),
    noise=("<|im_end|>",),
    sample="<think>Two cities.</think><|tool_calls_section_begin|><|tool_call_begin|>functions.get_weather:0"
    '<|tool_call_argument_begin|>{"city": "Paris"}<|tool_call_end|><|tool_call_begin|>functions.get_weather:1'
    '<|tool_call_argument_begin|>{"city": "São Paulo"}<|tool_call_end|><|tool_calls_section_end|>',
)
