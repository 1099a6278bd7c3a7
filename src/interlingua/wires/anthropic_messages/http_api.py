"""HTTP side of Messages, and its OpenAPI description: paths, headers, errors and JSON Schemas."""

from __future__ import annotations

from interlingua.wires.base import Json
from interlingua.wires.error_types import CONTEXT_LENGTH_CODE
from interlingua.wires.http_api import HttpApi, HttpError
from interlingua.wires.openapi import (
    COUNT,
    MESSAGE_CONTENT,
    MODEL,
    OBJECT,
    STREAM,
    TEXT,
    ApiDescription,
    error_type_schema,
    nullable,
    nullable_list,
    object_schema,
    schema_reference,
)

__all__ = ["API_DESCRIPTION", "ERROR_TYPES", "HTTP_API", "error_message"]


ERROR_TYPES = {
    400: "invalid_request_error",
    401: "authentication_error",
    402: "billing_error",
    403: "permission_error",
    404: "not_found_error",
    413: "request_too_large",
    429: "rate_limit_error",
    500: "api_error",
    504: "timeout_error",
    529: "overloaded_error",
}
PROMPT_TOO_LONG = "prompt is too long"
"""Text by which Claude Code recognises that the conversation is too long for the model."""


def error_message(message: str, code: str | int | None) -> str:
    """Return the message, with the text that clients look for if the conversation is too long."""
    is_marked = code != CONTEXT_LENGTH_CODE or PROMPT_TOO_LONG in message.lower()
    return message if is_marked else f"{PROMPT_TOO_LONG}: {message}"


def _error_body(error: HttpError) -> Json:
    message = error_message(error.message, error.code)
    details = {"details": {"error_code": error.code}} if error.param is not None and error.code else {}
    return {
        "type": "error",
        "error": {"type": error.type, "message": message, **details},
        "request_id": error.request_id,
    }


HTTP_API = HttpApi(
    provider="anthropic",
    path="/messages",
    count_path="/messages/count_tokens",
    counted_fields=("model", "messages", "system", "tools", "tool_choice", "thinking"),
    counts_by_default=True,
    version_headers={"anthropic-version": "2023-06-01"},
    client_header="anthropic-version",
    forwarded_header_prefix="anthropic-",
    login_header="anthropic-beta",
    login_marker="oauth",
    returned_header_prefix="anthropic-ratelimit-",
    context_length_words=(PROMPT_TOO_LONG, "input is too long for requested model", "exceed context limit"),
    forwarded_query="beta=true",
    key_header="x-api-key",
    always_versioned=True,
    keepalive_frame=b'event: ping\ndata: {"type": "ping"}\n\n',
    error_types=ERROR_TYPES,
    server_error_type="api_error",
    error_body=_error_body,
)

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
        "error": object_schema(
            {"type": error_type_schema(HTTP_API.all_error_types()), "message": TEXT}, "type", "message"
        ),
        "request_id": TEXT,
    },
    *("type", "error"),
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
