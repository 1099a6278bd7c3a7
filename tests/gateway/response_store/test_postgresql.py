"""Tests of two gateways that share their stored responses in a PostgreSQL database."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator

import msgspec
import openai
import pytest

pytest.importorskip("psycopg", reason="the extra `postgresql` is not installed")

from interlingua.gateway.response_store.database import DatabaseFailed
from interlingua.gateway.response_store.store import Conversation, ResponseStore, StoredResponse
from interlingua.gateway.settings.schema import State
from tests.support import upstream_server as up
from tests.support.gateway_process import GatewayProcess, run_gateway
from tests.support.postgresql import find_programs, run_postgresql
from tests.support.upstream_server import UpstreamServer

PROGRAMS = find_programs()
pytestmark = pytest.mark.skipif(PROGRAMS is None, reason="PostgreSQL is not installed")

CONFIG = """
upstreams:
  chat: {{url: {url}}}
keys: [client-key-one-1234567890, client-key-two-1234567890]
seal_key: seal-key-0123456789
state: {{store: postgresql, url: "{database}"}}
"""


@pytest.fixture(scope="module")
def database() -> Iterator[str]:
    assert PROGRAMS is not None
    with run_postgresql(PROGRAMS) as url:
        yield url


@pytest.fixture(scope="module")
def replicas(upstream: UpstreamServer, database: str) -> Iterator[tuple[GatewayProcess, GatewayProcess]]:
    config = CONFIG.format(url=upstream.url, database=database)
    with run_gateway(config=config) as one, run_gateway(config=config) as two:
        yield one, two


def client_of(gateway: GatewayProcess, key: str = "client-key-one-1234567890") -> openai.OpenAI:
    return openai.OpenAI(base_url=f"{gateway.base}/v1", api_key=key, max_retries=0)


def test_response_of_one_replica_is_continued_at_the_other(
    replicas: tuple[GatewayProcess, GatewayProcess], upstream: UpstreamServer
) -> None:
    one, two = replicas
    for text in ("one", "two", "three"):
        upstream.add("m", up.chat_stream(text))
    first = client_of(one).responses.create(model="m", input="first")
    second = client_of(two).responses.create(model="m", input="second", previous_response_id=first.id)
    client_of(one).responses.create(model="m", input="third", previous_response_id=second.id)
    sent = upstream.wait_for_requests("m", 3)[-1].body["messages"]
    assert [message["content"] for message in sent] == ["first", "one", "second", "two", "third"]
    client_of(two).responses.delete(first.id)
    with pytest.raises(openai.NotFoundError):
        client_of(one).responses.retrieve(first.id)
    with pytest.raises(openai.NotFoundError):
        client_of(two, "client-key-two-1234567890").responses.retrieve(second.id)


def test_every_statement_runs_on_postgresql(database: str) -> None:
    def stored(id: str, status: str = "completed", previous: str = "") -> StoredResponse:
        return StoredResponse(id=id, previous=previous, status=status, created=1.0, input=b"[]", response=b"{}")

    def with_item(n: int) -> StoredResponse:
        return msgspec.structs.replace(stored(f"{n}"), input=f'[{{"id": "item-{n}"}}]'.encode())

    async def use() -> None:
        store = ResponseStore.open(State(store="postgresql", url=database, size=1024 * 1024))
        assert store is not None
        try:
            await asyncio.gather(*(store.save("o", with_item(n), [f"item-{n}"]) for n in range(20)))
            await store.save_conversation("o", Conversation(id="c", latest="3", created=1.0))
            await store.save("o", stored("next", previous="3"), conversation="c")
            assert [found.id for found in await store.chain("o", "next", 1000)] == ["3", "next"]
            assert list(await store.find_items("o", ["item-4", "item-x"], 1000)) == ["item-4"]
            assert await store.is_running("o", "next") is False
            conversation = await store.get_conversation("o", "c")
            assert conversation is not None
            assert conversation.latest == "next"
            await store.save("o", stored("running", "in_progress"))
            assert await store.append_events("o", "running", 3, b"{}") == "in_progress"
            assert await store.events_after("o", "running", 2) == [b"{}"]
            assert await store.finish("o", stored("running"), 4, b"{}", ["item-r"], "c")
            assert not await store.finish("o", stored("running"), 5, b"{}")
            assert await store.events_after("o", "running", 3) == [b"{}"]
            big = StoredResponse(id="big", status="completed", created=1.0, input=b"[]", response=b"x" * 2_000_000)
            await store.save("o", big)
            assert await store.get("o", "3") is None
            assert await store.delete_conversation("o", "c")
        finally:
            store.close()

    asyncio.run(use())


def test_unreachable_database_is_reported() -> None:
    async def use() -> None:
        store = ResponseStore.open(State(store="postgresql", url="postgresql://nobody@127.0.0.1:9/none"))
        assert store is not None
        try:
            with pytest.raises(DatabaseFailed):
                await store.get("o", "x")
        finally:
            store.close()

    asyncio.run(use())
