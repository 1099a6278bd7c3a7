"""Whose certificates are trusted? Those that the system trusts, or SSL_CERT_FILE names; and for an upstream of one's
own, those of its `ca`."""

from __future__ import annotations

import ssl
from functools import lru_cache

from interlingua.errors import BadSetting
from interlingua.gateway.settings.schema import Settings

__all__ = ["check_certificates", "ssl_context_for"]


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
