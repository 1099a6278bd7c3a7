"""OpenAI Chat Completions: chunks and whole bodies, read and written.

`reader` and `emitter` are mirror images; `calls` mends the tool calls that upstreams send half right.
"""

from interlingua.wire.openai_chat.body import read_body, write_body
from interlingua.wire.openai_chat.emitter import Emitter
from interlingua.wire.openai_chat.reader import Choice, Chunk, Reader

__all__ = ["Choice", "Chunk", "Emitter", "Reader", "read_body", "write_body"]
