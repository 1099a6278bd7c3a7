"""Redaction of an upstream's own secrets in the bytes of its replies."""

from __future__ import annotations

import json
from collections.abc import Callable
from functools import lru_cache

from interlingua.gateway.settings.redaction import REDACTED, credentials
from interlingua.gateway.settings.schema import Upstream

__all__ = ["SecretFilter"]

MIN_SECRET_CHARS = 16
"""Shorter keys are dummies of local servers, which must not disappear from texts that mention them."""


class SecretFilter:
    """Replaces the secrets that were sent to an upstream by `***` in one reply of it.

    Each piece costs one search, or one per secret if the upstream has several. Only the end of a piece that can be the
    start of a secret is held back. That is never the end of an event, because no secret contains a line end.

    Args:
        upstream: The upstream, with its secrets.
        report: Called when the first secret is found.
    """

    __slots__ = ("_possible_secret", "_report", "_secret_bytes", "_secrets")

    def __init__(self, upstream: Upstream, report: Callable[[], None] | None = None) -> None:
        key = "" if upstream.passthrough else upstream.key  # otherwise the key is the client's own
        self._secrets, self._secret_bytes = _sent_secrets(key, tuple(upstream.headers.items()))
        self._report = report
        self._possible_secret = b""

    @property
    def has_secrets(self) -> bool:
        """True if there is something to filter."""
        return bool(self._secrets)

    def passes(self, data: bytes) -> bool:
        """Return whether `feed` would return just this piece, unchanged."""
        if self._possible_secret or not data or data[-1] in self._secret_bytes:
            return False
        return not any(secret in data for secret in self._secrets)

    def feed(self, data: bytes) -> bytes:
        """Return the next piece without secrets. It can be empty."""
        if self._possible_secret:
            data, self._possible_secret = self._possible_secret + data, b""
        for secret in self._secrets:
            if secret in data:
                data = data.replace(secret, REDACTED.encode())
                self._report_once()
        if data and data[-1] in self._secret_bytes:
            data = self._hold_back(data)
        return data

    def flush(self) -> bytes:
        """Return what is held back at the end of the reply."""
        data, self._possible_secret = self._possible_secret, b""
        return data

    def _hold_back(self, data: bytes) -> bytes:
        """Hold back the longest end of the data that is the start of a secret."""
        start = min(_partial_secret_start(data, secret) for secret in self._secrets)
        self._possible_secret = data[start:]
        return data[:start]

    def _report_once(self) -> None:
        if self._report is not None:
            self._report()
            self._report = None


def _partial_secret_start(data: bytes, secret: bytes) -> int:
    """Return the start of the longest end of the data with which the secret starts; the length of the data if none."""
    first_byte = secret[:1]
    start = data.find(first_byte, max(0, len(data) - len(secret) + 1))
    while start >= 0 and not secret.startswith(data[start:]):
        start = data.find(first_byte, start + 1)
    return start if start >= 0 else len(data)


@lru_cache(maxsize=256)
def _sent_secrets(key: str, headers: tuple[tuple[str, str], ...]) -> tuple[tuple[bytes, ...], frozenset[int]]:
    """Return the secrets of the settings that requests to an upstream contain, as they appear in text and JSON.

    Returns: the secrets, and all bytes in them. The same objects for all replies: most streams last long.
    """
    values = {key, *credentials(dict(headers))}
    forms = {form for value in values if len(value) >= MIN_SECRET_CHARS for form in (value, json.dumps(value)[1:-1])}
    # `Bearer KEY` need not be searched for if KEY is.
    secrets = sorted(form.encode() for form in forms if not any(other in form for other in forms if other != form))
    return tuple(secrets), frozenset(b"".join(secrets))
