"""Items of stored responses, read from JSON without decoding all of it."""

from __future__ import annotations

from collections.abc import Collection

import msgspec

from interlingua.common.coerce import as_dict, as_list
from interlingua.common.jsontext.codec import encode_json, read_full_list, read_full_object, read_json
from interlingua.gateway.http.input_items import COMPACTION

__all__ = ["has_summary", "output_json", "pick_items"]


def output_json(response: bytes) -> bytes:
    """Return the output items of a response object, as a JSON list."""
    found = read_json(response, _OutputField)
    if found is not None:
        return bytes(found.output)
    return encode_json(as_list((read_full_object(response) or {}).get("output")))


def has_summary(output: bytes) -> bool:
    """Return whether these output items, a JSON list, contain a summary of the conversation."""
    if f'"{COMPACTION}"'.encode() not in output:
        return False
    return any(as_dict(item).get("type") == COMPACTION for item in read_full_list(output) or [])


def pick_items(items: bytes, ids: Collection[str]) -> dict[str, bytes]:
    """Return those items of a JSON list that have one of these ids, each as JSON."""
    decoded = (as_dict(item) for item in read_full_list(items) or [])
    return {item["id"]: encode_json(item) for item in decoded if isinstance(item.get("id"), str) and item["id"] in ids}


class _OutputField(msgspec.Struct):
    output: msgspec.Raw = msgspec.Raw(b"[]")
