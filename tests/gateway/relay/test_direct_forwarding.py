"""Tests of direct forwarding: which data takes this path, and what leaves it to the task of the request."""

from __future__ import annotations

import asyncio
import gzip
import json
import zlib
from collections import Counter
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from typing import Any

import pytest
from aiohttp.http_writer import StreamWriter

from interlingua.faults.upstream.script import Step
from interlingua.gateway.aiohttp_internals import UpstreamConnection
from interlingua.gateway.chunk_framing import frame_chunk
from interlingua.gateway.http.response_stream import ResponseStream
from interlingua.gateway.relay.upstream_reply import UpstreamReply
from interlingua.gateway.response_store.recording_stream import RecordingStream
from interlingua.gateway.settings.schema import RequestLimits, Retries, Settings, Timeouts, Upstream
from tests.support import upstream_server as up
from tests.support.gateway_in_process import InProcessGateway, run_in_process
from tests.support.raw_client import CHAT, MESSAGES, RESPONSES, WIRES, build_request, minimal_body
from tests.support.upstream_server import UpstreamServer

WORDS = [f"word{number} " for number in range(20)]
KEY = "sk-secret-key-of-the-upstream"
CHUNKED_HEADERS = b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\ntransfer-encoding: chunked\r\n\r\n"
PAUSE = 0.02
"""Seconds between two events: enough for the gateway to wait for the next one again."""
MAX_WAIT = 1.0
"""Seconds after which the next event is sent although the gateway passed nothing on: it got a part of an event."""


@pytest.fixture
def paths(monkeypatch: pytest.MonkeyPatch) -> Counter[str]:
    """Count what was sent directly, and what the task has translated."""
    counts: Counter[str] = Counter()

    def count(owner: type, name: str, path: str) -> None:
        original = getattr(owner, name)

        def counted(self: Any, *args: Any) -> Any:
            counts[path] += 1
            return original(self, *args)

        monkeypatch.setattr(owner, name, counted)

    count(ResponseStream, "write_delta", "direct")
    count(UpstreamReply, "translate", "task")
    return counts


def settings(url: str, send_timeout: float = 20, **timeouts: float) -> Settings:
    """Return settings without a probe of the upstream, because the tests count connections and reads."""
    retries = Retries(attempts=1)
    upstream = Upstream(url=url, key=KEY, profile="any", timeouts=Timeouts(**timeouts), retries=retries)
    return Settings(upstreams={"test": upstream}, default="test", limits=RequestLimits(send=send_timeout))


@asynccontextmanager
async def started(upstream: UpstreamServer, **timeouts: float) -> AsyncIterator[InProcessGateway]:
    async with asyncio.timeout(30), run_in_process(settings(upstream.url, **timeouts)) as gateway:
        yield gateway


def ask(upstream: UpstreamServer, wire: str, model: str, **timeouts: float) -> bytes:
    """Return the response of a gateway to a stream request."""

    async def main() -> bytes:
        async with started(upstream, **timeouts) as gateway:
            return await gateway.send(stream_request(wire, model))

    return asyncio.run(main())


def stream_request(wire: str, model: str) -> bytes:
    return build_request(f"/v1/{wire}", json.dumps(minimal_body(wire, model, True)).encode())


def spaced(events: list[bytes], pause: float = PAUSE) -> list[Step]:
    """Return steps that send these events with a pause behind each."""
    return [step for event in events for step in (up.send(event), up.wait(pause))]


def one_by_one(events: list[bytes], paths: Counter[str]) -> list[Step]:
    """Return steps that send each event when the gateway has handled the one before, also on a busy machine."""

    def send_and_wait(event: bytes) -> Step:
        async def step(request: up.ReceivedRequest) -> None:
            count = paths.total()
            await up.send(event)(request)
            with suppress(TimeoutError):
                async with asyncio.timeout(MAX_WAIT):
                    while paths.total() == count:
                        await asyncio.sleep(0.001)
            await asyncio.sleep(PAUSE)

        return step

    return list(map(send_and_wait, events))


def words_stream(*end: bytes, pause: float = PAUSE) -> list[Step]:
    return [up.send_headers(), *spaced([up.ROLE, *map(up.delta, WORDS), *end], pause)]


def words_one_by_one(paths: Counter[str]) -> list[Step]:
    return [up.send_headers(), *one_by_one([up.ROLE, *map(up.delta, WORDS), up.DONE], paths)]


def chunked_words(paths: Counter[str]) -> list[Step]:
    events = [frame_chunk(event) for event in (up.ROLE, *map(up.delta, WORDS))]
    return [up.send(CHUNKED_HEADERS), *one_by_one([*events, frame_chunk(up.DONE) + b"0\r\n\r\n"], paths)]


