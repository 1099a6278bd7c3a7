"""Command R7B, Command A and their successors (Cohere).

    <|START_THINKING|>Two cities.<|END_THINKING|><|START_ACTION|>[
        {"tool_call_id": "0", "tool_name": "get_weather", "parameters": {"city": "Paris"}}
    ]<|END_ACTION|>

All markers are tokens. Text has a span of its own, which newer models call TEXT. The `tool_call_id` counts the calls of
one turn and restarts in the next turn, so it is not used as an id.

Command R and R+ write ordinary text, `Action:` and a code block, and call `directly-answer` if they need no tool.
"""

from __future__ import annotations

from interlingua.parsing.dialect import Dialect, Span
from interlingua.parsing.shapes.json_envelope.grammar import JsonEnvelope

DIALECT = Dialect(
    name="cohere",
    summary="Command R7B, Command A: special tokens, an array of actions",
    models=("*command-r7b*", "*command-a", "*command-a[:-]*"),
    shape=JsonEnvelope(
        open=("<|START_ACTION|>",),
        close=("<|END_ACTION|>",),
        call='{"tool_call_id": "$number", "tool_name": $name, "parameters": $args}',
        together=True,
        lead="[\n    ",
        between=",\n    ",
        tail="\n]",
    ),
    thinking=(Span("<|START_THINKING|>", "<|END_THINKING|>"),),
    text=(Span("<|START_RESPONSE|>", "<|END_RESPONSE|>"), Span("<|START_TEXT|>", "<|END_TEXT|>")),
    noise=("<|END_OF_TURN_TOKEN|>", "<|START_OF_TURN_TOKEN|>", "<|CHATBOT_TOKEN|>"),
    sample="<|START_THINKING|>Two cities.<|END_THINKING|><|START_ACTION|>[\n"
    '    {"tool_call_id": "0", "tool_name": "get_weather", "parameters": {"city": "Paris"}},\n'
    '    {"tool_call_id": "1", "tool_name": "get_weather", "parameters": {"city": "São Paulo"}}\n'
    "]<|END_ACTION|>",
)
COMMAND_R_PLUS = Dialect(
    name="command_r_plus",
    summary="Command R and R+: Action: and an array in a code block",
    models=("*command-r", "*command-r[:-]*"),
    shape=JsonEnvelope(
        open=("Action:\n```json", "Action: ```json", "Action:```json"),
        fences=("```",),
        no_tools=("directly-answer", "directly_answer"),
        call='{\n        "tool_name": $name,\n        "parameters": $args\n    }',
        together=True,
        lead="\n[\n    ",
        between=",\n    ",
        tail="\n]",
    ),
    noise=("<|END_OF_TURN_TOKEN|>",),
    special_tokens=False,
    trim="\n",
    lead="\n",
    sample="Two cities.\nAction:\n```json\n[\n"
    '    {\n        "tool_name": "get_weather",\n        "parameters": {\n            "city": "Paris"\n        }\n'
    '    },\n    {\n        "tool_name": "get_weather",\n        "parameters": {\n            "city": "São Paulo"\n'
    "        }\n    }\n]```",
)
