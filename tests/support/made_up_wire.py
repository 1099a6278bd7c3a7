"""A wire that does not exist, for tests that a wire needs nothing outside its own module and the registry.

Its requests hold the conversation in `turns`, need a token limit, and have no stop sequences. Otherwise requests and
replies are those of Chat Completions.
"""

from __future__ import annotations

import sys
from types import SimpleNamespace
from typing import Any, cast

import msgspec
import pytest

import interlingua.wires
from interlingua.core.options import Options
from interlingua.core.request import Request
from interlingua.core.wire_traits import WireTraits
from interlingua.events import Finding
from interlingua.upstreams.profile import Profile
from interlingua.wires import openai_chat
from interlingua.wires.base import Wire
from interlingua.wires.http_api import HttpApi, HttpError
from interlingua.wires.openapi import MODEL, TEXT, ApiDescription, object_schema

__all__ = ["NAME", "register"]

Json = dict[str, Any]
NAME = "acme-turns"
replace = msgspec.structs.replace


def _read_request(body: Json, options: Options) -> Request:
    chat_body = {("messages" if key == "turns" else key): value for key, value in body.items()}
    request = openai_chat.read_request(chat_body, options)
    paths = {path: source.replace("messages", "turns", 1) for path, source in request.source_paths.items()}
    return replace(request, wire=NAME, file_store="", source_paths=paths)


def _write_request(request: Request, profile: Profile) -> tuple[Json, list[Finding]]:
    own = replace(request, wire=openai_chat.NAME) if request.wire == NAME else request
    body, findings = openai_chat.write_request(own, profile)
    return {("turns" if key == "messages" else key): value for key, value in body.items()}, findings


def _error_body(error: HttpError) -> Json:
    return {"fault": error.type, "text": error.message, "at": error.param, "request": error.request_id}


HTTP_API = HttpApi(
    provider="acme",
    path="/turns",
    count_path="/turns/count",
    count_reply={"unit": "token"},
    client_header="acme-version",
    error_types={400: "wrong", 401: "stranger", 404: "missing"},
    server_error_type="broken",
    error_body=_error_body,
)
API_DESCRIPTION = ApiDescription(
    title="Acme Turns",
    operation_id="turns",
    count_operation_id="count_turns",
    request="TurnsRequest",
    reply="TurnsReply",
    error="AcmeError",
    schemas={
        "TurnsRequest": object_schema({"model": MODEL, "turns": {"type": "array"}}, "model", "turns"),
        "TurnsReply": object_schema({"choices": {"type": "array"}}, "choices"),
        "AcmeError": object_schema({"fault": TEXT, "text": TEXT}, "fault", "text"),
    },
)
_CHANGES = {
    "NAME": NAME,
    "TRAITS": WireTraits(
        wire=NAME,
        conversation_field="turns",
        requires_max_tokens=True,
        has_stop_sequences=False,
        has_refusal_field=True,
    ),
    "REASONING_FIELDS": replace(
        openai_chat.REASONING_FIELDS, wire=NAME, request_paths=("turns * reasoning_details *",), message_path="turns *"
    ),
    "HTTP_API": HTTP_API,
    "API_DESCRIPTION": API_DESCRIPTION,
    "TURNS": None,
    "read_request": _read_request,
    "write_request": _write_request,
}
_WIRE = cast(Wire, SimpleNamespace(**{name: getattr(openai_chat, name) for name in openai_chat.__all__} | _CHANGES))


def register(monkeypatch: pytest.MonkeyPatch) -> None:
    """Add the wire to the registry for one test, also in modules that have imported the list of wires."""
    known = interlingua.wires.WIRES
    monkeypatch.setitem(interlingua.wires._BY_NAME, NAME, _WIRE)
    for name, module in list(sys.modules.items()):
        if name.startswith("interlingua.") and getattr(module, "WIRES", None) is known:
            monkeypatch.setattr(module, "WIRES", (*known, NAME))
