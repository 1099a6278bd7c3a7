"""Concurrent clients share the cache of requests: none gets what another client has sent, or may read."""

from __future__ import annotations

import asyncio
import json
import re
from collections.abc import Iterator
from typing import Any, get_args

import pytest

from bench.traffic import agent_session
from interlingua.core.reasoning_signatures import write_value_envelope
from interlingua.faults import apis
from interlingua.faults.upstream.reply_writers import reply_writer_for
from interlingua.gateway.settings.schema import Api, RequestLimits, Settings, Upstream
from interlingua.gateway.state import ActiveConfig
from interlingua.translation.incremental_translation import IncrementalTranslation
from tests.support import upstream_server as up
from tests.support.agent_sessions import FIELDS, KEYS
from tests.support.gateway_in_process import InProcessGateway, run_in_process
from tests.support.raw_client import build_request
from tests.support.request_forms import CHAT, MESSAGES, RESPONSES
from tests.support.upstream_server import UpstreamServer

APIS = {CHAT: apis.CHAT_PATH, MESSAGES: apis.MESSAGES_PATH, RESPONSES: apis.RESPONSES_PATH}
CLIENTS = {"alice": "key-of-alice-0123456789", "bob": "key-of-bob-0123456789"}
SESSIONS_PER_CLIENT, TURNS_BETWEEN_REQUESTS = 3, 5
LABEL = re.compile("<(?:alice|bob) .*?>")
REQUEST_BYTES = 200_000
"""Size of the requests: so large that they are translated in threads."""
Json = dict[str, Any]


def settings(url: str, api: Api, cache_bytes: int) -> Settings:
    upstream = Upstream(url=url, api=api, profile="any")
    return Settings(upstreams={"x": upstream}, keys=CLIENTS, limits=RequestLimits(conversations=cache_bytes))


@pytest.fixture
def seal_keys(monkeypatch: pytest.MonkeyPatch) -> None:
    """Give the clients the keys with which the thinking in random sessions is sealed, one each."""

    def seal_key_for(config: ActiveConfig, client_id: str) -> bytes:
        return KEYS[list(CLIENTS).index(config.authenticator.client_name(client_id))]

    monkeypatch.setattr(ActiveConfig, "seal_key_for", seal_key_for)


@pytest.fixture
def incremental_count(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """Count the requests that are translated with the help of earlier ones."""
    count = [0]
    run = IncrementalTranslation._run

    def counting(translation: IncrementalTranslation, fit: Any) -> Any:
        result = run(translation, fit)
        count[0] += bool(translation._cuts)
        return result

    monkeypatch.setattr(IncrementalTranslation, "_run", counting)
    return count


def session_bodies(wire: str) -> Iterator[Json]:
    """Return requests of an agent, with thinking that is sealed for the first client."""
    for body in agent_session(wire, "m", REQUEST_BYTES)[::TURNS_BETWEEN_REQUESTS]:
        items: list[Json] = []
        for item in body[FIELDS[wire]]:
            items += with_thinking(item, wire)
        yield {**body, "stream": False, FIELDS[wire]: items}


def with_thinking(item: Json, wire: str) -> list[Json]:
    """Return an item of a conversation, with sealed thinking if it is the beginning of the model's turn."""
    sealed = write_value_envelope("native", wire, "@x", KEYS[0])
    if wire == RESPONSES and item.get("role") == "assistant":
        return [{"type": "reasoning", "summary": [], "encrypted_content": sealed}, item]
    if wire == MESSAGES and item["role"] == "assistant":
        thinking = {"type": "thinking", "thinking": "Hm.", "signature": sealed}
        return [{**item, "content": [thinking, *item["content"]]}]
    if wire == CHAT and item["role"] == "assistant":
        detail = {"type": "reasoning.text", "text": "Hm.", "signature": sealed}
        return [{**item, "reasoning": "Hm.", "reasoning_details": [detail]}]
    return [item]


async def send_session(gateway: InProcessGateway, wire: str, client: str, number: int) -> None:
    """Send the requests of a session one after the other. They are the same for all clients but for a label."""
    for turn, body in enumerate(session_bodies(wire)):
        label = f"<{client} {number} {turn}>"
        label_field = {"metadata": {"user_id": label}} if wire == MESSAGES else {"user": label}
        headers = {"authorization": f"Bearer {CLIENTS[client]}"}
        data = json.dumps({**body, **label_field}).encode()
        await gateway.send(build_request(f"/v1/{APIS[wire]}", data, headers))


def send_from_all_clients(upstream: UpstreamServer, wire: Api, cache_bytes: int) -> dict[str, Json]:
    """Send sessions of all clients at once. Return what the upstream receives, by label."""
    already_received = upstream.count("m")

    async def main() -> None:
        async with asyncio.timeout(60), run_in_process(settings(upstream.url, wire, cache_bytes)) as gateway:
            sessions = [(client, number) for client in CLIENTS for number in range(SESSIONS_PER_CLIENT)]
            await asyncio.gather(*(send_session(gateway, wire, *session) for session in sessions))

    asyncio.run(main())
    received = upstream.wait_for_requests("m")[already_received:]
    labels = [LABEL.findall(json.dumps(request.body)) for request in received]
    assert [len(found) for found in labels] == [1] * len(received), "each request has the label of one client"
    return {found[0]: request.body for found, request in zip(labels, received, strict=True)}


@pytest.mark.usefixtures("seal_keys")
@pytest.mark.parametrize("wire", get_args(Api))
def test_clients_with_the_same_conversation_get_their_own_translation(
    upstream: UpstreamServer, incremental_count: list[int], wire: Api
) -> None:
    reply = json.dumps(reply_writer_for(APIS[wire]).complete_reply("ok")).encode()
    upstream.add("m", up.send_response("200 OK", reply))
    expected = send_from_all_clients(upstream, wire, cache_bytes=0)
    assert incremental_count == [0]
    received = send_from_all_clients(upstream, wire, cache_bytes=1 << 24)
    assert incremental_count[0] > len(received) // 3
    assert received.keys() == expected.keys()
    for label, body in received.items():
        assert body == expected[label], label
        is_first_turn = label.endswith(" 0>")
        assert ("native" in json.dumps(body)) == ("alice" in label and not is_first_turn), label
