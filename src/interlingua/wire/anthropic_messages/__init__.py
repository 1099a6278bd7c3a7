"""Anthropic Messages: requests, chunks and whole bodies, read and written."""

from interlingua.wire.anthropic_messages.request_reader import NAME, read_request
from interlingua.wire.anthropic_messages.request_writer import write_request

__all__ = ["NAME", "read_request", "write_request"]
