"""Tests of the WebSocket of the Responses API, with a real client."""

from __future__ import annotations

import asyncio
import json
import signal
import sqlite3
from collections import Counter
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from contextlib import AsyncExitStack, asynccontextmanager, closing
from pathlib import Path
from typing import Any

import aiohttp
import pytest

from tests.support import upstream_server as up
from tests.support.gateway_process import GatewayProcess, run_gateway
from tests.support.upstream_server import UpstreamServer

KEY = "client-key-one-1234567890"
CONFIG = """
upstreams:
  chat: {{url: {url}}}
keys: [{key}]
{more}
"""

TIMEOUT = aiohttp.ClientWSTimeout(ws_close=60)
"""The client does not close the TCP connection before the gateway has answered its Close frame."""


@pytest.fixture(scope="module")
def gateway(upstream: UpstreamServer) -> Iterator[GatewayProcess]:
    with run_gateway(config=CONFIG.format(url=upstream.url, key=KEY, more="limits: {body: 100000}")) as process:
        yield process


class Socket:
    def __init__(self, socket: aiohttp.ClientWebSocketResponse) -> None:
        self.socket = socket

    async def create(self, **fields: Any) -> list[dict[str, Any]]:
        """Send a request, and return the events up to the last one of its response."""
        await self.socket.send_str(json.dumps({"type": "response.create", **fields}))
        return await self.turn()

    async def turn(self) -> list[dict[str, Any]]:
        events: list[dict[str, Any]] = []
        while not events or events[-1]["type"] not in ("response.completed", "response.failed", "error"):
            events.append(json.loads(await asyncio.wait_for(self.socket.receive_str(), 20)))
        return events


@asynccontextmanager
async def connect(gateway: GatewayProcess, key: str = KEY) -> AsyncIterator[Socket]:
    headers = {"authorization": f"Bearer {key}"}
    async with (
        aiohttp.ClientSession() as session,
        session.ws_connect(f"{gateway.base}/v1/responses", headers=headers, timeout=TIMEOUT) as socket,
    ):
        yield Socket(socket)


def run_client(gateway: GatewayProcess, use: Callable[[Socket], Awaitable[None]]) -> None:
    async def run() -> None:
        async with connect(gateway) as socket:
            await use(socket)

    asyncio.run(run())


def sent_texts(upstream: UpstreamServer, model: str) -> list[str]:
    return [message["content"] for message in upstream.wait_for_requests(model)[-1].body["messages"]]


@pytest.mark.parametrize("store", [{"store": False}, {}])
def test_several_responses_on_one_connection(
    gateway: GatewayProcess, upstream: UpstreamServer, store: dict[str, Any]
) -> None:
    model = f"several-{len(store)}"
    for text in ("one", "two", "three"):
        upstream.add(model, up.chat_stream(text))

    async def use(socket: Socket) -> None:
        first = await socket.create(model=model, input="first", stream=True, background=True, **store)
        assert [event["sequence_number"] for event in first] == list(range(len(first)))
        assert (first[0]["type"], first[-1]["type"]) == ("response.created", "response.completed")
        previous = first[-1]["response"]["id"]
        second = await socket.create(model=model, input="second", previous_response_id=previous, **store)
        previous = second[-1]["response"]["id"]
        await socket.create(model=model, input="third", previous_response_id=previous, **store)
        assert sent_texts(upstream, model) == ["first", "one", "second", "two", "third"]

    run_client(gateway, use)


def test_requests_are_handled_in_order(gateway: GatewayProcess, upstream: UpstreamServer) -> None:
    for text in ("one", "two"):
        upstream.add("order", up.chat_stream(text))

    async def use(socket: Socket) -> None:
        for text in ("first", "second"):
            await socket.socket.send_str(json.dumps({"type": "response.create", "model": "order", "input": text}))
        for text in ("one", "two"):
            events = await socket.turn()
            assert events[-1]["response"]["output"][0]["content"][0]["text"] == text

    run_client(gateway, use)


