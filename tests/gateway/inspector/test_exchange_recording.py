"""Recording of exchanges: the tap of a worker, its connection, the ring in memory and the archive."""

from __future__ import annotations

import asyncio
import json
import os
import stat
import time
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import msgspec
import pytest

from interlingua.captures.capture_format import (
    AnsweredLine,
    CapturedExchange,
    ClientRequestLine,
    EndLine,
    FindingsLine,
    ReceivedLine,
    RouteFacts,
    SentLine,
    UpstreamRequestLine,
)
from interlingua.errors import BadInput
from interlingua.events import Finding
from interlingua.gateway.inspector import exchange_ring, exchange_tap
from interlingua.gateway.inspector.analyses import Analyses
from interlingua.gateway.inspector.exchange_archive import ArchivedExchanges, ExchangeArchive
from interlingua.gateway.inspector.exchange_ring import ExchangeRing
from interlingua.gateway.inspector.exchange_source import UnknownExchange
from interlingua.gateway.inspector.exchange_tap import ExchangeTap, InspectorFeed
from interlingua.gateway.inspector.feed_protocol import (
    ANSWERED,
    ASKED,
    FORWARDED,
    RECEIVED,
    REQUEST,
    BeginFrame,
    HelloFrame,
    decode_items,
    encode_frame,
)
from interlingua.gateway.inspector.feed_receiver import FeedReceiver
from interlingua.gateway.observability.exchange_record import ExchangeRecord
from interlingua.gateway.settings.redaction import Redactor
from interlingua.inspection.what_if import Changes
from tests.support.captured_exchanges import capture_exchange, chat_chunk, chat_stream

SECRET = "correct-horse-battery-42"
CLIENT_KEY = "the-clients-own-key-1234"
ROUTE = RouteFacts(upstream="local", wire="openai-chat", model="kimi-k2")
BODY = {"model": "kimi", "stream": True, "messages": [{"role": "user", "content": f"my key is {CLIENT_KEY}"}]}
TIMEOUT_SECONDS = 20


@pytest.fixture
def socket_path(tmp_path: Path) -> str:
    return str(tmp_path / "feed.sock")


def record(id: str = "req_1", **fields: Any) -> ExchangeRecord:
    return ExchangeRecord(
        **{"id": id, "path": "/v1/chat/completions", "wire": "openai-chat", "started": time.monotonic(), **fields}
    )


async def wait_until(condition: Callable[[], bool]) -> None:
    async with asyncio.timeout(TIMEOUT_SECONDS):
        while not condition():
            await asyncio.sleep(0.01)


async def with_feed(path: str, ring: ExchangeRing, use: Callable[[InspectorFeed], Awaitable[None]]) -> None:
    """Run a receiver for the ring, and a feed that is connected to it."""
    server = await asyncio.get_running_loop().create_unix_server(lambda: FeedReceiver(ring), path)
    feed = InspectorFeed(path, [SECRET])
    await feed.start()
    try:
        await use(feed)
    finally:
        await feed.close()
        server.close()


def play(tap: ExchangeTap, replies: list[bytes], exchange: ExchangeRecord) -> None:
    """Send the traffic of one exchange to the tap."""
    tap.on_request({"Authorization": f"Bearer {CLIENT_KEY}", "User-Agent": "test/1"}, json.dumps(BODY).encode())
    tap.on_upstream_request(f"http://host/v1?key={SECRET}", {"x-api-key": SECRET}, b'{"model": "kimi-k2"}', ROUTE)
    tap.on_response(200, {"content-type": "text/event-stream"}, 0.01)
    tap.on_received(replies[0])
    tap.on_sent(replies[0].upper())
    for data in replies[1:]:
        tap.on_forwarded(data, data)
    tap.on_finish(exchange)


def test_exchange_arrives_in_the_ring(socket_path: str) -> None:
    ring = ExchangeRing(1 << 20)

    async def use(feed: InspectorFeed) -> None:
        exchange = record(status=200, findings=[Finding("noise", f"saw {SECRET}")])
        tap = feed.observe(exchange)
        assert tap is not None
        play(tap, [b"data: 1\n\n", b"data: 2\n\n", b"\xff\xfe"], exchange)
        await wait_until(lambda: len(ring.list_exchanges()) == 1 and ring.list_exchanges()[0].summary.outcome == "ok")

    asyncio.run(with_feed(socket_path, ring, use))
    captured = ring.load("req_1")
    assert [line.data for line in captured.lines_of(ReceivedLine)] == [b"data: 1\n\n", b"data: 2\n\n", b"\xff\xfe"]
    assert [line.data for line in captured.lines_of(SentLine)] == [b"DATA: 1\n\n", b"data: 2\n\n", b"\xff\xfe"]
    assert captured.lines_of(AnsweredLine)[0].connect_seconds == 0.01
    assert captured.lines_of(EndLine)[0].exchange["status"] == 200
    assert [line.at for line in captured.lines] == sorted(line.at for line in captured.lines)
    (summarized,) = ring.list_exchanges()
    assert (summarized.summary.client, summarized.summary.outcome) == ("test", "ok")


