"""Tests of stored text and ids that a database or a strict decoder refuses: unpaired surrogates, NUL, great length."""

from __future__ import annotations

import json
import time
from collections.abc import Iterator
from typing import Any

import httpx
import pytest

from tests.gateway.response_store.test_stored_responses import CONFIG, KEYS
from tests.support import upstream_server as up
from tests.support.gateway_process import GatewayProcess, run_gateway
from tests.support.postgresql import find_programs, run_postgresql
from tests.support.upstream_server import UpstreamServer

HALF = "\ud83d"
ODD_IDS = {
    "surrogate": f"item_{HALF}",
    "nul": "item_\0",
    "long": "item_" + "x" * 100_000,
    "sql": "x'; DROP TABLE items",
}
OUTPUT = "out\ufffd."
"""The gateway replaces an unpaired surrogate in a model's text."""
PROGRAMS = find_programs()


@pytest.fixture(
    scope="module",
    params=["sqlite", pytest.param("postgresql", marks=pytest.mark.skipif(PROGRAMS is None, reason="not installed"))],
)
def gateway(request: pytest.FixtureRequest, upstream: UpstreamServer) -> Iterator[GatewayProcess]:
    def run(state: str) -> Iterator[GatewayProcess]:
        config = CONFIG.format(url=upstream.url, keys=", ".join(KEYS), workers=1, state=state)
        with run_gateway(config=config) as process:
            yield process

    if request.param == "sqlite":
        yield from run("{days: 1}")
        return
    assert PROGRAMS is not None
    pytest.importorskip("psycopg", reason="the extra `postgresql` is not installed")
    with run_postgresql(PROGRAMS) as url:
        yield from run(f'{{store: postgresql, url: "{url}"}}')


def send(gateway: GatewayProcess, method: str, path: str, body: Any = None) -> httpx.Response:
    data = None if body is None else json.dumps(body).encode()
    headers = {"authorization": f"Bearer {KEYS[0]}", "content-type": "application/json"}
    return httpx.request(method, f"{gateway.base}/v1{path}", content=data, headers=headers, timeout=30)


def post(gateway: GatewayProcess, path: str, **fields: Any) -> Any:
    response = send(gateway, "POST", path, fields)
    assert response.status_code == 200, response.text
    return response


def visible(text: str) -> str:
    """Return the text with a word for the unpaired surrogate, which pytest cannot print."""
    return text.replace(HALF, "<half>")


def output_text(response: Any) -> str:
    return visible(response["output"][0]["content"][0]["text"])


def last_texts(upstream: UpstreamServer, model: str) -> list[str]:
    return [visible(message["content"]) for message in upstream.wait_for_requests(model)[-1].body["messages"]]


def add_replies(upstream: UpstreamServer, model: str, count: int) -> None:
    for _ in range(count):
        upstream.add(model, up.chat_stream(f"out{HALF}."))


@pytest.mark.parametrize("stream", [False, True])
def test_unpaired_surrogates_are_kept_in_stored_responses(
    gateway: GatewayProcess, upstream: UpstreamServer, stream: bool
) -> None:
    model = f"half-{stream}"
    add_replies(upstream, model, 2)
    response = post(gateway, "/responses", model=model, input=f"in{HALF}", stream=stream)
    if stream:
        events = [json.loads(line[6:]) for line in response.text.splitlines() if line.startswith("data: {")]
        first = events[-1]["response"]
    else:
        first = response.json()
    assert output_text(send(gateway, "GET", f"/responses/{first['id']}").json()) == OUTPUT
    items = send(gateway, "GET", f"/responses/{first['id']}/input_items").json()
    assert visible(items["data"][0]["content"][0]["text"]) == "in<half>"
    post(gateway, "/responses", model=model, input="go on", previous_response_id=first["id"])
    assert last_texts(upstream, model) == ["in<half>", OUTPUT, "go on"]


def test_unpaired_surrogates_are_kept_in_background_responses(
    gateway: GatewayProcess, upstream: UpstreamServer
) -> None:
    add_replies(upstream, "half-background", 1)
    id = post(gateway, "/responses", model="half-background", input=f"in{HALF}", background=True).json()["id"]
    deadline = time.monotonic() + 20
    while (response := send(gateway, "GET", f"/responses/{id}").json())["status"] != "completed":
        assert time.monotonic() < deadline, response
        time.sleep(0.05)
    assert output_text(response) == OUTPUT
    stream = send(gateway, "GET", f"/responses/{id}?stream=true").text
    events = [json.loads(line[6:]) for line in stream.splitlines() if line.startswith("data: {")]
    assert [event["sequence_number"] for event in events] == list(range(len(events)))
    assert events[-1]["type"] == "response.completed"


