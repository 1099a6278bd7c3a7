"""Who is asked, where, and how it wants to be asked: the address that a program gave, and what an SDK makes of it."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any
from urllib.parse import parse_qsl, urlencode, urlsplit

import msgspec

from interlingua.core.options import Delivery, Options, ReasoningPolicy
from interlingua.dialects.registry import get_dialect
from interlingua.errors import UsageError, expect_type
from interlingua.events import Finding
from interlingua.parsing.dialect import Dialect
from interlingua.upstreams import get_profile, profile_for_url
from interlingua.upstreams.profile import CHAT, MESSAGES, RESPONSES, Profile
from interlingua.wires import get_wire

__all__ = ["Exchange", "UpstreamConfig", "wire_for_path"]

ENDPOINT_PATHS = {CHAT: "/chat/completions", MESSAGES: "/messages", RESPONSES: "/responses"}
ANTHROPIC_VERSION = "2023-06-01"
VERSION_PATH = "/v1"
"""Anthropic's SDK puts it before its paths, OpenAI's has it in its address."""


class Exchange(msgspec.Struct, frozen=True, kw_only=True):
    """What a hook is told of one request, once its reply is over."""

    url: str
    model: str
    dialect: str
    findings: list[Finding]
    failure: str = ""
    """Why the reply failed; nothing if it did not."""


class UpstreamConfig(msgspec.Struct, frozen=True, kw_only=True):
    """Who is asked, and how its replies are treated. Whatever is wrong with that is told when it is made."""

    url: str
    query: str = ""
    """What every request has behind its path, such as `api-version=1`."""
    api: str = CHAT
    profile: str = "auto"
    dialect: str | Dialect = "auto"
    delivery: Delivery = "stream"
    reasoning: ReasoningPolicy = "keep"
    seal_key: bytes = b""
    extra: dict[str, Any] = {}
    """Further fields of every request body."""
    on_exchange: Callable[[Exchange], None] | None = None

    def __post_init__(self) -> None:
        try:
            url = urlsplit(self.url)
            is_valid = url.scheme in ("http", "https") and bool(url.hostname) and (url.port is None or url.port > 0)
        except ValueError:  # half an IPv6 address, a port that is no number
            is_valid = False
        if not is_valid:
            raise UsageError(f"base_url {self.url!r} is no address", "write it as 'http://localhost:8000/v1'")
        get_wire(self.api)
        self.resolve_profile()
        if self.dialect != "auto":
            get_dialect(self.dialect)
        expect_type(self.seal_key, bytes, "seal_key is bytes", "any 32 bytes, such as those of os.urandom(32)")
        expect_type(self.extra, dict, "extra is a dict", "write extra={'top_k': 20}")
        if self.on_exchange is not None and not callable(self.on_exchange):
            raise UsageError("on_exchange is a function", "it is called with an Exchange")
        Options(delivery=self.delivery, reasoning=self.reasoning)

    def resolve_profile(self) -> Profile:
        return profile_for_url(self.url) if self.profile == "auto" else get_profile(self.profile)

    # ── where ─────────────────────────────────────────────────────────────────────────────────────────────────────

    @property
    def base_url(self) -> str:
        """What all its paths begin with. Its address may lack the version, as Anthropic's does, or have a path."""
        base = self.url.rstrip("/").removesuffix(ENDPOINT_PATHS[self.api])
        path = urlsplit(base).path.strip("/")
        has_version = any(part[:1] == "v" and part[1:2].isdigit() for part in path.split("/"))
        return base + ("" if has_version or (path and self.api != MESSAGES) else VERSION_PATH)

    @property
    def endpoint(self) -> str:
        """Where it is asked for a reply."""
        return self.base_url + ENDPOINT_PATHS[self.api]

    def other_url(self, path: str) -> str:
        """Where it is asked for something else, such as its models, if this is where the SDK asks."""
        base_path = urlsplit(self.url).path.rstrip("/")
        if not path.startswith(f"{base_path}/"):
            url = urlsplit(self.url)
            return f"{url.scheme}://{url.netloc}{path}"
        relative_path = path[len(base_path) :]
        return self.base_url + (
            relative_path.removeprefix(VERSION_PATH) if relative_path.startswith(f"{VERSION_PATH}/") else relative_path
        )

    def query_string(self, query: str) -> str:
        """What stands behind the path, `?` included, if the SDK puts this there."""
        params = parse_qsl(query, keep_blank_values=True)
        if self.api != MESSAGES:
            params = [(name, value) for name, value in params if name != "beta"]  # Anthropic's, of its own API
        names = {name for name, _ in params}
        default_params = [pair for pair in parse_qsl(self.query, keep_blank_values=True) if pair[0] not in names]
        return f"?{urlencode([*default_params, *params])}" if default_params or params else ""

    def unsupported_reason(self, path: str) -> str:
        """Why it cannot be asked for this at all; nothing if it may."""
        if self.api != MESSAGES and path.endswith("/messages/count_tokens"):
            return f"tokens cannot be counted: the upstream speaks {self.api}, which has no request for that"
        return ""

    # ── by whom ───────────────────────────────────────────────────────────────────────────────────────────────────

    def with_auth(self, sdk_headers: Mapping[str, str]) -> dict[str, str]:
        """The headers of a request that is no question, with the key where this upstream looks for it."""
        headers = {name.lower(): value for name, value in sdk_headers.items()}
        key = extract_api_key(headers)
        if self.api == MESSAGES:
            return {"anthropic-version": ANTHROPIC_VERSION, **headers} | ({"x-api-key": key} if key else {})
        if headers.pop("x-api-key", "") and "authorization" not in headers:
            headers["authorization"] = f"Bearer {key}"
        return headers


def extract_api_key(headers: Mapping[str, str]) -> str:
    """The key that an SDK was given."""
    return headers.get("x-api-key") or headers.get("authorization", "").removeprefix("Bearer ")


def wire_for_path(path: str) -> str | None:
    """What a client speaks that asks this path; None if it asks for something else than a reply."""
    return next((wire for wire, suffix in ENDPOINT_PATHS.items() if path.rstrip("/").endswith(suffix)), None)
