"""Tests of responses in the background: polling, resumed streams, cancelling, over two workers."""

from __future__ import annotations

import asyncio
import json
import signal
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import openai
import pytest
from aiohttp.test_utils import make_mocked_request

from interlingua.gateway.observability.log import GatewayLog
from interlingua.gateway.response_store.background_stream import FLUSH_SECONDS, BackgroundStream, follow_events
from interlingua.gateway.response_store.database import DatabaseFailed
from interlingua.gateway.response_store.store import Conversation, ResponseStore
from interlingua.gateway.response_store.stored_exchange import StoredExchange
from interlingua.gateway.settings.schema import Log
from tests.gateway.response_store.test_store import use_store
from tests.gateway.response_store.test_stored_responses import CONFIG, KEYS, client_of, sent_messages
from tests.support import upstream_server as up
from tests.support.gateway_process import GatewayProcess, run_gateway
from tests.support.upstream_server import UpstreamServer


@pytest.fixture(scope="module")
def gateway(upstream: UpstreamServer) -> Iterator[GatewayProcess]:
    config = CONFIG.format(url=upstream.url, keys=", ".join(KEYS), workers=2, state="{days: 1}")
    with run_gateway(config=config) as process:
        yield process


def wait_for_status(client: openai.OpenAI, id: str, *statuses: str) -> Any:
    deadline = time.monotonic() + 20
    while (response := client.responses.retrieve(id)).status not in statuses:
        assert time.monotonic() < deadline, response
        time.sleep(0.05)
    return response


def add_held_reply(upstream: UpstreamServer, model: str, *texts: str) -> threading.Event:
    """Add a reply that pauses before its last text until the event is set."""
    event = threading.Event()
    *first, last = texts
    upstream.add(
        model,
        up.send_headers(),
        up.send(up.ROLE + b"".join(map(up.delta, first))),
        up.wait_for_event(event),
        up.send(up.delta(last) + up.delta(finish="stop") + up.DONE),
    )
    return event


def test_response_is_polled_until_it_is_complete(gateway: GatewayProcess, upstream: UpstreamServer) -> None:
    event = add_held_reply(upstream, "poll", "Hel", "lo")
    client = client_of(gateway)
    created = client.responses.create(model="poll", input="hi", background=True)
    assert (created.status, created.background, created.output) == ("queued", True, [])
    wait_for_status(client, created.id, "in_progress")
    event.set()
    done = wait_for_status(client, created.id, "completed")
    assert (done.id, done.output_text) == (created.id, "Hello")
    upstream.add("poll", up.chat_stream("bye"))
    client.responses.create(model="poll", input="go on", previous_response_id=created.id)
    assert [message["content"] for message in sent_messages(upstream, "poll")] == ["hi", "Hello", "go on"]
    with pytest.raises(openai.NotFoundError):
        client_of(gateway, KEYS[1]).responses.retrieve(created.id)


def test_stream_is_resumed_after_the_client_has_left(gateway: GatewayProcess, upstream: UpstreamServer) -> None:
    event = add_held_reply(upstream, "resume", "one ", "two ", "three")
    client = client_of(gateway)
    seen: list[Any] = []
    with client.responses.create(model="resume", input="hi", background=True, stream=True) as stream:
        for received in stream:
            seen.append(received)
            if received.type == "response.output_text.delta":
                break
    id = seen[0].response.id
    event.set()
    rest = list(client.responses.retrieve(id, stream=True, starting_after=seen[-1].sequence_number))
    numbers = [received.sequence_number for received in [*seen, *rest]]
    assert numbers == list(range(len(numbers)))
    assert rest[-1].type == "response.completed"
    assert rest[-1].response.output_text == "one two three"
    again = list(client.responses.retrieve(id, stream=True))
    assert [received.to_dict() for received in again] == [received.to_dict() for received in [*seen, *rest]]


