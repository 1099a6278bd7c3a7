"""What both wires of OpenAI have alike: who asks, the form of the reply, how long a tool's name may be."""

from __future__ import annotations

from interlingua.core.findings__notes import Notes
from interlingua.core.request import JsonFormat, Request
from interlingua.core.tools import short_name
from interlingua.upstreams.profile import CHAT, RESPONSES
from interlingua.wires.base import Json
from interlingua.wires.requests.object_reader import Fields

__all__ = ["SAME_FILES", "SHARED", "read_format", "told_name", "write_asker", "write_schema"]

SHARED = ("service_tier", "safety_identifier", "prompt_cache_retention", "moderation")
"""Fields that mean the same on both."""
SAME_FILES = (CHAT, RESPONSES)
"""The wires whose file ids mean the same."""


def told_name(name: str, notes: Notes) -> str:
    """The name under which a tool is offered. In the reply it is the client's again."""
    short = short_name(name)
    if short != name:
        notes.report("name-shortened", f"{name!r} is too long a name for this wire: told as {short!r}", "tools")
    return short


def read_format(format: Fields, key: str = "") -> JsonFormat | None:
    """The form of the reply; `key` is where the schema stands in it, if not at its top."""
    kind = format.one_of("type", "text", "json_object", "json_schema")
    if kind == "json_schema":
        schema = format.inner(key) if key else format
        return JsonFormat(schema.mapping("schema"), schema.text("name", ""), schema.flag("strict"))
    return JsonFormat() if kind == "json_object" else None


def write_schema(format: JsonFormat) -> Json:
    strict = {} if format.strict is None else {"strict": format.strict}
    return {"name": format.name or "reply", "schema": format.schema, **strict}


def write_asker(request: Request) -> Json:
    """Who asks, and what of that is the same from request to request."""
    given = {"user": request.user, "metadata": request.metadata, "prompt_cache_key": request.cache_key}
    return {key: value for key, value in given.items() if value}
