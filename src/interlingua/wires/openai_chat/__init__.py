"""OpenAI Chat Completions wire: reads and writes requests, chunks and complete bodies.

`chunk_reader` and `emitter` are inverses of each other. `tool_call_assembler` repairs the malformed tool calls of some
upstreams. `custom_tools` converts calls of custom tools, which take text.
"""

from interlingua.core.options import Options
from interlingua.core.tools import ToolSet
from interlingua.core.wire_traits import WireTraits
from interlingua.wires.base import TurnCodec
from interlingua.wires.openai_chat.body import is_body, read_body, write_body
from interlingua.wires.openai_chat.chunk_reader import NAME, ChatReader
from interlingua.wires.openai_chat.emitter import ChatEmitter
from interlingua.wires.openai_chat.http_api import API_DESCRIPTION, HTTP_API
from interlingua.wires.openai_chat.reasoning_fields import REASONING_FIELDS
from interlingua.wires.openai_chat.request_reader import is_from_model, is_system_prompt, read_request, read_turns
from interlingua.wires.openai_chat.request_writer import write_request, write_turns

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
SINGLE_CHOICE = False
TRAITS = WireTraits(
    wire=NAME,
    varies_by_server=True,
    has_allowed_tools=True,
    has_refusal_field=True,
    reports_usage_on_request=True,
    thinking_control="profile",
    accepts_unnamed_signatures=True,  # no vendor defines them
)
TURNS = TurnCodec(
    is_from_model=is_from_model,
    is_system_prompt=is_system_prompt,
    read=read_turns,
    write=write_turns,
)


def reader(options: Options) -> ChatReader:
    return ChatReader(options.limits, options.arguments)


def emitter(options: Options, tool_set: ToolSet) -> ChatEmitter:  # noqa: ARG001 (this wire treats all tools alike)
    return ChatEmitter(options)
