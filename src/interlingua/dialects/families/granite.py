"""Granite 3.0 to 3.3 and Granite 20B function calling (IBM). Granite 4 uses the Hermes format.

    <|tool_call|>[{"name": "get_weather", "arguments": {"city": "Paris"}}]

There is no closer. Granite 3 writes the array over several lines, and starts its thinking and its answer with a phrase
each. Some builds write `<tool_call>` instead of the token. The 20B model writes `<function_call> {…}` for each call.
"""

from __future__ import annotations

from interlingua.parsing.dialect import Dialect, Span
from interlingua.parsing.shapes.json_envelope.grammar import JsonEnvelope

GRANITE3 = Dialect(
    name="granite3",
    summary="Granite 3: the token <|tool_call|> and an array",
    models=("*granite-3[.-]*", "*granite3*"),
    shape=JsonEnvelope(
        open=("<|tool_call|>", "<tool_call>"),
        close=("</tool_call>",),
        call='{\n        "name": $name,\n        "arguments": $args\n    }',
        together=True,
        lead="[\n    ",
        between=",\n    ",
        tail="\n]",
        write_close=False,
    ),
    thinking=(
        Span("Here is my thought process:", "Here is my response:", inside="\n", after="\n"),
        Span("<think>", "</think>"),
    ),
    text=(Span("", ""), Span("<response>", "</response>")),
    noise=("<|end_of_text|>",),
    trim="\n",
    caveats="`Here is my thought process:` and `Here is my response:` switch to thinking and back anywhere in a "
    "reply, and `<response>` is dropped.",
    sample="Here is my thought process:\nTwo cities.\nHere is my response:\n"
    '<|tool_call|>[\n    {\n        "name": "get_weather",\n        "arguments": {\n            "city": "Paris"\n'
    '        }\n    },\n    {\n        "name": "get_weather",\n        "arguments": {\n'
    '            "city": "São Paulo"\n        }\n    }\n]',
)
GRANITE_20B = Dialect(
    name="granite_20b_fc",
    summary="Granite 20B function calling: <function_call> and an object",
    models=("*granite-20b-function*",),
    shape=JsonEnvelope(open=("<function_call>",), lead=" ", between="\n"),
    noise=("<|endoftext|>",),
    special_tokens=False,
    trim="\n",
    lead="\n",
    sample='<function_call> {"name": "get_weather", "arguments": {"city": "Paris"}}\n'
    '<function_call> {"name": "get_weather", "arguments": {"city": "São Paulo"}}',
)
