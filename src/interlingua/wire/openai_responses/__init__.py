"""OpenAI Responses: requests, chunks and whole bodies, read and written."""

from interlingua.wire.openai_responses.request_reader import NAME, read_request
from interlingua.wire.openai_responses.request_writer import write_request

__all__ = ["NAME", "read_request", "write_request"]