def unchunk(body: bytes) -> bytes:
    content = b""
    while body:
        size, _, body = body.partition(b"\r\n")
        length = int(size, 16)
        content += body[:length]
        body = body[length + 2 :]
    return content


def text_of(response: bytes) -> str:
    """Return all words of a streamed response, in order."""
    headers, _, body = response.partition(b"\r\n\r\n")
    content = unchunk(body) if b"chunked" in headers.lower() else body
    data = [line.removeprefix(b"data: ") for line in content.split(b"\n") if line.startswith(b"data: {")]
    return "".join(_texts([json.loads(line) for line in data]))


def _texts(events: list[dict[str, Any]]) -> list[str]:
    texts = []
    for event in events:
        if event.get("choices"):
            texts.append(event["choices"][0]["delta"].get("content") or "")
        elif event.get("type") == "content_block_delta":
            texts.append(event["delta"].get("text", ""))
        elif event.get("type") == "response.output_text.delta":
            texts.append(event["delta"])
    return texts


def test_deltas_of_a_stored_response_are_not_searched_for_its_end(
    upstream: UpstreamServer, paths: Counter[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    searched = []
    search = RecordingStream._hold_final_event

    def counting(self: RecordingStream, data: bytes) -> bytes:
        searched.append(data)
        return search(self, data)

    monkeypatch.setattr(RecordingStream, "_hold_final_event", counting)
    model = upstream.add("stored-words", *chunked_words(paths))
    assert text_of(ask(upstream, RESPONSES, model)) == "".join(WORDS)
    assert 0 < len(searched) < len(WORDS) // 2


@pytest.mark.parametrize("wire", WIRES)
def test_words_are_forwarded_directly(upstream: UpstreamServer, paths: Counter[str], wire: str) -> None:
    model = upstream.add(f"words-{wire}", *words_one_by_one(paths))
    assert text_of(ask(upstream, wire, model)) == "".join(WORDS)
    assert paths["direct"] >= len(WORDS) // 2
    assert paths["task"] < len(WORDS) // 2, "only the first content and the end of the reply are the task's"


@pytest.mark.parametrize("wire", WIRES)
def test_chunks_bypass_the_http_parser(
    upstream: UpstreamServer, paths: Counter[str], monkeypatch: pytest.MonkeyPatch, wire: str
) -> None:
    parsed: list[bytes] = []
    feed_parser = UpstreamConnection._feed_parser

    def record_and_feed(connection: UpstreamConnection, data: bytes) -> None:
        parsed.append(data)
        feed_parser(connection, data)

    monkeypatch.setattr(UpstreamConnection, "_feed_parser", record_and_feed)
    model = upstream.add(f"chunks-{wire}", *chunked_words(paths))
    assert text_of(ask(upstream, wire, model)) == "".join(WORDS)
    assert paths["direct"] >= len(WORDS) // 2
    assert len(parsed) < len(WORDS) // 2, "only the headers, the first chunks and the end are parsed"


def test_long_data_is_left_to_the_task(upstream: UpstreamServer, paths: Counter[str]) -> None:
    events = [up.delta("x" * 5000), up.delta("a"), up.delta("y" * 5000), up.delta("b")]
    model = upstream.add("long", up.send_headers(), *one_by_one([up.ROLE, up.delta("z"), *events, up.DONE], paths))
    assert text_of(ask(upstream, MESSAGES, model)) == "z" + "x" * 5000 + "a" + "y" * 5000 + "b"
    assert paths["direct"] >= 2
    assert paths["task"] >= 2 + 2


def test_long_event_in_short_pieces_is_left_to_the_task(upstream: UpstreamServer, paths: Counter[str]) -> None:
    event = up.delta("x" * 8000)
    pieces = [event[start : start + 1000] for start in range(0, len(event), 1000)]
    model = upstream.add("pieces", up.send_headers(), *one_by_one([up.ROLE, up.delta("z"), *pieces, up.DONE], paths))
    assert text_of(ask(upstream, MESSAGES, model)) == "z" + "x" * 8000
    assert paths["task"] >= 2 + 6


def test_pieces_of_events_are_forwarded_when_they_are_complete(upstream: UpstreamServer, paths: Counter[str]) -> None:
    event = up.delta("one")
    model = upstream.add(
        "cuts",
        up.send_headers(),
        *one_by_one([up.ROLE, up.delta("z"), event[:20], event[20:-1], event[-1:], up.DONE], paths),
    )
    assert text_of(ask(upstream, CHAT, model)) == "zone"
    assert paths["direct"] >= 1
    assert paths["task"] < 6


@pytest.mark.parametrize("wire", WIRES)
def test_cut_connection_ends_with_an_error(upstream: UpstreamServer, wire: str) -> None:
    model = upstream.add(f"cut-{wire}", *words_stream(), up.reset())
    response = ask(upstream, wire, model)
    assert text_of(response) == "".join(WORDS)
    assert b"the upstream ended without finishing its reply" in response


def test_closed_connection_ends_the_reply(upstream: UpstreamServer) -> None:
    model = upstream.add("closed", *words_stream())  # the body ends with the connection
    assert text_of(ask(upstream, MESSAGES, model)) == "".join(WORDS)


def test_invalid_framing_ends_with_an_error(upstream: UpstreamServer) -> None:
    events = [frame_chunk(event) for event in (up.ROLE, up.delta("a"), up.delta("b"))]
    model = upstream.add("framing", up.send(CHUNKED_HEADERS), *spaced([*events, b"not a size\r\n"]), up.wait(5))
    response = ask(upstream, MESSAGES, model)
    assert text_of(response) == "ab"
    assert b"the connection was lost in the middle of the reply" in response


def test_data_before_invalid_framing_in_the_same_read_is_sent(upstream: UpstreamServer) -> None:
    stop = up.event({"choices": [{"index": 0, "delta": {}, "finish_reason": "stop"}]})
    events = [frame_chunk(event) for event in (up.ROLE, up.delta("a"), up.delta("b"), stop + up.DONE)]
    *first, last = events
    model = upstream.add(
        "framing-at-once", up.send(CHUNKED_HEADERS), *spaced([*first, last + b"not a size\r\n"]), up.wait(5)
    )
    response = ask(upstream, CHAT, model)
    assert text_of(response) == "ab"
    assert b'"finish_reason": "stop"' in response or b'"finish_reason":"stop"' in response
    assert b"[DONE]" in response


def test_error_of_the_upstream_is_redacted(upstream: UpstreamServer) -> None:
    error = {
        "error": {"message": "the key Bearer sk-other-secret-0123456789 is over its limit", "type": "server_error"}
    }
    model = upstream.add("error", *words_stream(b"data: " + json.dumps(error).encode() + b"\n\n"), up.wait(5))
    response = ask(upstream, CHAT, model)
    assert b"is over its limit" in response
    assert b"sk-other-secret" not in response


def test_key_of_the_upstream_is_replaced(upstream: UpstreamServer, paths: Counter[str]) -> None:
    event = up.delta(f"the key is {KEY}!")
    at = event.index(KEY.encode()) + 5
    events = [up.ROLE, up.delta("z"), event[:at], event[at:], up.DONE]
    model = upstream.add("key", up.send_headers(), *one_by_one(events, paths))
    assert text_of(ask(upstream, CHAT, model)) == "zthe key is ***!"
    assert paths["direct"] >= 1


def test_timeout_starts_again_with_each_event(upstream: UpstreamServer, paths: Counter[str]) -> None:
    model = upstream.add("paced", *words_stream(pause=0.1), up.wait(5))
    response = ask(upstream, MESSAGES, model, idle=1.5)
    assert text_of(response) == "".join(WORDS), "all events arrive, although they take longer than the timeout"
    assert b"the next event took longer than 1.5 s" in response
    assert paths["direct"] >= len(WORDS) // 2


def test_stream_has_a_total_timeout(upstream: UpstreamServer) -> None:
    model = upstream.add("total", *words_stream(pause=0.15), up.wait(5))
    response = ask(upstream, MESSAGES, model, stream=2.0)
    assert b"the stream took longer than 2 s" in response
    assert 0 < text_of(response).count("word") < len(WORDS)


def test_client_that_leaves_ends_the_request(upstream: UpstreamServer) -> None:
    model = upstream.add("left", *words_stream(), up.wait(60))

    async def main() -> None:
        async with started(upstream) as gateway:
            await gateway.send(stream_request(CHAT, model), stop_after=1500)
            await gateway.settle()

    asyncio.run(main())


def test_slow_client_stops_reading_from_the_upstream(upstream: UpstreamServer) -> None:
    events = [up.ROLE] + [up.delta("x" * 1000)] * 20_000
    model = upstream.add("slow", up.send_headers(), up.send_pieces(events), up.send(up.DONE))

    async def main() -> tuple[int, bytes]:
        async with started(upstream) as gateway:
            reader, writer = await gateway.open(stream_request(CHAT, model))
            await asyncio.sleep(0.3)
            sent_to_slow_client = upstream.wait_for_requests(model)[0].bytes_sent
            response = await reader.read()
            writer.close()
            return sent_to_slow_client, response

    sent, response = asyncio.run(main())
    assert sent < 15_000_000, "the rest waits in the upstream"
    assert text_of(response) == "x" * 20_000_000


def test_client_that_does_not_read_is_disconnected(upstream: UpstreamServer, capfd: pytest.CaptureFixture[str]) -> None:
    events = [up.ROLE] + [up.delta("x" * 1000)] * 20_000
    model = upstream.add("unread", up.send_headers(), up.send_pieces(events), up.wait(60))

    async def main() -> None:
        async with started(upstream, send_timeout=0.5) as gateway:
            _, writer = await gateway.open(stream_request(CHAT, model))
            await asyncio.sleep(0.2)
            await gateway.settle()
            writer.close()

    asyncio.run(main())
    assert "the client took longer than 0.5 s to read what was sent (limits.send)" in "".join(capfd.readouterr())


@pytest.mark.parametrize("flush", [zlib.Z_SYNC_FLUSH, zlib.Z_FULL_FLUSH])
def test_compressed_stream(upstream: UpstreamServer, paths: Counter[str], flush: int) -> None:
    compressor = zlib.compressobj(wbits=31)
    events = [compressor.compress(event) + compressor.flush(flush) for event in (up.ROLE, *map(up.delta, WORDS))]
    end = compressor.compress(up.DONE) + compressor.flush()
    headers = b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\ncontent-encoding: gzip\r\n\r\n"
    model = upstream.add(f"gzip-{flush}", up.send(headers), *one_by_one([*events, end], paths))
    assert gzip.decompress(b"".join([*events, end])).startswith(up.ROLE)
    assert text_of(ask(upstream, CHAT, model)) == "".join(WORDS)
    assert paths["direct"] >= len(WORDS) // 2


def test_http_1_0_client(upstream: UpstreamServer, paths: Counter[str]) -> None:
    model = upstream.add("http10", *words_one_by_one(paths))
    data = stream_request(CHAT, model).replace(b"HTTP/1.1", b"HTTP/1.0", 1)

    async def main() -> bytes:
        async with started(upstream) as gateway:
            return await gateway.send(data)

    response = asyncio.run(main())
    assert b"chunked" not in response.lower()
    assert text_of(response) == "".join(WORDS)
    assert paths["direct"] >= len(WORDS) // 2


def test_connection_is_reused_for_the_next_stream(paths: Counter[str]) -> None:
    events = [frame_chunk(event) for event in (up.ROLE, *map(up.delta, WORDS), up.DONE)]
    connections: list[asyncio.StreamWriter] = []

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        connections.append(writer)
        for _ in range(3):
            head = await reader.readuntil(b"\r\n\r\n")
            await reader.readexactly(int(head.lower().partition(b"content-length: ")[2].partition(b"\r\n")[0]))
            writer.write(CHUNKED_HEADERS)
            for event in events[:-1]:
                writer.write(event)
                await asyncio.sleep(PAUSE)
            writer.write(events[-1] + b"0\r\n\r\n")

    async def main() -> list[bytes]:
        server = await asyncio.start_server(serve, "127.0.0.1", 0)
        url = f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}/v1"
        async with asyncio.timeout(30), run_in_process(settings(url)) as gateway:
            responses = [await gateway.send(stream_request(CHAT, "reused")) for _ in range(3)]
        for connection in connections:
            connection.transport.abort()
        server.close()
        return responses

    assert [text_of(response) for response in asyncio.run(main())] == ["".join(WORDS)] * 3
    assert paths["direct"] >= 3 * len(WORDS) // 2
    assert len(connections) == 1


@pytest.mark.parametrize(("wire", "count"), [(CHAT, 1), (MESSAGES, 1), (RESPONSES, 2)])
def test_short_reply_is_one_write(
    upstream: UpstreamServer, monkeypatch: pytest.MonkeyPatch, wire: str, count: int
) -> None:
    """Headers, events and the end of the response are sent in one system call and one packet.

    The last event of a response that is stored waits until it is durable.
    """
    writes: list[bytes] = []

    def record(name: str) -> None:
        original = getattr(StreamWriter, name)

        def recorded(self: StreamWriter, data: Any) -> None:
            writes.append(data if name == "_write" else b"".join(data))
            original(self, data)

        monkeypatch.setattr(StreamWriter, name, recorded)

    record("_write")
    record("_writelines")
    upstream.add("m", up.send_headers(), up.send(up.ROLE + up.delta("hello ") + up.DONE))
    response = ask(upstream, wire, "m")
    assert text_of(response) == "hello "
    assert len([data for data in writes if not data.startswith(b"POST")]) == count


def test_unexpected_error_is_reported_to_the_client(upstream: UpstreamServer, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(*_: object) -> bytes:
        raise RuntimeError("boom")

    monkeypatch.setattr(ResponseStream, "write_delta", fail)
    model = upstream.add("boom", *words_stream(up.DONE))
    response = ask(upstream, CHAT, model)
    assert b"internal gateway error" in response
    assert b"boom" not in response
