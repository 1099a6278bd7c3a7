"""PLaMo 3 (Preferred Networks).

    <|plamo:begin_tool_requests:plamo|><|plamo:begin_tool_request:plamo|><|plamo:begin_tool_name:plamo|>get_weather
    <|plamo:end_tool_name:plamo|><|plamo:begin_tool_arguments:plamo|><|plamo:constrain|>json<|plamo:msg|>
    {"city": "Paris"}<|plamo:end_tool_arguments:plamo|><|plamo:end_tool_request:plamo|>
    <|plamo:end_tool_requests:plamo|>                                                      (written on one line)

Each marker consists of a few tokens. There are no ids. The prompt opens the thinking, and `<|plamo:tag|>` ends the
turn. Some servers drop `<|plamo:constrain|>json`. Source: the parser of vLLM (`plamo3`), and clients of the hosted
model.
"""

from __future__ import annotations

from interlingua.parsing.dialect import Dialect, Span
from interlingua.parsing.shapes.framed_json.grammar import FramedJson


def begin(name: str) -> str:
    return f"<|plamo:begin_{name}:plamo|>"


def end(name: str) -> str:
    return f"<|plamo:end_{name}:plamo|>"


CONSTRAIN, MESSAGE = "<|plamo:constrain|>json", "<|plamo:msg|>"
CALL_OPEN = begin("tool_request") + begin("tool_name")
ARGUMENTS_OPEN = end("tool_name") + begin("tool_arguments")
CALL_CLOSE = end("tool_arguments") + end("tool_request")

DIALECT = Dialect(
    name="plamo3",
    summary="PLaMo 3: special tokens around the name and around JSON",
    models=("*plamo-3*", "*plamo3*"),
    shape=FramedJson(
        open=(CALL_OPEN, begin("tool_name"), begin("tool_request")),
        header=("{name}",),
        args=(
            ARGUMENTS_OPEN + CONSTRAIN + MESSAGE,
            ARGUMENTS_OPEN + MESSAGE,
            ARGUMENTS_OPEN,
            end("tool_name"),
        ),
        close=(CALL_CLOSE, end("tool_request"), end("tool_arguments")),
        sections=(Span(begin("tool_requests"), end("tool_requests")),),
    ),
    thinking=(Span(begin("think"), end("think")),),
    noise=("<|plamo:tag|>",),
    trim="\n",
    sample=f"{begin('think')}Two cities.{end('think')}Let me look.{begin('tool_requests')}"
    f'{CALL_OPEN}get_weather{ARGUMENTS_OPEN}{CONSTRAIN}{MESSAGE}{{"city": "Paris"}}{CALL_CLOSE}'
    f'{CALL_OPEN}get_weather{ARGUMENTS_OPEN}{CONSTRAIN}{MESSAGE}{{"city": "São Paulo", "days": 3}}{CALL_CLOSE}'
    f"{end('tool_requests')}",
)
