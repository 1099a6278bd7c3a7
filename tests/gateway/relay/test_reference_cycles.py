"""Bodies and replies are freed when a request ends, without a garbage collection: no reference cycle holds them.

Until the next collection, which may be minutes away, a cycle would keep everything that a request has received.
"""

from __future__ import annotations

import asyncio
import gc
import json
from collections.abc import Iterator
from types import CoroutineType, FrameType, FunctionType, TracebackType
from typing import Any

import msgspec
import pytest

from interlingua.faults.upstream.script import Step
from interlingua.gateway.aiohttp_internals import SmallQueue, UpstreamConnection, UpstreamResponse
from interlingua.gateway.http.connection_listener import GuardedConnection
from interlingua.gateway.relay.relay import Relay
from interlingua.gateway.settings.schema import Model, RequestLimits, Rest, Retries, Settings, Timeouts, Upstream
from tests.support import upstream_server as up
from tests.support.gateway_in_process import InProcessGateway, run_in_process
from tests.support.raw_client import CHAT, MESSAGES, WIRES, build_request, minimal_body
from tests.support.saved_garbage import saved_garbage
from tests.support.upstream_server import UpstreamServer

TOOL = {"type": "function", "function": {"name": "ls", "parameters": {"properties": {"path": {"type": "string"}}}}}
FILLER = "0123456789" * 2000
"""Occurs in every body and reply of these tests, and nowhere else."""


def error(text: str) -> bytes:
    return json.dumps({"error": {"message": text + FILLER, "type": "server_error"}}).encode()


def whole_reply() -> bytes:
    message = {"role": "assistant", "content": FILLER}
    return json.dumps({"choices": [{"index": 0, "message": message, "finish_reason": "stop"}]}).encode()


GOOD_STREAM = (up.chat_stream(FILLER, FILLER),)
GOOD = (up.send_response("200 OK", whole_reply()),)
CALL = '<tool_call>\n{"name": "ls", "arguments": {"path": "' + FILLER
GOOD_CALL = (up.chat_stream(CALL, FILLER, '"}}\n</tool_call>'),)
CUT_CALL = (up.send_headers(), up.send(up.ROLE + up.delta(CALL)), up.reset())
SILENT_CALL = (up.send_headers(), up.send(up.ROLE + up.delta(CALL)), up.wait(30))
FAILED = (up.send_response("500 Broken", error("500")),)
FAILED_IN_BODY = (up.send_response("200 OK", error("in the body")),)
FAILED_IN_STREAM = (up.send_headers(), up.send(b"data: " + error("in the stream") + b"\n\n"))
FAILED_LATE = (up.send_headers(), up.send(up.ROLE + up.delta(FILLER) + b"data: " + error("late") + b"\n\n"))
CUT = (up.send_headers(), up.send(up.ROLE + up.delta(FILLER)), up.reset())
CUT_BODY = (up.send_headers("200 OK", "application/json"), up.send(whole_reply()[:-10]), up.reset())
JUNK = (up.send_response("200 OK", b"no JSON " + FILLER.encode()),)
JUNK_GZIP = (up.send_response("200 OK", FILLER.encode(), "application/json", "content-encoding: gzip"),)
FAILED_WITH_JUNK_GZIP = (up.send_response("500 Broken", FILLER.encode(), "text/html", "content-encoding: gzip"),)
SILENT = (up.send_headers(), up.send(up.ROLE), up.wait(30))
SILENT_LATE = (up.send_headers(), up.send(up.ROLE + up.delta(FILLER)), up.wait(30))
RESET = (up.reset(),)

SAMPLED_WIRES = [wire if wire == MESSAGES else pytest.param(wire, marks=pytest.mark.slow) for wire in WIRES]

Script = tuple[Step, ...]
STREAMS: dict[str, list[Script]] = {
    "good": [GOOD_STREAM],
    "whole reply to a stream request": [GOOD],
    "retried": [FAILED, GOOD_STREAM],
    "failed": [FAILED, FAILED],
    "failed in the body": [FAILED_IN_BODY, FAILED_IN_BODY],
    "failed in the stream": [FAILED_IN_STREAM, FAILED_IN_STREAM],
    "failed late": [FAILED_LATE],
    "cut": [CUT],
    "reset": [RESET, RESET],
    "junk": [JUNK, JUNK],
    "junk gzip": [JUNK_GZIP, JUNK_GZIP],
    "failed with junk gzip": [FAILED_WITH_JUNK_GZIP, FAILED_WITH_JUNK_GZIP],
    "timeout": [SILENT, SILENT],
    "late timeout": [SILENT_LATE],
}
WHOLE: dict[str, list[Script]] = {
    "good": [GOOD],
    "stream to a whole request": [GOOD_STREAM],
    "retried": [FAILED_IN_BODY, GOOD],
    "failed": [FAILED, FAILED],
    "failed in the body": [FAILED_IN_BODY, FAILED_IN_BODY],
    "cut": [CUT_BODY, CUT_BODY],
    "reset": [RESET, RESET],
    "junk": [JUNK, JUNK],
    "junk gzip": [JUNK_GZIP, JUNK_GZIP],
    "timeout": [SILENT, SILENT],
}


