"""A client's request of which only the top level is decoded: an agent's request has much that need not be."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from typing import Any

import msgspec

from interlingua.wires.base import Json

__all__ = ["TOOLS", "UndecodedRequest"]

MAX_UNCHECKED_BYTES = 64 * 1024
"""The top level of larger requests is decoded only if the conversation and the tools are most of it: a request with
many thousand fields would need much memory."""
MAX_OTHER_BYTES = 256 * 1024
"""Maximum size of all other fields in a larger request."""
TOOLS = "tools"

_decode_fields = msgspec.json.Decoder(dict[str, msgspec.Raw]).decode
_DECODE_ERRORS = (msgspec.MsgspecError, UnicodeError, RecursionError)


class UndecodedRequest:
    """A request whose fields are decoded when they are needed.

    The syntax of all fields is valid, but a value that is decoded later can still be invalid: a text that is not UTF-8,
    or a number out of range.
    """

    def __init__(
        self,
        data: bytes,
        fields: dict[str, msgspec.Raw],
        conversation_field: str,
        decode: Callable[[bytes], Json] = msgspec.json.decode,
    ) -> None:
        self.data = data
        self.fields = fields
        """The JSON of each field, in the client's order."""
        self.conversation_field = conversation_field
        self._decode = decode

    @classmethod
    def read(
        cls, data: bytes, conversation_field: str, decode: Callable[[bytes], Json] = msgspec.json.decode
    ) -> UndecodedRequest | None:
        """Read the top level of a request.

        Args:
            data: The request.
            conversation_field: Name of the field that holds the conversation.
            decode: Function that decodes the whole request, if that is needed. It may raise for one that is invalid.

        Returns: None if it is not a JSON object, or has unusually many or large fields.
        """
        try:
            if len(data) > MAX_UNCHECKED_BYTES and _other_bytes(data, conversation_field) > MAX_OTHER_BYTES:
                return None
            return cls(data, _decode_fields(data), conversation_field, decode)
        except _DECODE_ERRORS:
            return None

    def get(self, name: str) -> Any:
        """Return the value of a field; None if it is missing. Raises ValueError or RecursionError if it is invalid."""
        raw = self.fields.get(name)
        return None if raw is None else msgspec.json.decode(raw)

    def encoded(self, name: str) -> bytes:
        """Return the JSON of a field; b"" if it is missing."""
        raw = self.fields.get(name)
        return b"" if raw is None else bytes(raw)

    def decode(self) -> Json:
        """Return the whole request."""
        return self._decode(self.data)


def _other_bytes(data: bytes, conversation_field: str) -> int:
    """Return the size of a request without its conversation and its tools."""
    large_fields = msgspec.structs.astuple(_large_fields_decoder(conversation_field).decode(data))
    return len(data) - sum(len(memoryview(value)) for value in large_fields)


@cache
def _large_fields_decoder(conversation_field: str) -> msgspec.json.Decoder[msgspec.Struct]:
    """Return the decoder for the large fields of a request. It allocates no memory for the others."""
    fields = [(name, msgspec.Raw, msgspec.Raw()) for name in (conversation_field, TOOLS)]
    return msgspec.json.Decoder(msgspec.defstruct("LargeFields", fields))
