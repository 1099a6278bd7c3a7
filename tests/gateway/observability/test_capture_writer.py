"""Tests of captures: exact bytes, no secrets, no blocking of a stream."""

from __future__ import annotations

import errno
import io
import json
import os
import stat
import threading
import time
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any, BinaryIO

import pytest

from interlingua.captures.capture_format import (
    AnsweredLine,
    CapturedExchange,
    ClientRequestLine,
    EndLine,
    FindingsLine,
    RouteFacts,
    SentLine,
    UpstreamRequestLine,
)
from interlingua.errors import BadInput
from interlingua.events import Finding
from interlingua.gateway.observability.capture_writer import CaptureRecording, CaptureWriter, read_capture
from interlingua.gateway.observability.exchange_record import ExchangeRecord
from interlingua.gateway.settings import schema as settings
from interlingua.gateway.settings.redaction import Redactor
from tests.support.file_owners import give_to_another_user

KEY = "correcthorse42"
CLIENT_KEY = "the-clients-own-key-1234"
ROUTE = RouteFacts(upstream="host", wire="openai-chat", model=f"m-{KEY}", profile="any", delivery="whole")


def exchange(id: str = "req_1", **fields: Any) -> ExchangeRecord:
    return ExchangeRecord(**{"id": id, "path": "/v1/messages", "wire": "anthropic-messages", "started": 0.0, **fields})


def captures_in(folder: Path, keep: int = 1000, **options: Any) -> CaptureWriter:
    return CaptureWriter(settings.Capture(dir=str(folder), keep=keep), Redactor([KEY]), **options)


def record_exchange(recording: CaptureRecording, pieces: Iterable[bytes], record: ExchangeRecord) -> None:
    recording.on_request({"Authorization": f"Bearer {CLIENT_KEY}", "User-Agent": "test"}, b'{"model": "m"}')
    recording.on_upstream_request(
        "https://host/v1/chat?key=abc", {"x-api-key": KEY, "accept": "*/*"}, b'{"model": "n"}', ROUTE
    )
    recording.on_response(200, {"content-type": "text/event-stream", "set-cookie": f"a={KEY}"}, 0.25)
    for piece in pieces:
        recording.on_received(piece)
        recording.on_sent(piece.upper())
    recording.on_finish(record)


def read_only_capture(folder: Path) -> CapturedExchange:
    (path,) = folder.glob("*")
    return read_capture(path)


def test_complete_exchange(tmp_path: Path) -> None:
    captures = captures_in(tmp_path / "a" / "b")
    findings = [Finding("noise", f"saw {KEY}", "place\ud800")]
    record = exchange(status=200, model="m\ud800", error=f"bad {KEY}", findings=findings)
    record_exchange(
        captures.start_recording(record), [b"data: 1\n\n", "data: é".encode()[:-1], b"\xa9\n\n", b""], record
    )
    captures.close()

    capture = read_only_capture(tmp_path / "a" / "b")
    (request,), (upstream_request,) = capture.lines_of(ClientRequestLine), capture.lines_of(UpstreamRequestLine)
    assert (request.id, request.path, request.wire) == ("req_1", "/v1/messages", "anthropic-messages")
    assert request.headers == {"Authorization": "***", "User-Agent": "test"}
    assert (request.data, upstream_request.data) == (b'{"model": "m"}', b'{"model": "n"}')
    assert (upstream_request.url, upstream_request.headers) == (
        "https://host/v1/chat?key=***",
        {"x-api-key": "***", "accept": "*/*"},
    )
    assert upstream_request.route == RouteFacts(
        upstream="host", wire="openai-chat", model="m-***", profile="any", delivery="whole"
    )
    (answer,) = capture.lines_of(AnsweredLine)
    assert (answer.status, answer.headers["set-cookie"], answer.connect_seconds) == (200, "***", 0.25)
    assert [line.data for line in capture.received] == [b"data: 1\n\n", b"data: \xc3", b"\xa9\n\n", b""]
    assert [line.data for line in capture.lines_of(SentLine)] == [b"DATA: 1\n\n", b"DATA: \xc3", b"\xa9\n\n", b""]
    assert capture.lines_of(FindingsLine)[0].findings == [Finding("noise", "saw ***", "place\\ud800")]
    (end,) = capture.lines_of(EndLine)
    assert (end.exchange["status"], end.exchange["error"], end.truncated) == (200, "bad ***", False)
    assert [line.at for line in capture.lines] == sorted(line.at for line in capture.lines)
    assert captures.dropped == 0


def test_received_bytes_are_stored_exactly(tmp_path: Path) -> None:
    captures = captures_in(tmp_path)
    pieces = [bytes([byte]) for byte in range(256)] + [os.urandom(5000), b"correct", b"horse", b"\r", b"\n"]
    record_exchange(captures.start_recording(exchange()), pieces, exchange())
    captures.close()
    assert [line.data for line in read_only_capture(tmp_path).received] == pieces


