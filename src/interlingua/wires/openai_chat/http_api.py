"""HTTP side of Chat Completions, and its OpenAPI description: paths, headers, errors and JSON Schemas."""

from __future__ import annotations

from interlingua.wires import openai_errors
from interlingua.wires.error_types import CONTEXT_LENGTH_CODE
from interlingua.wires.http_api import HttpApi
from interlingua.wires.openai_chat.request_reader import NUMERIC_SAMPLING_FIELDS
from interlingua.wires.openai_errors import error_schema
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

__all__ = ["API_DESCRIPTION", "HTTP_API"]


HTTP_API = HttpApi(
    provider="openai",
    path="/chat/completions",
    context_length_words=(CONTEXT_LENGTH_CODE,),
    error_types=openai_errors.ERROR_TYPES,
    server_error_type=openai_errors.SERVER_ERROR_TYPE,
    error_body=openai_errors.error_body,
)

CHAT_REQUEST = object_schema(
    {
        "model": MODEL,
        "messages": {"type": "array", "items": schema_reference("ChatMessage")},
        "stream": STREAM,
        "stream_options": object_schema({"include_usage": nullable("boolean")}, type=["object", "null"]),
        "tools": nullable_list(OBJECT),
        "tool_choice": {"anyOf": [{"enum": ["auto", "required", "any", "none", None]}, OBJECT]},
        "parallel_tool_calls": nullable("boolean"),
        "max_completion_tokens": nullable("integer"),
        "max_tokens": nullable("integer"),
        "n": nullable("integer"),
        "stop": {"anyOf": [TEXT, nullable_list(TEXT)]},
        "response_format": nullable("object"),
        "user": nullable("string"),
        "metadata": nullable("object"),
        "prompt_cache_key": nullable("string"),
        **{name: nullable("number") for name in NUMERIC_SAMPLING_FIELDS},
    },
    "model",
    "messages",
)
CHAT_MESSAGE = object_schema(
    {
        "role": {"enum": ["system", "developer", "user", "assistant", "tool", "function"]},
        "content": MESSAGE_CONTENT,
        "name": nullable("string"),
        "tool_calls": nullable_list(OBJECT),
        "tool_call_id": nullable("string"),
    },
    "role",
)
COMPLETION = object_schema(
    {
        "id": TEXT,
        "object": {"const": "chat.completion"},
        "created": COUNT,
        "model": TEXT,
        "choices": {
            "type": "array",
            "items": object_schema(
                {"index": COUNT, "message": schema_reference("ChatReply"), "finish_reason": nullable("string")},
                "index",
                "message",
            ),
        },
        "usage": nullable("object"),
    },
    *("id", "object", "created", "model", "choices"),
)
CHAT_REPLY = object_schema(
    {
        "role": {"const": "assistant"},
        "content": nullable("string"),
        "reasoning_content": nullable("string"),
        "refusal": nullable("string"),
        "tool_calls": nullable_list(object_schema({"id": TEXT, "type": TEXT}, "id", "type")),
    },
    "role",
)

API_DESCRIPTION = ApiDescription(
    title="OpenAI Chat Completions",
    operation_id="chat_completions",
    request="ChatRequest",
    reply="Completion",
    error="OpenAIError",
    schemas={
        "ChatRequest": CHAT_REQUEST,
        "ChatMessage": CHAT_MESSAGE,
        "Completion": COMPLETION,
        "ChatReply": CHAT_REPLY,
        "OpenAIError": error_schema(HTTP_API),
    },
)
