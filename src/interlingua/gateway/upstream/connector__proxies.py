"""Through which proxy is an upstream reached? As HTTPS_PROXY, HTTP_PROXY and NO_PROXY say, but never on this machine:
no proxy can reach its loopback."""

from __future__ import annotations

from functools import lru_cache
from ipaddress import ip_address
from urllib.request import getproxies, proxy_bypass

__all__ = ["proxy_for"]


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
