"""OpenAPI document: it has exactly the paths of the gateway, and responses match its schemas."""

from __future__ import annotations

import json
import re
import urllib.error
import urllib.request
from collections.abc import Iterator
from typing import Any

import jsonschema  # type: ignore[import-untyped]
import pytest

from interlingua.gateway.api.app import make_app
from interlingua.gateway.api.openapi import openapi_document
from interlingua.gateway.http.connection_listener import _raw_response
from interlingua.gateway.settings.loader import LoadedSettings
from interlingua.gateway.settings.schema import Settings
from interlingua.gateway.state import GatewayState
from tests.support.gateway_process import GatewayProcess, run_gateway

KEY = "a-key-of-the-gateway-0123456789"
DOCUMENT = openapi_document()


@pytest.fixture(scope="module")
def gateway() -> Iterator[GatewayProcess]:
    with run_gateway("--demo", config=f"keys: [{KEY}]\ndemo_pace: 0\n") as started:
        yield started


def documented_operations() -> set[tuple[str, str]]:
    everywhere = [server["url"] for server in DOCUMENT["servers"]]
    return {
        (method.upper(), base.rstrip("/") + path)
        for path, item in DOCUMENT["paths"].items()
        for base in [server["url"] for server in item.get("servers", [])] or everywhere
        for method in item
        if method != "servers"
    }


def test_document_has_exactly_the_paths_of_the_gateway() -> None:
    app = make_app(GatewayState(LoadedSettings(Settings(demo=True), "", [], {}), b"", "http://127.0.0.1:9/v1"))
    served = {
        (route.method, route.resource.canonical)
        for route in app.router.routes()
        if route.resource is not None and route.method not in ("HEAD", "*")  # any other path or method is an error
    }
    assert documented_operations() == served


def test_all_schemas_are_valid_and_all_references_resolve() -> None:
    for schema in DOCUMENT["components"]["schemas"].values():
        jsonschema.Draft202012Validator.check_schema(schema)
    named = set(re.findall(r'"#/components/schemas/(\w+)"', json.dumps(DOCUMENT)))
    assert named == DOCUMENT["components"]["schemas"].keys()


def test_operation_ids_are_unique() -> None:
    names = [
        item[method]["operationId"] for item in DOCUMENT["paths"].values() for method in item if method != "servers"
    ]
    assert len(names) == len(set(names))


def fetch(
    gateway: GatewayProcess, method: str, path: str, body: Any = None, headers: dict[str, str] | None = None
) -> tuple[int, str, bytes]:
    data = None if body is None else json.dumps(body).encode()
    sent_headers = {"x-api-key": KEY} if headers is None else headers
    request = urllib.request.Request(gateway.base + path, data, sent_headers, method=method)
    try:
        with urllib.request.urlopen(request, timeout=20) as response:
            return response.status, response.headers["content-type"], response.read()
    except urllib.error.HTTPError as error:
        return error.code, error.headers["content-type"], error.read()


def check(path: str, method: str, status: int, kind: str, body: bytes) -> None:
    """Check that the document allows this response."""
    responses = DOCUMENT["paths"][path][method.lower()]["responses"]
    content = responses[str(status)]["content"]
    kind = kind.partition(";")[0]
    assert kind in content
    if kind == "application/json":
        schema = {**content[kind]["schema"], "components": DOCUMENT["components"]}
        jsonschema.Draft202012Validator(schema).validate(json.loads(body))


CHAT_MESSAGES = [{"role": "user", "content": "Use Bash command='ls'"}]
TOOL = {"name": "Bash", "input_schema": {"type": "object", "properties": {"command": {"type": "string"}}}}
BODIES: dict[str, dict[str, Any]] = {
    "/chat/completions": {"messages": CHAT_MESSAGES, "tools": [{"type": "function", "function": {"name": "Bash"}}]},
    "/messages": {"messages": CHAT_MESSAGES, "tools": [TOOL], "max_tokens": 1000},
    "/messages/count_tokens": {"messages": CHAT_MESSAGES},
    "/responses/input_tokens": {"input": "hi"},
    "/responses": {"input": CHAT_MESSAGES[0]["content"], "tools": [{"type": "function", "name": "Bash"}]},
}


COUNTS = ("/messages/count_tokens", "/responses/input_tokens")


@pytest.mark.parametrize("path", BODIES)
@pytest.mark.parametrize(
    ("more", "headers", "status"),
    [
        ({}, None, 200),
        ({"stream": True}, None, 200),
        ({}, {"authorization": f"Bearer {KEY}"}, 200),
        ({}, {}, 401),
        ({}, {"x-api-key": KEY, "origin": "https://web.page"}, 403),
        ({}, {"x-api-key": KEY, "content-encoding": "br"}, 415),
        ({"model": ""}, None, 400),
        ({"model": "nobody/knows"}, None, 404),
        ({"messages": 5, "input": 5}, None, 400),
    ],
)
def test_post_responses_match_the_document(
    gateway: GatewayProcess, path: str, more: dict[str, Any], headers: dict[str, str] | None, status: int
) -> None:
    got, kind, body = fetch(gateway, "POST", f"/v1{path}", {"model": "demo/kimi_k2", **BODIES[path], **more}, headers)
    validates = path not in COUNTS or status not in (
        400,
        404,
    )  # count endpoints do not validate the model or the messages
    assert got == (status if validates else 200), body
    check(path, "post", got, kind, body)
    assert ("event-stream" in kind) == ("stream" in more and path not in COUNTS)


