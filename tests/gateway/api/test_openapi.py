"""The description of the gateway is true: every path is in it and no other, and what is answered is as it says."""

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
TOLD = openapi_document()


@pytest.fixture(scope="module")
def gateway() -> Iterator[GatewayProcess]:
    with run_gateway("--demo", config=f"keys: [{KEY}]\ndemo_pace: 0\n") as started:
        yield started


def described() -> set[tuple[str, str]]:
    everywhere = [server["url"] for server in TOLD["servers"]]
    return {
        (method.upper(), base.rstrip("/") + path)
        for path, item in TOLD["paths"].items()
        for base in [server["url"] for server in item.get("servers", [])] or everywhere
        for method in item
        if method != "servers"
    }


def test_every_path_of_the_gateway_is_described_and_no_other() -> None:
    app = make_app(GatewayState(LoadedSettings(Settings(demo=True), "", [], {}), b"", "http://127.0.0.1:9/v1"))
    served = {
        (route.method, route.resource.canonical)
        for route in app.router.routes()
        if route.resource is not None and route.method != "HEAD"
    }
    assert described() == served


def test_every_schema_is_one_and_every_reference_leads_to_one() -> None:
    for schema in TOLD["components"]["schemas"].values():
        jsonschema.Draft202012Validator.check_schema(schema)
    named = set(re.findall(r'"#/components/schemas/(\w+)"', json.dumps(TOLD)))
    assert named == TOLD["components"]["schemas"].keys()


def test_every_operation_has_a_name_of_its_own() -> None:
    names = [item[method]["operationId"] for item in TOLD["paths"].values() for method in item if method != "servers"]
    assert len(names) == len(set(names))


def fetch(
    gateway: GatewayProcess, method: str, path: str, body: Any = None, headers: dict[str, str] | None = None
) -> tuple[int, str, bytes]:
    data = None if body is None else json.dumps(body).encode()
    shown = {"x-api-key": KEY} if headers is None else headers
    request = urllib.request.Request(gateway.base + path, data, shown, method=method)
    try:
        with urllib.request.urlopen(request, timeout=20) as response:
            return response.status, response.headers["content-type"], response.read()
    except urllib.error.HTTPError as error:
        return error.code, error.headers["content-type"], error.read()


def check(path: str, method: str, status: int, kind: str, body: bytes) -> None:
    """That this may be answered there."""
    responses = TOLD["paths"][path][method.lower()]["responses"]
    content = responses[str(status)]["content"]
    kind = kind.partition(";")[0]
    assert kind in content
    if kind == "application/json":
        schema = {**content[kind]["schema"], "components": TOLD["components"]}
        jsonschema.Draft202012Validator(schema).validate(json.loads(body))


SAYS = [{"role": "user", "content": "Use Bash command='ls'"}]
TOOL = {"name": "Bash", "input_schema": {"type": "object", "properties": {"command": {"type": "string"}}}}
ASKED: dict[str, dict[str, Any]] = {
    "/chat/completions": {"messages": SAYS, "tools": [{"type": "function", "function": {"name": "Bash"}}]},
    "/messages": {"messages": SAYS, "tools": [TOOL], "max_tokens": 1000},
    "/messages/count_tokens": {"messages": SAYS},
    "/responses/input_tokens": {"input": "hi"},
    "/responses": {"input": SAYS[0]["content"], "tools": [{"type": "function", "name": "Bash"}]},
}


COUNTS = ("/messages/count_tokens", "/responses/input_tokens")


@pytest.mark.parametrize("path", ASKED)
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
def test_what_is_asked_is_answered_as_described(
    gateway: GatewayProcess, path: str, more: dict[str, Any], headers: dict[str, str] | None, status: int
) -> None:
    got, kind, body = fetch(gateway, "POST", f"/v1{path}", {"model": "demo/kimi_k2", **ASKED[path], **more}, headers)
    looks = path not in COUNTS or status not in (400, 404)  # what only counts looks for nothing
    assert got == (status if looks else 200), body
    check(path, "post", got, kind, body)
    assert ("event-stream" in kind) == ("stream" in more and path not in COUNTS)


@pytest.mark.parametrize("path", [path for path in TOLD["paths"] if path not in ASKED])
@pytest.mark.parametrize("headers", [{"x-api-key": KEY}, {}, {"x-api-key": "wrong"}, {"anthropic-version": "x"}])
def test_pages_are_as_described(gateway: GatewayProcess, path: str, headers: dict[str, str]) -> None:
    status, kind, body = fetch(gateway, "GET", path.replace("{id}", "demo/hermes"), headers=headers)
    check(path, "get", status, kind, body)
    closed = TOLD["paths"][path]["get"].get("security") != []
    assert status == (200 if headers.get("x-api-key") == KEY or not closed else 401)


@pytest.mark.parametrize("path", ASKED)
def test_another_method_is_refused_as_described(gateway: GatewayProcess, path: str) -> None:
    status, kind, body = fetch(gateway, "PUT", f"/v1{path}", {})
    assert status == 405
    check(path, "post", status, kind, body)


@pytest.mark.parametrize("path", TOLD["paths"])
def test_what_any_path_may_answer_is_described(path: str) -> None:
    for operation in (item for method, item in TOLD["paths"][path].items() if method != "servers"):
        assert operation["responses"].keys() >= {"405", "408", "503"}


@pytest.mark.parametrize("path", ASKED)
@pytest.mark.parametrize("status", [408, 503])
def test_what_a_connection_is_told_that_has_asked_nothing_yet(path: str, status: int) -> None:
    _, _, body = _raw_response(status, "why").partition(b"\r\n\r\n")
    check(path, "post", status, "application/json", body)


@pytest.mark.parametrize("path", COUNTS)
def test_that_a_count_is_an_estimate_is_described(gateway: GatewayProcess, path: str) -> None:
    got = json.loads(fetch(gateway, "POST", f"/v1{path}", {"model": "demo/kimi_k2", **ASKED[path]})[2])
    assert got.keys() <= TOLD["components"]["schemas"]["Tokens"]["properties"].keys()
    assert got["estimated"] is True
    assert "default" in TOLD["paths"][path]["post"]["responses"]


def test_a_model_that_nobody_knows(gateway: GatewayProcess) -> None:
    check("/models/{id}", "get", *fetch(gateway, "GET", "/v1/models/nobody/knows"))


def test_it_is_served(gateway: GatewayProcess) -> None:
    status, kind, body = fetch(gateway, "GET", "/openapi.json")
    assert (status, kind) == (200, "application/json")
    assert json.loads(body) == json.loads(json.dumps(TOLD))
