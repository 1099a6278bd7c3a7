"""Tests of conversations: requests that continue by one id, whatever responses are in it."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

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