def test_errors_leave_the_connection_open(gateway: GatewayProcess, upstream: UpstreamServer) -> None:
    upstream.add("after-errors", up.chat_stream("fine"))

    async def use(socket: Socket) -> None:
        for text, status, code in (
            ("{", 400, "invalid_request_error"),
            ('{"type": "response.cancel"}', 400, "invalid_request_error"),
            ('{"type": "response.create", "input": "hi"}', 400, "invalid_request_error"),
            (
                '{"type": "response.create", "model": "m", "input": "hi", "previous_response_id": "resp_no"}',
                400,
                "previous_response_not_found",
            ),
        ):
            await socket.socket.send_str(text)
            (error,) = await socket.turn()
            assert (error["type"], error["status"], error["error"]["code"]) == ("error", status, code)
            assert error["error"]["message"]
        await socket.socket.send_bytes(b"{}")
        assert (await socket.turn())[0]["status"] == 400
        assert (await socket.create(model="after-errors", input="hi"))[-1]["type"] == "response.completed"

    run_client(gateway, use)


def test_failed_continuation_evicts_what_it_continued(gateway: GatewayProcess, upstream: UpstreamServer) -> None:
    upstream.add("evict", up.chat_stream("one"))

    async def use(socket: Socket) -> None:
        first = await socket.create(model="evict", input="first", store=False)
        fields = {"model": "evict", "store": False, "previous_response_id": first[-1]["response"]["id"]}
        stray = {"type": "function_call_output", "call_id": "call_nobody", "output": "x"}
        assert (await socket.create(**fields, input=[stray]))[-1]["status"] == 400
        (error,) = await socket.create(**fields, input="second")
        assert error["error"]["code"] == "previous_response_not_found"

    run_client(gateway, use)


def test_unstored_response_is_unknown_on_another_connection(gateway: GatewayProcess, upstream: UpstreamServer) -> None:
    for text in ("one", "two"):
        upstream.add("other-socket", up.chat_stream(text))

    async def use() -> None:
        async with connect(gateway) as one, connect(gateway) as two:
            first = await one.create(model="other-socket", input="hi", store=False)
            fields = {"model": "other-socket", "store": False, "input": "go on"}
            (error,) = await two.create(**fields, previous_response_id=first[-1]["response"]["id"])
            assert error["error"]["code"] == "previous_response_not_found"
            assert (await two.create(**fields))[-1]["type"] == "response.completed"

    asyncio.run(use())


@pytest.mark.parametrize("later", [{"store": False}, {}])
def test_unstored_response_continues_one_that_is_stored(
    gateway: GatewayProcess, upstream: UpstreamServer, later: dict[str, Any]
) -> None:
    """The connection has only the new items of an unstored response. Those before come from the store."""
    model = f"mixed-{len(later)}"
    upstream.add(
        model,
        *up.stream_response(up.ROLE + up.call("{}", name="read") + up.delta(finish="tool_calls") + up.DONE),
    )
    for text in ("two", "three", "four"):
        upstream.add(model, up.chat_stream(text))
    tools = [{"type": "function", "name": "read", "parameters": {"type": "object", "properties": {}}}]

    async def use() -> None:
        async with connect(gateway) as one, connect(gateway) as two:
            first = (await one.create(model=model, input="first", tools=tools))[-1]["response"]
            call_id = first["output"][0]["call_id"]
            result = {"type": "function_call_output", "call_id": call_id, "output": "result"}
            second = await two.create(model=model, input=[result], previous_response_id=first["id"], store=False)
            previous = second[-1]["response"]["id"]
            for text in ("third", "fourth"):
                events = await two.create(model=model, input=text, previous_response_id=previous, **later)
                assert events[-1]["type"] == "response.completed", events
                assert events[-1]["response"]["previous_response_id"] == previous
                previous = events[-1]["response"]["id"]

    asyncio.run(use())
    messages = upstream.wait_for_requests(model)[-1].body["messages"]
    texts = [message["content"] for message in messages]
    assert texts == ["first", None, "result", "two", "third", "three", "fourth"]


