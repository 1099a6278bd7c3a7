"""Who may ask: the key a client shows, and the name that it reached this gateway by."""

from __future__ import annotations

import hmac
from collections.abc import Iterable, Mapping
from hashlib import sha256
from ipaddress import ip_address

from interlingua.gateway.answers import Forbidden, Unauthorized
from interlingua.gateway.settings import Settings

__all__ = ["Access"]

LOCAL = ("localhost", "127.0.0.1", "::1")
ANYWHERE = ("0.0.0.0", "::", "")


class Access:
    """Fails closed: whatever is not allowed raises."""

    def __init__(self, settings: Settings) -> None:
        self._keys = [_digest(key) for key in settings.keys]
        self._hosts = {*LOCAL, settings.host.lower().strip("[]"), *(host.lower() for host in settings.hosts)}
        self._any_host = settings.host in ANYWHERE and bool(settings.keys) and not settings.hosts

    def check_key(self, headers: Mapping[str, str]) -> None:
        """The client's key, from either header: SDKs of one vendor send either."""
        if not self._keys:
            return
        shown = list(_shown(headers))
        # Every key is compared, so that the time tells nothing of which one was close.
        if not [True for digest in map(_digest, shown) for key in self._keys if hmac.compare_digest(digest, key)]:
            problem = "this key is not known here" if shown else "no key"
            raise Unauthorized(problem, "send one of the gateway's own keys as Authorization: Bearer … or x-api-key")

    def check_origin(self, headers: Mapping[str, str]) -> None:
        """A web page in a browser on this machine could reach a gateway on loopback, and spend its keys."""
        host = _without_port(headers.get("host", "")).lower()
        if host and host not in self._hosts and not self._any_host and not (_is_address(host) and self._keys):
            raise Forbidden(
                f"this gateway is not called {host!r:.100}", "add the name to `hosts` in the settings, if it is"
            )
        if headers.get("sec-fetch-site") not in (None, "same-origin", "none") or "origin" in headers:
            raise Forbidden("requests of web pages are not answered", "call from a program")


def _shown(headers: Mapping[str, str]) -> Iterable[str]:
    kind, _, key = headers.get("authorization", "").partition(" ")
    if kind.lower() == "bearer" and key.strip():
        yield key.strip()
    if key := headers.get("x-api-key", "").strip():
        yield key


def _digest(key: str) -> bytes:
    return sha256(key.encode("utf-8", "surrogateescape")).digest()


def _without_port(host: str) -> str:
    if host.startswith("["):
        return host[1:].partition("]")[0]
    return host.partition(":")[0]


def _is_address(host: str) -> bool:
    try:
        ip_address(host)
    except ValueError:
        return False
    return True