CALLS: dict[str, list[Script]] = {"good": [GOOD_CALL], "cut": [CUT_CALL], "late timeout": [SILENT_CALL]}


def settings(url: str) -> Settings:
    upstream = Upstream(
        url=url,
        timeouts=Timeouts(connect=2, first_event=0.3, idle=0.3, total=0.3),
        retries=Retries(attempts=2, backoff=0.01, budget=1),
        rest=Rest(after=0),
    )
    nobody = Upstream(url="http://127.0.0.1:9/v1", retries=Retries(attempts=2, backoff=0.01, budget=1))
    return Settings(
        upstreams={"test": upstream, "nobody": nobody},
        default="test",
        models={
            "nobody": Model(upstream="nobody"),
            "nobody-then-test": Model(upstream="nobody", fallback=["fallback"]),
            "fallback": Model(upstream="test"),
        },
        overrides={f"native-{dialect}-*": dialect for dialect in ("hermes", "qwen3_coder", "detect")},
        limits=RequestLimits(body=200_000, send=0.3),
    )


@pytest.fixture(scope="module", autouse=True)
def collect_new_objects_only() -> Iterator[None]:
    """Leave all objects that exist before the tests out of the collections, which take a hundredth of the time then."""
    gc.collect()
    gc.freeze()
    yield
    gc.unfreeze()


def describe_held(garbage: list[Any]) -> list[str]:
    """Return a description of each object in the garbage that holds a part of a body or reply, or is a gateway's."""
    return [f"{type(item).__name__} {item!r:.200}" for item in garbage if _is_of_gateway(item) or _holds_text(item)]


def _is_of_gateway(item: Any) -> bool:
    """Return whether this is an object or code of the gateway.

    aiohttp's own cycles hold its connections, responses and queues, so their subclasses in the gateway do not count.
    """
    if isinstance(item, UpstreamConnection | UpstreamResponse | GuardedConnection | SmallQueue):
        return False
    is_code = isinstance(item, FrameType | CoroutineType | FunctionType | TracebackType)
    return type(item).__module__.startswith("interlingua.") or (is_code and "/interlingua/" in repr(item))


def _holds_text(item: Any) -> bool:
    texts = (held for held in gc.get_referents(item) if isinstance(held, str | bytes | bytearray))
    return any(FILLER[:1000] in (text if isinstance(text, str) else text.decode("latin-1")) for text in texts)


def request_bytes(wire: str, model: str, stream: bool, **fields: Any) -> bytes:
    return build_request(f"/v1/{wire}", json.dumps(minimal_body(wire, model, stream, user=FILLER, **fields)).encode())


async def check(gateway: InProcessGateway, data: bytes, stop_after: int | None = None) -> None:
    for _ in range(2):  # the first request fills caches
        with saved_garbage() as garbage:
            await gateway.send(data, stop_after)
            await gateway.settle()
    assert not describe_held(garbage)


def run_check(upstream: UpstreamServer, data: bytes, stop_after: int | None = None, **changes: Any) -> None:
    async def run() -> None:
        async with run_in_process(msgspec.structs.replace(settings(upstream.url), **changes)) as gateway:
            await check(gateway, data, stop_after)

    asyncio.run(run())


@pytest.mark.one_row_in(3)
@pytest.mark.parametrize("wire", SAMPLED_WIRES)
@pytest.mark.parametrize(("stream", "name"), [*((True, name) for name in STREAMS), *((False, name) for name in WHOLE)])
def test_request_leaves_no_cycle(upstream: UpstreamServer, wire: str, stream: bool, name: str) -> None:
    model = f"{name}-{wire}-{stream}"
    for script in 2 * (STREAMS if stream else WHOLE)[name]:
        upstream.add(model, *script)

    run_check(upstream, request_bytes(wire, model, stream))


