"""HTTP side of Responses."""

from interlingua.wires.error_types import OPENAI_ERROR_TYPES, OPENAI_SERVER_ERROR_TYPE
from interlingua.wires.http_api import HttpApi

__all__ = ["HTTP_API"]

HTTP_API = HttpApi(
    path="/responses",
    count_path="/responses/input_tokens",
    counted_fields=(
        *("model", "input", "instructions", "tools", "tool_choice", "reasoning", "text", "parallel_tool_calls"),
    ),
    count_reply={"object": "response.input_tokens"},
    error_types=OPENAI_ERROR_TYPES,
    server_error_type=OPENAI_SERVER_ERROR_TYPE,
)
