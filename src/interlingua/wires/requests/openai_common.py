"""What both wires of OpenAI have alike: who asks, the form of the reply, how long a tool's name may be."""

from __future__ import annotations

from interlingua.core.findings import FindingCollector
from interlingua.core.request import JsonFormat, Request
from interlingua.core.tools import shorten_name
from interlingua.upstreams.profile import CHAT, RESPONSES
from interlingua.wires.base import Json
from interlingua.wires.requests.object_reader import ObjectReader

__all__ = [
    "SHARED_FIELDS",
    "SHARED_FILE_ID_WIRES",
    "read_format",
    "wire_tool_name",
    "write_schema",
    "write_user_fields",
]

SHARED_FIELDS = ("service_tier", "safety_identifier", "prompt_cache_retention", "moderation")
"""Fields that mean the same on both."""
SHARED_FILE_ID_WIRES = (CHAT, RESPONSES)
"""The wires whose file ids mean the same."""


def wire_tool_name(name: str, notes: FindingCollector) -> str:
    """The name under which a tool is offered. In the reply it is the client's again."""
    short = shorten_name(name)
    if short != name:
        notes.report("name-shortened", f"{name!r} is too long a name for this wire: told as {short!r}", "tools")
    return short


def read_format(format: ObjectReader, key: str = "") -> JsonFormat | None:
    """The form of the reply; `key` is where the schema stands in it, if not at its top."""
    format_type = format.one_of("type", "text", "json_object", "json_schema")
    if format_type == "json_schema":
        schema = format.inner(key) if key else format
        return JsonFormat(schema.mapping("schema"), schema.text("name", ""), schema.flag("strict"))
    return JsonFormat() if format_type == "json_object" else None


def write_schema(format: JsonFormat) -> Json:
    strict = {} if format.strict is None else {"strict": format.strict}
    return {"name": format.name or "reply", "schema": format.schema, **strict}


def write_user_fields(request: Request) -> Json:
    """Who asks, and what of that is the same from request to request."""
    fields = {"user": request.user, "metadata": request.metadata, "prompt_cache_key": request.cache_key}
    return {key: value for key, value in fields.items() if value}
