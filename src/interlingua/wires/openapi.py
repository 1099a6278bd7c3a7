"""Description of a wire for OpenAPI documents, and helpers that build its JSON Schemas. Each wire declares its own.

Request schemas are as lenient as the readers; reply schemas contain the fields that clients read. All objects may have
additional fields.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, TypeAlias

import msgspec

__all__ = [
    "COUNT",
    "MESSAGE_CONTENT",
    "MODEL",
    "OBJECT",
    "STREAM",
    "TEXT",
    "ApiDescription",
    "Schema",
    "error_type_schema",
    "nullable",
    "nullable_list",
    "object_schema",
    "schema_reference",
]

Schema: TypeAlias = dict[str, Any]


class ApiDescription(msgspec.Struct, frozen=True, kw_only=True):
    """Name, operations and schemas of one wire. `request`, `reply` and `error` are names in `schemas`."""

    title: str
    operation_id: str
    """Id of the operation that returns a reply."""
    count_operation_id: str = ""
    """Id of the operation that counts tokens; empty if the API has none."""
    request: str
    reply: str
    error: str
    schemas: Mapping[str, Schema]


def object_schema(properties: Schema, *required: str, **keywords: Any) -> Schema:
    required_field = {"required": list(required)} if required else {}
    return {"type": "object", "properties": properties, **required_field, "additionalProperties": True, **keywords}


def nullable(type_: str) -> Schema:
    """Return a schema that also accepts null, which has the same effect as a missing field."""
    return {"type": [type_, "null"]}


def nullable_list(items: Schema) -> Schema:
    return {"type": ["array", "null"], "items": items}


def error_type_schema(own_types: list[str]) -> Schema:
    """Return the schema of an error type. An error of an upstream of the same API is forwarded with its own type."""
    return {"type": "string", "description": f"{', '.join(own_types)}; or a type of the upstream."}


def schema_reference(name: str) -> Schema:
    return {"$ref": f"#/components/schemas/{name}"}


TEXT, COUNT, OBJECT = {"type": "string"}, {"type": "integer"}, {"type": "object"}
MESSAGE_CONTENT: Schema = {"anyOf": [TEXT, {"type": "null"}, {"type": "array", "items": OBJECT}]}
MODEL: Schema = {
    "type": "string",
    "minLength": 1,
    "description": "An id from `GET /v1/models`, or any other id that the settings route to an upstream.",
}
STREAM: Schema = {**nullable("boolean"), "description": "If true, the reply is sent as server-sent events."}
