"""Anthropic Messages: requests, streams and whole messages, read and written.

`reader` and `emitter` are mirror images. `blocks` mends what upstreams send half right, `inputs` arguments that come
twice; `frames` keeps what goes out in order; `objects` is what streams and whole messages share.
"""

from interlingua.core.options import Limits, Options
from interlingua.core.tools import ToolSet
from interlingua.wires.anthropic_messages.body import is_body, read_body, write_body
from interlingua.wires.anthropic_messages.emitter import MessagesEmitter
from interlingua.wires.anthropic_messages.event_reader import NAME, MessagesReader
from interlingua.wires.anthropic_messages.request_reader import read_request
from interlingua.wires.anthropic_messages.request_writer import write_request

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

SINGLE_CHOICE = True


def reader(limits: Limits) -> MessagesReader:
    return MessagesReader(limits)


def emitter(options: Options, tool_set: ToolSet) -> MessagesEmitter:  # noqa: ARG001 (all tools are alike here)
    return MessagesEmitter(options)
