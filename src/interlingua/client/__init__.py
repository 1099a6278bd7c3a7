"""For programs that call models themselves: what a reply is so far, whether its calls are right, and running them."""

from interlingua.client.accumulator import Accumulator
from interlingua.client.sdk.factories import (
    anthropic,
    async_anthropic,
    async_http_client,
    async_openai,
    http_client,
    openai,
)
from interlingua.client.sdk.upstream_config import Exchange
from interlingua.client.tools.tool_result import ToolResult
from interlingua.client.tools.toolbox import ToolBox

__all__ = [
    "Accumulator",
    "Exchange",
    "ToolBox",
    "ToolResult",
    "anthropic",
    "async_anthropic",
    "async_http_client",
    "async_openai",
    "http_client",
    "openai",
]
