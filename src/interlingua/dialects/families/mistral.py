"""Mistral with a tokenizer of version 11 or 13: Small 3.2; Devstral, Ministral 3, Magistral and their successors.

    [TOOL_CALLS]get_weather[CALL_ID]a1B2c3D4e[ARGS]{"city": "Paris"}          (v11)
    [TOOL_CALLS]get_weather[ARGS]{"city": "Paris"}                            (v13)

The markers are single tokens. Each call has its own opener and no closer, though some gateways add one. Ids are nine
letters and digits, and Mistral's servers reject any others. An early v11 form has nothing between name and arguments.
Both dialects parse all three forms, and the JSON array of older tokenizers, which is a dialect of its own.
"""

from __future__ import annotations

from interlingua.parsing.dialect import Dialect, Span
from interlingua.parsing.shapes.framed_json.grammar import FramedJson
from interlingua.parsing.shapes.json_envelope.grammar import JsonEnvelope

OPEN = ("[TOOL_CALLS]",)
ARGS = ("[ARGS]", "")
CLOSE = ("", "[/TOOL_CALLS]")
NOISE = ("</s>",)
ARRAY = JsonEnvelope(open=OPEN, close=("[/TOOL_CALLS]",), id_keys=("id",), write_close=False)
SAMPLE = (
    'Let me check both.[TOOL_CALLS]get_weather%s[ARGS]{"city": "Paris"}[TOOL_CALLS]get_weather%s[ARGS]{"city": "Oslo"}'
)

V11 = Dialect(
    name="mistral_v11",
    summary="Mistral Small 3.2: special tokens, ids from the model",
    models=(
        "*mistral-small-3.2*",
        "*mistral-small3.2*",
        "*mistral-small-3-2-*",
        "*mistral-small-2506*",
        "*magistral*250[67]*",
    ),
    shape=FramedJson(open=OPEN, header=("{name}[CALL_ID]{id}", "{name}"), args=ARGS, close=CLOSE, envelope=ARRAY),
    thinking=(Span("<think>", "</think>"), Span("[THINK]", "[/THINK]")),
    noise=NOISE,
    ids="nine",
    sample=SAMPLE % ("[CALL_ID]a1B2c3D4e", "[CALL_ID]f5G6h7I8j"),
)

V13 = Dialect(
    name="mistral_v13",
    summary="Devstral, Ministral 3, Magistral from 2509 on, Mistral Large 3: special tokens, no ids",
    models=(
        "*devstral*",
        "*ministral*",
        "*mistral-3-14b*",
        "*mistral-small-4*",
        "*mistral-small-2603*",
        "*mistral-small-latest*",
        "*magistral*",
        "*mistral-large-3*",
        "*mistral-large-2512*",
        "*mistral-large-latest*",
        "*mistral-medium*",
        "*codestral*",
        "*leanstral*",
    ),
    shape=FramedJson(open=OPEN, header=("{name}", "{name}[CALL_ID]{id}"), args=ARGS, close=CLOSE, envelope=ARRAY),
    thinking=(Span("[THINK]", "[/THINK]"), Span("<think>", "</think>")),
    noise=NOISE,
    ids="nine",
    sample="[THINK]Two cities.[/THINK]" + SAMPLE % ("", ""),
)
