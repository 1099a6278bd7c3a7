"""Client library for programs that call models: accumulate a streamed reply, validate its tool calls and run them."""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from interlingua.client.accumulator import Accumulator
    from interlingua.client.sdk.factories import (
        anthropic,
        async_anthropic,
        async_http_client,
        async_openai,
        http_client,
        openai,
    )
    from interlingua.client.sdk.upstream_config import Exchange, ExchangeSummary
    from interlingua.client.tools.tool_result import ToolResult
    from interlingua.client.tools.toolbox import ToolBox

__all__ = [
    "Accumulator",
    "Exchange",
    "ExchangeSummary",
    "ToolBox",
    "ToolResult",
    "anthropic",
    "async_anthropic",
    "async_http_client",
    "async_openai",
    "http_client",
    "openai",
]

_MODULES = {
    "Accumulator": "accumulator",
    "Exchange": "sdk.upstream_config",
    "ExchangeSummary": "sdk.upstream_config",
    "ToolBox": "tools.toolbox",
    "ToolResult": "tools.tool_result",
    **dict.fromkeys(
        ("anthropic", "async_anthropic", "async_http_client", "async_openai", "http_client", "openai"), "sdk.factories"
    ),
}
"""Each public name and its module. They are imported on first use, because the SDK transports import asyncio."""


def __getattr__(name: str) -> Any:
    if name not in _MODULES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    value = getattr(import_module(f"{__name__}.{_MODULES[name]}"), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
