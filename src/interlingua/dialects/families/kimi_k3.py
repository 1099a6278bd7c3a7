"""Kimi K3 (Moonshot AI): XTML.

    <|open|>tools<|sep|><|open|>call tool="get_weather" index="1"<|sep|><|open|>argument key="city" type="string"<|sep|>
    Paris<|close|>argument<|sep|><|close|>call<|sep|><|close|>tools<|sep|><|close|>message<|sep|>     (on one line)

Three tokens form all structure; the tag names between them are text. The type is string or JSON; one element `json`
may contain all arguments. The index counts within the turn, so it is not used as an id. The prompt opens the thinking,
and text is in `response`. Seen in the field: proxies that drop tokens between `tools` and `call`.
"""

from __future__ import annotations

from interlingua.parsing.dialect import Dialect, Span
from interlingua.parsing.shapes.tagged_params.grammar import TaggedParams
from interlingua.parsing.shapes.tagged_params.tag import Tag

DIALECT = Dialect(
    name="kimi_k3",
    summary="Kimi K3: XTML, types in the text",
    models=("*kimi*k3*",),
    shape=TaggedParams(
        call=Tag(
            open=("<|open|>call ", "<|open|>toolscall "),
            attribute=("tool", "name"),
            end=("<|sep|>",),
            close=("<|close|>call<|sep|>",),
            escaped=True,
        ),
        param=Tag(
            open=("<|open|>argument ",),
            attribute=("key", "name"),
            end=("<|sep|>",),
            close=("<|close|>argument<|sep|>",),
            escaped=True,
        ),
        json=Tag(open=("<|open|>json",), end=("<|sep|>",), close=("<|close|>json<|sep|>",)),
        sections=(Span("<|open|>tools<|sep|>", "<|close|>tools<|sep|>"),),
        string_when="type=string",
        numbered="index",
    ),
    thinking=(Span("<|open|>think<|sep|>", "<|close|>think<|sep|>"),),
    text=(
        Span("<|open|>response<|sep|>", "<|close|>response<|sep|>"),
        Span("<|open|>message<|sep|>", "<|close|>message<|sep|>"),
    ),
    noise=("<|end_of_msg|>", "<|close|>toolsmessage<|sep|>", "<|open|>", "<|close|>", "<|sep|>"),
    sample="<|open|>think<|sep|>Two cities.<|close|>think<|sep|><|open|>response<|sep|>Let me look."
    '<|close|>response<|sep|><|open|>tools<|sep|><|open|>call tool="get_weather" index="1"<|sep|>'
    '<|open|>argument key="city" type="string"<|sep|>Paris<|close|>argument<|sep|><|close|>call<|sep|>'
    '<|open|>call tool="get_weather" index="2"<|sep|><|open|>argument key="city" type="string"<|sep|>São Paulo'
    '<|close|>argument<|sep|><|open|>argument key="days" type="number"<|sep|>3<|close|>argument<|sep|>'
    "<|close|>call<|sep|><|close|>tools<|sep|>",
)