def test_cancelled_response_ends_its_request_to_the_upstream(gateway: GatewayProcess, upstream: UpstreamServer) -> None:
    event = add_held_reply(upstream, "cancel", "one ", "two")
    client = client_of(gateway)
    id = client.responses.create(model="cancel", input="hi", background=True).id
    wait_for_status(client, id, "in_progress")
    assert client.responses.cancel(id).status == "cancelled"
    try:
        request = upstream.wait_for_requests("cancel")[0]
        assert request.finished.wait(10) or request.client_left_at is not None
    finally:
        event.set()
    assert client.responses.cancel(id).status == "cancelled"
    assert client.responses.retrieve(id).status == "cancelled"
    last: Any = list(client.responses.retrieve(id, stream=True))[-1]
    assert (last.type, last.response.status) == ("response.failed", "cancelled")


def test_only_a_complete_response_is_continued(gateway: GatewayProcess, upstream: UpstreamServer) -> None:
    event = add_held_reply(upstream, "early", "one ", "two")
    client = client_of(gateway)
    id = client.responses.create(model="early", input="hi", background=True).id
    try:
        for status in ("in_progress", "cancelled"):
            wait_for_status(client, id, status)
            with pytest.raises(openai.BadRequestError, match=f"{id}.* is {status}") as caught:
                client.responses.create(model="early", input="go on", previous_response_id=id)
            assert caught.value.param == "previous_response_id"
            client.responses.cancel(id)
    finally:
        event.set()


def test_failure_before_the_first_event_is_stored(gateway: GatewayProcess, upstream: UpstreamServer) -> None:
    error = json.dumps({"error": {"message": "no such thing", "type": "invalid_request_error"}}).encode()
    upstream.add("refused", up.send_response("400 Bad Request", error))
    client = client_of(gateway)
    response = wait_for_status(
        client, client.responses.create(model="refused", input="hi", background=True).id, "failed"
    )
    assert "no such thing" in response.error.message
    assert list(client.responses.retrieve(response.id, stream=True))[-1].type == "response.failed"


def test_only_background_responses_are_followed_or_cancelled(gateway: GatewayProcess, upstream: UpstreamServer) -> None:
    upstream.add("plain", up.chat_stream("x"))
    client = client_of(gateway)
    id = client.responses.create(model="plain", input="hi").id
    with pytest.raises(openai.BadRequestError):
        client.responses.cancel(id)
    with pytest.raises(openai.BadRequestError):
        list(client.responses.retrieve(id, stream=True))


def test_background_needs_the_store(gateway: GatewayProcess) -> None:
    with pytest.raises(openai.BadRequestError, match="background"):
        client_of(gateway).responses.create(model="any", input="hi", background=True, store=False)


@pytest.mark.parametrize("after", [-1, 2, 10**12])
def test_resumed_stream_of_a_complete_response_ends_with_its_final_event(
    gateway: GatewayProcess, upstream: UpstreamServer, after: int
) -> None:
    upstream.add(f"again{after}", up.chat_stream("Hello"))
    client = client_of(gateway)
    id = client.responses.create(model=f"again{after}", input="hi", background=True).id
    wait_for_status(client, id, "completed")
    last: Any = list(client.responses.retrieve(id, stream=True, starting_after=after))[-1]
    assert (last.type, last.response.output_text) == ("response.completed", "Hello")


def new_background_stream(store: ResponseStore) -> BackgroundStream:
    exchange = StoredExchange(
        store=store,
        owner="o",
        previous="",
        conversation="c",
        input=b"[]",
        input_ids=[],
        log=GatewayLog(Log(), []),
        exchange_id="x",
    )
    request = make_mocked_request("POST", "/v1/responses")
    return BackgroundStream(request, "openai-responses", {"model": "m"}, b"{}", exchange, {})


