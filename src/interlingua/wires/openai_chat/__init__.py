"""OpenAI Chat Completions: requests, chunks and whole bodies, read and written.

`reader` and `emitter` are mirror images; `calls` mends the tool calls that upstreams send half right, `custom` knows
those that take text.
"""

from interlingua.core.options import Options
from interlingua.core.options__limits import Limits
from interlingua.core.tools import Offer
from interlingua.wires.openai_chat.body import is_body, read_body, write_body
from interlingua.wires.openai_chat.chunk_reader import NAME, Reader
from interlingua.wires.openai_chat.emitter import Emitter
from interlingua.wires.openai_chat.request_reader import read_request
from interlingua.wires.openai_chat.request_writer import write_request

__all__ = [
    "NAME",
    "SINGLE",
    "emitter",
    "is_body",
    "read_body",
    "read_request",
    "reader",
    "write_body",
    "write_request",
]

SINGLE = False


def reader(limits: Limits) -> Reader:
    return Reader(limits)


def emitter(options: Options, offer: Offer) -> Emitter:  # noqa: ARG001 (all tools are alike here)
    return Emitter(options)