def test_nothing_leaves_the_ring_with_secrets(socket_path: str) -> None:
    ring = ExchangeRing(1 << 20)

    async def use(feed: InspectorFeed) -> None:
        exchange = record(error=f"bad {SECRET}", findings=[Finding("noise", f"saw {SECRET} and {CLIENT_KEY}")])
        tap = feed.observe(exchange)
        assert tap is not None
        half = len(SECRET) // 2
        replies = [f"a {SECRET[:half]}".encode(), f"{SECRET[half:]} and sk-ant-0123456789abcdef b".encode()]
        play(tap, replies, exchange)
        await wait_until(lambda: bool(ring.list_exchanges()) and ring.list_exchanges()[0].summary.outcome == "ok")

    asyncio.run(with_feed(socket_path, ring, use))
    captured = ring.load("req_1")
    shown = repr(captured.lines) + repr(ring.list_exchanges())
    for secret in (SECRET, CLIENT_KEY, "sk-ant-0123456789abcdef"):
        assert secret not in shown, shown
    assert b"".join(line.data for line in captured.lines_of(ReceivedLine)) == b"a *** and *** b"
    assert captured.lines_of(ClientRequestLine)[0].headers["Authorization"] == "***"
    assert captured.lines_of(UpstreamRequestLine)[0].url == "http://host/v1?key=***"
    assert captured.lines_of(FindingsLine)[0].findings[0].message == "saw *** and ***"


def test_open_exchange_is_shown_while_it_grows(socket_path: str) -> None:
    ring = ExchangeRing(1 << 20)

    async def use(feed: InspectorFeed) -> None:
        tap = feed.observe(record())
        assert tap is not None
        tap.on_request({}, json.dumps(BODY).encode())
        tap.on_upstream_request("http://host", {}, b"{}", ROUTE)
        tap.on_received(b"data: 1\n\n")
        await wait_until(lambda: bool(ring.list_exchanges()) and ring.list_exchanges()[0].summary.bytes_in > 0)
        (summarized,) = ring.list_exchanges()
        assert (summarized.summary.outcome, summarized.summary.upstream) == ("open", "local")
        version = ring.changes.version
        tap.on_received(b"data: 2\n\n")
        await wait_until(lambda: ring.changes.version > version)
        assert len(ring.load("req_1").lines_of(ReceivedLine)) == 2
        analyses = Analyses(ring)
        assert analyses.detail("req_1").outcome == "open: the reply is still arriving"
        timeline = b"".join(analyses.reply("req_1", Changes()))
        assert b'"Failure"' not in timeline, "it has not ended"

    asyncio.run(with_feed(socket_path, ring, use))


def test_exchanges_of_a_worker_that_dies_are_kept_and_marked(socket_path: str) -> None:
    finished: list[str] = []
    ring = ExchangeRing(1 << 20, lambda exchange: finished.append(exchange.id))

    async def use(feed: InspectorFeed) -> None:
        for number in range(2):
            tap = feed.observe(exchange := record(f"req_{number}"))
            assert tap is not None
            tap.on_request({}, json.dumps(BODY).encode())
            tap.on_upstream_request("http://host", {}, b"{}", ROUTE)
            tap.on_response(200, {"content-type": "text/event-stream"}, 0.01)
            tap.on_received(chat_chunk({"content": "half of an"}))
            if number == 0:
                tap.on_finish(exchange)
        await wait_until(lambda: len(ring.list_exchanges()) == 2)

    async def run() -> None:
        server = await asyncio.get_running_loop().create_unix_server(lambda: FeedReceiver(ring), socket_path)
        feed = InspectorFeed(socket_path, [])
        await feed.start()
        await use(feed)
        await feed.close()
        await wait_until(lambda: ring.find_summary("req_1").summary.outcome != "open")
        server.close()

    asyncio.run(run())
    assert {one.summary.id: one.summary.outcome for one in ring.list_exchanges()} == {
        "req_0": "ok",
        "req_1": "worker-died",
    }
    assert finished == ["req_0", "req_1"], "both are archived, if there is an archive"
    summary = ring.find_summary("req_1").summary
    assert (summary.upstream, summary.upstream_model, summary.attempts, summary.status) == ("local", "kimi-k2", 1, 200)
    assert summary.seconds is not None
    assert 0 < (summary.first_byte or 0) <= summary.seconds < TIMEOUT_SECONDS
    assert "see the log of the gateway" in summary.error
    analyses = Analyses(ring)
    assert "worker-died" in analyses.detail("req_1").outcome
    timeline = b"".join(analyses.reply("req_1", Changes()))
    assert b"half of an" in timeline
    assert b'"Failure"' not in timeline, "the upstream has not failed"


