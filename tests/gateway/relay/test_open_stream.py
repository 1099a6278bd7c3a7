"""Memory and tasks of an open stream: the request is released, and keep-alive frames need no task."""

from __future__ import annotations

import asyncio
import gc
import json
from collections.abc import Callable, Iterator
from types import CoroutineType
from typing import Any

import pytest

from interlingua.gateway.settings.schema import Settings, Upstream
from tests.support import upstream_server as up
from tests.support.gateway_in_process import InProcessGateway, run_in_process
from tests.support.raw_client import MESSAGES, RESPONSES, WIRES, build_request, minimal_body, tools_field
from tests.support.upstream_server import UpstreamServer

SCHEMA = {"type": "object", "properties": {"path": {"type": "string"}}}
KEEPALIVE_FRAME = b"event: ping\n"


@pytest.fixture(scope="module", autouse=True)
def search_new_objects_only() -> Iterator[None]:
    gc.collect()
    gc.freeze()
    yield
    gc.unfreeze()


def settings(upstream: UpstreamServer) -> Settings:
    return Settings(
        upstreams={"test": Upstream(url=upstream.url)},
        default="test",
        overrides={"native-*": "kimi_k2"},
        keepalive=0.1,
    )


def open_reply(upstream: UpstreamServer, model: str) -> str:
    """Let the upstream begin a reply to this model, and then wait."""
    return upstream.add(model, up.send_headers(), up.send(up.ROLE + up.delta("Hello")), up.wait(30))


def run_with_gateway(upstream: UpstreamServer, test: Callable[[InProcessGateway], Any]) -> None:
    async def run() -> None:
        async with run_in_process(settings(upstream)) as gateway:
            await test(gateway)

    asyncio.run(run())


def find_holders(text: str) -> list[str]:
    """Return a description of each object that holds a string with this text, except the coroutines of tests."""
    holders = []
    for item in gc.get_objects():
        if isinstance(item, CoroutineType) and "/tests/" in item.cr_code.co_filename:
            continue
        contents = gc.get_referents(item)
        for held in contents:
            if isinstance(held, str | bytes | bytearray):
                if text in (held if isinstance(held, str) else held.decode("latin-1")):
                    holders.append(f"{type(item).__name__} {item!r:.200}")
            elif not gc.is_tracked(held):  # a container of strings, which `get_objects` does not list
                contents.extend(gc.get_referents(held))
    return holders


@pytest.mark.parametrize("model", ["plain", "native-kimi"])
@pytest.mark.parametrize("wire", WIRES)
def test_nothing_of_the_request_is_held_while_a_stream_is_open(upstream: UpstreamServer, wire: str, model: str) -> None:
    model = open_reply(upstream, f"{model}-{wire}")

    async def check(gateway: InProcessGateway) -> None:
        text = "-".join(["the", "question", "of", "the", "client"])
        body = minimal_body(wire, model, **tools_field(wire, "read", SCHEMA))
        if wire == RESPONSES:
            body["store"] = False  # otherwise the input is kept until it is stored with the output
        data = build_request(f"/v1/{wire}", json.dumps(body).replace("hi", text).encode())
        assert text.encode() in data
        reader, writer = await gateway.open(data)
        del data
        await asyncio.wait_for(reader.readuntil(b"Hello"), 10)
        await asyncio.sleep(0.05)
        for received in upstream.wait_for_requests(model):
            assert text in json.dumps(received.body)
            received.body = {}
        gateway.state.request_cache.resize(0)  # it keeps conversations for later requests, within its own limit
        gc.collect()
        holders = find_holders(text)
        writer.transport.abort()
        await gateway.settle()
        assert not holders

    run_with_gateway(upstream, check)


def test_silent_stream_needs_no_task_for_keepalive_frames(upstream: UpstreamServer) -> None:
    model = open_reply(upstream, "silent")

    async def check(gateway: InProcessGateway) -> None:
        body = json.dumps(minimal_body(MESSAGES, model)).encode()
        reader, writer = await gateway.open(build_request(f"/v1/{MESSAGES}", body))
        await asyncio.wait_for(reader.readuntil(b"Hello"), 10)
        await asyncio.sleep(0.05)
        tasks_before = asyncio.all_tasks()
        for _ in range(3):
            await asyncio.wait_for(reader.readuntil(KEEPALIVE_FRAME), 10)
        tasks = asyncio.all_tasks()
        writer.transport.abort()
        await gateway.settle()
        assert tasks <= tasks_before

    run_with_gateway(upstream, check)