def test_unpaired_surrogates_are_kept_in_conversations(gateway: GatewayProcess, upstream: UpstreamServer) -> None:
    add_replies(upstream, "half-conversation", 1)
    item = {"type": "message", "role": "user", "content": f"in{HALF}"}
    id = post(gateway, "/conversations", items=[item], metadata={"topic": HALF}).json()["id"]
    assert visible(send(gateway, "GET", f"/conversations/{id}").json()["metadata"]["topic"]) == "<half>"
    post(gateway, "/responses", model="half-conversation", input="go on", conversation=id)
    assert last_texts(upstream, "half-conversation") == ["in<half>", "go on"]
    items = send(gateway, "GET", f"/conversations/{id}/items?order=asc").json()["data"]
    assert [visible(item["content"][0]["text"]) for item in items] == ["in<half>", "go on", OUTPUT]


def test_unpaired_surrogates_are_kept_in_summaries(gateway: GatewayProcess, upstream: UpstreamServer) -> None:
    add_replies(upstream, "half-summary", 2)
    compacted = post(gateway, "/responses/compact", model="half-summary", input=f"in{HALF}").json()
    assert last_texts(upstream, "half-summary")[0] == "in<half>"
    post(gateway, "/responses", model="half-summary", input=[*compacted["output"], {"role": "user", "content": "x"}])
    assert OUTPUT in last_texts(upstream, "half-summary")[0]


@pytest.mark.parametrize("kind", ODD_IDS)
def test_item_with_any_id_is_found(gateway: GatewayProcess, upstream: UpstreamServer, kind: str) -> None:
    model, id = f"odd-{kind}", ODD_IDS[kind]
    add_replies(upstream, model, 2)
    message = {"type": "message", "id": id, "role": "user", "content": "first"}
    post(gateway, "/responses", model=model, input=[message])
    post(gateway, "/responses", model=model, input=[{"type": "item_reference", "id": id}])
    assert last_texts(upstream, model) == ["first"]


@pytest.mark.parametrize("kind", ODD_IDS)
def test_unknown_ids_are_reported(gateway: GatewayProcess, kind: str) -> None:
    unknown = f"{ODD_IDS[kind]}-unknown"
    for fields, status, code in (
        ({"previous_response_id": unknown}, 400, "previous_response_not_found"),
        ({"conversation": unknown}, 404, "not_found"),
        ({"conversation": {"id": unknown}}, 404, "not_found"),
        ({"input": [{"type": "item_reference", "id": unknown}]}, 404, "not_found"),
    ):
        response = send(gateway, "POST", "/responses", {"model": "any", "input": "x", **fields})
        assert (response.status_code, response.json()["error"]["code"]) == (status, code), list(fields)


@pytest.mark.parametrize("id", ["%00", "%ED%A0%BD", "x" * 5000, "x'%20OR%20'1'='1", "%2e%2e%2f", "%F0%9F%98%80", "-1"])
@pytest.mark.parametrize(
    ("method", "path"),
    [
        ("GET", "/responses/{}"),
        ("DELETE", "/responses/{}"),
        ("GET", "/responses/{}/input_items"),
        ("POST", "/responses/{}/cancel"),
        ("GET", "/conversations/{}"),
        ("DELETE", "/conversations/{}"),
        ("GET", "/conversations/{}/items"),
    ],
)
def test_odd_ids_in_a_path_are_not_found(gateway: GatewayProcess, method: str, path: str, id: str) -> None:
    assert send(gateway, method, path.format(id)).status_code == 404


def test_unpaired_surrogates_of_an_upstream_of_the_same_api_are_stored_as_they_were_sent(
    gateway: GatewayProcess, upstream: UpstreamServer
) -> None:
    item: dict[str, Any] = {"type": "message", "id": f"msg_{HALF}", "role": "assistant", "status": "completed"}
    item |= {"content": [{"type": "output_text", "text": f"out{HALF}.", "annotations": []}]}
    body = {"id": "resp_half", "object": "response", "status": "completed", "model": "m", "created_at": 1}
    step = up.send_response("200 OK", json.dumps({**body, "output": [item]}).encode())
    upstream.add("responses-half", step)
    upstream.add("responses-half", step)
    first = post(gateway, "/responses", model="responses-half", input="hi").json()
    assert output_text(send(gateway, "GET", f"/responses/{first['id']}").json()) == OUTPUT
    post(gateway, "/responses", model="responses-half", input="go on", previous_response_id=first["id"])
    sent = upstream.wait_for_requests("responses-half")[-1].body["input"][1]
    assert visible(sent["content"][0]["text"]) == OUTPUT
