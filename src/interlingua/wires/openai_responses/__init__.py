"""OpenAI Responses wire: reads and writes requests, streams and whole bodies.

Reading: `event_reader` reads stream events, `item_reader` the output items in them, `item_state` holds the state of
each item. Writing: `emitter` writes stream events, `output_items` the items in them, `response_object` and
`request_echo` the fields of a response but its items. `event_types` holds the constants that both sides share.
`custom_tool_text` extracts the text of custom tools from function arguments.
"""

from interlingua.core.options import Options
from interlingua.core.tools import ToolSet
from interlingua.core.wire_traits import WireTraits
from interlingua.wires.base import TurnCodec
from interlingua.wires.openai_responses.body import is_body, read_body, write_body
from interlingua.wires.openai_responses.emitter import ResponsesEmitter
from interlingua.wires.openai_responses.event_reader import ResponsesReader
from interlingua.wires.openai_responses.event_types import NAME
from interlingua.wires.openai_responses.http_api import API_DESCRIPTION, HTTP_API
from interlingua.wires.openai_responses.reasoning_fields import REASONING_FIELDS
from interlingua.wires.openai_responses.request_echo import echo_request
from interlingua.wires.openai_responses.request_reader import is_from_model, is_system_prompt, read_request, read_turns
from interlingua.wires.openai_responses.request_writer import write_request, write_turns

__all__ = [
    "API_DESCRIPTION",
    "ECHO_REQUEST",
    "HTTP_API",
    "NAME",
    "REASONING_FIELDS",
    "SINGLE_CHOICE",
    "TRAITS",
    "TURNS",
    "emitter",
    "is_body",
    "read_body",
    "read_request",
    "reader",
    "write_body",
    "write_request",
]

ECHO_REQUEST = echo_request
SINGLE_CHOICE = True
TRAITS = WireTraits(
    wire=NAME, conversation_field="input", has_stop_sequences=False, has_allowed_tools=True, thinking_control="effort"
)
TURNS = TurnCodec(
    is_from_model=is_from_model,
    is_system_prompt=is_system_prompt,
    read=read_turns,
    write=write_turns,
    depends_on_tools=True,
)


def reader(options: Options) -> ResponsesReader:
    return ResponsesReader(options.limits, options.arguments)


def emitter(options: Options, tool_set: ToolSet) -> ResponsesEmitter:
    return ResponsesEmitter(options, tool_set)
