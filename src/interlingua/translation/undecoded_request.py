"""A client's request of which only the top level is decoded: an agent's request has much that need not be."""

from __future__ import annotations

from functools import cache
from typing import Any

import msgspec

__all__ = ["TOOLS", "ItemType", "UndecodedRequest"]

MAX_FIELDS = 1000
MAX_UNCHECKED_BYTES = 1024 * 1024
"""The top level of larger requests is decoded only if the conversation and the tools are most of it: many thousand
fields would need much memory."""
MAX_OTHER_BYTES = 256 * 1024
"""Maximum size of all other fields in a larger request."""
MAX_OVERHEAD_BYTES = 64
"""Maximum size of all white space and punctuation between the fields, per field. A field that is there twice has more:
only its last value is kept, so the limits for the others would not be checked."""
TOOLS = "tools"

_DECODE_ERRORS = (msgspec.MsgspecError, UnicodeError, RecursionError)


class UndecodedRequest:
    """A request whose fields are decoded when they are needed.

    The syntax of all fields is valid, but a value that is decoded later can still be invalid: a text that is not UTF-8,
    or a number out of range.
    """

    def __init__(self, fields: dict[str, msgspec.Raw], conversation_field: str) -> None:
        self.fields = fields
        """The JSON of each field, in the client's order."""
        self.conversation_field = conversation_field

    @classmethod
    def read(cls, data: bytes, conversation_field: str) -> UndecodedRequest | None:
        """Read the top level of a request.

        Args:
            data: The request.
            conversation_field: Name of the field that holds the conversation.

        Returns: None if it is not a JSON object, has unusually many or large fields, or has a field twice.
        """
        try:
            if len(data) > MAX_UNCHECKED_BYTES and _other_bytes(data, conversation_field) > MAX_OTHER_BYTES:
                return None
            fields = _decode_fields(data)
            is_usual = len(fields) <= MAX_FIELDS and _overhead(data, fields) <= MAX_OVERHEAD_BYTES
            return cls(fields, conversation_field) if is_usual else None
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

    def size(self, name: str) -> int:
        """Return the size of the JSON of a field."""
        raw = self.fields.get(name)
        return 0 if raw is None else len(memoryview(raw))

    @property
    def has_items(self) -> bool:
        """True if the conversation is a list."""
        raw = self.fields.get(self.conversation_field)
        return raw is not None and bytes(memoryview(raw)[:1]) == b"["

    def item_types(self) -> list[ItemType]:
        """Return the type of each item of the conversation. Raises ValueError if an item is not an object."""
        return _decode_item_types(self.fields[self.conversation_field])

    def without(self, name: str) -> UndecodedRequest:
        """Return the request without this field."""
        return UndecodedRequest(
            {key: value for key, value in self.fields.items() if key != name}, self.conversation_field
        )


class ItemType(msgspec.Struct):
    """Fields of an item that decide how it is read."""

    type: Any = None
    role: Any = None


def _other_bytes(data: bytes, conversation_field: str) -> int:
    """Return the size of a request without its conversation and its tools."""
    large_fields = msgspec.structs.astuple(_large_fields_decoder(conversation_field).decode(data))
    return len(data) - sum(len(memoryview(value)) for value in large_fields)


def _overhead(data: bytes, fields: dict[str, msgspec.Raw]) -> float:
    """Return the size of what is not in the values, per field."""
    return (len(data) - sum([len(memoryview(value)) for value in fields.values()])) / (len(fields) + 1)


_decode_fields = msgspec.json.Decoder(dict[str, msgspec.Raw]).decode
_decode_item_types = msgspec.json.Decoder(list[ItemType]).decode


@cache
def _large_fields_decoder(conversation_field: str) -> msgspec.json.Decoder[msgspec.Struct]:
    """Return the decoder for the large fields of a request. It allocates no memory for the others."""
    fields = [(name, msgspec.Raw, msgspec.Raw()) for name in (conversation_field, TOOLS)]
    return msgspec.json.Decoder(msgspec.defstruct("LargeFields", fields))
