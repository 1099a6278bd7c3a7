"""HTTP side of Responses."""

from interlingua.wires import openai_errors
from interlingua.wires.http_api import HttpApi

__all__ = ["HTTP_API"]

HTTP_API = HttpApi(
    provider="openai",
    path="/responses",
    count_path="/responses/input_tokens",
    counted_fields=(
        *("model", "input", "instructions", "tools", "tool_choice", "reasoning", "text", "parallel_tool_calls"),
    ),
    count_reply={"object": "response.input_tokens"},
    error_types=openai_errors.ERROR_TYPES,
    server_error_type=openai_errors.SERVER_ERROR_TYPE,
    error_body=openai_errors.error_body,
)
