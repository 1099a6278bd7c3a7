"""Tests of compaction: a summary of the model, sealed for the client, and its return."""

from __future__ import annotations

import time
from collections.abc import Iterator
from typing import Any

import openai
import pytest

from tests.support import upstream_server as up
from tests.support.gateway_process import GatewayProcess, run_gateway
from tests.support.upstream_server import UpstreamServer

KEYS = ("client-key-one-1234567890", "client-key-two-1234567890")
CONFIG = """
upstreams:
  chat: {{url: {url}}}
keys: [{keys}]
"""
HISTORY: Any = [
    {"role": "user", "content": "Fix the bug in parser.py"},
    {"type": "function_call", "call_id": "call_1", "name": "read", "arguments": "{}"},
    {"type": "function_call_output", "call_id": "call_1", "output": "def parse(): ..."},
]
TOOL: Any = {"type": "function", "name": "read", "parameters": {"type": "object", "properties": {}}, "strict": False}
SUMMARY = "The user wants parser.py fixed."


@pytest.fixture(scope="module")
def gateway(upstream: UpstreamServer) -> Iterator[GatewayProcess]:
    with run_gateway(config=CONFIG.format(url=upstream.url, keys=", ".join(KEYS))) as process:
        yield process


def client_of(gateway: GatewayProcess, key: str = KEYS[0]) -> openai.OpenAI:
    return openai.OpenAI(base_url=f"{gateway.base}/v1", api_key=key, max_retries=0)


def compact(gateway: GatewayProcess, **fields: Any) -> Any:
    return client_of(gateway).post("/responses/compact", body=fields, cast_to=object)


def sent_texts(upstream: UpstreamServer, model: str) -> list[str]:
    messages = upstream.wait_for_requests(model)[-1].body["messages"]
    return [message["content"] for message in messages if isinstance(message["content"], str)]


def test_summary_is_sealed_and_replaces_the_conversation(gateway: GatewayProcess, upstream: UpstreamServer) -> None:
    upstream.add("compact", up.chat_stream(SUMMARY))
    upstream.add("compact", up.chat_stream("done"))
    compacted = compact(gateway, model="compact", input=HISTORY, tools=[TOOL], instructions="be brief")
    assert (compacted["object"], compacted["usage"] is None) == ("response.compaction", False)
    (item,) = compacted["output"]
    assert (item["type"], SUMMARY in item["encrypted_content"]) == ("compaction", False)
    request = upstream.wait_for_requests("compact")[0].body
    assert "summary" in str(request["messages"][-1]["content"])
    assert request["tool_choice"] == "none"
    client_of(gateway).responses.create(model="compact", input=[item, {"role": "user", "content": "go on"}])
    assert SUMMARY in "\n".join(sent_texts(upstream, "compact"))
    assert "parse()" not in str(upstream.wait_for_requests("compact", 2)[-1].body)


@pytest.mark.parametrize("stream", [False, True])
def test_trigger_at_the_end_of_the_input(gateway: GatewayProcess, upstream: UpstreamServer, stream: bool) -> None:
    model = f"trigger-{stream}"
    upstream.add(model, up.chat_stream(SUMMARY))
    upstream.add(model, up.chat_stream("done"))
    client = client_of(gateway)
    trigger: Any = [*HISTORY, {"type": "compaction_trigger"}]
    if stream:
        events: list[Any] = list(client.responses.create(model=model, input=trigger, stream=True))
        types = [event.type.removeprefix("response.") for event in events]
        assert types == ["created", "in_progress", "output_item.added", "output_item.done", "completed"]
        assert [event.sequence_number for event in events] == [0, 1, 2, 3, 4]
        response = events[-1].response
    else:
        response = client.responses.create(model=model, input=trigger)
    assert [item.type for item in response.output] == ["compaction"]
    client.responses.create(model=model, input=[response.output[0].to_dict(), {"role": "user", "content": "go on"}])
    assert SUMMARY in "\n".join(sent_texts(upstream, model))


def test_summary_of_another_key_is_refused(gateway: GatewayProcess, upstream: UpstreamServer) -> None:
    upstream.add("foreign", up.chat_stream(SUMMARY))
    output = compact(gateway, model="foreign", input="hi")["output"]
    with pytest.raises(openai.BadRequestError, match="encrypted_content"):
        client_of(gateway, KEYS[1]).responses.create(model="foreign", input=output)


def test_compaction_needs_a_model(gateway: GatewayProcess) -> None:
    with pytest.raises(openai.BadRequestError):
        compact(gateway, input="hi")


@pytest.mark.parametrize(
    "step",
    [up.send_response("400 Bad Request", b'{"error": {"message": "no such thing"}}'), up.chat_stream("")],
    ids=["refused", "empty"],
)
def test_failed_summary_is_an_error(gateway: GatewayProcess, upstream: UpstreamServer, step: up.Step) -> None:
    for _ in range(2):
        upstream.add("fails", step)
    with pytest.raises(openai.APIStatusError, match="cannot summarise"):
        compact(gateway, model="fails", input="hi")


def test_summary_that_reached_the_token_limit_is_reported(gateway: GatewayProcess, upstream: UpstreamServer) -> None:
    upstream.add("cut", up.chat_stream("The user wants", finish="length"))
    assert compact(gateway, model="cut", input="hi")["output"][0]["type"] == "compaction"
    deadline = time.monotonic() + 10
    while "summary-cut" not in gateway.log.read_text():  # the log is written behind the response
        assert time.monotonic() < deadline
        time.sleep(0.01)


def test_compacted_conversation_may_be_a_stored_one(gateway: GatewayProcess, upstream: UpstreamServer) -> None:
    upstream.add("stored", up.chat_stream("one"))
    upstream.add("stored", up.chat_stream(SUMMARY))
    id = client_of(gateway).responses.create(model="stored", input="first").id
    compact(gateway, model="stored", previous_response_id=id)
    assert sent_texts(upstream, "stored")[:2] == ["first", "one"]


@pytest.mark.parametrize("kind", ["previous_response_id", "conversation"])
def test_summary_in_a_stored_response_replaces_what_was_before(
    gateway: GatewayProcess, upstream: UpstreamServer, kind: str
) -> None:
    model, client = f"replaces-{kind}", client_of(gateway)
    for text in ("one", SUMMARY, "two", "three"):
        upstream.add(model, up.chat_stream(text))
    conversation = client.conversations.create().id
    fields: Any = {"conversation": conversation} if kind == "conversation" else {}
    inputs: list[Any] = ["first", [{"type": "compaction_trigger"}], "second", "third"]
    for given in inputs:
        response = client.responses.create(model=model, input=given, **fields)
        if kind == "previous_response_id":
            fields = {kind: response.id}
    texts = sent_texts(upstream, model)
    assert (SUMMARY in texts[0], texts[1:]) == (True, ["second", "two", "third"])