def test_received_returns_only_last_attempt(tmp_path: Path) -> None:
    captures = captures_in(tmp_path)
    recording = captures.start_recording(exchange())
    for data in (b"first", b"second"):
        recording.on_upstream_request("http://x", {}, b"", ROUTE)
        recording.on_received(data)
    recording.on_finish(exchange())
    captures.close()
    assert [line.data for line in read_only_capture(tmp_path).received] == [b"second"]


@pytest.mark.parametrize("key", [KEY, CLIENT_KEY])
@pytest.mark.parametrize("size", [1, 2, 5, 7, 1000])
def test_secret_split_across_chunks_is_redacted(tmp_path: Path, key: str, size: int) -> None:
    """An upstream may_create repeat a key, and the network may_create split it anywhere."""
    captures = captures_in(tmp_path)
    data = f'{{"error": "no such key: {key}, or {key[:9]}"}}'.encode()
    record_exchange(
        captures.start_recording(exchange()), [data[at : at + size] for at in range(0, len(data), size)], exchange()
    )
    captures.close()
    whole = b"".join(line.data for line in read_only_capture(tmp_path).received)
    assert whole == data.replace(key.encode(), b"***")
    (path,) = tmp_path.glob("*")
    assert key not in path.read_text()


@pytest.mark.parametrize("secret", [KEY, CLIENT_KEY, "sk-proj-" + "AbCdEfGhIjKlMnOpQrStUvWx"])
@pytest.mark.parametrize("size", [1, 3, 8])
def test_secret_that_a_model_spells_in_pieces_is_not_written(tmp_path: Path, secret: str, size: int) -> None:
    captures = captures_in(tmp_path)
    text = f"It is {secret}, I think."
    pieces = [text[at : at + size] for at in range(0, len(text), size)]
    events = [f"data: {json.dumps({'delta': piece})}\n\n".encode() for piece in pieces]
    record_exchange(captures.start_recording(exchange()), events, exchange())
    captures.close()
    (path,) = tmp_path.iterdir()
    assert path.stat().st_mode & 0o777 == 0o600
    received = [json.loads(line.data[6:])["delta"] for line in read_capture(path).received]
    assert len(received) == len(events)
    assert "".join(received) == "It is ***, I think."


@pytest.mark.parametrize("size", [5, 30, 1000])
def test_private_key_in_several_chunks_is_not_written(tmp_path: Path, size: int) -> None:
    captures = captures_in(tmp_path)
    lines = "\n".join(["MIIEpAIBAAKCAQEA0123456789abcdefABCDEF0123456789abcdefABCDEF"] * 20)
    key = f"-----BEGIN PRIVATE KEY-----\n{lines}\n-----END PRIVATE KEY-----"
    body = json.dumps({"choices": [{"message": {"content": key}}]}).encode()
    chunks = [body[at : at + size] for at in range(0, len(body), size)]
    record_exchange(captures.start_recording(exchange()), chunks, exchange())
    captures.close()
    whole = b"".join(line.data for line in read_only_capture(tmp_path).received)
    content = json.loads(whole)["choices"][0]["message"]["content"]
    assert content == "-----BEGIN PRIVATE KEY-----***-----END PRIVATE KEY-----"


def test_headers_that_are_not_utf8_are_escaped(tmp_path: Path) -> None:
    captures = captures_in(tmp_path)
    recording = captures.start_recording(exchange("../../odd id"))
    recording.on_request({"user-agent": "caf\udce9"}, b"")
    recording.on_finish(exchange())
    captures.close()
    assert read_only_capture(tmp_path).lines_of(ClientRequestLine)[0].headers == {"user-agent": "caf\\udce9"}
    (path,) = tmp_path.iterdir()
    assert path.name.endswith("-______odd_id.jsonl")


def test_captures_are_private_to_owner(tmp_path: Path) -> None:
    folder = tmp_path / "new"
    captures = captures_in(folder)
    record_exchange(captures.start_recording(exchange()), [], exchange())
    captures.close()
    (path,) = folder.iterdir()
    assert stat.S_IMODE(folder.stat().st_mode) == 0o700
    assert stat.S_IMODE(path.stat().st_mode) == 0o600


@pytest.mark.parametrize("mode", [0o777, 0o775, 0o1777])
def test_folder_that_others_can_write_to_is_refused(tmp_path: Path, mode: int) -> None:
    tmp_path.chmod(mode)
    with pytest.raises(BadInput, match=rf"^capture\.dir: other users can write to .* \(mode {mode:o}\)") as raised:
        captures_in(tmp_path)
    assert raised.value.hint.startswith(f"run chmod 700 {tmp_path}")
    captures_in(tmp_path / "new").close()


def test_folder_of_another_user_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    give_to_another_user(tmp_path, monkeypatch)
    with pytest.raises(BadInput, match=r"^capture\.dir: another user owns "):
        captures_in(tmp_path)


def test_unfinished_capture_is_discarded(tmp_path: Path) -> None:
    captures = captures_in(tmp_path)
    recording = captures.start_recording(exchange())
    recording.on_request({}, b"x" * 100_000)
    wait_for(lambda: [path.name[0] + path.suffix for path in tmp_path.iterdir()] == ["..part"])
    captures.close()
    assert [*tmp_path.iterdir()] == []
    assert captures.dropped == 1


