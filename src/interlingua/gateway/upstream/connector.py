"""Connections to upstreams: connection pool, proxies, certificates."""

from __future__ import annotations

import asyncio
import ssl
from functools import lru_cache, partial
from ipaddress import ip_address
from urllib.request import getproxies, proxy_bypass

import aiohttp
from aiohttp.client_proto import ResponseHandler

from interlingua.errors import BadSetting
from interlingua.gateway.settings.schema import Settings

__all__ = ["check_certificates", "make_connector", "proxy_for", "ssl_context_for"]

IDLE_CONNECTION_SECONDS = 60.0
"""Seconds for which one is kept that nobody uses."""


class _PatchedResponseHandler(ResponseHandler):
    """aiohttp resumes a connection behind every read, paused or not, and has its parser look for what is left over:
    a tenth of what a token costs."""

    def resume_reading(self, resume_parser: bool = True) -> None:
        if self._reading_paused:
            super().resume_reading(resume_parser)


def make_connector() -> aiohttp.TCPConnector:
    connector = aiohttp.TCPConnector(limit=0, keepalive_timeout=IDLE_CONNECTION_SECONDS)
    if isinstance(getattr(connector, "_factory", None), partial):  # it has no public way to say which protocol to take
        connector._factory = partial(_PatchedResponseHandler, loop=asyncio.get_running_loop())  # type: ignore[assignment]
    return connector


@lru_cache(maxsize=256)
def proxy_for(scheme: str, host: str) -> str | None:
    """Its URL; None: none is needed. What the process was started with holds for as long as it lives.

    aiohttp would look it up itself (`trust_env`), but anew for each request, in another thread; and it would take
    passwords from ~/.netrc for upstreams, which have keys of their own.
    """
    return None if _is_loopback(host) or proxy_bypass(host) else getproxies().get(scheme)


def _is_loopback(host: str) -> bool:
    try:
        return ip_address(host).is_loopback
    except ValueError:
        return host == "localhost" or host.endswith(".localhost")


@lru_cache(maxsize=256)
def ssl_context_for(ca: str) -> ssl.SSLContext:
    """What a connection is checked against; "": as the system has it. Read once, for it takes long."""
    return ssl.create_default_context(cafile=ca or None)


def check_certificates(settings: Settings) -> None:
    """Raises BadSetting if a file cannot be read. They are read anew, for they may have changed."""
    ssl_context_for.cache_clear()
    for name, upstream in settings.upstreams.items():
        try:
            ssl_context_for(upstream.ca)
        except (OSError, ssl.SSLError) as error:
            reason = error.strerror or str(error)
            message = f"{upstream.ca!r} cannot be read: {reason}"
            raise BadSetting(("upstreams", name, "ca"), message, "a file with certificates in PEM") from error
