"""RWKV-7 (RWKV Foundation).

    **Tool Call:**
    ```json
    {"name": "get_weather", "arguments": {"city": "Paris"}}
    ```

All of it is ordinary text, so only calls of offered tools become calls. Source: the parser of vLLM (`rwkv`).
"""

from __future__ import annotations

from interlingua.parsing.dialect import Dialect, Span
from interlingua.parsing.shapes.json_envelope.grammar import JsonEnvelope

HEADING = "**Tool Call:**"

DIALECT = Dialect(
    name="rwkv",
    summary="RWKV-7: a heading and an object in a code block",
    models=("*rwkv7*", "*rwkv-7*"),
    shape=JsonEnvelope(
        open=(f"{HEADING}\n```json", f"{HEADING}\n\n```json", f"{HEADING} ```json", f"{HEADING}```json"),
        fences=("```",),
        lead="\n",
        between="\n",
        tail="\n",
    ),
    thinking=(Span("<think>", "</think>", inside="\n", after="\n\n"),),
    special_tokens=False,
    trim="\n",
    lead="\n",
    sample="<think>\nTwo cities.\n</think>\n\nLet me look.\n"
    '**Tool Call:**\n```json\n{"name": "get_weather", "arguments": {"city": "Paris"}}\n```\n'
    '**Tool Call:**\n```json\n{"name": "get_weather", "arguments": {"city": "São Paulo", "days": 3}}\n```',
)
