"""OpenAI Chat Completions wire: reads and writes requests, chunks and complete bodies.

`chunk_reader` and `emitter` are inverses of each other. `tool_call_deltas` repairs the malformed tool calls that some
upstreams send. `custom_tools` converts calls of custom tools, which take text.
"""

from interlingua.core.options import Limits, Options
from interlingua.core.tools import ToolSet
from interlingua.wires.openai_chat.body import is_body, read_body, write_body
from interlingua.wires.openai_chat.chunk_reader import NAME, ChatReader
from interlingua.wires.openai_chat.emitter import ChatEmitter
from interlingua.wires.openai_chat.http_api import HTTP_API
from interlingua.wires.openai_chat.request_reader import read_request
from interlingua.wires.openai_chat.request_writer import write_request

__all__ = [
    "HTTP_API",
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


def emitter(options: Options, tool_set: ToolSet) -> ChatEmitter:  # noqa: ARG001 (this wire treats all tools alike)
    return ChatEmitter(options)