REFUSE_WRITES = "CREATE TRIGGER refuse BEFORE INSERT ON responses BEGIN SELECT RAISE(FAIL, 'no space left'); END"


@pytest.mark.parametrize("texts", [["second", "third"], ["first", "second", "third"]])
def test_response_that_could_not_be_stored_is_continued_from_memory(
    upstream: UpstreamServer, tmp_path: Path, texts: list[str]
) -> None:
    """The first response is stored, all others are not."""
    model, database = f"unwritable-{len(texts)}", tmp_path / "responses.db"
    for text in ("before", *texts):
        upstream.add(model, up.chat_stream(f"re: {text}"))

    async def use(socket: Socket) -> None:
        await socket.create(model=model, input="before")
        fields: dict[str, Any] = {"model": model}
        for text in texts:
            if text == "second":
                with closing(sqlite3.connect(database)) as connection:
                    connection.execute(REFUSE_WRITES)
            events = await socket.create(**fields, input=text)
            assert events[-1]["type"] == "response.completed", events
            fields["previous_response_id"] = events[-1]["response"]["id"]

    config = CONFIG.format(url=upstream.url, key=KEY, more=f"state: {{path: {database}}}")
    with run_gateway(config=config) as gateway:
        run_client(gateway, use)
        gateway.wait_for_log("cannot store a response")
    *before, last = texts
    assert sent_texts(upstream, model) == [*(text for name in before for text in (name, f"re: {name}")), last]


@pytest.mark.parametrize(("store", "is_counted"), [(False, True), (True, False)])
def test_memory_counts_conversations_that_only_a_connection_has(
    gateway: GatewayProcess, upstream: UpstreamServer, store: bool, is_counted: bool
) -> None:
    model = f"memory-{store}"
    upstream.add(model, up.chat_stream("x"))

    async def use(socket: Socket) -> None:
        await socket.create(model=model, input="x" * 80_000, store=store)
        await wait_for_memory(lambda used: used >= 80_000 if is_counted else used == 0)

    async def wait_for_memory(is_expected: Callable[[int], bool]) -> None:
        headers = {"authorization": f"Bearer {KEY}"}
        async with asyncio.timeout(10), aiohttp.ClientSession(headers=headers) as session:
            while True:
                async with session.get(f"{gateway.base}/status") as response:
                    if is_expected((await response.json())["memory_bytes"]["used"]):
                        return
                await asyncio.sleep(0.05)

    run_client(gateway, use)
    asyncio.run(wait_for_memory(lambda used: used == 0))


def test_conversation_without_memory_for_it_is_not_kept(upstream: UpstreamServer) -> None:
    for _ in range(9):
        upstream.add("full", up.chat_stream("x"))
    more = "limits: {memory: 1048576, conversations: 0}"
    with run_gateway(config=CONFIG.format(url=upstream.url, key=KEY, more=more)) as gateway:

        async def use() -> None:
            async with AsyncExitStack() as stack:
                sockets = [await stack.enter_async_context(connect(gateway)) for _ in range(9)]
                results: Counter[str] = Counter()
                ids: list[str] = []
                for socket in sockets:
                    last = (await socket.create(model="full", input="x" * 70_000, store=False))[-1]
                    results[last["type"]] += 1
                    ids.append(last["response"]["id"] if "response" in last else "")
                assert results["response.completed"] >= 2, results
                assert results["error"] >= 1, results
                for socket in sockets:  # what they hold is released
                    await socket.create(model="full", input="x", previous_response_id="resp_unknown")
                upstream.add("full", up.chat_stream("x"))
                assert (await sockets[-1].create(model="full", input="x" * 70_000))[-1]["type"] == "response.completed"

        asyncio.run(use())