STORED = [path for path in DOCUMENT["paths"] if path.startswith(("/responses/{id}", "/conversations"))]


@pytest.mark.parametrize(
    ("path", "method"), [(path, method.upper()) for path in STORED for method in DOCUMENT["paths"][path]]
)
def test_stored_responses_match_the_document(gateway: GatewayProcess, path: str, method: str) -> None:
    fields: dict[str, Any] = {"model": "demo/kimi_k2", "input": "hi", "background": "cancel" in path}
    items = [{"type": "message", "role": "user", "content": "hi"}]
    is_conversation = path.startswith("/conversations")
    kind, new = ("conversations", {"items": items}) if is_conversation else ("responses", fields)
    _, _, created = fetch(gateway, "POST", f"/v1/{kind}", new)
    if "{id}" not in path:
        check(path, method, 200, "application/json", created)
        return
    for id, headers, status in (
        (json.loads(created)["id"], None, 200),
        ("resp_unknown", None, 404),
        (json.loads(created)["id"], {"x-api-key": "wrong"}, 401),
    ):
        got, kind, body = fetch(gateway, method, f"/v1{path.replace('{id}', id)}", headers=headers)
        assert got == status, body
        check(path, method, got, kind, body)


COMPACT, SEARCH = "/responses/compact", "/alpha/search"


@pytest.mark.parametrize(
    ("path", "fields", "status"),
    [
        (COMPACT, {"model": "demo/kimi_k2", "input": "hi"}, 200),
        (COMPACT, {"input": "hi"}, 400),
        (SEARCH, {"commands": {"time": [{"utc_offset": "+03:00"}]}}, 200),
        (SEARCH, {"commands": []}, 400),
    ],
)
def test_compactions_and_searches_match_the_document(
    gateway: GatewayProcess, path: str, fields: dict[str, Any], status: int
) -> None:
    got, kind, body = fetch(gateway, "POST", f"/v1{path}", fields)
    assert got == status, body
    check(path, "post", got, kind, body)


OTHER_PATHS = [path for path in DOCUMENT["paths"] if path not in (*BODIES, *STORED, COMPACT, SEARCH)]


@pytest.mark.parametrize("path", OTHER_PATHS)
@pytest.mark.parametrize("headers", [{"x-api-key": KEY}, {}, {"x-api-key": "wrong"}, {"anthropic-version": "x"}])
def test_get_responses_match_the_document(gateway: GatewayProcess, path: str, headers: dict[str, str]) -> None:
    status, kind, body = fetch(gateway, "GET", path.replace("{id}", "demo/hermes"), headers=headers)
    check(path, "get", status, kind, body)
    closed = DOCUMENT["paths"][path]["get"].get("security") != []
    assert status == (200 if headers.get("x-api-key") == KEY or not closed else 401)


@pytest.mark.parametrize("path", BODIES)
def test_unsupported_method_response_matches_the_document(gateway: GatewayProcess, path: str) -> None:
    status, kind, body = fetch(gateway, "PUT", f"/v1{path}", {})
    assert status == 405
    check(path, "post", status, kind, body)


@pytest.mark.parametrize("path", DOCUMENT["paths"])
def test_every_operation_describes_the_common_statuses(path: str) -> None:
    for operation in (item for method, item in DOCUMENT["paths"][path].items() if method != "servers"):
        assert operation["responses"].keys() >= {"405", "408", "503"}


@pytest.mark.parametrize("path", BODIES)
@pytest.mark.parametrize("status", [408, 503])
def test_connection_errors_match_the_document(path: str, status: int) -> None:
    _, _, body = _raw_response(status, "why").partition(b"\r\n\r\n")
    check(path, "post", status, "application/json", body)


@pytest.mark.parametrize("path", COUNTS)
def test_estimated_field_of_token_counts_is_described(gateway: GatewayProcess, path: str) -> None:
    got = json.loads(fetch(gateway, "POST", f"/v1{path}", {"model": "demo/kimi_k2", **BODIES[path]})[2])
    assert got.keys() <= DOCUMENT["components"]["schemas"]["Tokens"]["properties"].keys()
    assert got["estimated"] is True
    assert "default" in DOCUMENT["paths"][path]["post"]["responses"]


def test_unknown_model_response_matches_the_document(gateway: GatewayProcess) -> None:
    check("/models/{id}", "get", *fetch(gateway, "GET", "/v1/models/nobody/knows"))


def test_document_is_served(gateway: GatewayProcess) -> None:
    status, kind, body = fetch(gateway, "GET", "/openapi.json")
    assert (status, kind) == (200, "application/json")
    assert json.loads(body) == json.loads(json.dumps(DOCUMENT))
