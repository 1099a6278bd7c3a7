"""Anthropic Messages wire: reads and writes requests, streams and complete messages.

`event_reader` and `emitter` are inverses of each other. `content_blocks` repairs malformed blocks, `tool_input` merges
arguments that arrive twice, `message_writer` keeps the frames in a valid order, and `objects` has the objects that
streams and complete messages share.
"""

from interlingua.core.options import Limits, Options
from interlingua.core.tools import ToolSet
from interlingua.wires.anthropic_messages.body import is_body, read_body, write_body
from interlingua.wires.anthropic_messages.emitter import MessagesEmitter
from interlingua.wires.anthropic_messages.event_reader import NAME, MessagesReader
from interlingua.wires.anthropic_messages.http_api import HTTP_API
from interlingua.wires.anthropic_messages.request_reader import read_request
from interlingua.wires.anthropic_messages.request_writer import write_request

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

SINGLE_CHOICE = True


def reader(limits: Limits) -> MessagesReader:
    return MessagesReader(limits)


def emitter(options: Options, tool_set: ToolSet) -> MessagesEmitter:  # noqa: ARG001 (this wire treats all tools alike)
    return MessagesEmitter(options)
