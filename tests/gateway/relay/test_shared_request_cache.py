"""Concurrent clients share the cache of requests: none gets what another client has sent, or may read."""

from __future__ import annotations

import asyncio
import json
import random
import re
from collections.abc import Iterator
from typing import Any

import pytest

from interlingua.faults import apis
from interlingua.faults.upstream.reply_writers import reply_writer_for
from interlingua.gateway.settings.schema import Api, RequestLimits, Settings, Upstream
from interlingua.gateway.state import ActiveConfig
from interlingua.translation.incremental_translation import IncrementalTranslation
from tests.support import upstream_server as up
from tests.support.agent_sessions import KEYS, RandomSession
from tests.support.gateway_in_process import InProcessGateway, run_in_process
from tests.support.raw_client import build_request
from tests.support.request_forms import CHAT, MESSAGES, RESPONSES
from tests.support.upstream_server import UpstreamServer

APIS = {CHAT: apis.CHAT_PATH, MESSAGES: apis.MESSAGES_PATH, RESPONSES: apis.RESPONSES_PATH}
CLIENTS = {"alice": "key-of-alice-0123456789", "bob": "key-of-bob-0123456789"}
SEEDS, TURNS = range(6), 8
LABEL = re.compile("<(?:alice|bob) .*?>")
PADDING_CHARS = 70_000
"""Makes a request so large that it is translated in a thread."""
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


def session_bodies(wire: str, seed: int) -> Iterator[Json]:
    session = RandomSession(wire, random.Random(seed))
    if seed % 2:
        session.items.insert(0, {"role": "user", "content": "x" * PADDING_CHARS})
    for _ in range(TURNS):
        yield {**session.body, **({"store": False} if wire == RESPONSES else {}), "stream": False}
        session.next()


async def send_sessions(gateway: InProcessGateway, wire: str, client: str, seeds: range) -> None:
    async def send_session(seed: int) -> None:
        for turn, body in enumerate(session_bodies(wire, seed)):
            label = f"<{client} {seed} {turn}>"
            label_field = {"metadata": {"user_id": label}} if wire == MESSAGES else {"user": label}
            headers = {"authorization": f"Bearer {CLIENTS[client]}"}
            data = json.dumps({**body, **label_field}).encode()
            await gateway.send(build_request(f"/v1/{APIS[wire]}", data, headers))

    await asyncio.gather(*map(send_session, seeds))


def send_from_all_clients(upstream: UpstreamServer, wire: str, api: Api, cache_bytes: int) -> dict[str, Json]:
    """Return what the upstream receives of sessions that are alike for all clients but for the labels, by label."""
    already_received = upstream.count("m")

    async def main() -> None:
        async with asyncio.timeout(60), run_in_process(settings(upstream.url, api, cache_bytes)) as gateway:
            await asyncio.gather(*(send_sessions(gateway, wire, client, SEEDS) for client in CLIENTS))

    asyncio.run(main())
    received = upstream.wait_for_requests("m")[already_received:]
    labels = [LABEL.findall(json.dumps(request.body)) for request in received]
    assert [len(found) for found in labels] == [1] * len(received), "each request has the label of one client"
    return {found[0]: request.body for found, request in zip(labels, received, strict=True)}


@pytest.mark.usefixtures("seal_keys")
@pytest.mark.parametrize(("wire", "api"), [(CHAT, MESSAGES), (MESSAGES, CHAT), (RESPONSES, CHAT)])
def test_clients_with_the_same_conversation_get_their_own_translation(
    upstream: UpstreamServer, incremental_count: list[int], wire: str, api: Api
) -> None:
    reply = json.dumps(reply_writer_for(APIS[api]).complete_reply("ok")).encode()
    upstream.add("m", up.send_response("200 OK", reply))
    expected = send_from_all_clients(upstream, wire, api, cache_bytes=0)
    assert incremental_count == [0]
    received = send_from_all_clients(upstream, wire, api, cache_bytes=1 << 24)
    assert incremental_count[0] > len(received) // 3
    assert received.keys() == expected.keys()
    for label, body in received.items():
        assert body == expected[label], label
