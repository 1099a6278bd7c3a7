"""Factories for clients of the official SDKs with an HTTP transport that translates in the process, without a gateway.

client = interlingua.client.openai(base_url="http://localhost:8000/v1", api_key="…")
client = interlingua.client.anthropic(base_url="https://openrouter.ai/api/v1", api_key="…")
"""

from __future__ import annotations

import importlib
import os
from collections.abc import Callable
from types import ModuleType
from typing import TYPE_CHECKING, Any

from interlingua.client.sdk.httpx_transport import (
    make_async_transport_class,
    make_self_closing_class,
    make_transport_class,
)
from interlingua.client.sdk.upstream_config import ExchangeSummary, UpstreamConfig
from interlingua.core.options import ArgumentsPolicy, Delivery, ReasoningPolicy
from interlingua.core.wire_traits import DEFAULT_WIRE, WireLike
from interlingua.errors import UsageError
from interlingua.parsing.dialect import Dialect

if TYPE_CHECKING:
    from anthropic import Anthropic, AsyncAnthropic
    from httpx2 import URL
    from openai import AsyncOpenAI, OpenAI

__all__ = ["anthropic", "async_anthropic", "async_http_client", "async_openai", "http_client", "openai"]

SYNC_CLIENT_CLASS, ASYNC_CLIENT_CLASS = "DefaultHttpxClient", "DefaultAsyncHttpxClient"
"""Names of the HTTP client classes in both SDKs."""


def openai(base_url: str | URL, **options: Any) -> OpenAI:
    """Create an `openai.OpenAI` client for this upstream: Chat Completions and Responses, whatever API it has.

    Args:
        base_url: Address of the upstream. A query string in it is sent with every request.
        options: Options of `openai.OpenAI`, and also `upstream_api` (the upstream's wire; by default Chat Completions),
            `profile`, `dialect`, `delivery`, `arguments`, `reasoning`, `extra`, `seal_key`, `on_exchange` (called after
            every reply) and `inner` (the HTTP client that sends the requests; by default one of the SDK's own class,
            which respects HTTPS_PROXY).
    """
    client: OpenAI = _build_sdk_client("openai", "OpenAI", SYNC_CLIENT_CLASS, base_url, options)
    return client


def async_openai(base_url: str | URL, **options: Any) -> AsyncOpenAI:
    """Create an `openai.AsyncOpenAI` client. The options are those of `openai`."""
    client: AsyncOpenAI = _build_sdk_client("openai", "AsyncOpenAI", ASYNC_CLIENT_CLASS, base_url, options)
    return client


def anthropic(base_url: str | URL, **options: Any) -> Anthropic:
    """Create an `anthropic.Anthropic` client for this upstream, whatever API it has.

    The options are those of `openai`.
    """
    client: Anthropic = _build_sdk_client("anthropic", "Anthropic", SYNC_CLIENT_CLASS, base_url, options)
    return client


def async_anthropic(base_url: str | URL, **options: Any) -> AsyncAnthropic:
    """Create an `anthropic.AsyncAnthropic` client. The options are those of `anthropic`."""
    client: AsyncAnthropic = _build_sdk_client("anthropic", "AsyncAnthropic", ASYNC_CLIENT_CLASS, base_url, options)
    return client


def http_client(base_url: str | URL, package: str = "openai", **options: Any) -> Any:
    """Create only the HTTP client, for libraries that create the SDK client themselves, such as LangChain.

    Pass the same `base_url` to the library. `package` is the SDK: openai or anthropic.
    """
    return _build_http_client(package, SYNC_CLIENT_CLASS, base_url, options)


def async_http_client(base_url: str | URL, package: str = "openai", **options: Any) -> Any:
    """Create the async HTTP client. See `http_client`."""
    return _build_http_client(package, ASYNC_CLIENT_CLASS, base_url, options)


def _build_sdk_client(package: str, name: str, client_class: str, base_url: str | URL, options: dict[str, Any]) -> Any:
    """Create the SDK client class `name` with a translating HTTP client."""
    translating_client, address, sdk_options = _build_translating_client(package, client_class, base_url, options)
    return getattr(_import_sdk(package), name)(base_url=address, http_client=translating_client, **sdk_options)


def _build_http_client(package: str, client_class: str, base_url: str | URL, options: dict[str, Any]) -> Any:
    """Create the translating HTTP client. Raises UsageError for options of the SDK client."""
    translating_client, _, sdk_options = _build_translating_client(package, client_class, base_url, options)
    if sdk_options:
        raise UsageError(f"{', '.join(sdk_options)}: not an option of the HTTP client", "pass it to the SDK's client")
    return translating_client


def _build_translating_client(
    package: str, client_class: str, base_url: str | URL, options: dict[str, Any]
) -> tuple[Any, str, dict[str, Any]]:
    """Return the translating HTTP client, the base address for the SDK, and the remaining options for the SDK."""
    if "http_client" in options:
        raise UsageError(
            "http_client cannot be set: it is the client that translates", "pass your own HTTP client as inner="
        )
    client_type = getattr(_import_sdk(package), client_class)
    httpx = _httpx_module(client_type)
    inner = options.pop("inner", None)
    if inner is not None:
        expected_type = httpx.Client if client_class == SYNC_CLIENT_CLASS else httpx.AsyncClient
        if not isinstance(inner, expected_type):
            expected = f"{httpx.__name__}.{expected_type.__name__}"
            actual = f"{type(inner).__module__.partition('.')[0]}.{type(inner).__name__}"
            raise UsageError(f"inner should be a {expected}, not a {actual}", f"the SDK {package!r} uses {expected}")
    address, _, query = str(base_url).partition("?")
    upstream, sdk_options = _split_options(address, query, **options)
    transport_class = (make_transport_class if client_class == SYNC_CLIENT_CLASS else make_async_transport_class)(httpx)
    return (
        client_type(transport=transport_class(upstream, inner or make_self_closing_class(client_type)())),
        address,
        sdk_options,
    )


def _split_options(
    url: str,
    query: str,
    *,
    upstream_api: WireLike = DEFAULT_WIRE,
    profile: str = "auto",
    dialect: str | Dialect = "auto",
    delivery: Delivery = "stream",
    arguments: ArgumentsPolicy = "repair",
    reasoning: ReasoningPolicy = "keep",
    extra: dict[str, Any] | None = None,
    seal_key: bytes = b"",
    on_exchange: Callable[[ExchangeSummary], None] | None = None,
    **sdk_options: Any,
) -> tuple[UpstreamConfig, dict[str, Any]]:
    """Split the options into the upstream configuration and the options of the SDK."""
    upstream = UpstreamConfig(
        url=url,
        query=query,
        api=upstream_api,
        profile=profile,
        dialect=dialect,
        delivery=delivery,
        arguments=arguments,
        reasoning=reasoning,
        extra=extra or {},
        seal_key=seal_key or os.urandom(32),  # valid for the lifetime of this client
        on_exchange=on_exchange,
    )
    return upstream, sdk_options


def _import_sdk(package: str) -> ModuleType:
    try:
        return importlib.import_module(package)
    except ImportError:
        raise UsageError(f"the SDK {package!r} is not installed", f"pip install {package}") from None


def _httpx_module(client_type: type) -> ModuleType:
    """Return the httpx module (httpx or httpx2) of an SDK's HTTP client class."""
    name = next(
        base.__module__ for base in client_type.__mro__ if base.__module__.partition(".")[0].startswith("httpx")
    )
    return importlib.import_module(name.partition(".")[0])
