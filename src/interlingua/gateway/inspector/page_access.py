"""Access to the inspector's page: which requests of a browser are allowed.

The page itself has no private data, so that a browser can load it and ask the user for the key. Everything else needs
the key, if there is one, and must come from the page.
"""

from __future__ import annotations

import hmac
from collections.abc import Mapping

from interlingua.gateway.http.auth import Authenticator
from interlingua.gateway.http.error_responses import Unauthorized
from interlingua.gateway.inspector.http_api import BASE_PATH
from interlingua.gateway.settings.schema import Settings

__all__ = ["PageAccess", "page_key"]

API_PATH = f"{BASE_PATH}/api/"


def page_key(settings: Settings) -> str:
    """Return the key for the page; "" if it needs none. The settings are checked: with several keys, it has its own."""
    return settings.inspect.key or next(iter(settings.client_keys.values()), "")


class PageAccess:
    """Checks requests for the page and its data.

    Args:
        settings: Settings of the gateway, for its host names.
        key: The key for the data; "" if it needs none.
    """

    def __init__(self, settings: Settings, key: str) -> None:
        self._authenticator = Authenticator(settings)
        self._key = key.encode()

    def check(self, path: str, headers: Mapping[str, str]) -> None:
        """Check a request. Raises Forbidden, or Unauthorized if the key is missing or wrong."""
        if not path.startswith(API_PATH):
            self._authenticator.check_host(headers)
            return
        self._authenticator.check_origin(headers)
        scheme, _, presented = headers.get("authorization", "").partition(" ")
        is_right = scheme.lower() == "bearer" and hmac.compare_digest(
            presented.strip().encode("utf-8", "surrogateescape"), self._key
        )
        if self._key and not is_right:
            raise Unauthorized("the inspector needs a key", "it is inspect.key of the settings, or the gateway's own")