def test_conversation_of_a_connection_is_not_larger_than_a_request(
    gateway: GatewayProcess, upstream: UpstreamServer
) -> None:
    upstream.add("long", up.chat_stream("x"))

    async def use(socket: Socket) -> None:
        fields: dict[str, Any] = {"model": "long", "store": False, "input": "x" * 60_000}
        first = await socket.create(**fields)
        (error,) = await socket.create(**fields, previous_response_id=first[-1]["response"]["id"])
        assert (error["status"], "limits.body" in error["error"]["message"]) == (413, True)

    run_client(gateway, use)
    assert upstream.count("long") == 1


def test_summary_replaces_what_was_before_on_the_connection(gateway: GatewayProcess, upstream: UpstreamServer) -> None:
    for text in ("one", "the summary", "two"):
        upstream.add("summary", up.chat_stream(text))

    async def use(socket: Socket) -> None:
        fields: dict[str, Any] = {"model": "summary", "store": False}
        for given in ("first", [{"type": "compaction_trigger"}], "second"):
            events = await socket.create(input=given, **fields)
            fields["previous_response_id"] = events[-1]["response"]["id"]

    run_client(gateway, use)
    summary, last = sent_texts(upstream, "summary")
    assert ("the summary" in summary, last) == (True, "second")


def test_preparing_request_is_not_sent_to_the_model(gateway: GatewayProcess, upstream: UpstreamServer) -> None:
    upstream.add("warm", up.chat_stream("one"))

    async def use(socket: Socket) -> None:
        warm = await socket.create(model="warm", input="first", generate=False, store=False)
        assert [event["type"] for event in warm] == ["response.created", "response.completed"]
        assert upstream.count("warm") == 0
        id = warm[-1]["response"]["id"]
        await socket.create(model="warm", input=[], previous_response_id=id, store=False)
        assert sent_texts(upstream, "warm") == ["first"]

    run_client(gateway, use)


def test_failure_in_the_middle_is_one_final_event(gateway: GatewayProcess, upstream: UpstreamServer) -> None:
    upstream.add("cut", up.chat_stream("Hel", finish=None, done=False))
    upstream.add("cut", up.chat_stream("again"))

    async def use(socket: Socket) -> None:
        assert (await socket.create(model="cut", input="hi"))[-1]["type"] == "response.failed"
        assert (await socket.create(model="cut", input="hi"))[-1]["type"] == "response.completed"

    run_client(gateway, use)


def test_client_that_leaves_ends_the_request_to_the_upstream(gateway: GatewayProcess, upstream: UpstreamServer) -> None:
    upstream.add("leave", up.send_headers(), up.send(up.ROLE + up.delta("x")), up.wait(100))

    async def use(socket: Socket) -> None:
        await socket.socket.send_str(json.dumps({"type": "response.create", "model": "leave", "input": "hi"}))
        while json.loads(await socket.socket.receive_str())["type"] != "response.output_text.delta":
            pass
        async with asyncio.timeout(30):
            await socket.socket.close()  # waits until the gateway has answered the Close frame

    run_client(gateway, use)
    (request,) = upstream.wait_for_requests("leave")
    assert request.finished.wait(30)
    assert request.client_left_at is not None


def test_message_over_the_limit_closes_the_connection(gateway: GatewayProcess) -> None:
    async def use(socket: Socket) -> None:
        await socket.socket.send_str(json.dumps({"type": "response.create", "model": "m", "input": "x" * 200_000}))
        message = await asyncio.wait_for(socket.socket.receive(), 20)
        assert (message.type, message.data) == (aiohttp.WSMsgType.CLOSE, aiohttp.WSCloseCode.MESSAGE_TOO_BIG)

    run_client(gateway, use)


