"""Anthropic Messages wire: reads and writes requests, streams and complete messages.

`event_reader` and `emitter` are inverses of each other. `content_blocks` repairs malformed blocks, `tool_input` merges
arguments that arrive twice, `message_writer` keeps the frames in a valid order, and `objects` has the objects that
streams and complete messages share.
"""

from interlingua.core.options import Options
from interlingua.core.tools import ToolSet
from interlingua.core.wire_traits import WireTraits
from interlingua.wires.anthropic_messages.body import is_body, read_body, write_body
from interlingua.wires.anthropic_messages.emitter import MessagesEmitter
from interlingua.wires.anthropic_messages.event_reader import NAME, MessagesReader
from interlingua.wires.anthropic_messages.http_api import API_DESCRIPTION, HTTP_API
from interlingua.wires.anthropic_messages.reasoning_fields import REASONING_FIELDS
from interlingua.wires.anthropic_messages.request_reader import (
    is_from_model,
    is_system_prompt,
    read_request,
    read_turns,
)
from interlingua.wires.anthropic_messages.request_writer import write_request, write_turns
from interlingua.wires.base import TurnCodec

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

ECHO_REQUEST = None
SINGLE_CHOICE = True
TRAITS = WireTraits(
    wire=NAME,
    requires_max_tokens=True,
    has_tool_references=True,
    requires_message=True,  # the system prompt is not a message
    accepts_blank_text=False,
    has_own_call_ids=True,
    reports_input_first=True,
    thinking_control="budget",
    min_thinking_budget=1024,
    has_effort_without_thinking=True,
    clear_thinking_edit="clear_thinking_20251015",
    rejects_foreign_thinking=True,
)
TURNS = TurnCodec(
    is_from_model=is_from_model,
    is_system_prompt=is_system_prompt,
    read=read_turns,
    write=write_turns,
)


def reader(options: Options) -> MessagesReader:
    return MessagesReader(options.limits, options.arguments)


def emitter(options: Options, tool_set: ToolSet) -> MessagesEmitter:  # noqa: ARG001 (this wire treats all tools alike)
    return MessagesEmitter(options)
