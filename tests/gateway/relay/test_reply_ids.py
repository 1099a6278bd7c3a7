"""Ids of replies and calls through a gateway: unique over all requests, whatever the upstream sends."""

from __future__ import annotations

import re
from collections.abc import Iterator

import pytest

from tests.support import upstream_server as up
from tests.support.gateway_stage import CHAT, MESSAGES, RESPONSES, GatewayStage, stage


@pytest.fixture(scope="module")
def on() -> Iterator[GatewayStage]:
    with stage() as running:
        yield running


def hello(id: str | None) -> bytes:
    """Return a stream whose chunks have this id."""
    field = {} if id is None else {"id": id}
    deltas = [{"role": "assistant", "content": ""}, {"content": "Hello"}, {}]
    choices = [{"index": 0, "delta": delta, "finish_reason": None if delta else "stop"} for delta in deltas]
    events = [up.event({**field, "object": "chat.completion.chunk", "choices": [choice]}) for choice in choices]
    return b"".join(events) + up.DONE


@pytest.mark.parametrize("upstream_id", ["chatcmpl-123", None])
@pytest.mark.parametrize("api", [MESSAGES, RESPONSES])
def test_two_replies_with_one_upstream_id_have_different_ids(
    on: GatewayStage, api: str, upstream_id: str | None
) -> None:
    step = (up.send_headers(), up.send(hello(upstream_id)))
    model = on.add_scripts(f"same-id-{api}-{upstream_id}", step, step)
    views = [on.send(model, api) for _ in range(2)]
    first, second = (view.body.split(b'"id":"', 1)[1].split(b'"', 1)[0].decode() for view in views)
    assert first != second
    assert first.rpartition("_")[2] == views[0].headers["x-interlingua-id"].removeprefix("req_")
    assert views[0].headers.get("x-interlingua-upstream-id") == upstream_id
    assert views[0].log["upstream_id"] == (upstream_id or "")


def test_chat_client_of_a_chat_upstream_sees_the_upstreams_id(on: GatewayStage) -> None:
    model = on.add_scripts("chat-id", (up.send_headers(), up.send(hello("chatcmpl-123"))))
    assert b'"id": "chatcmpl-123"' in on.send(model, CHAT).body


def test_id_that_is_no_header_value_is_only_logged(on: GatewayStage) -> None:
    model = on.add_scripts("odd-id", (up.send_headers(), up.send(hello("a\r\nset-cookie: b"))))
    view = on.send(model, MESSAGES)
    assert "x-interlingua-upstream-id" not in view.headers
    assert "set-cookie" not in view.headers
    assert view.log["upstream_id"] == "a\r\nset-cookie: b"


def numbered_call(id: str) -> bytes:
    pieces = up.call_delta(0, id, name="read", arguments='{"path": "a"}')
    return up.ROLE + pieces + up.delta(finish="tool_calls") + up.DONE


@pytest.mark.parametrize("api", [CHAT, MESSAGES, RESPONSES])
def test_first_calls_of_two_conversations_have_different_ids(on: GatewayStage, api: str) -> None:
    """Agents store results in files with the id of the call, for all conversations of a session."""
    step = (up.send_headers(), up.send(numbered_call("functions.read:0")))
    model = on.add_scripts(f"first-call-{api}", step, step)
    first, second = (on.send(model, api) for _ in range(2))
    ids = [re.findall(rb'"(?:call_|tool_use_)?id": ?"([^"]*read[^"]*)"', view.body) for view in (first, second)]
    assert ids[0]
    assert ids[1]
    assert set(ids[0]).isdisjoint(ids[1])
    assert "id-renamed" not in first.log["findings"]


@pytest.mark.parametrize("stream", [True, False])
def test_same_wire_forwards_a_call_with_a_random_id_unchanged(on: GatewayStage, stream: bool) -> None:
    data = numbered_call("chatcmpl-tool-0123456789abcdef")
    model = on.add_scripts(f"random-id-{stream}", (up.send_headers(), up.send(data)))
    assert b"chatcmpl-tool-0123456789abcdef" in on.send(model, CHAT, stream).body
