"""HTTP side of Chat Completions."""

from interlingua.wires.error_types import OPENAI_ERROR_TYPES, OPENAI_SERVER_ERROR_TYPE
from interlingua.wires.http_api import HttpApi

__all__ = ["HTTP_API"]

HTTP_API = HttpApi(path="/chat/completions", error_types=OPENAI_ERROR_TYPES, server_error_type=OPENAI_SERVER_ERROR_TYPE)
