"""Values that the gateway has sealed for a client, and that come back in a request."""

from __future__ import annotations

from interlingua.core.reasoning_signatures import read_value_envelope, unpacked_size
from interlingua.gateway.http.error_responses import TooLarge

__all__ = ["SealedValues"]


class SealedValues:
    """Reads the sealed values of one request, up to a total size.

    Args:
        key: The key of the client's envelopes.
        max_bytes: Maximum size of all values, unpacked.
    """

    def __init__(self, key: bytes, max_bytes: int) -> None:
        self._key = key
        self._bytes_left = max_bytes

    def read(self, sealed: object, purpose: str) -> str | None:
        """Return a value that was sealed for this purpose; None if it is something else. Raises TooLarge."""
        if not isinstance(sealed, str):
            return None
        self._bytes_left -= unpacked_size(sealed, self._key, self._bytes_left)
        if self._bytes_left < 0:
            raise TooLarge("the sealed data in the request exceeds limits.seals")
        signed = read_value_envelope(sealed, purpose, self._key)
        return None if signed is None else signed.value