def test_final_event_is_stored_together_with_the_response(tmp_path: Path) -> None:
    """Whoever reads the final event, also from another worker, finds the response complete."""

    async def use(store: ResponseStore) -> None:
        stream = new_background_stream(store)
        await store.save_conversation("o", Conversation(id="c", created=1.0))
        await stream.create()
        storing = asyncio.create_task(stream.keep_stored(lambda: None))
        response = {"id": stream.response_id, "status": "completed", "output": [{"type": "message", "id": "msg_1"}]}
        for number, type in enumerate(("response.created", "response.output_text.delta", "response.completed")):
            await stream.deliver(json.dumps({"type": type, "sequence_number": number, "response": response}))
        await asyncio.sleep(3 * FLUSH_SECONDS)
        assert "response.completed" not in b"".join(await store.events_after("o", stream.response_id, -1)).decode()
        await stream.end()
        storing.cancel()
        events = b"\n".join(await store.events_after("o", stream.response_id, -1)).splitlines()
        assert [json.loads(event)["sequence_number"] for event in events] == [0, 1, 2]
        stored, conversation = await store.get("o", stream.response_id), await store.get_conversation("o", "c")
        assert stored is not None
        assert stored.status == "completed"
        assert list(await store.find_items("o", ["msg_1"], 1000)) == ["msg_1"]
        assert conversation is not None
        assert conversation.latest == stream.response_id

    use_store(tmp_path, use)


def test_end_is_stored_when_the_database_is_back(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("interlingua.gateway.response_store.background_stream.HEARTBEAT_SECONDS", 0.01)
    failures = [DatabaseFailed("it restarts"), DatabaseFailed("it restarts")]

    async def use(store: ResponseStore) -> None:
        finish = store.finish

        async def fail_first(*args: Any) -> bool:
            if failures:
                raise failures.pop()
            return await finish(*args)

        monkeypatch.setattr(store, "finish", fail_first)
        stream = new_background_stream(store)
        await stream.create()
        response = {"id": stream.response_id, "status": "completed", "output": []}
        await stream.deliver(json.dumps({"type": "response.completed", "sequence_number": 0, "response": response}))
        await stream.end()
        stored = await store.get("o", stream.response_id)
        assert stored is not None
        assert stored.status == "completed"

    use_store(tmp_path, use)


def test_followed_stream_ends_with_an_error_event_if_the_database_fails(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def use(store: ResponseStore) -> None:
        async def fail(*_: Any) -> None:
            raise DatabaseFailed("connection to 10.0.0.7 refused")

        reports: list[DatabaseFailed] = []
        stream = new_background_stream(store)
        await stream.create()
        response = {"id": stream.response_id, "status": "in_progress", "output": []}
        await stream.deliver(json.dumps({"type": "response.created", "sequence_number": 0, "response": response}))
        storing = asyncio.create_task(stream.keep_stored(lambda: None))
        following = follow_events(store, "o", stream.response_id, -1, reports.append)
        while not (frames := await anext(following)):
            pass
        storing.cancel()
        assert b"response.created" in frames
        monkeypatch.setattr(store, "get", fail)
        (last,) = [frames async for frames in following if frames]
        event = json.loads(last.partition(b"data: ")[2])
        assert (event["type"], event["sequence_number"], "10.0.0.7" in event["message"]) == ("error", 1, False)
        assert [error.internal_reason for error in reports] == ["connection to 10.0.0.7 refused"]

    use_store(tmp_path, use)


def test_response_whose_final_event_was_read_survives_a_kill(upstream: UpstreamServer, tmp_path: Path) -> None:
    state = f"{{path: {tmp_path}/state/responses.db}}"
    config = CONFIG.format(url=upstream.url, keys=KEYS[0], workers=1, state=state) + "seal_key: seal-key-0123456789\n"
    for number in range(3):
        upstream.add(f"kill{number}", up.chat_stream("Hello"))
        with run_gateway(config=config) as process:
            stream = client_of(process).responses.create(
                model=f"kill{number}", input="hi", background=True, stream=True
            )
            for event in stream:
                if event.type == "response.completed":
                    process.send_signal(signal.SIGKILL)
                    id = event.response.id
                    break
        with run_gateway(config=config) as process:
            client = client_of(process)
            assert client.responses.retrieve(id).output_text == "Hello"
            last: Any = list(client.responses.retrieve(id, stream=True, starting_after=0))[-1]
            assert last.type == "response.completed"
