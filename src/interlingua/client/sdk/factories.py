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

from interlingua.client.sdk.httpx_transport import async_transport, self_closing, transport
from interlingua.client.sdk.upstream_config import Exchange, Upstream
from interlingua.core.options import Delivery, ReasoningPolicy
from interlingua.errors import UsageError
from interlingua.parsing.dialect import Dialect
from interlingua.upstreams.profile import CHAT

if TYPE_CHECKING:
    from anthropic import Anthropic, AsyncAnthropic
    from httpx2 import URL
    from openai import AsyncOpenAI, OpenAI

__all__ = ["anthropic", "async_anthropic", "async_http_client", "async_openai", "http_client", "openai"]

SYNC, ASYNC = "DefaultHttpxClient", "DefaultAsyncHttpxClient"
"""What both SDKs call the HTTP clients that they make."""


def openai(base_url: str | URL, **how: Any) -> OpenAI:
    """`openai.OpenAI` for this upstream: Chat Completions and Responses, whatever the upstream speaks.

    Beside what OpenAI takes: `upstream_api` (openai-chat, anthropic-messages or openai-responses), `profile`,
    `dialect`, `delivery`, `reasoning`, `extra`, `seal_key`, and `on_exchange`, which is told of every reply.
    `inner` is the HTTP client that sends; without one, the SDK's own kind is made, which heeds HTTPS_PROXY.
    A query in `base_url` is sent with every request.
    """
    client: OpenAI = _made("openai", "OpenAI", SYNC, base_url, how)
    return client


def async_openai(base_url: str | URL, **how: Any) -> AsyncOpenAI:
    """`openai.AsyncOpenAI`, as `openai` is."""
    client: AsyncOpenAI = _made("openai", "AsyncOpenAI", ASYNC, base_url, how)
    return client


def anthropic(base_url: str | URL, **how: Any) -> Anthropic:
    """`anthropic.Anthropic` for this upstream, whatever it speaks. It takes what `openai` here takes."""
    client: Anthropic = _made("anthropic", "Anthropic", SYNC, base_url, how)
    return client


def async_anthropic(base_url: str | URL, **how: Any) -> AsyncAnthropic:
    """`anthropic.AsyncAnthropic`, as `anthropic` is."""
    client: AsyncAnthropic = _made("anthropic", "AsyncAnthropic", ASYNC, base_url, how)
    return client


def http_client(base_url: str | URL, package: str = "openai", **how: Any) -> Any:
    """Only the HTTP client of such an SDK, for libraries that make the SDK's client themselves, such as LangChain. Give
    them the same `base_url`."""
    return _alone(package, SYNC, base_url, how)


def async_http_client(base_url: str | URL, package: str = "openai", **how: Any) -> Any:
    """The same, for a client with a loop."""
    return _alone(package, ASYNC, base_url, how)


def _made(package: str, name: str, kind: str, base_url: str | URL, how: dict[str, Any]) -> Any:
    """The SDK's client of this name, with an HTTP client whose transport is ours."""
    between, address, rest = _between(package, kind, base_url, how)
    return getattr(_imported(package), name)(base_url=address, http_client=between, **rest)


def _alone(package: str, kind: str, base_url: str | URL, how: dict[str, Any]) -> Any:
    """Only the HTTP client."""
    between, _, rest = _between(package, kind, base_url, how)
    if rest:
        raise UsageError(f"{', '.join(rest)}: an HTTP client takes no such thing", "give it to the SDK's client")
    return between


def _between(package: str, kind: str, base_url: str | URL, how: dict[str, Any]) -> tuple[Any, str, dict[str, Any]]:
    """The HTTP client, the address for the SDK, and what else was given for that."""
    if "http_client" in how:
        raise UsageError("http_client is the one that translates here", "give the one that sends as inner=")
    made_by = getattr(_imported(package), kind)
    httpx = _httpx_of(made_by)
    inner = how.pop("inner", None)
    if inner is not None:
        sends = httpx.Client if kind == SYNC else httpx.AsyncClient
        if not isinstance(inner, sends):
            wanted = f"{httpx.__name__}.{sends.__name__}"
            given = f"{type(inner).__module__.partition('.')[0]}.{type(inner).__name__}"
            raise UsageError(f"inner is a {wanted} here, not a {given}", f"the SDK {package!r} sends with {wanted}")
    address, _, query = str(base_url).partition("?")
    upstream, rest = _upstream(address, query, **how)
    carrier = (transport if kind == SYNC else async_transport)(httpx)
    return made_by(transport=carrier(upstream, inner or self_closing(made_by)())), address, rest


def _upstream(
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
    **rest: Any,
) -> tuple[Upstream, dict[str, Any]]:
    """What is ours of what was given, and what is the SDK's."""
    upstream = Upstream(
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
    return upstream, rest


def _imported(package: str) -> ModuleType:
    try:
        return importlib.import_module(package)
    except ImportError:
        raise UsageError(f"the SDK {package!r} is not installed", f"pip install {package}") from None


def _httpx_of(kind: type) -> ModuleType:
    """The httpx that this HTTP client of an SDK is made of."""
    name = next(base.__module__ for base in kind.__mro__ if base.__module__.partition(".")[0].startswith("httpx"))
    return importlib.import_module(name.partition(".")[0])
