"""openPangu (Huawei).

    [unused16]Two cities.[unused17][unused11][{"name": "get_weather", "arguments": {"city": "Paris"}}][unused12]

The markers are single tokens. Version 2 calls the same tokens `<|tool_call_start|>` and `<|tool_call_end|>`, and may
write `parameters` instead of `arguments`. `[unused10]` ends the turn. Source: the parsers of vLLM (`pangu`,
`openpangu_v2`), and programs that use the model.
"""

from __future__ import annotations

from interlingua.parsing.dialect import Dialect, Span
from interlingua.parsing.shapes.json_envelope.grammar import JsonEnvelope

DIALECT = Dialect(
    name="openpangu",
    summary="openPangu: an array between special tokens",
    models=("*openpangu*", "*pangu-pro*"),
    shape=JsonEnvelope(
        open=("[unused11]", "<|tool_call_start|>"),
        close=("[unused12]", "<|tool_call_end|>"),
        together=True,
        lead="[",
        between=", ",
        tail="]",
    ),
    thinking=(Span("[unused16]", "[unused17]"), Span("<think>", "</think>")),
    noise=("[unused10]", "[unused9]"),
    sample="[unused16]Two cities.[unused17]Let me look."
    '[unused11][{"name": "get_weather", "arguments": {"city": "Paris"}}, '
    '{"name": "get_weather", "arguments": {"city": "São Paulo", "days": 3}}][unused12]',
)
