"""Configuration of an SDK client's upstream: its address, the URLs and the authentication headers of requests."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any
from urllib.parse import parse_qsl, urlencode, urlsplit

import msgspec

from interlingua.core.options import ArgumentsPolicy, Delivery, Options, ReasoningPolicy
from interlingua.core.wire_traits import DEFAULT_WIRE
from interlingua.dialects.registry import get_dialect
from interlingua.errors import UsageError, expect_type
from interlingua.events import Finding
from interlingua.parsing.dialect import Dialect
from interlingua.translation.exchange import UpstreamTarget
from interlingua.upstreams import get_profile, profile_for_url
from interlingua.upstreams.profile import Profile
from interlingua.wires import WIRES, get_wire
from interlingua.wires.http_api import VERSION_PATH, HttpApi

__all__ = ["Exchange", "ExchangeSummary", "UpstreamConfig", "count_wire_for_path", "wire_for_path"]


class ExchangeSummary(msgspec.Struct, frozen=True, kw_only=True):
    """Summary of one request and its reply, for the `on_exchange` hook."""

    url: str
    model: str
    dialect: str
    findings: list[Finding]
    failure: str = ""
    """Error message if the reply failed, otherwise empty."""


Exchange = ExchangeSummary
"""Older public name."""


class UpstreamConfig(msgspec.Struct, frozen=True, kw_only=True):
    """Upstream and translation options. Invalid values raise UsageError in the constructor."""

    url: str
    query: str = ""
    """Query string of every request, such as `api-version=1`."""
    api: str = DEFAULT_WIRE
    profile: str = "auto"
    dialect: str | Dialect = "auto"
    delivery: Delivery = "stream"
    arguments: ArgumentsPolicy = "repair"
    reasoning: ReasoningPolicy = "keep"
    seal_key: bytes = b""
    extra: dict[str, Any] = {}
    """Additional fields of every request body."""
    on_exchange: Callable[[ExchangeSummary], None] | None = None

    def __post_init__(self) -> None:
        try:
            url = urlsplit(self.url)
            is_valid = url.scheme in ("http", "https") and bool(url.hostname) and (url.port is None or url.port > 0)
        except ValueError:  # a malformed IPv6 address or port
            is_valid = False
        if not is_valid:
            raise UsageError(f"base_url {self.url!r} is not a valid URL", "write it as 'http://localhost:8000/v1'")
        get_wire(self.api)
        self.resolve_profile()
        if self.dialect != "auto":
            get_dialect(self.dialect)
        expect_type(self.seal_key, bytes, "seal_key should be bytes", "use 32 random bytes: os.urandom(32)")
        expect_type(self.extra, dict, "extra should be a dict", "write extra={'top_k': 20}")
        if self.on_exchange is not None and not callable(self.on_exchange):
            raise UsageError("on_exchange should be a function", "it is called with an Exchange")
        Options(delivery=self.delivery, arguments=self.arguments, reasoning=self.reasoning)

    def resolve_profile(self) -> Profile:
        return profile_for_url(self.url) if self.profile == "auto" else get_profile(self.profile)

    @property
    def host(self) -> str:
        """Host and port, without a user and password in the URL."""
        return urlsplit(self.url).netloc.rpartition("@")[2]

    @property
    def target(self) -> UpstreamTarget:
        """The upstream for the translation of a request."""
        return UpstreamTarget(
            api=self.api,
            profile=self.resolve_profile(),
            name=urlsplit(self.url).netloc,
            dialect=self.dialect,
            extra=self.extra,
        )

    @property
    def _http_api(self) -> HttpApi:
        return get_wire(self.api).HTTP_API

    # ── URLs ──────────────────────────────────────────────────────────────────────────────────────────────────────

    @property
    def base_url(self) -> str:
        """Base of all URLs, with the version path. The configured URL may lack it, as Anthropic's does."""
        return self._http_api.base_url(self.url)

    @property
    def endpoint(self) -> str:
        """URL for requests that return a reply."""
        return self._http_api.endpoint(self.url)

    def other_url(self, path: str) -> str:
        """Return the URL for another endpoint, such as the model list. `path` is the path of the SDK's request."""
        base_path = urlsplit(self.url).path.rstrip("/")
        if not path.startswith(f"{base_path}/"):
            url = urlsplit(self.url)
            return f"{url.scheme}://{url.netloc}{path}"
        relative_path = path[len(base_path) :]
        return self.base_url + (
            relative_path.removeprefix(VERSION_PATH) if relative_path.startswith(f"{VERSION_PATH}/") else relative_path
        )

    def query_string(self, query: str) -> str:
        """Return the query string with its `?`: the SDK's parameters and the configured ones."""
        params = parse_qsl(query, keep_blank_values=True)
        if not self._http_api.forwarded_query:
            params = [(name, value) for name, value in params if name != "beta"]  # a parameter of Anthropic's own API
        names = {name for name, _ in params}
        default_params = [pair for pair in parse_qsl(self.query, keep_blank_values=True) if pair[0] not in names]
        return f"?{urlencode([*default_params, *params])}" if default_params or params else ""

    def unsupported_reason(self, path: str) -> str:
        """Return the reason why the upstream cannot serve this path, or "" if it can."""
        if count_wire_for_path(path) not in (None, self.api):
            return f"tokens cannot be counted: the upstream's API {self.api} has no endpoint for that"
        return ""

    # ── authentication ────────────────────────────────────────────────────────────────────────────────────────────

    def with_auth(self, sdk_headers: Mapping[str, str]) -> dict[str, str]:
        """Return the headers of a request that is not translated, with the key in the header that this API uses."""
        headers = {name.lower(): value for name, value in sdk_headers.items()}
        key = extract_api_key(headers)
        if self._http_api.key_header == "x-api-key":
            return {**self._http_api.version_headers, **headers} | ({"x-api-key": key} if key else {})
        if headers.pop("x-api-key", "") and "authorization" not in headers:
            headers["authorization"] = f"Bearer {key}"
        return headers


def extract_api_key(headers: Mapping[str, str]) -> str:
    """Return the API key in the SDK's headers."""
    return headers.get("x-api-key") or headers.get("authorization", "").removeprefix("Bearer ")


def wire_for_path(path: str) -> str | None:
    """Return the wire of a request to this path, or None if the path does not return a reply."""
    return next((wire for wire in WIRES if path.rstrip("/").endswith(get_wire(wire).HTTP_API.path)), None)


def count_wire_for_path(path: str) -> str | None:
    """Return the wire whose servers alone count tokens at this path, or None if there is none."""
    apis = {wire: get_wire(wire).HTTP_API for wire in WIRES}
    return next((wire for wire, api in apis.items() if api.counts_by_default and path.endswith(api.count_path)), None)