def wait_for(condition: Callable[[], bool]) -> None:
    end = time.monotonic() + 10
    while not condition():
        assert time.monotonic() < end
        time.sleep(0.005)


def test_stale_partial_files_are_deleted(tmp_path: Path) -> None:
    old, new = (tmp_path / f".2026010{day}T120000000000Z-req.part" for day in (1, 2))
    for path in (old, new):
        path.touch()
    os.utime(old, (0, 0))
    captures_in(tmp_path)
    assert [*tmp_path.iterdir()] == [new]


def test_oldest_captures_are_deleted_first(tmp_path: Path) -> None:
    (tmp_path / "mine.jsonl").touch()
    for number in range(5):
        captures = captures_in(tmp_path, keep=3)
        record_exchange(captures.start_recording(exchange(f"req_{number}")), [], exchange())
        captures.close()
    kept = sorted(path.name.partition("-")[2] for path in tmp_path.iterdir())
    assert kept == ["", "req_2.jsonl", "req_3.jsonl", "req_4.jsonl"]  # and the file that is not a capture


class FullDisk(io.BytesIO):
    """File on a disk with `room` bytes free."""

    room = 0

    def write(self, data: Any) -> int:
        if self.tell() + len(data) > self.room:
            raise OSError(errno.ENOSPC, "no space left on device")
        return super().write(data)


@pytest.mark.parametrize("room", [0, 300, 500])
def test_full_disk_discards_capture(tmp_path: Path, room: int) -> None:
    disks: list[FullDisk] = []

    def create(path: Path) -> BinaryIO:
        path.touch()
        disks.append(FullDisk())
        disks[-1].room = room if len(disks) == 1 else 1 << 20
        return disks[-1]

    captures = captures_in(tmp_path, create_file=create)
    record_exchange(captures.start_recording(exchange("a")), [b"data"] * 10, exchange())
    record_exchange(captures.start_recording(exchange("b")), [b"data"] * 10, exchange())
    captures.close()
    assert [path.name.partition("-")[2] for path in tmp_path.iterdir()] == ["b.jsonl"]
    assert captures.dropped == 1
    assert disks[0].closed


def test_file_that_cannot_be_created_is_counted(tmp_path: Path) -> None:
    captures = captures_in(tmp_path / "gone")
    (tmp_path / "gone").rmdir()
    record_exchange(captures.start_recording(exchange()), [b"data"], exchange())
    captures.close()
    assert captures.dropped == 1


def test_slow_disk_does_not_block(tmp_path: Path) -> None:
    may_create = threading.Event()

    def create(path: Path) -> BinaryIO:
        may_create.wait(10)
        return path.open("xb")

    captures = captures_in(tmp_path, max_queued_bytes=5000, create_file=create)
    start = time.monotonic()
    first = captures.start_recording(exchange("first"))
    second = captures.start_recording(exchange("second"))
    record_exchange(first, [b"x" * 1000] * 100, exchange())
    for number in range(100):
        record_exchange(captures.start_recording(exchange(f"more_{number}")), [b"x" * 5000], exchange())
    assert time.monotonic() - start < 2
    may_create.set()
    captures.close()
    assert captures.dropped >= 90

    captures = captures_in(tmp_path)
    (path,) = tmp_path.glob("*-first.jsonl")
    capture = read_capture(path)
    assert capture.lines_of(EndLine)[0].truncated
    assert [line.data for line in capture.received] == [b"x" * 1000] * len(capture.received)
    assert len(capture.received) < 5
    second.on_finish(exchange())  # after the end: no effect


def test_body_larger_than_queue_truncates_capture(tmp_path: Path) -> None:
    captures = captures_in(tmp_path, max_queued_bytes=5000)
    record_exchange(captures.start_recording(exchange()), [b"x" * 6000], exchange())
    captures.close()
    assert read_only_capture(tmp_path).lines_of(EndLine)[0].truncated
    assert captures.dropped == 1


def test_nothing_is_captured_without_settings() -> None:
    captures = CaptureWriter(None, Redactor([]))
    record_exchange(captures.start_recording(exchange()), [b"data"], exchange())
    captures.close()
    assert captures.dropped == 0


def test_folder_that_cannot_be_created_raises(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(BadInput, match=r"capture\.dir: cannot write to .*: Not a directory") as error:
        captures_in(tmp_path / "file" / "folder")
    assert "directory" in error.value.hint


@pytest.mark.parametrize("line", [b"{}", b'{"kind": "other", "at": 0}', b"\xff", b""])
def test_malformed_capture_raises(tmp_path: Path, line: bytes) -> None:
    path = tmp_path / "x.jsonl"
    path.write_bytes(b'{"kind": "sent", "at": 0, "text": "x"}\n' + line + b"\n")
    with pytest.raises(BadInput, match="line 2 is not a line of a capture"):
        read_capture(path)
