"""HTTP side of Responses, and its OpenAPI description: paths, headers, errors and JSON Schemas."""

from __future__ import annotations

from interlingua.wires import openai_errors
from interlingua.wires.error_types import CONTEXT_LENGTH_CODE
from interlingua.wires.http_api import HttpApi
from interlingua.wires.openai_errors import error_schema
from interlingua.wires.openapi import (
    MODEL,
    OBJECT,
    STREAM,
    TEXT,
    ApiDescription,
    nullable,
    nullable_list,
    object_schema,
)

__all__ = ["API_DESCRIPTION", "HTTP_API"]


HTTP_API = HttpApi(
    provider="openai",
    path="/responses",
    count_path="/responses/input_tokens",
    counted_fields=(
        *("model", "input", "instructions", "tools", "tool_choice", "reasoning", "text", "parallel_tool_calls"),
    ),
    count_reply={"object": "response.input_tokens"},
    context_length_words=(CONTEXT_LENGTH_CODE,),
    stores_replies=True,
    compact_path="/responses/compact",
    search_path="/alpha/search",
    has_websocket=True,
    error_types=openai_errors.ERROR_TYPES,
    server_error_type=openai_errors.SERVER_ERROR_TYPE,
    error_body=openai_errors.error_body,
)

RESPONSES_REQUEST = object_schema(
    {
        "model": MODEL,
        "input": {"anyOf": [TEXT, {"type": "array", "items": OBJECT}]},
        "instructions": nullable("string"),
        "stream": STREAM,
        "tools": nullable_list(OBJECT),
        "tool_choice": {"anyOf": [{"enum": ["auto", "required", "none", None]}, OBJECT]},
        "parallel_tool_calls": nullable("boolean"),
        "max_output_tokens": nullable("integer"),
        "reasoning": nullable("object"),
        "text": nullable("object"),
        "temperature": nullable("number"),
        "top_p": nullable("number"),
        "user": nullable("string"),
        "metadata": nullable("object"),
        "prompt_cache_key": nullable("string"),
        "store": nullable("boolean"),
        "previous_response_id": nullable("string"),
        "conversation": {"anyOf": [nullable("string"), OBJECT]},
        "background": nullable("boolean"),
    },
    "model",
    "input",
)
RESPONSE = object_schema(
    {
        "id": TEXT,
        "object": {"const": "response"},
        "created_at": {"type": "number"},
        "model": TEXT,
        "status": {"enum": ["completed", "incomplete", "failed", "queued", "in_progress"]},
        "output": {"type": "array", "items": object_schema({"type": TEXT}, "type")},
        "error": nullable("object"),
        "incomplete_details": nullable("object"),
        "usage": nullable("object"),
        "completed_at": nullable("integer"),
        "instructions": nullable("string"),
        "tools": {"type": "array", "items": OBJECT},
        "tool_choice": {"anyOf": [TEXT, OBJECT]},
        "previous_response_id": nullable("string"),
        "store": {"type": "boolean"},
    },
    *("id", "object", "created_at", "model", "status", "output"),
)

API_DESCRIPTION = ApiDescription(
    title="OpenAI Responses",
    operation_id="responses",
    count_operation_id="input_tokens",
    request="ResponsesRequest",
    reply="Response",
    error="OpenAIError",
    schemas={
        "ResponsesRequest": RESPONSES_REQUEST,
        "Response": RESPONSE,
        "OpenAIError": error_schema(HTTP_API),
    },
)
