"""OpenAPI description of Messages: JSON Schemas of requests, replies and errors."""

from __future__ import annotations

from interlingua.wires.anthropic_messages.http_api import HTTP_API
from interlingua.wires.openapi import (
    COUNT,
    MESSAGE_CONTENT,
    MODEL,
    OBJECT,
    STREAM,
    TEXT,
    ApiDescription,
    nullable,
    nullable_list,
    object_schema,
    schema_reference,
)

__all__ = ["API_DESCRIPTION"]

MESSAGES_REQUEST = object_schema(
    {
        "model": MODEL,
        "messages": {"type": "array", "items": schema_reference("Message")},
        "system": MESSAGE_CONTENT,
        "max_tokens": {**nullable("integer"), "description": "Optional here, unlike in the Anthropic API."},
        "stream": STREAM,
        "tools": nullable_list(OBJECT),
        "tool_choice": nullable("object"),
        "thinking": nullable("object"),
        "output_config": nullable("object"),
        "metadata": object_schema({"user_id": nullable("string")}, type=["object", "null"]),
        "stop_sequences": nullable_list(TEXT),
        "temperature": nullable("number"),
        "top_p": nullable("number"),
        "top_k": nullable("number"),
    },
    "model",
    "messages",
)
MESSAGE = object_schema({"role": {"enum": ["user", "assistant", "system"]}, "content": MESSAGE_CONTENT}, "role")
MESSAGES_REPLY = object_schema(
    {
        "id": TEXT,
        "type": {"const": "message"},
        "role": {"const": "assistant"},
        "model": TEXT,
        "content": {"type": "array", "items": object_schema({"type": TEXT}, "type")},
        "stop_reason": nullable("string"),
        "stop_sequence": nullable("string"),
        "usage": object_schema({"input_tokens": COUNT, "output_tokens": COUNT}, "input_tokens", "output_tokens"),
    },
    *("id", "type", "role", "model", "content", "stop_reason", "usage"),
)
ERROR = object_schema(
    {
        "type": {"const": "error"},
        "error": object_schema({"type": {"enum": HTTP_API.all_error_types()}, "message": TEXT}, "type", "message"),
        "request_id": TEXT,
    },
    *("type", "error", "request_id"),
)

API_DESCRIPTION = ApiDescription(
    title="Anthropic Messages",
    operation_id="messages",
    count_operation_id="count_tokens",
    request="MessagesRequest",
    reply="MessagesReply",
    error="AnthropicError",
    schemas={
        "MessagesRequest": MESSAGES_REQUEST,
        "Message": MESSAGE,
        "MessagesReply": MESSAGES_REPLY,
        "AnthropicError": ERROR,
    },
)
