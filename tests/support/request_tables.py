"""Small requests of each wire, and a translation check, for tests with tables of requests."""

from __future__ import annotations

from typing import Any

import msgspec

from interlingua.core.options import Options
from interlingua.events import Finding
from interlingua.upstreams.adapt import adapt
from interlingua.upstreams.profile import UNKNOWN_PROFILE, Profile
from tests.support.request_forms import CHAT, MESSAGES, RESPONSES, WIRES

Json = dict[str, Any]
KEY = b"key"
PNG = "data:image/png;base64,iVBORw0KGgo="
PDF = "data:application/pdf;base64,JVBERi0="
MINIMAL_REQUESTS: dict[str, Json] = {
    CHAT: {"messages": [{"role": "user", "content": "hi"}]},
    MESSAGES: {"messages": [{"role": "user", "content": "hi"}], "max_tokens": 8000},
    RESPONSES: {"input": "hi"},
}
PING_SCHEMA = {"type": "object", "properties": {}}


class TranslatedRequest(msgspec.Struct):
    body: Json
    findings: list[Finding]


def translate(source: str, body: Json, target: str, upstream: Profile | None = None) -> TranslatedRequest:
    """Translate a request for an upstream, without history repair."""
    request = WIRES[source].read_request({"model": "m", **MINIMAL_REQUESTS[source], **body}, Options(seal_key=KEY))
    request, adapt_findings = adapt(request, upstream or UNKNOWN_PROFILE, WIRES[target].TRAITS)
    written_body, write_findings = WIRES[target].write_request(request, upstream or UNKNOWN_PROFILE)
    return TranslatedRequest(written_body, adapt_findings + write_findings)


def check_translation(
    source: str, body: Json, target: str, expected: Json, expected_kinds: str = "", upstream: Profile | None = None
) -> None:
    """Assert the expected fields and the kinds of findings. None means that the field must be absent."""
    translated = translate(source, body, target, upstream)
    assert {key: translated.body.get(key) for key in expected} == expected
    finding_kinds = {finding.kind for finding in translated.findings} - {"no-max-tokens"}
    assert finding_kinds == set(expected_kinds.split()), translated.findings


def user(*parts: Json) -> Json:
    return {"messages": [{"role": "user", "content": list(parts)}]}


def responses_message(*parts: Json) -> Json:
    return {"input": [{"type": "message", "role": "user", "content": list(parts)}]}


TOOL: dict[str, Json] = {
    CHAT: {"type": "function", "function": {"name": "ping", "parameters": PING_SCHEMA}},
    MESSAGES: {"name": "ping", "input_schema": PING_SCHEMA},
    RESPONSES: {"type": "function", "name": "ping", "parameters": PING_SCHEMA, "strict": False},
}
WITH_TOOL = {wire: {"tools": [tool]} for wire, tool in TOOL.items()}

IMAGE: dict[str, Json] = {
    CHAT: {"type": "image_url", "image_url": {"url": PNG}},
    MESSAGES: {"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": "iVBORw0KGgo="}},
    RESPONSES: {"type": "input_image", "image_url": PNG, "detail": "auto"},
}
FILE: dict[str, Json] = {
    CHAT: {"type": "file", "file": {"file_data": PDF, "filename": "a.pdf"}},
    MESSAGES: {
        "type": "document",
        "source": {"type": "base64", "media_type": "application/pdf", "data": "JVBERi0="},
        "title": "a.pdf",
    },
    RESPONSES: {"type": "input_file", "file_data": PDF, "filename": "a.pdf"},
}
IMAGE_LINK: dict[str, Json] = {
    CHAT: {"type": "image_url", "image_url": {"url": "https://a/b.png"}},
    MESSAGES: {"type": "image", "source": {"type": "url", "url": "https://a/b.png"}},
    RESPONSES: {"type": "input_image", "image_url": "https://a/b.png", "detail": "auto"},
}
TEXT: dict[str, Json] = {
    CHAT: {"type": "text", "text": "see"},
    MESSAGES: {"type": "text", "text": "see"},
    RESPONSES: {"type": "input_text", "text": "see"},
}

TOOL_USE = {"type": "tool_use", "id": "t1", "name": "ping", "input": {"a": 1}}
TOOL_RESULT = {"type": "tool_result", "tool_use_id": "t1", "content": "ok"}


def assistant_history(*blocks: Json) -> list[Json]:
    return [{"role": "user", "content": "hi"}, {"role": "assistant", "content": list(blocks)}]


def chat_call(id: str = "t1", arguments: str = '{"a":1}') -> Json:
    return {"id": id, "type": "function", "function": {"name": "ping", "arguments": arguments}}


FAILED_RESULT = {**TOOL_RESULT, "is_error": True}


def input_items(*extra_items: Json) -> Json:
    return {"input": [{"type": "message", "role": "user", "content": "hi"}, *extra_items]}
