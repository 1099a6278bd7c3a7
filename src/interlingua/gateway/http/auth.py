"""Who may ask: the key a client shows, and the name that it reached this gateway by."""

from __future__ import annotations

import hmac
import re
from collections.abc import Iterable, Mapping
from hashlib import sha256
from ipaddress import ip_address

from interlingua.gateway.http.error_responses import Forbidden, Unauthorized
from interlingua.gateway.settings.schema import Settings

__all__ = ["Access"]

LOCAL = ("localhost", "127.0.0.1", "::1")
_HOST = re.compile(r"(?:\[(?P<v6>[0-9A-Fa-f:.]+)\]|(?P<name>[A-Za-z0-9._-]+))(?::\d{1,5})?")
ANYWHERE = ("0.0.0.0", "::", "")


class Access:
    """Fails closed: whatever is not allowed raises."""

    def __init__(self, settings: Settings) -> None:
        self._keys = [_digest(key) for key in settings.keys]
        listens = settings.host.lower().strip("[]")
        self._hosts = {*LOCAL, listens, *(host.lower().strip("[]") for host in settings.hosts)}
        self._any_host = listens in ANYWHERE and bool(settings.keys) and not settings.hosts

    def check_key(self, headers: Mapping[str, str]) -> None:
        """The client's key, from either header: SDKs of one vendor send either."""
        if not self._keys:
            return
        shown = list(_shown(headers))
        if True not in [self._knows(key) for key in shown]:
            problem = "this key is not known here" if shown else "no key"
            raise Unauthorized(problem, "send one of the gateway's own keys as Authorization: Bearer … or x-api-key")

    def own_key(self, headers: Mapping[str, str]) -> str:
        """What a client has shown for whoever is behind this gateway: a key that is none of the gateway's own."""
        return next((key for key in _shown(headers) if not self._knows(key)), "")

    def _knows(self, key: str) -> bool:
        digest = _digest(key)  # compared with every key, so that the time tells nothing of which one was close
        return True in [hmac.compare_digest(digest, known) for known in self._keys]

    def check_origin(self, headers: Mapping[str, str]) -> None:
        """A web page in a browser on this machine could reach a gateway on loopback, and spend its keys."""
        host = _name_in(headers.get("host", ""))
        if host != "" and host not in self._hosts and not self._any_host and not (_is_address(host) and self._keys):
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


def _name_in(host: str) -> str:
    """The name in a Host header, without its port; the whole of it if it is none, for that is never right."""
    found = _HOST.fullmatch(host)
    return (found["v6"] or found["name"]).lower() if found else host


def _is_address(host: str) -> bool:
    try:
        ip_address(host)
    except ValueError:
        return False
    return True
