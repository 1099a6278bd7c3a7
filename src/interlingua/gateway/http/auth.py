"""Who may ask: the key a client shows, and the name that it reached this gateway by."""

from __future__ import annotations

import hmac
import re
from collections.abc import Iterable, Mapping
from hashlib import sha256
from ipaddress import ip_address

from interlingua.gateway.http.error_responses import Forbidden, Unauthorized
from interlingua.gateway.settings.schema import Settings

__all__ = ["Authenticator"]

LOOPBACK_HOSTS = ("localhost", "127.0.0.1", "::1")
_HOST_HEADER = re.compile(r"(?:\[(?P<v6>[0-9A-Fa-f:.]+)\]|(?P<name>[A-Za-z0-9._-]+))(?::\d{1,5})?")
WILDCARD_HOSTS = ("0.0.0.0", "::", "")


class Authenticator:
    """Fails closed: whatever is not allowed raises."""

    def __init__(self, settings: Settings) -> None:
        self._key_digests = [_digest(key) for key in settings.keys]
        own_host = settings.host.lower().strip("[]")
        self._allowed_hosts = {*LOOPBACK_HOSTS, own_host, *(host.lower().strip("[]") for host in settings.hosts)}
        self._allow_any_host = own_host in WILDCARD_HOSTS and bool(settings.keys) and not settings.hosts

    def check_key(self, headers: Mapping[str, str]) -> None:
        """The client's key, from either header: SDKs of one vendor send either."""
        if not self._key_digests:
            return
        presented = list(_presented_keys(headers))
        if True not in [self._is_gateway_key(key) for key in presented]:
            problem = "this key is not known here" if presented else "no key"
            raise Unauthorized(problem, "send one of the gateway's own keys as Authorization: Bearer … or x-api-key")

    def passthrough_key(self, headers: Mapping[str, str]) -> str:
        """What a client has shown for whoever is behind this gateway: a key that is none of the gateway's own."""
        return next((key for key in _presented_keys(headers) if not self._is_gateway_key(key)), "")

    def _is_gateway_key(self, key: str) -> bool:
        digest = _digest(key)  # compared with every key, so that the time tells nothing of which one was close
        return True in [hmac.compare_digest(digest, expected) for expected in self._key_digests]

    def check_origin(self, headers: Mapping[str, str]) -> None:
        """A web page in a browser on this machine could reach a gateway on loopback, and spend its keys."""
        host = _host_name(headers.get("host", ""))
        if (
            host != ""
            and host not in self._allowed_hosts
            and not self._allow_any_host
            and not (_is_ip_address(host) and self._key_digests)
        ):
            raise Forbidden(
                f"this gateway is not called {host!r:.100}", "add the name to `hosts` in the settings, if it is"
            )
        if headers.get("sec-fetch-site") not in (None, "same-origin", "none") or "origin" in headers:
            raise Forbidden("requests of web pages are not answered", "call from a program")


def _presented_keys(headers: Mapping[str, str]) -> Iterable[str]:
    scheme, _, key = headers.get("authorization", "").partition(" ")
    if scheme.lower() == "bearer" and key.strip():
        yield key.strip()
    if key := headers.get("x-api-key", "").strip():
        yield key


def _digest(key: str) -> bytes:
    return sha256(key.encode("utf-8", "surrogateescape")).digest()


def _host_name(host: str) -> str:
    """The name in a Host header, without its port; the whole of it if it is none, for that is never right."""
    match = _HOST_HEADER.fullmatch(host)
    return (match["v6"] or match["name"]).lower() if match else host


def _is_ip_address(host: str) -> bool:
    try:
        ip_address(host)
    except ValueError:
        return False
    return True
