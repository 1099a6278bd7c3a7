"""The official SDKs, with a transport that translates in the process: one line changes, and no gateway runs.

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
from interlingua.client.sdk.upstream_config import Exchange, UpstreamConfig
from interlingua.core.options import Delivery, ReasoningPolicy
from interlingua.errors import UsageError
from interlingua.parsing.dialect import Dialect
from interlingua.upstreams.profile import CHAT

if TYPE_CHECKING:
    from anthropic import Anthropic, AsyncAnthropic
    from httpx2 import URL
    from openai import AsyncOpenAI, OpenAI

__all__ = ["anthropic", "async_anthropic", "async_http_client", "async_openai", "http_client", "openai"]

SYNC_CLIENT_CLASS, ASYNC_CLIENT_CLASS = "DefaultHttpxClient", "DefaultAsyncHttpxClient"
"""What both SDKs call the HTTP clients that they make."""


def openai(base_url: str | URL, **options: Any) -> OpenAI:
    """`openai.OpenAI` for this upstream: Chat Completions and Responses, whatever the upstream speaks.

    Beside what OpenAI takes: `upstream_api` (openai-chat, anthropic-messages or openai-responses), `profile`,
    `dialect`, `delivery`, `reasoning`, `extra`, `seal_key`, and `on_exchange`, which is told of every reply.
    `inner` is the HTTP client that sends; without one, the SDK's own kind is made, which heeds HTTPS_PROXY.
    A query in `base_url` is sent with every request.
    """
    client: OpenAI = _build_sdk_client("openai", "OpenAI", SYNC_CLIENT_CLASS, base_url, options)
    return client


def async_openai(base_url: str | URL, **options: Any) -> AsyncOpenAI:
    """`openai.AsyncOpenAI`, as `openai` is."""
    client: AsyncOpenAI = _build_sdk_client("openai", "AsyncOpenAI", ASYNC_CLIENT_CLASS, base_url, options)
    return client


def anthropic(base_url: str | URL, **options: Any) -> Anthropic:
    """`anthropic.Anthropic` for this upstream, whatever it speaks. It takes what `openai` here takes."""
    client: Anthropic = _build_sdk_client("anthropic", "Anthropic", SYNC_CLIENT_CLASS, base_url, options)
    return client


def async_anthropic(base_url: str | URL, **options: Any) -> AsyncAnthropic:
    """`anthropic.AsyncAnthropic`, as `anthropic` is."""
    client: AsyncAnthropic = _build_sdk_client("anthropic", "AsyncAnthropic", ASYNC_CLIENT_CLASS, base_url, options)
    return client


def http_client(base_url: str | URL, package: str = "openai", **options: Any) -> Any:
    """Only the HTTP client of such an SDK, for libraries that make the SDK's client themselves, such as LangChain. Give
    them the same `base_url`."""
    return _build_http_client(package, SYNC_CLIENT_CLASS, base_url, options)


def async_http_client(base_url: str | URL, package: str = "openai", **options: Any) -> Any:
    """The same, for a client with a loop."""
    return _build_http_client(package, ASYNC_CLIENT_CLASS, base_url, options)


def _build_sdk_client(package: str, name: str, client_class: str, base_url: str | URL, options: dict[str, Any]) -> Any:
    """The SDK's client of this name, with an HTTP client whose transport is ours."""
    translating_client, address, sdk_options = _build_translating_client(package, client_class, base_url, options)
    return getattr(_import_sdk(package), name)(base_url=address, http_client=translating_client, **sdk_options)


def _build_http_client(package: str, client_class: str, base_url: str | URL, options: dict[str, Any]) -> Any:
    """Only the HTTP client."""
    translating_client, _, sdk_options = _build_translating_client(package, client_class, base_url, options)
    if sdk_options:
        raise UsageError(f"{', '.join(sdk_options)}: an HTTP client takes no such thing", "give it to the SDK's client")
    return translating_client


def _build_translating_client(
    package: str, client_class: str, base_url: str | URL, options: dict[str, Any]
) -> tuple[Any, str, dict[str, Any]]:
    """The HTTP client, the address for the SDK, and what else was given for that."""
    if "http_client" in options:
        raise UsageError("http_client is the one that translates here", "give the one that sends as inner=")
    client_type = getattr(_import_sdk(package), client_class)
    httpx = _httpx_module(client_type)
    inner = options.pop("inner", None)
    if inner is not None:
        expected_type = httpx.Client if client_class == SYNC_CLIENT_CLASS else httpx.AsyncClient
        if not isinstance(inner, expected_type):
            expected = f"{httpx.__name__}.{expected_type.__name__}"
            actual = f"{type(inner).__module__.partition('.')[0]}.{type(inner).__name__}"
            raise UsageError(
                f"inner is a {expected} here, not a {actual}", f"the SDK {package!r} sends with {expected}"
            )
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
    upstream_api: str = CHAT,
    profile: str = "auto",
    dialect: str | Dialect = "auto",
    delivery: Delivery = "stream",
    reasoning: ReasoningPolicy = "keep",
    extra: dict[str, Any] | None = None,
    seal_key: bytes = b"",
    on_exchange: Callable[[Exchange], None] | None = None,
    **sdk_options: Any,
) -> tuple[UpstreamConfig, dict[str, Any]]:
    """What is ours of what was given, and what is the SDK's."""
    upstream = UpstreamConfig(
        url=url,
        query=query,
        api=upstream_api,
        profile=profile,
        dialect=dialect,
        delivery=delivery,
        reasoning=reasoning,
        extra=extra or {},
        seal_key=seal_key or os.urandom(32),  # for as long as this client lives
        on_exchange=on_exchange,
    )
    return upstream, sdk_options


def _import_sdk(package: str) -> ModuleType:
    try:
        return importlib.import_module(package)
    except ImportError:
        raise UsageError(f"the SDK {package!r} is not installed", f"pip install {package}") from None


def _httpx_module(client_type: type) -> ModuleType:
    """The httpx that this HTTP client of an SDK is made of."""
    name = next(
        base.__module__ for base in client_type.__mro__ if base.__module__.partition(".")[0].startswith("httpx")
    )
    return importlib.import_module(name.partition(".")[0])
