"""xLAM and xLAM 2 (Salesforce).

    [{"name": "get_weather", "arguments": {"city": "Paris"}}]

There are no markers. The array may be in a code block, after thinking, or after another family's marker.
"""

from __future__ import annotations

from interlingua.parsing.dialect import Dialect, Span
from interlingua.parsing.shapes.json_envelope.grammar import JsonEnvelope

DIALECT = Dialect(
    name="xlam",
    summary="xLAM: a JSON array without markers",
    models=("*xlam*",),
    shape=JsonEnvelope(
        open=("[TOOL_CALLS]", "<tool_call>"),
        close=("</tool_call>",),
        bare=True,
        together=True,
        lead="[",
        between=", ",
        tail="]",
    ),
    thinking=(Span("<think>", "</think>"),),
    noise=("<|eot_id|>", "<|im_end|>", "<|im_start|>", "<|im_start|>assistant"),
    special_tokens=False,
    trim="\n",
    lead="\n",
    caveats="JSON with a tool's name and arguments at the start of the answer or of a line is always a call, even if "
    "the model meant it as text. In the middle of a line it is a call only if nothing but calls follows it.",
    sample="<think>Two cities.</think>\n"
    '[{"name": "get_weather", "arguments": {"city": "Paris"}}, '
    '{"name": "get_weather", "arguments": {"city": "São Paulo"}}]',
)
