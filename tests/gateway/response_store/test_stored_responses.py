"""Tests of stored responses as clients of the Responses API use them, through a gateway with two keys."""

from __future__ import annotations

import json
import signal
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import openai
import pytest

from tests.support import upstream_server as up
from tests.support.gateway_process import GatewayProcess, run_gateway
from tests.support.upstream_server import UpstreamServer

KEYS = ("client-key-one-1234567890", "client-key-two-1234567890")
CONFIG = """
upstreams:
  chat: {{url: {url}, key: sk-upstream-0123456789}}
  responses: {{url: {url}, key: sk-upstream-0123456789, api: openai-responses}}
default: chat
models:
  responses-*: {{upstream: responses}}
keys: [{keys}]
workers: {workers}
state: {state}
"""


@pytest.fixture(scope="module")
def gateway(upstream: UpstreamServer) -> Iterator[GatewayProcess]:
    """Two workers, so that a request and the one that continues it are often handled by different ones."""
    config = CONFIG.format(url=upstream.url, keys=", ".join(KEYS), workers=2, state="{days: 1}")
    with run_gateway(config=config) as process:
        yield process


def client_of(gateway: GatewayProcess, key: str = KEYS[0]) -> openai.OpenAI:
    return openai.OpenAI(base_url=f"{gateway.base}/v1", api_key=key, max_retries=0)


def reply(text: str) -> up.Step:
    return up.chat_stream(text)


def sent_messages(upstream: UpstreamServer, model: str) -> list[dict[str, Any]]:
    """Return the messages of the last request for this model that the upstream received."""
    messages = upstream.wait_for_requests(model)[-1].body["messages"]
    return [{"role": message["role"], "content": message["content"]} for message in messages]


@pytest.mark.parametrize("stream", [False, True])
def test_response_continues_the_previous_one(gateway: GatewayProcess, upstream: UpstreamServer, stream: bool) -> None:
    client, model = client_of(gateway), f"continue-{stream}"
    upstream.add(model, reply("one"))
    upstream.add(model, reply("two"))
    upstream.add(model, reply("three"))
    ids: list[str] = []
    for text in ("first", "second", "third"):
        previous: Any = {"previous_response_id": ids[-1]} if ids else {}
        if stream:
            with client.responses.stream(model=model, input=text, **previous) as events:
                ids.append(events.get_final_response().id)
        else:
            ids.append(client.responses.create(model=model, input=text, instructions="be brief", **previous).id)
    system = [] if stream else [{"role": "system", "content": "be brief"}]
    assert len(set(ids)) == 3
    assert sent_messages(upstream, model) == [
        *system,
        {"role": "user", "content": "first"},
        {"role": "assistant", "content": "one"},
        {"role": "user", "content": "second"},
        {"role": "assistant", "content": "two"},
        {"role": "user", "content": "third"},
    ]


def test_stored_response_is_the_one_that_was_sent(gateway: GatewayProcess, upstream: UpstreamServer) -> None:
    upstream.add("get", reply("hello"))
    client = client_of(gateway)
    sent = client.responses.create(
        model="get", input=[{"role": "user", "content": "hi"}, {"role": "user", "content": "you"}]
    )
    assert client.responses.retrieve(sent.id) == sent
    items: Any = client.responses.input_items.list(sent.id, order="asc").data
    assert [item.content[0].text for item in items] == ["hi", "you"]
    page: Any = client.responses.input_items.list(sent.id, limit=1)
    assert (page.data[0].content[0].text, page.has_more) == ("you", True)
    assert len(list(page)) == 2  # the SDK fetches the other page
    client.responses.delete(sent.id)
    with pytest.raises(openai.NotFoundError):
        client.responses.retrieve(sent.id)
    with pytest.raises(openai.NotFoundError):
        client.responses.delete(sent.id)


