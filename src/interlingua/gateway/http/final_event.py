"""Final event of a response in the Responses API, which contains the complete response."""

from __future__ import annotations

import re
from typing import Any

from interlingua.common.coerce import as_dict
from interlingua.common.jsontext.codec import read_full_object

__all__ = ["FINAL_TYPES", "final_response", "may_contain_final_event"]

FINAL_TYPES = ("response.completed", "response.incomplete")
_FINAL_TYPE = re.compile(r'"type"\s*:\s*"response\.(?:completed|incomplete)"')
_ENCODED_FINAL_TYPE = re.compile(_FINAL_TYPE.pattern.encode())


def may_contain_final_event(data: bytes) -> bool:
    """Return whether it is worth decoding the events in this data. The type may also stand in a text."""
    return _ENCODED_FINAL_TYPE.search(data) is not None


def final_response(event: str) -> dict[str, Any] | None:
    """Return the response in a final event; None if it is another event."""
    if not _FINAL_TYPE.search(event):
        return None
    fields = read_full_object(event) or {}
    return as_dict(fields.get("response")) if fields.get("type") in FINAL_TYPES else None
