"""JSON Schemas of requests and replies for the OpenAPI document.

Request schemas are as lenient as the gateway; reply schemas contain the fields that clients read. All objects may have
additional fields.
"""

from __future__ import annotations

from typing import Any

from interlingua.upstreams.profile import CHAT, MESSAGES
from interlingua.wires import get_wire
from interlingua.wires.openai_chat.request_reader import NUMERIC_SAMPLING_FIELDS

__all__ = ["SCHEMAS"]

Json = dict[str, Any]


def _object(properties: Json, *required: str, **keywords: Any) -> Json:
    required_field = {"required": list(required)} if required else {}
    return {"type": "object", "properties": properties, **required_field, "additionalProperties": True, **keywords}


def _nullable(type_: str) -> Json:
    """Return a schema that also accepts null, which has the same effect as a missing field."""
    return {"type": [type_, "null"]}


def _nullable_list(items: Json) -> Json:
    return {"type": ["array", "null"], "items": items}


def _ref(name: str) -> Json:
    return {"$ref": f"#/components/schemas/{name}"}


TEXT, COUNT = {"type": "string"}, {"type": "integer"}
OBJECT = {"type": "object"}
MESSAGE_CONTENT: Json = {"anyOf": [TEXT, {"type": "null"}, {"type": "array", "items": OBJECT}]}
MODEL: Json = {
    "type": "string",
    "minLength": 1,
    "description": "An id from `GET /v1/models`, or any other id that the settings route to an upstream.",
}
STREAM: Json = {**_nullable("boolean"), "description": "If true, the reply is sent as server-sent events."}

# ── requests ──────────────────────────────────────────────────────────────────────────────────────────────────────

CHAT_REQUEST = _object(
    {
        "model": MODEL,
        "messages": {"type": "array", "items": _ref("ChatMessage")},
        "stream": STREAM,
        "stream_options": _object({"include_usage": _nullable("boolean")}, type=["object", "null"]),
        "tools": _nullable_list(OBJECT),
        "tool_choice": {"anyOf": [{"enum": ["auto", "required", "any", "none", None]}, OBJECT]},
        "parallel_tool_calls": _nullable("boolean"),
        "max_completion_tokens": _nullable("integer"),
        "max_tokens": _nullable("integer"),
        "n": _nullable("integer"),
        "stop": {"anyOf": [TEXT, _nullable_list(TEXT)]},
        "response_format": _nullable("object"),
        "user": _nullable("string"),
        "metadata": _nullable("object"),
        "prompt_cache_key": _nullable("string"),
        **{name: _nullable("number") for name in NUMERIC_SAMPLING_FIELDS},
    },
    "model",
    "messages",
)
CHAT_MESSAGE = _object(
    {
        "role": {"enum": ["system", "developer", "user", "assistant", "tool", "function"]},
        "content": MESSAGE_CONTENT,
        "name": _nullable("string"),
        "tool_calls": _nullable_list(OBJECT),
        "tool_call_id": _nullable("string"),
    },
    "role",
)
MESSAGES_REQUEST = _object(
    {
        "model": MODEL,
        "messages": {"type": "array", "items": _ref("Message")},
        "system": MESSAGE_CONTENT,
        "max_tokens": {**_nullable("integer"), "description": "Optional here, unlike in the Anthropic API."},
        "stream": STREAM,
        "tools": _nullable_list(OBJECT),
        "tool_choice": _nullable("object"),
        "thinking": _nullable("object"),
        "output_config": _nullable("object"),
        "metadata": _object({"user_id": _nullable("string")}, type=["object", "null"]),
        "stop_sequences": _nullable_list(TEXT),
        "temperature": _nullable("number"),
        "top_p": _nullable("number"),
        "top_k": _nullable("number"),
    },
    "model",
    "messages",
)
MESSAGE = _object({"role": {"enum": ["user", "assistant", "system"]}, "content": MESSAGE_CONTENT}, "role")
RESPONSES_REQUEST = _object(
    {
        "model": MODEL,
        "input": {"anyOf": [TEXT, {"type": "array", "items": OBJECT}]},
        "instructions": _nullable("string"),
        "stream": STREAM,
        "tools": _nullable_list(OBJECT),
        "tool_choice": {"anyOf": [{"enum": ["auto", "required", "none", None]}, OBJECT]},
        "parallel_tool_calls": _nullable("boolean"),
        "max_output_tokens": _nullable("integer"),
        "reasoning": _nullable("object"),
        "text": _nullable("object"),
        "temperature": _nullable("number"),
        "top_p": _nullable("number"),
        "user": _nullable("string"),
        "metadata": _nullable("object"),
        "prompt_cache_key": _nullable("string"),
    },
    "model",
    "input",
)
COUNT_REQUEST = {"type": "object", "description": "A Messages or Responses request. All fields are optional."}