def test_work_per_change_of_an_open_exchange_does_not_grow(monkeypatch: pytest.MonkeyPatch) -> None:
    decoded: list[int] = []

    def count(block: bytes) -> list[Any]:
        decoded.append(len(block))
        return decode_items(block)

    monkeypatch.setattr(exchange_ring, "decode_items", count)
    ring = ExchangeRing(1 << 24)
    exchange = ring.begin(BeginFrame(1, "req_1", "2026-03-04T05:06:07", 0.0, "/", "openai-chat"), Redactor())
    encode = msgspec.msgpack.encode
    ring.add(exchange, encode([(REQUEST, 0.0, {}, json.dumps(BODY).encode())]))
    for number in range(100):
        ring.add(exchange, encode([(FORWARDED, number / 10, b"data: 1", b"data: 1")]))
        assert ring.find_summary("req_1").summary.outcome == "open"
    assert len(decoded) == 101
    summarized = ring.find_summary("req_1")
    assert (summarized.summary.first_byte, summarized.facts.title) == (0.0, f"my key is {CLIENT_KEY}")


def test_first_byte_of_an_open_exchange_is_that_of_its_last_attempt() -> None:
    ring = ExchangeRing(1 << 20)
    exchange = ring.begin(BeginFrame(1, "req_1", "2026-03-04T05:06:07", 0.0, "/", "openai-chat"), Redactor())
    for at, status in ((1.0, 503), (3.0, 200)):
        items: list[tuple[Any, ...]] = [
            (ASKED, at, "http://host", {}, b"{}", ROUTE),
            (ANSWERED, at + 0.25, status, {}, None),
            (RECEIVED, at + 0.5, b"data: 1\n\n"),
        ]
        ring.add(exchange, msgspec.msgpack.encode(items))
        summary = ring.find_summary("req_1").summary
        assert (summary.first_byte, summary.status) == (at + 0.5, status)
    assert summary.attempts == 2


def test_oldest_exchanges_are_dropped_and_large_ones_are_cut(socket_path: str) -> None:
    ring = ExchangeRing(200_000)

    async def use(feed: InspectorFeed) -> None:
        for number in range(30):
            tap = feed.observe(exchange := record(f"req_{number}"))
            assert tap is not None
            play(tap, [b"x" * 10_000], exchange)
        large = feed.observe(exchange := record("req_large"))
        assert large is not None
        large.on_request({}, b"{}")
        feed.flush()
        for _ in range(10):
            large.on_received(b"y" * 20_000)
            feed.flush()
        large.on_finish(exchange)
        await wait_until(lambda: [one.summary.id for one in ring.list_exchanges()][-1:] == ["req_large"])
        await wait_until(lambda: ring.find_summary("req_large").summary.outcome == "ok")

    asyncio.run(with_feed(socket_path, ring, use))
    ids = [one.summary.id for one in ring.list_exchanges()]
    assert ids[-1] == "req_large"
    assert 2 < len(ids) < 20
    assert "req_0" not in ids
    captured = ring.load("req_large")
    assert sum(len(line.data) for line in captured.lines_of(ReceivedLine)) < 60_000
    assert captured.lines_of(EndLine)[0].truncated
    with pytest.raises(UnknownExchange):
        ring.load("req_0")


