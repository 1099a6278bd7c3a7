"""Request fields that both OpenAI wires share: files, user fields, response format, length limit of tool names."""

from __future__ import annotations

from typing import Any

from interlingua.core.findings import FindingCollector
from interlingua.core.request import JsonFormat, Request
from interlingua.core.tools import shorten_name
from interlingua.wires.base import Json
from interlingua.wires.requests.object_reader import ObjectReader

__all__ = [
    "FILE_STORE",
    "convert_shared_field",
    "read_format",
    "wire_tool_name",
    "write_schema",
    "write_user_fields",
]

_SHARED_FIELDS = (
    *("service_tier", "safety_identifier", "prompt_cache_retention", "prompt_cache_options", "moderation"),
)
"""Fields with the same meaning on both wires."""
_SERVICE_TIERS = {"standard_only": "default"}
"""Service tiers that Anthropic names differently."""
FILE_STORE = "openai"
"""Vendor that stores the files: both wires share their file ids."""


def wire_tool_name(name: str, notes: FindingCollector) -> str:
    """Return the name to offer a tool under, shortened if needed. In the reply it becomes the client's name again."""
    short = shorten_name(name)
    if short != name:
        notes.report("name-shortened", f"the tool name {name!r} is too long for this wire: sent as {short!r}", "tools")
    return short


def convert_shared_field(name: str, value: Any) -> Any:
    """Return the value of a field of another wire; None if these wires have no such field."""
    if name not in _SHARED_FIELDS:
        return None
    return _SERVICE_TIERS.get(value, value) if name == "service_tier" and isinstance(value, str) else value


def read_format(format: ObjectReader, key: str = "") -> JsonFormat | None:
    """Read the response format. `key` is the field that holds the schema; "" if the format itself does."""
    format_type = format.one_of("type", "text", "json_object", "json_schema")
    if format_type == "json_schema":
        schema = format.inner(key) if key else format
        return JsonFormat(schema.mapping("schema"), schema.text("name", ""), schema.flag("strict"))
    return JsonFormat() if format_type == "json_object" else None


def write_schema(format: JsonFormat) -> Json:
    strict = {} if format.strict is None else {"strict": format.strict}
    return {"name": format.name or "reply", "schema": format.schema, **strict}


def write_user_fields(request: Request) -> Json:
    """Return the fields for the user, the metadata and the prompt cache key."""
    fields = {"user": request.user, "metadata": request.metadata, "prompt_cache_key": request.cache_key}
    return {key: value for key, value in fields.items() if value}
