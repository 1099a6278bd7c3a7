"""JSON Schemas for the OpenAPI document: those of all wires, and those of the gateway's own endpoints."""

from __future__ import annotations

from collections.abc import Iterable

import msgspec

from interlingua.gateway.observability.gateway_status import GatewayStatus
from interlingua.wires.base import Json, Wire
from interlingua.wires.openapi import COUNT, OBJECT, TEXT, nullable, nullable_list, object_schema, schema_reference

__all__ = [
    "COMPACTED_REQUEST",
    "COMPACTION",
    "CONVERSATION",
    "COUNTED_REQUEST",
    "DELETED",
    "EITHER_ERROR",
    "ITEM_LIST",
    "KNOWN_MODEL",
    "MODELS",
    "NEW_CONVERSATION",
    "SEARCH",
    "SEARCH_REQUEST",
    "STATUS",
    "STORED_REPLY",
    "TOKENS",
    "gateway_schemas",
]

COUNTED_REQUEST, TOKENS, KNOWN_MODEL, MODELS = "CountedRequest", "Tokens", "KnownModel", "Models"
DELETED, ITEM_LIST, STORED_REPLY = "Deleted", "ItemList", "StoredReply"
COMPACTED_REQUEST, COMPACTION = "CompactedRequest", "Compaction"
CONVERSATION, NEW_CONVERSATION = "Conversation", "NewConversation"
SEARCH_REQUEST, SEARCH = "SearchRequest", "Search"
CONNECTION_ERROR, EITHER_ERROR, STATUS = "EarlyError", "EitherError", GatewayStatus.__name__
"""Names of the schemas."""

_COUNTED_REQUEST = {"type": "object", "description": "A request of the same API. All fields are optional."}
_KNOWN_MODEL = object_schema(
    {
        "id": TEXT,
        "object": {"const": "model"},
        "created": COUNT,
        "owned_by": TEXT,
        "type": {"const": "model"},
        "display_name": TEXT,
        "created_at": {"type": "string", "format": "date-time"},
    },
    *("id", "object", "created", "owned_by", "type", "display_name", "created_at"),
)
_MODELS = object_schema(
    {
        "object": {"const": "list"},
        "data": {"type": "array", "items": schema_reference(KNOWN_MODEL)},
        "has_more": {"const": False},
        "first_id": nullable("string"),
        "last_id": nullable("string"),
    },
    *("object", "data", "has_more", "first_id", "last_id"),
)
_DELETED = object_schema({"id": TEXT, "object": TEXT, "deleted": {"const": True}}, *("id", "object", "deleted"))
_ITEM_LIST = object_schema(
    {
        "object": {"const": "list"},
        "data": {"type": "array", "items": object_schema({"id": TEXT, "type": TEXT}, "id", "type")},
        "first_id": nullable("string"),
        "last_id": nullable("string"),
        "has_more": {"type": "boolean"},
    },
    *("object", "data", "first_id", "last_id", "has_more"),
)
_STORED_REPLY = object_schema(
    {
        "id": TEXT,
        "object": TEXT,
        "status": {"enum": ["queued", "in_progress", "completed", "incomplete", "failed", "cancelled"]},
        "output": {"type": "array", "items": OBJECT},
    },
    *("id", "object", "status", "output"),
)
_NEW_CONVERSATION = object_schema({"items": nullable_list(OBJECT), "metadata": nullable("object")})
_CONVERSATION = object_schema(
    {"id": TEXT, "object": {"const": "conversation"}, "created_at": COUNT, "metadata": OBJECT},
    *("id", "object", "created_at", "metadata"),
)
_COMPACTED_REQUEST = object_schema(
    {
        "model": TEXT,
        "input": {"anyOf": [nullable("string"), {"type": "array", "items": OBJECT}]},
        "instructions": nullable("string"),
        "previous_response_id": nullable("string"),
    },
    "model",
)
_COMPACTION = object_schema(
    {
        "id": TEXT,
        "object": {"const": "response.compaction"},
        "created_at": {"type": "number"},
        "output": {"type": "array", "items": object_schema({"type": TEXT, "id": TEXT}, "type", "id")},
        "usage": OBJECT,
    },
    *("id", "object", "created_at", "output", "usage"),
)
_SEARCH_REQUEST = object_schema(
    {
        "model": nullable("string"),
        "input": {"anyOf": [nullable("string"), {"type": "array", "items": OBJECT}]},
        "commands": nullable("object"),
        "settings": nullable("object"),
        "max_output_tokens": nullable("integer"),
    }
)
_SEARCH = object_schema(
    {
        "output": TEXT,
        "encrypted_output": nullable("string"),
        "results": {"type": "array", "items": object_schema({"type": TEXT}, "type")},
    },
    "output",
)
_CONNECTION_ERROR = object_schema(
    {"type": {"const": "error"}, "error": object_schema({"type": TEXT, "message": TEXT}, "type", "message")},
    *("type", "error"),
    description="Sent before the gateway knows which API the client uses. Clients of each API can read it.",
)


def gateway_schemas(wires: Iterable[Wire]) -> Json:
    """Return all schemas by name."""
    wires = list(wires)
    return {
        **{name: schema for wire in wires for name, schema in wire.API_DESCRIPTION.schemas.items()},
        COUNTED_REQUEST: _COUNTED_REQUEST,
        TOKENS: _tokens(wires),
        KNOWN_MODEL: _KNOWN_MODEL,
        MODELS: _MODELS,
        DELETED: _DELETED,
        ITEM_LIST: _ITEM_LIST,
        STORED_REPLY: _STORED_REPLY,
        COMPACTED_REQUEST: _COMPACTED_REQUEST,
        COMPACTION: _COMPACTION,
        CONVERSATION: _CONVERSATION,
        NEW_CONVERSATION: _NEW_CONVERSATION,
        SEARCH_REQUEST: _SEARCH_REQUEST,
        SEARCH: _SEARCH,
        CONNECTION_ERROR: _CONNECTION_ERROR,
        EITHER_ERROR: _either_error(wires),
        **_status_schemas(),
    }


def _status_schemas() -> Json:
    """Return the schema of the status, and those of its parts."""
    _, schemas = msgspec.json.schema_components([GatewayStatus], ref_template=schema_reference("{name}")["$ref"])
    return schemas


def _tokens(wires: list[Wire]) -> Json:
    """Return the schema of a token count: the common fields, and the fixed fields of each wire."""
    fixed_fields = {name: {"const": value} for wire in wires for name, value in wire.HTTP_API.count_reply.items()}
    estimated = {"const": True, "description": "The count is an estimate. Missing if the upstream counted."}
    return object_schema({"input_tokens": COUNT, **fixed_fields, "estimated": estimated}, "input_tokens")


def _either_error(wires: list[Wire]) -> Json:
    """Return the schema of errors on paths that the APIs share. Their format depends on the client's headers."""
    names = dict.fromkeys([*(wire.API_DESCRIPTION.error for wire in wires), CONNECTION_ERROR])
    formats = [
        f"in the format of {wire.API_DESCRIPTION.title} for clients that send `{wire.HTTP_API.client_header}`"
        for wire in wires
        if wire.HTTP_API.client_header
    ]
    description = ", ".join([*formats, f"otherwise in the format of {wires[0].API_DESCRIPTION.title}"])
    return {
        "anyOf": [schema_reference(name) for name in names],
        "description": f"{description[:1].upper()}{description[1:]}.",
    }
