"""Data URLs (RFC 2397), which hold files inside requests."""

from __future__ import annotations

from base64 import b64encode
from urllib.parse import unquote_to_bytes

__all__ = ["data_url", "read_data_url"]


def data_url(media_type: str, data: str) -> str:
    """Return a data URL. `data` is base64."""
    return f"data:{media_type};base64,{data}"


def read_data_url(url: str) -> tuple[str, str] | None:
    """Return the media type and the data in base64; None if this is not a data URL."""
    if not url.startswith("data:") or "," not in url:
        return None
    head, _, data = url.removeprefix("data:").partition(",")
    media_type, *params = head.split(";")
    if "base64" not in params:
        data = b64encode(unquote_to_bytes(data)).decode()
    return media_type, data