def test_key_never_sees_responses_of_another(gateway: GatewayProcess, upstream: UpstreamServer) -> None:
    upstream.add("mine", reply("secret"))
    id = client_of(gateway).responses.create(model="mine", input="hi").id
    other = client_of(gateway, KEYS[1])

    def errors(id: str) -> list[Any]:
        found: list[Any] = []
        for request in (
            lambda: other.responses.retrieve(id),
            lambda: other.responses.delete(id),
            lambda: other.responses.input_items.list(id),
            lambda: other.responses.create(model="mine", input="go on", previous_response_id=id),
        ):
            with pytest.raises(openai.APIStatusError) as caught:
                request()
            found.append((caught.value.status_code, json.dumps(caught.value.body).replace(id, "ID")))
        return found

    unknown = "resp_" + "0" * 24
    assert errors(id) == errors(unknown)
    assert [status for status, _ in errors(id)] == [404, 404, 404, 400]
    assert client_of(gateway).responses.retrieve(id).output_text == "secret"


def test_unknown_previous_response_has_code_of_the_api(gateway: GatewayProcess) -> None:
    with pytest.raises(openai.BadRequestError) as caught:
        client_of(gateway).responses.create(model="any", input="hi", previous_response_id="resp_unknown")
    assert (caught.value.code, caught.value.param) == ("previous_response_not_found", "previous_response_id")


def test_store_is_not_reported_as_dropped(gateway: GatewayProcess, upstream: UpstreamServer) -> None:
    upstream.add("kept", reply("x"))
    raw = client_of(gateway).responses.with_raw_response.create(model="kept", input="hi", store=True)
    assert "field-dropped" not in raw.headers.get("x-interlingua-findings", "")


@pytest.fixture(scope="module")
def small_gateway(upstream: UpstreamServer) -> Iterator[GatewayProcess]:
    config = CONFIG.format(url=upstream.url, keys=KEYS[0], workers=1, state="{days: 1}") + "limits: {body: 20000}\n"
    with run_gateway(config=config) as process:
        yield process


def test_only_what_the_model_gets_counts_for_the_maximum_size(
    small_gateway: GatewayProcess, upstream: UpstreamServer
) -> None:
    """Neither what a summary has replaced, nor the tools and instructions that each response repeats."""
    client, model = client_of(small_gateway), "size"
    instructions = "i" * 8000
    trigger: Any = [{"type": "compaction_trigger"}]
    previous: Any = {}
    for given in ("a" * 9000, "b", "c", "d", trigger, "e" * 9000, "f"):
        upstream.add(model, reply("x"))
        response = client.responses.create(model=model, input=given, instructions=instructions, **previous)
        previous = {"previous_response_id": response.id}
    with pytest.raises(openai.APIStatusError, match=r"limits\.body") as caught:
        client.responses.create(model=model, input="g" * 12_000, **previous)
    assert caught.value.status_code == 413


@pytest.mark.parametrize(
    "fields",
    [
        {},
        {"stream": True},
        {"background": True},
        {"tools": [{"type": "web_search"}]},
        {"input": [{"role": "user", "content": "x" * 12_000}, {"type": "compaction_trigger"}]},
        {"path": "/responses/compact"},
    ],
    ids=["whole", "stream", "background", "search", "trigger", "compact"],
)
def test_too_long_conversation_is_an_error_that_says_what_to_do(
    small_gateway: GatewayProcess, upstream: UpstreamServer, fields: dict[str, Any]
) -> None:
    client = client_of(small_gateway)
    upstream.add("long", reply("x"))
    previous = client.responses.create(model="long", input="a" * 12_000)
    body = {"model": "long", "input": "b" * 12_000, "previous_response_id": previous.id, **fields}
    with pytest.raises(openai.APIStatusError, match=r"limits\.body") as caught:
        client.post(body.pop("path", "/responses"), body=body, cast_to=object)
    assert caught.value.status_code == 413
    assert "start a new conversation" in caught.value.message


