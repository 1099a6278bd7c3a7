"""Command R7B, Command A and their successors (Cohere).

    <|START_THINKING|>Two cities.<|END_THINKING|><|START_ACTION|>[
        {"tool_call_id": "0", "tool_name": "get_weather", "parameters": {"city": "Paris"}}
    ]<|END_ACTION|>

All markers are tokens. Text has a span of its own, which newer models call TEXT. The `tool_call_id` counts the calls of
one turn and restarts in the next turn, so it is not used as an id.

Command R and R+ write ordinary text, `Action:` and a code block, and call `directly-answer` if they need no tool.

The notation that comes after these (`cmd5` in Cohere's library) has an element for each value:

    <cofl:tool_calls><cofl:tool_call id="0" name="search"><cofl:value name="query" type="raw">Sudan</cofl:value>
    <cofl:value name="tags" type="list"><cofl:value type="raw">music</cofl:value></cofl:value></cofl:tool_call>
    </cofl:tool_calls>                                                                       (written on one line)

`raw` is literal text, `json` a number, a boolean or null, and `dict` and `list` contain elements. The id counts the
calls of a turn. No released model is known to write it yet. Source: xgrammar's structural tag `cohere`, and Cohere's
parsing library melody.
"""

from __future__ import annotations

from interlingua.parsing.dialect import Dialect, Span
from interlingua.parsing.shapes.json_envelope.grammar import JsonEnvelope
from interlingua.parsing.shapes.tagged_params.grammar import TaggedParams
from interlingua.parsing.shapes.tagged_params.tag import Tag

THINKING = (Span("<|START_THINKING|>", "<|END_THINKING|>"),)
NOISE = ("<|END_OF_TURN_TOKEN|>", "<|START_OF_TURN_TOKEN|>", "<|CHATBOT_TOKEN|>")

DIALECT = Dialect(
    name="cohere",
    summary="Command R7B, Command A: special tokens, an array of actions",
    models=("*command-r7b*", "*command-a", "*command-a[:-]*", "*north-mini*"),
    shape=JsonEnvelope(
        open=("<|START_ACTION|>",),
        close=("<|END_ACTION|>",),
        call='{"tool_call_id": "$number", "tool_name": $name, "parameters": $args}',
        together=True,
        lead="[\n    ",
        between=",\n    ",
        tail="\n]",
    ),
    thinking=THINKING,
    text=(Span("<|START_RESPONSE|>", "<|END_RESPONSE|>"), Span("<|START_TEXT|>", "<|END_TEXT|>")),
    noise=NOISE,
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
COHERE_CMD5 = Dialect(
    name="cohere_cmd5",
    summary="Cohere's newer notation: an element with a type for each value",
    shape=TaggedParams(
        call=Tag(
            open=("<cofl:tool_call ", "< cofl:tool_call "),
            attribute=("name",),
            end=(">",),
            close=("</cofl:tool_call>", "</cofl:tool_call >", "</ cofl:tool_call>", "</ cofl:tool_call >"),
            escaped=True,
        ),
        param=Tag(
            open=("<cofl:value ", "< cofl:value "),
            attribute=("name",),
            end=(">",),
            close=("</cofl:value>", "</cofl:value >", "</ cofl:value>", "</ cofl:value >"),
            escaped=True,
        ),
        sections=(Span("<cofl:tool_calls>", "</cofl:tool_calls>"),),
        string_when="type=raw",
        nested_types=("dict", "list"),
        numbered="id",
        first_number=0,
        number_first=True,
        inside=DIALECT.shape,
    ),
    thinking=THINKING,
    text=(Span("<|START_TEXT|>", "<|END_TEXT|>"), Span("<|START_RESPONSE|>", "<|END_RESPONSE|>")),
    noise=NOISE,
    ordinary=("<cofl:", "</cofl:", "< cofl:", "</ cofl:"),
    sample="<|START_THINKING|>Two cities.<|END_THINKING|><|START_TEXT|>Let me look.<|END_TEXT|><cofl:tool_calls>"
    '<cofl:tool_call id="0" name="get_weather"><cofl:value name="city" type="raw">Paris</cofl:value></cofl:tool_call>'
    '<cofl:tool_call id="1" name="get_weather"><cofl:value name="city" type="raw">São Paulo</cofl:value>'
    '<cofl:value name="days" type="json">3</cofl:value><cofl:value name="units" type="list">'
    '<cofl:value type="raw">c</cofl:value></cofl:value></cofl:tool_call></cofl:tool_calls>',
)
