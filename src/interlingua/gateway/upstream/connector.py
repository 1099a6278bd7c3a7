"""Connections to upstreams: connection pool, proxies, certificates."""

from __future__ import annotations

import ssl
from functools import lru_cache
from ipaddress import ip_address
from urllib.request import getproxies, proxy_bypass

import aiohttp

from interlingua.errors import BadSetting
from interlingua.gateway.aiohttp_internals import UpstreamConnector
from interlingua.gateway.settings.schema import Settings

__all__ = ["check_certificates", "make_connector", "proxy_for", "ssl_context_for"]

IDLE_CONNECTION_SECONDS = 60.0
"""Seconds for which an unused connection is kept in the pool."""


def make_connector() -> aiohttp.TCPConnector:
    return UpstreamConnector(limit=0, keepalive_timeout=IDLE_CONNECTION_SECONDS)


@lru_cache(maxsize=256)
def proxy_for(scheme: str, host: str) -> str | None:
    """Return the URL of the proxy for this host, or None if no proxy is needed.

    Proxies are read from the environment and cached as long as the process runs. aiohttp can look them up itself
    (`trust_env`), but does so for each request, in another thread. It also takes passwords for upstreams from
    ~/.netrc, although upstreams have their own keys.
    """
    return None if _is_loopback(host) or proxy_bypass(host) else getproxies().get(scheme)


def _is_loopback(host: str) -> bool:
    try:
        return ip_address(host).is_loopback
    except ValueError:
        return host == "localhost" or host.endswith(".localhost")


@lru_cache(maxsize=256)
def ssl_context_for(ca: str) -> ssl.SSLContext:
    """Return the TLS context for this CA file; "" selects the system certificates. Cached: loading is slow."""
    return ssl.create_default_context(cafile=ca or None)


def check_certificates(settings: Settings) -> None:
    """Check the CA files of all upstreams, without the cache: they may have changed. Raises BadSetting."""
    ssl_context_for.cache_clear()
    for name, upstream in settings.upstreams.items():
        try:
            ssl_context_for(upstream.ca)
        except (OSError, ssl.SSLError) as error:
            reason = error.strerror or str(error)
            message = f"{upstream.ca!r} cannot be read: {reason}"
            raise BadSetting(("upstreams", name, "ca"), message, "expected certificates in PEM format") from error