def test_item_counts_as_often_as_it_is_referred_to(small_gateway: GatewayProcess, upstream: UpstreamServer) -> None:
    upstream.add("repeated", reply("x" * 3000))
    upstream.add("repeated", reply("x"))
    client = client_of(small_gateway)
    item = client.responses.create(model="repeated", input="hi").output[0]
    reference: Any = {"type": "item_reference", "id": item.id}
    client.responses.create(model="repeated", input=[reference] * 3, store=False)
    assert str(sent_messages(upstream, "repeated")).count("x" * 3000) == 3
    with pytest.raises(openai.APIStatusError, match=r"limits\.body") as caught:
        client.responses.create(model="repeated", input=[reference] * 100)
    assert caught.value.status_code == 413
    with pytest.raises(openai.APIStatusError, match=r"limits\.body"):
        client.conversations.create(items=[reference] * 100)


def test_nothing_is_stored_on_request(gateway: GatewayProcess, upstream: UpstreamServer) -> None:
    upstream.add("unstored", reply("x"))
    client = client_of(gateway)
    id = client.responses.create(model="unstored", input="hi", store=False).id
    with pytest.raises(openai.NotFoundError):
        client.responses.retrieve(id)


def test_item_references_are_replaced_by_the_items(gateway: GatewayProcess, upstream: UpstreamServer) -> None:
    for text in ("one", "two"):
        upstream.add("refer", reply(text))
    client = client_of(gateway)
    item = client.responses.create(model="refer", input="first").output[0]
    reference: Any = {"type": "item_reference", "id": item.id}
    client.responses.create(
        model="refer", input=[{"role": "user", "content": "first"}, reference, {"role": "user", "content": "second"}]
    )
    assert [message["content"] for message in sent_messages(upstream, "refer")] == ["first", "one", "second"]
    with pytest.raises(openai.NotFoundError, match="msg_unknown"):
        client.responses.create(model="refer", input=[{"type": "item_reference", "id": "msg_unknown"}])


def test_references_can_be_repeated_in_later_turns(gateway: GatewayProcess, upstream: UpstreamServer) -> None:
    """The AI SDK refers to each earlier item in every turn, so that also stored requests contain references."""
    for text in ("one", "two", "three", "four"):
        upstream.add("repeat", reply(text))
    client = client_of(gateway)
    items: list[Any] = [{"role": "user", "content": "first"}]
    for question in ("second", "third"):
        response = client.responses.create(model="repeat", input=items)
        items = [*items, {"type": "item_reference", "id": response.output[0].id}, {"role": "user", "content": question}]
    last = client.responses.create(model="repeat", input=items)
    asked = ["first", "one", "second", "two", "third"]
    assert [message["content"] for message in sent_messages(upstream, "repeat")] == asked
    client.responses.create(model="repeat", input="fourth", previous_response_id=last.id)
    assert [message["content"] for message in sent_messages(upstream, "repeat")] == [*asked, "three", "fourth"]
    listed = client.responses.input_items.list(last.id, order="asc").data
    assert [item.type for item in listed] == ["message"] * 5


def test_ids_that_only_the_upstream_knows_reach_it(gateway: GatewayProcess, upstream: UpstreamServer) -> None:
    body = {"id": "resp_theirs", "object": "response", "status": "completed", "model": "m", "created_at": 1}
    item: dict[str, Any] = {"type": "message", "id": "msg_1", "role": "assistant", "status": "completed"}
    item |= {"content": [{"type": "output_text", "text": "hello", "annotations": []}]}
    step = up.send_response("200 OK", json.dumps({**body, "output": [item]}).encode())
    upstream.add("responses-x", step)
    upstream.add("responses-x", step)
    client = client_of(gateway)
    response = client.responses.create(model="responses-x", input="hi", previous_response_id="resp_before")
    assert upstream.wait_for_requests("responses-x")[-1].body["previous_response_id"] == "resp_before"
    client.responses.create(model="responses-x", input="go on", previous_response_id=response.id)
    sent = upstream.wait_for_requests("responses-x")[-1].body
    assert "previous_response_id" not in sent
    assert [it["content"] for it in sent["input"]] == ["hi", item["content"], "go on"]