def test_gateway_without_an_inspector_process_records_nothing(
    socket_path: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(exchange_tap, "START_TIMEOUT_SECONDS", 0.05)

    async def use() -> None:
        feed = InspectorFeed(socket_path, [])
        await feed.start()
        assert feed.observe(record()) is None
        await feed.close()

    asyncio.run(use())


def test_inspector_that_does_not_read_truncates_exchanges_and_blocks_nothing(
    socket_path: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(exchange_tap, "MAX_UNSENT_BYTES", 100_000)

    async def use() -> None:
        connections: list[asyncio.Transport] = []

        class Deaf(asyncio.Protocol):
            def connection_made(self, transport: asyncio.BaseTransport) -> None:
                assert isinstance(transport, asyncio.Transport)
                transport.pause_reading()
                connections.append(transport)

        server = await asyncio.get_running_loop().create_unix_server(Deaf, socket_path)
        feed = InspectorFeed(socket_path, [])
        await feed.start()
        tap = feed.observe(exchange := record())
        assert tap is not None
        started = time.process_time()
        for _ in range(200):
            tap.on_forwarded(b"x" * 10_000, b"y" * 10_000)
            feed.flush()
        tap.on_finish(exchange)
        assert time.process_time() - started < 1
        assert tap.is_truncated
        assert feed._transport is not None
        assert feed._transport.get_write_buffer_size() < 400_000
        feed._transport.abort()
        await feed.close()
        for transport in connections:
            transport.abort()
        server.close()
        await asyncio.sleep(0)

    asyncio.run(use())


def test_bytes_that_are_no_frames_close_the_connection(socket_path: str) -> None:
    ring = ExchangeRing(1 << 20)

    async def use() -> None:
        server = await asyncio.get_running_loop().create_unix_server(lambda: FeedReceiver(ring), socket_path)
        for data in (b"\xff" * 100, encode_frame(("nonsense",)), encode_frame((1, 2))):
            reader, writer = await asyncio.open_unix_connection(socket_path)
            writer.write(data)
            async with asyncio.timeout(TIMEOUT_SECONDS):
                assert await reader.read() == b""
            writer.close()
        server.close()

    asyncio.run(use())
    assert ring.list_exchanges() == []


def test_frames_may_be_cut_anywhere() -> None:
    receiver = FeedReceiver(ExchangeRing(1 << 20))
    data = encode_frame(HelloFrame([SECRET])) + encode_frame((1, 7, "req_7", "2026-03-04T05:06:07", 0.0, "/", "x"))
    for at in range(len(data)):
        receiver.data_received(data[at : at + 1])
    assert [one.summary.id for one in receiver._ring.list_exchanges()] == ["req_7"]


# ── archive ───────────────────────────────────────────────────────────────────────────────────────────────────────────


def captured(number: int) -> CapturedExchange:
    body = {**BODY, "messages": [{"role": "user", "content": f"question {number}"}]}
    return capture_exchange(
        body, chat_stream(["hi"]), id=f"req_{number}", time=f"2026-03-04T05:06:{number:02d}.000000+00:00"
    )


def test_archive_keeps_exchanges_over_restarts(tmp_path: Path) -> None:
    path = tmp_path / "kept" / "exchanges.db"
    archive = ExchangeArchive(path, 1 << 20)
    assert archive.add(captured(1)) == []
    archive.close()
    again = ExchangeArchive(path, 1 << 20)
    assert [one.summary.title for one in again.list_exchanges()] == ["question 1"]
    assert again.load("req_1") == captured(1)
    assert again.find_summary("req_1").facts.title == "question 1"
    with pytest.raises(UnknownExchange):
        again.load("req_2")
    again.close()
    assert stat.S_IMODE(path.stat().st_mode) == 0o600


def test_archive_deletes_the_oldest_exchanges(tmp_path: Path) -> None:
    archive = ExchangeArchive(tmp_path / "exchanges.db", 10_000)
    deleted = [id for number in range(20) for id in archive.add(captured(number))]
    kept = [one.summary.id for one in archive.list_exchanges()]
    assert deleted == [f"req_{number}" for number in range(len(deleted))]
    assert deleted
    assert kept == [f"req_{number}" for number in range(len(deleted), 20)]
    archive.close()


def test_archive_that_others_can_read_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "exchanges.db"
    path.touch()
    path.chmod(0o644)
    with pytest.raises(BadInput, match="other users can read"):
        ExchangeArchive(path, 1 << 20)
    os.mkdir(tmp_path / "folder")
    with pytest.raises(BadInput, match=r"inspect\.keep"):
        ExchangeArchive(tmp_path / "folder", 1 << 20)


def test_finished_exchanges_of_a_gateway_are_archived(tmp_path: Path, socket_path: str) -> None:
    archive = ExchangeArchive(tmp_path / "exchanges.db", 1 << 20)
    source = ArchivedExchanges(archive, 1 << 20)

    async def use(feed: InspectorFeed) -> None:
        tap = feed.observe(exchange := record())
        assert tap is not None
        play(tap, [f"data: {SECRET}\n\n".encode()], exchange)
        await wait_until(lambda: bool(archive.list_exchanges()))

    asyncio.run(with_feed(socket_path, source.ring, use))
    assert [one.summary.id for one in source.list_exchanges()] == ["req_1"]
    assert archive.load("req_1").lines_of(ReceivedLine)[0].data == b"data: ***\n\n"
    source.close()
    assert SECRET.encode() not in (tmp_path / "exchanges.db").read_bytes()
