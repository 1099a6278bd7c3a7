"""HTTP side of Chat Completions."""

from interlingua.wires import openai_errors
from interlingua.wires.http_api import HttpApi

__all__ = ["HTTP_API"]

HTTP_API = HttpApi(
    provider="openai",
    path="/chat/completions",
    error_types=openai_errors.ERROR_TYPES,
    server_error_type=openai_errors.SERVER_ERROR_TYPE,
    error_body=openai_errors.error_body,
)