@pytest.mark.one_row_in(4)
@pytest.mark.parametrize("name", CALLS)
@pytest.mark.parametrize("dialect", ["hermes", "qwen3_coder", "detect"])
def test_call_in_native_text_leaves_no_cycle(upstream: UpstreamServer, dialect: str, name: str) -> None:
    model = f"native-{dialect}-{name}".replace(" ", "-")
    for script in 2 * CALLS[name]:
        upstream.add(model, *script)
    run_check(upstream, request_bytes(CHAT, model, True, tools=[TOOL]))


@pytest.mark.parametrize(("dialect", "stop_after"), [("hermes", 1), ("hermes", 15_000), ("detect", 15_000)])
def test_client_that_disconnects_in_a_call_leaves_no_cycle(
    upstream: UpstreamServer, dialect: str, stop_after: int
) -> None:
    model = f"native-{dialect}-left-{stop_after}"
    for _ in range(2):
        upstream.add(model, *SILENT_CALL)
    run_check(upstream, request_bytes(CHAT, model, True, tools=[TOOL]), stop_after)


@pytest.mark.one_row_in(5)
@pytest.mark.parametrize("wire", WIRES)
@pytest.mark.parametrize("stream", [True, False])
@pytest.mark.parametrize("model", ["nobody", "nobody-then-test"])
def test_failover_leaves_no_cycle(upstream: UpstreamServer, wire: str, stream: bool, model: str) -> None:
    for _ in range(2):
        upstream.add("fallback", *(GOOD_STREAM if stream else GOOD))
    run_check(upstream, request_bytes(wire, model, stream))


@pytest.mark.parametrize("wire", WIRES)
@pytest.mark.parametrize("stop_after", [0, 1, 30_000])
def test_client_that_disconnects_leaves_no_cycle(upstream: UpstreamServer, wire: str, stop_after: int) -> None:
    model = f"left-{wire}-{stop_after}"
    for _ in range(2):
        upstream.add(model, up.send_headers(), up.send(up.ROLE + up.delta(FILLER) * 5), up.wait(30))
    run_check(upstream, request_bytes(wire, model, True), stop_after)


@pytest.mark.parametrize("wire", SAMPLED_WIRES)
def test_request_that_is_cancelled_as_its_response_arrives_leaves_no_cycle(
    upstream: UpstreamServer, wire: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The response is in the queue of the connection then, and nobody will take it from there."""
    model = f"cancelled-{wire}"
    start = b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\nconnection: close\r\n\r\n"
    for _ in range(2):
        upstream.add(model, up.send(start + up.ROLE + up.delta(FILLER)), up.wait(30))
    feed_parser = UpstreamConnection._feed_parser

    async def run() -> None:
        async with run_in_process(settings(upstream.url)) as gateway:

            def cancel_after_headers(connection: UpstreamConnection, data: bytes) -> None:
                feed_parser(connection, data)
                if data.startswith(start):
                    for relay in list(gateway.state.active_requests):
                        assert isinstance(relay, Relay)
                        relay.cancel()

            monkeypatch.setattr(UpstreamConnection, "_feed_parser", cancel_after_headers)
            await check(gateway, request_bytes(wire, model, True))

    asyncio.run(run())


def test_keepalive_before_a_reply_leaves_no_cycle(upstream: UpstreamServer) -> None:
    for _ in range(2):
        upstream.add("slow", up.wait(0.2), *GOOD_STREAM)
    run_check(upstream, request_bytes(CHAT, "slow", True), keepalive=0.05)


REQUESTS = {
    "no JSON": build_request("/v1/messages", b"{" + FILLER.encode()),
    "no model": build_request("/v1/messages", json.dumps({"user": FILLER}).encode()),
    "no messages": build_request("/v1/messages", json.dumps({"model": "m", "messages": 5, "user": FILLER}).encode()),
    "too large": build_request("/v1/messages", FILLER.encode() * 20),
    "junk gzip": build_request("/v1/messages", FILLER.encode(), {"content-encoding": "gzip"}),
    "never ends": build_request("/v1/messages", FILLER.encode(), length=str(2 * len(FILLER))),
}


@pytest.mark.one_row_in(5)
@pytest.mark.parametrize("name", REQUESTS)
@pytest.mark.parametrize("stop_after", [None, 0])
def test_refused_request_leaves_no_cycle(upstream: UpstreamServer, name: str, stop_after: int | None) -> None:
    run_check(upstream, REQUESTS[name], stop_after)