# ── replies ───────────────────────────────────────────────────────────────────────────────────────────────────────

COMPLETION = _object(
    {
        "id": TEXT,
        "object": {"const": "chat.completion"},
        "created": COUNT,
        "model": TEXT,
        "choices": {
            "type": "array",
            "items": _object(
                {"index": COUNT, "message": _ref("ChatReply"), "finish_reason": _nullable("string")}, "index", "message"
            ),
        },
        "usage": _nullable("object"),
    },
    *("id", "object", "created", "model", "choices"),
)
CHAT_REPLY = _object(
    {
        "role": {"const": "assistant"},
        "content": _nullable("string"),
        "reasoning_content": _nullable("string"),
        "refusal": _nullable("string"),
        "tool_calls": _nullable_list(_object({"id": TEXT, "type": TEXT}, "id", "type")),
    },
    "role",
)
MESSAGES_REPLY = _object(
    {
        "id": TEXT,
        "type": {"const": "message"},
        "role": {"const": "assistant"},
        "model": TEXT,
        "content": {"type": "array", "items": _object({"type": TEXT}, "type")},
        "stop_reason": _nullable("string"),
        "stop_sequence": _nullable("string"),
        "usage": _object({"input_tokens": COUNT, "output_tokens": COUNT}, "input_tokens", "output_tokens"),
    },
    *("id", "type", "role", "model", "content", "stop_reason", "usage"),
)
RESPONSE = _object(
    {
        "id": TEXT,
        "object": {"const": "response"},
        "created_at": {"type": "number"},
        "model": TEXT,
        "status": {"enum": ["completed", "incomplete", "failed"]},
        "output": {"type": "array", "items": _object({"type": TEXT}, "type")},
        "error": _nullable("object"),
        "incomplete_details": _nullable("object"),
        "usage": _nullable("object"),
    },
    *("id", "object", "created_at", "model", "status", "output"),
)
KNOWN_MODEL = _object(
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
MODELS = _object(
    {
        "object": {"const": "list"},
        "data": {"type": "array", "items": _ref("KnownModel")},
        "has_more": {"const": False},
        "first_id": _nullable("string"),
        "last_id": _nullable("string"),
    },
    *("object", "data", "has_more", "first_id", "last_id"),
)
TOKENS = _object(
    {
        "input_tokens": COUNT,
        "object": {"const": "response.input_tokens"},
        "estimated": {
            "const": True,
            "description": "The count is an estimate. Missing if the upstream counted.",
        },
    },
    "input_tokens",
)

# ── errors ────────────────────────────────────────────────────────────────────────────────────────────────────────


def _error_types(wire: str) -> list[str]:
    """Return all error types of a wire."""
    api = get_wire(wire).HTTP_API
    return sorted({*api.error_types.values(), api.error_type(400), api.error_type(500)})


OPENAI_ERROR = _object(
    {
        "error": _object(
            {
                "message": TEXT,
                "type": {"enum": _error_types(CHAT)},
                "param": _nullable("string"),
                "code": _nullable("string"),
            },
            *("message", "type", "param", "code"),
        )
    },
    "error",
)
ANTHROPIC_ERROR = _object(
    {
        "type": {"const": "error"},
        "error": _object({"type": {"enum": _error_types(MESSAGES)}, "message": TEXT}, "type", "message"),
        "request_id": TEXT,
    },
    *("type", "error", "request_id"),
)
CONNECTION_ERROR = _object(
    {"type": {"const": "error"}, "error": _object({"type": TEXT, "message": TEXT}, "type", "message")},
    *("type", "error"),
    description="Sent before the gateway knows which API the client uses. Clients of each API can read it.",
)
EITHER_ERROR = {
    "anyOf": [_ref("OpenAIError"), _ref("AnthropicError"), _ref("EarlyError")],
    "description": "In Anthropic's format for clients that send `anthropic-version`, otherwise in OpenAI's.",
}

SCHEMAS: Json = {
    "ChatRequest": CHAT_REQUEST,
    "ChatMessage": CHAT_MESSAGE,
    "MessagesRequest": MESSAGES_REQUEST,
    "Message": MESSAGE,
    "ResponsesRequest": RESPONSES_REQUEST,
    "CountedRequest": COUNT_REQUEST,
    "Completion": COMPLETION,
    "ChatReply": CHAT_REPLY,
    "MessagesReply": MESSAGES_REPLY,
    "Response": RESPONSE,
    "KnownModel": KNOWN_MODEL,
    "Models": MODELS,
    "Tokens": TOKENS,
    "OpenAIError": OPENAI_ERROR,
    "AnthropicError": ANTHROPIC_ERROR,
    "EarlyError": CONNECTION_ERROR,
    "EitherError": EITHER_ERROR,
}