@pytest.mark.parametrize(
    ("headers", "status"),
    [
        ({"authorization": "Bearer wrong"}, 401),
        ({"authorization": f"Bearer {KEY}", "origin": "https://web.page"}, 403),
    ],
)
def test_handshakes_are_refused(gateway: GatewayProcess, headers: dict[str, str], status: int) -> None:
    assert _handshake_status(gateway, headers) == status


def test_connection_that_is_too_old_is_closed_after_the_response_in_progress(upstream: UpstreamServer) -> None:
    slow = (up.send_headers(), up.send(up.ROLE + up.delta("slow")), up.wait(1.5))
    upstream.add("old", *slow, up.send(up.delta(finish="stop") + up.DONE))

    async def use(socket: Socket) -> None:
        events = await socket.create(model="old", input="hi", store=False)
        assert events[-1]["type"] == "response.completed"
        (error,) = await socket.turn()
        assert (error["type"], error["status"]) == ("error", 400)
        assert error["error"]["code"] == "websocket_connection_limit_reached"
        assert error["error"]["type"] == "invalid_request_error"
        closing = await asyncio.wait_for(socket.socket.receive(), 20)
        assert closing.type is aiohttp.WSMsgType.CLOSE

    with run_gateway(config=CONFIG.format(url=upstream.url, key=KEY, more="limits: {websocket: 1}")) as gateway:
        run_client(gateway, use)


def test_request_that_was_sent_ahead_is_not_run_on_a_connection_that_is_too_old(upstream: UpstreamServer) -> None:
    slow = (up.send_headers(), up.send(up.ROLE + up.delta("slow")), up.wait(1.5))
    upstream.add("ahead", *slow, up.send(up.delta(finish="stop") + up.DONE))

    async def use(socket: Socket) -> None:
        for text in ("first", "second"):
            await socket.socket.send_str(json.dumps({"type": "response.create", "model": "ahead", "input": text}))
        assert (await socket.turn())[-1]["type"] == "response.completed"
        (error,) = await socket.turn()
        assert error["error"]["code"] == "websocket_connection_limit_reached"

    with run_gateway(config=CONFIG.format(url=upstream.url, key=KEY, more="limits: {websocket: 1}")) as gateway:
        run_client(gateway, use)
    assert upstream.count("ahead") == 1


def test_idle_connection_is_closed_properly_when_the_gateway_stops(upstream: UpstreamServer) -> None:
    with run_gateway(config=CONFIG.format(url=upstream.url, key=KEY, more="")) as gateway:

        async def use(socket: Socket) -> None:
            gateway.process.send_signal(signal.SIGTERM)
            message = await asyncio.wait_for(socket.socket.receive(), 20)
            assert (message.type, message.data) == (aiohttp.WSMsgType.CLOSE, aiohttp.WSCloseCode.GOING_AWAY)

        run_client(gateway, use)


def test_idle_connection_is_closed_at_its_limit(upstream: UpstreamServer) -> None:
    async def use(socket: Socket) -> None:
        (error,) = await socket.turn()
        assert error["error"]["code"] == "websocket_connection_limit_reached"

    with run_gateway(config=CONFIG.format(url=upstream.url, key=KEY, more="limits: {websocket: 0.5}")) as gateway:
        run_client(gateway, use)


def test_switched_off_websocket_is_426(upstream: UpstreamServer) -> None:
    with run_gateway(config=CONFIG.format(url=upstream.url, key=KEY, more="websocket: false")) as gateway:
        assert _handshake_status(gateway, {"authorization": f"Bearer {KEY}"}) == 426


def _handshake_status(gateway: GatewayProcess, headers: dict[str, str]) -> int:
    async def use() -> int:
        async with aiohttp.ClientSession() as session:
            try:
                await session.ws_connect(f"{gateway.base}/v1/responses", headers=headers)
            except aiohttp.WSServerHandshakeError as error:
                return error.status
        return 101

    return asyncio.run(use())
