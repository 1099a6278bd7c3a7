"""Authentication: checks the API key of the client, the Host header and the origin of the request."""

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
KEY_LABEL_CHARS = 8
"""Characters of the digest of a key that is not in the settings."""
WILDCARD_HOSTS = ("0.0.0.0", "::", "")


class Authenticator:
    """Checks API keys and origins. Fails closed: everything that is not explicitly allowed raises."""

    def __init__(self, settings: Settings) -> None:
        self._key_digests = [_digest(key) for key in settings.client_keys.values()]
        self._client_names = dict(zip(map(bytes.hex, self._key_digests), settings.client_keys, strict=True))
        own_host = settings.host.lower().strip("[]")
        self._allowed_hosts = {*LOOPBACK_HOSTS, own_host, *(host.lower().strip("[]") for host in settings.hosts)}
        self._allow_any_host = own_host in WILDCARD_HOSTS and bool(settings.keys) and not settings.hosts

    def check_key(self, headers: Mapping[str, str]) -> str:
        """Check the API key from `authorization` or `x-api-key`; SDKs of one vendor use both. Raises Unauthorized.

        Returns:
            The id of the client: the digest of its key, or "" if it sent none and needs none.
        """
        presented = list(_presented_keys(headers))
        accepted = [key for key in presented if self._is_gateway_key(key)] if self._key_digests else presented
        if self._key_digests and not accepted:
            problem = "unknown API key" if presented else "the request has no API key"
            raise Unauthorized(problem, "send a key of the gateway as Authorization: Bearer … or x-api-key")
        return _digest(accepted[0]).hex() if accepted else ""

    def client_name(self, client_id: str) -> str:
        """Return the name of a client's key in the settings, for log and metrics; "" if there are no keys."""
        return self._client_names.get(client_id, "")

    def passthrough_key(self, headers: Mapping[str, str]) -> str:
        """Return the client's key for the upstream: the first key that is not a gateway key, or "" if there is none."""
        return next((key for key in _presented_keys(headers) if not self._is_gateway_key(key)), "")

    def _is_gateway_key(self, key: str) -> bool:
        digest = _digest(key)
        # Compared with every key, so that the response time does not reveal which key was similar.
        return True in [hmac.compare_digest(digest, expected) for expected in self._key_digests]

    def check_origin(self, headers: Mapping[str, str]) -> None:
        """Check the Host header and reject requests from web pages. Raises Forbidden.

        Otherwise a web page in a browser on this machine could reach a gateway on loopback and use its upstream keys.
        """
        self.check_host(headers)
        if headers.get("sec-fetch-site") not in (None, "same-origin", "none") or "origin" in headers:
            raise Forbidden("requests from web pages are not allowed", "send the request from a program")

    def check_host(self, headers: Mapping[str, str]) -> None:
        """Check that the Host header names this gateway. Raises Forbidden.

        A web page can make its own host name resolve to this machine (DNS rebinding), and is then of the same origin.
        """
        host = _host_name(headers.get("host", ""))
        if (
            host != ""
            and host not in self._allowed_hosts
            and not self._allow_any_host
            and not (_is_ip_address(host) and self._key_digests)
        ):
            raise Forbidden(
                f"the host name {host!r:.100} is not allowed", "add it to `hosts` in the settings if it is correct"
            )


def _presented_keys(headers: Mapping[str, str]) -> Iterable[str]:
    scheme, _, key = headers.get("authorization", "").partition(" ")
    if scheme.lower() == "bearer" and key.strip():
        yield key.strip()
    if key := headers.get("x-api-key", "").strip():
        yield key


def _digest(key: str) -> bytes:
    return sha256(key.encode("utf-8", "surrogateescape")).digest()


def _host_name(host: str) -> str:
    """Return the name in a Host header without the port. A malformed header is returned whole: it is never allowed."""
    match = _HOST_HEADER.fullmatch(host)
    return (match["v6"] or match["name"]).lower() if match else host


def _is_ip_address(host: str) -> bool:
    try:
        ip_address(host)
    except ValueError:
        return False
    return True
