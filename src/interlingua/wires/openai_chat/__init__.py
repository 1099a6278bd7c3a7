"""OpenAI Chat Completions: requests, chunks and whole bodies, read and written.

`reader` and `emitter` are mirror images; `calls` mends the tool calls that upstreams send half right, `custom` knows
those that take text.
"""

from interlingua.core.options import Limits, Options
from interlingua.core.tools import ToolSet
from interlingua.wires.openai_chat.body import is_body, read_body, write_body
from interlingua.wires.openai_chat.chunk_reader import NAME, ChatReader
from interlingua.wires.openai_chat.emitter import ChatEmitter
from interlingua.wires.openai_chat.request_reader import read_request
from interlingua.wires.openai_chat.request_writer import write_request

__all__ = [
    "NAME",
    "SINGLE_CHOICE",
    "emitter",
    "is_body",
    "read_body",
    "read_request",
    "reader",
    "write_body",
    "write_request",
]

SINGLE_CHOICE = False


def reader(limits: Limits) -> ChatReader:
    return ChatReader(limits)


def emitter(options: Options, tool_set: ToolSet) -> ChatEmitter:  # noqa: ARG001 (all tools are alike here)
    return ChatEmitter(options)