def test_failed_response_is_not_stored(gateway: GatewayProcess, upstream: UpstreamServer) -> None:
    upstream.add("broken", up.chat_stream("Hel", finish=None, done=False))
    stream = client_of(gateway).responses.create(model="broken", input="hi", stream=True)
    events = list(stream)
    assert events[-1].type == "response.failed"
    with pytest.raises(openai.NotFoundError):
        client_of(gateway).responses.retrieve(events[0].response.id)  # type: ignore[union-attr]


def test_state_can_be_switched_off(upstream: UpstreamServer) -> None:
    upstream.add("off", reply("x"))
    config = CONFIG.format(url=upstream.url, keys=", ".join(KEYS), workers=1, state="{store: off}")
    with run_gateway(config=config) as gateway:
        client = client_of(gateway)
        id = client.responses.create(model="off", input="hi").id
        with pytest.raises(openai.NotFoundError, match="stores no responses"):
            client.responses.retrieve(id)
        with pytest.raises(openai.BadRequestError):
            client.responses.create(model="off", input="hi", previous_response_id=id)
        assert not list(gateway.folder.rglob("responses.db"))


def test_requests_without_state_open_no_database(upstream: UpstreamServer) -> None:
    for model in ("chat", "stateless"):
        upstream.add(model, reply("x"))
    config = CONFIG.format(url=upstream.url, keys=", ".join(KEYS), workers=1, state="{store: sqlite}")
    with run_gateway(config=config) as gateway:
        client = client_of(gateway)
        client.chat.completions.create(model="chat", messages=[{"role": "user", "content": "hi"}])
        client.responses.create(model="stateless", input="hi", store=False)
        assert not list(gateway.folder.rglob("responses.db"))


def test_reply_is_sent_although_it_cannot_be_stored(upstream: UpstreamServer) -> None:
    upstream.add("unwritable", reply("x"))
    config = CONFIG.format(url=upstream.url, keys=", ".join(KEYS), workers=1, state="{path: /proc/none/responses.db}")
    with run_gateway(config=config) as gateway:
        assert client_of(gateway).responses.create(model="unwritable", input="hi").output_text == "x"
        gateway.wait_for_log("cannot store a response")


@pytest.mark.parametrize(
    ("state", "detail"),
    [
        ("{store: postgresql, url: 'postgresql://someone@127.0.0.1:9/responses'}", "127.0.0.1"),
        ("{path: /proc/none/responses.db}", "/proc/none"),
    ],
)
def test_reason_of_a_failed_database_is_in_the_log_only(upstream: UpstreamServer, state: str, detail: str) -> None:
    if "postgresql" in state:
        pytest.importorskip("psycopg", reason="the extra `postgresql` is not installed")
    config = CONFIG.format(url=upstream.url, keys=KEYS[0], workers=1, state=state)
    with run_gateway(config=config) as gateway:
        client = client_of(gateway)
        requests: list[Callable[[], Any]] = [
            lambda: client.responses.retrieve("resp_1"),
            lambda: client.responses.create(model="any", input="hi", previous_response_id="resp_1"),
            lambda: client.responses.create(model="any", input="hi", background=True),
        ]
        for request in requests:
            with pytest.raises(openai.InternalServerError) as caught:
                request()
            assert caught.value.status_code == 503
            assert detail not in str(caught.value.body)
            id = caught.value.response.headers["x-interlingua-id"]
            log = gateway.wait_for_log(f"{id}.*\n")
            assert detail in next(line for line in log.splitlines() if id in line)


def test_response_is_durable_before_its_final_event_is_sent(upstream: UpstreamServer, tmp_path: Path) -> None:
    upstream.add("durable", reply("x"))
    state = f"{{path: {tmp_path}/state/responses.db}}"
    config = CONFIG.format(url=upstream.url, keys=KEYS[0], workers=1, state=state) + "seal_key: seal-key-0123456789\n"
    with run_gateway(config=config) as gateway:
        for event in client_of(gateway).responses.create(model="durable", input="hi", stream=True):
            if event.type == "response.completed":
                gateway.send_signal(signal.SIGKILL)
                id = event.response.id
                break
    with run_gateway(config=config) as gateway:
        assert client_of(gateway).responses.retrieve(id).output_text == "x"
