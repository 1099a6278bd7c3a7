"""OpenAI Responses: requests, streams and whole bodies, read and written.

`reader` and `emitter` are mirror images: `incoming` are items as upstreams send them, with `heard` for what is kept of
them, `items` as clients get them, and `words` what both know of them. `freeform` is the text of custom tools.
"""

from interlingua.core.options import Limits, Options
from interlingua.core.tools import ToolSet
from interlingua.wires.openai_responses.body import is_body, read_body, write_body
from interlingua.wires.openai_responses.emitter import ResponsesEmitter
from interlingua.wires.openai_responses.event_reader import ResponsesReader
from interlingua.wires.openai_responses.event_types import NAME
from interlingua.wires.openai_responses.request_reader import read_request
from interlingua.wires.openai_responses.request_writer import write_request

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


def reader(limits: Limits) -> ResponsesReader:
    return ResponsesReader(limits)


def emitter(options: Options, tool_set: ToolSet) -> ResponsesEmitter:
    return ResponsesEmitter(options, tool_set)
