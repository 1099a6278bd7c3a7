"""Tests of conversations: requests that continue by one id, whatever responses are in it."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import httpx
import openai
import pytest

from tests.gateway.response_store.test_stored_responses import CONFIG, KEYS, client_of, sent_messages
from tests.support import upstream_server as up
from tests.support.gateway_process import GatewayProcess, run_gateway
from tests.support.upstream_server import UpstreamServer


@pytest.fixture(scope="module")
def gateway(upstream: UpstreamServer) -> Iterator[GatewayProcess]:
    config = CONFIG.format(url=upstream.url, keys=", ".join(KEYS), workers=1, state="{days: 1}")
    with run_gateway(config=config) as process:
        yield process


def test_requests_continue_a_conversation(gateway: GatewayProcess, upstream: UpstreamServer) -> None:
    for text in ("one", "two"):
        upstream.add("talk", up.chat_stream(text))
    client = client_of(gateway)
    conversation = client.conversations.create(
        items=[{"type": "message", "role": "user", "content": "zero"}], metadata={"topic": "numbers"}
    )
    for text in ("first", "second"):
        client.responses.create(model="talk", input=text, conversation=conversation.id)
    expected = ["zero", "first", "one", "second"]
    sent = [message["content"] for message in sent_messages(upstream, "talk")]
    assert "\n".join(sent).split() == expected  # messages of one role may be joined
    items: list[Any] = list(client.conversations.items.list(conversation.id, order="asc", limit=2))
    assert [item.content[0].text for item in items] == [*expected, "two"]
    assert client.conversations.retrieve(conversation.id).metadata == {"topic": "numbers"}


def test_conversations_are_visible_to_their_key_only(gateway: GatewayProcess) -> None:
    id = client_of(gateway).conversations.create().id
    for other_id in (id, "conv_unknown"):
        other = client_of(gateway, KEYS[1])
        with pytest.raises(openai.NotFoundError):
            other.conversations.retrieve(other_id)
        with pytest.raises(openai.NotFoundError):
            other.responses.create(model="talk", input="hi", conversation=other_id)
    client_of(gateway).conversations.delete(id)
    with pytest.raises(openai.NotFoundError):
        client_of(gateway).conversations.retrieve(id)


def test_conversation_and_previous_response_exclude_each_other(gateway: GatewayProcess) -> None:
    with pytest.raises(openai.BadRequestError, match="previous_response_id"):
        client_of(gateway).responses.create(model="m", input="hi", conversation="c", previous_response_id="r")


def send(gateway: GatewayProcess, method: str, path: str, data: bytes | None = None) -> httpx.Response:
    headers = {"authorization": f"Bearer {KEYS[0]}", "content-type": "application/json"}
    return httpx.request(method, f"{gateway.base}/v1{path}", content=data, headers=headers, timeout=30)


DEEP = "[" * 100_000 + "]" * 100_000


@pytest.mark.parametrize(
    ("body", "path"),
    [
        ("[]", None),
        ("null", None),
        ("5", None),
        ("{", None),
        ('"\\ud83d"', None),
        (b"\xff\xfe", None),
        (DEEP, None),
        (f'{{"items": {DEEP}}}', None),
        (f'{{"metadata": {{"a": {DEEP}}}}}', None),
        ('{"items": 5}', "items"),
        ('{"items": {}}', "items"),
        ('{"items": "text"}', "items"),
        ('{"items": [5]}', "items[0]"),
        ('{"items": [{}, null]}', "items[1]"),
        ('{"items": [{"type": "item_reference", "id": "msg_unknown"}]}', "404"),
        ('{"metadata": []}', "metadata"),
        ('{"metadata": "x"}', "metadata"),
        ('{"metadata": {"a": 1}}', "metadata.a"),
        ('{"metadata": {"a": {}}}', "metadata.a"),
    ],
)
def test_conversation_with_wrong_types_is_refused(gateway: GatewayProcess, body: str | bytes, path: str | None) -> None:
    response = send(gateway, "POST", "/conversations", body if isinstance(body, bytes) else body.encode())
    error = response.json()["error"]
    assert error.keys() == {"message", "type", "param", "code"}
    if path == "404":
        assert (response.status_code, error["code"]) == (404, "not_found")
        return
    assert (response.status_code, error["type"], error["param"] or None) == (400, "invalid_request_error", path)


@pytest.mark.parametrize("body", ["", "{}", '{"items": null, "metadata": null}', '{"unknown": 5}'])
def test_conversation_without_items(gateway: GatewayProcess, body: str) -> None:
    created = send(gateway, "POST", "/conversations", body.encode())
    assert (created.status_code, created.json()["metadata"]) == (200, {})
    items = send(gateway, "GET", f"/conversations/{created.json()['id']}/items")
    assert (items.status_code, items.json()["data"]) == (200, [])


@pytest.mark.parametrize(
    "query", ["limit=0", "limit=x", "limit=-1", "limit=1e3", "limit=", "order=up", "after=nothing"]
)
def test_wrong_page_of_items_is_refused(gateway: GatewayProcess, query: str) -> None:
    id = send(gateway, "POST", "/conversations", b"{}").json()["id"]
    response = send(gateway, "GET", f"/conversations/{id}/items?{query}")
    assert (response.status_code, response.json()["error"]["param"]) == (400, query.partition("=")[0])


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("previous_response_id", 5),
        ("previous_response_id", ["resp_1"]),
        ("conversation", 5),
        ("conversation", []),
        ("conversation", {}),
        ("conversation", {"id": None}),
        ("conversation", {"id": 5}),
        ("store", "false"),
        ("store", 0),
        ("background", "true"),
        ("background", 1),
    ],
)
def test_fields_of_the_state_with_wrong_types_are_refused(gateway: GatewayProcess, field: str, value: Any) -> None:
    response = send(gateway, "POST", "/responses", json.dumps({"model": "m", "input": "hi", field: value}).encode())
    assert (response.status_code, response.json()["error"]["param"]) == (400, field)


def test_items_that_a_conversation_begins_with_may_be_references(
    gateway: GatewayProcess, upstream: UpstreamServer
) -> None:
    for text in ("one", "two"):
        upstream.add("reference", up.chat_stream(text))
    client = client_of(gateway)
    output: Any = client.responses.create(model="reference", input="first").output
    conversation = client.conversations.create(items=[{"type": "item_reference", "id": output[0].id}])
    client.responses.create(model="reference", input="second", conversation=conversation.id)
    assert [message["content"] for message in sent_messages(upstream, "reference")] == ["one", "second"]
