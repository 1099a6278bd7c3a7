"""HTTP side of Messages."""

from interlingua.wires.http_api import HttpApi

__all__ = ["ERROR_TYPES", "HTTP_API"]

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

HTTP_API = HttpApi(
    path="/messages",
    count_path="/messages/count_tokens",
    counted_fields=("model", "messages", "system", "tools", "tool_choice", "thinking"),
    counts_by_default=True,
    version_headers={"anthropic-version": "2023-06-01"},
    forwarded_headers=("anthropic-beta", "anthropic-version"),
    forwarded_query="beta=true",
    key_header="x-api-key",
    always_versioned=True,
    keepalive_frame=b'event: ping\ndata: {"type": "ping"}\n\n',
    error_types=ERROR_TYPES,
    server_error_type="api_error",
)
