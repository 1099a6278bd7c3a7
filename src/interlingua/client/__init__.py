"""For programs that call models themselves: what a reply is so far, whether its calls are right, and running them."""

from interlingua.client.accumulator import Accumulator
from interlingua.client.results import ToolResult
from interlingua.client.sdks import anthropic, async_anthropic, async_http_client, async_openai, http_client, openai
from interlingua.client.toolbox import ToolBox
from interlingua.client.upstream import Exchange

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
