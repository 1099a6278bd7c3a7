"""Tests of the log: one readable line per request, without secrets, without blocking a stream."""

from __future__ import annotations

import errno
import json
import logging
import os
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from typing import Any

import pytest

from interlingua.events import Finding, Usage
from interlingua.gateway.observability import background_writer
from interlingua.gateway.observability.background_writer import BackgroundWriter
from interlingua.gateway.observability.exchange_record import ExchangeRecord, FailedAttempt
from interlingua.gateway.observability.log import GatewayLog, LogOutput
from interlingua.gateway.observability.log_format import JsonFormatter, TextFormatter
from interlingua.gateway.settings import schema as settings

NOON = 1767268800.0
KEY = "correcthorse42"


class FakeOutput:
    """Output that stores the data. `results` are the results of the next writes: number of bytes, None, or an error."""

    def __init__(self, *results: int | OSError | None) -> None:
        self.written = b""
        self.results = list(results)

    def write(self, data: bytes) -> int | None:
        result = self.results.pop(0) if self.results else len(data)
        if isinstance(result, OSError):
            raise result
        self.written += data[: result or 0]
        return result

    @property
    def lines(self) -> list[str]:
        return self.written.decode().splitlines()


def log_to(output: LogOutput, format: str = "text", level: str = "info", limit: int = 1 << 20) -> GatewayLog:
    config = settings.Log(format=format, level=level)  # type: ignore[arg-type]  # literals of a settings file
    return GatewayLog(config, [KEY], output, limit, clock=lambda: NOON)


def exchange(**fields: Any) -> ExchangeRecord:
    return ExchangeRecord(
        **{"id": "req_1", "path": "/v1/messages", "wire": "anthropic-messages", "started": 10.0, **fields}
    )


FULL = exchange(
    client="alice",
    model="claude-sonnet",
    upstream_model="moonshotai/kimi-k2",
    upstream_id="gen-1",
    upstream="openrouter",
    upstream_wire="openai-chat",
    dialect="kimi_k2",
    attempts=2,
    upstream_status=200,
    status=200,
    stream=True,
    first_byte=10.412,
    ended=13.2,
    calls=2,
    usage=Usage(input=1200, output=340, cached=1000),
    stop_reason="tool_calls",
    findings=[Finding("noise", "a"), Finding("renamed", "b"), Finding("noise", "c"), Finding("stop-reason", "d")],
)


REFUSED = FailedAttempt(upstream="one", model="kimi", kind="unreachable", reason="Connection refused")
OVERLOADED = FailedAttempt(upstream="two", model="kimi", kind="503", reason="overloaded")


@pytest.mark.parametrize(
    ("record", "line"),
    [
        (
            FULL,
            "2026-01-01T12:00:00.000Z 200 ok              anthropic-messages → openrouter"
            "  claude-sonnet → moonshotai/kimi-k2  kimi_k2  2 calls  noise×2 renamed  2 attempts  0.41s/3.20s"
            "  1200+340 tokens  client=alice  req_1",
        ),
        (
            exchange(wire="openai-chat", status=401, outcome="refused", error=f"no such key: {KEY}", ended=10.001),
            "2026-01-01T12:00:00.000Z 401 refused         openai-chat        → -  0.00s"
            '  error="no such key: ***"  req_1',
        ),
        (
            exchange(upstream="u", status=200, calls=1, findings=[Finding("stop-reason", "d")]),
            "2026-01-01T12:00:00.000Z 200 ok              anthropic-messages → u  1 call  req_1",
        ),
        (
            exchange(model="m", upstream_model="m", upstream="u", outcome="client-left", calls=1),
            "2026-01-01T12:00:00.000Z   - client-left     anthropic-messages → u  m  1 call  req_1",
        ),
        (
            exchange(model="a\n200 ok \x1b[2J\u202e → b", upstream="u", status=404, outcome="refused"),
            "2026-01-01T12:00:00.000Z 404 refused         anthropic-messages → u"
            r'  "a\n200 ok \x1b[2J\u202e → b"  req_1',
        ),
        (
            exchange(upstream="two", status=200, attempts=3, failed_attempts=[REFUSED, REFUSED]),
            "2026-01-01T12:00:00.000Z 200 ok              anthropic-messages → two  3 attempts"
            '  failed="one: kimi: Connection refused ×2"  req_1',
        ),
        (
            exchange(
                upstream="two",
                status=503,
                outcome="upstream-failed",
                error="two: overloaded",
                failed_attempts=[REFUSED, OVERLOADED],
            ),
            "2026-01-01T12:00:00.000Z 503 upstream-failed anthropic-messages → two"
            '  failed="one: kimi: Connection refused"  error="two: overloaded"  req_1',
        ),
    ],
    ids=["all fields", "refused", "few fields", "client left", "injection", "fallback", "both failed"],
)
def test_request_line_in_text_format(record: ExchangeRecord, line: str) -> None:
    output = FakeOutput()
    log = log_to(output)
    log.request(record)
    log.close()
    assert output.lines == [line]


def test_request_line_in_json_format() -> None:
    output = FakeOutput()
    log = log_to(output, "json")
    log.request(FULL)
    log.request(exchange(model=f"\x1b\x7f\n\u2028\ud800{KEY}"))
    log.close()
    first, second = output.written.splitlines()
    assert json.loads(first) == {
        "time": "2026-01-01T12:00:00.000Z",
        "level": "info",
        "message": "request",
        "id": "req_1",
        "path": "/v1/messages",
        "wire": "anthropic-messages",
        "client": "alice",
        "model": "claude-sonnet",
        "stream": True,
        "upstream": "openrouter",
        "upstream_wire": "openai-chat",
        "upstream_model": "moonshotai/kimi-k2",
        "upstream_id": "gen-1",
        "dialect": "kimi_k2",
        "constraint": "",
        "attempts": 2,
        "upstream_status": 200,
        "status": 200,
        "outcome": "ok",
        "error": "",
        "calls": 2,
        "reads": 0,
        "bytes_in": 0,
        "bytes_out": 0,
        "stop_reason": "tool_calls",
        "first_byte_seconds": 0.412,
        "seconds": 3.2,
        "tokens": {"input": 1200, "output": 340, "cached": 1000, "reasoning": 0, "cache_written": 0},
        "findings": {"noise": 2, "renamed": 1, "stop-reason": 1},
    }
    assert json.loads(second)["model"] == "\x1b\x7f\n\u2028\ud800***"
    assert second.decode().isprintable()


@pytest.mark.parametrize(
    ("level", "written"),
    [
        ("error", ["request", "bad"]),
        ("info", ["request", "request", "hello", "bad"]),
        ("debug", ["request", "request", "hello", "bad", "body"]),
    ],
)
def test_log_levels(level: str, written: list[str]) -> None:
    output = FakeOutput()
    log = log_to(output, "json", level)
    log.request(FULL)
    log.request(exchange(outcome="upstream-failed"))
    log.info("hello")
    log.error("bad")
    log.debug("body", body=b'{"key": "x"}')
    log.close()
    assert [json.loads(line)["message"] for line in output.lines] == written


def test_messages_in_text_format() -> None:
    output = FakeOutput()
    log = log_to(output, level="debug")
    log.info("listening", url="http://127.0.0.1:8484", workers=2, models=["a", "b c"], empty="")
    log.error("no\nline", headers={"Authorization": "x", "a": f"={KEY}"})
    log.debug("body", body=f'{{"a": "{"x" * 70_000}{KEY}"}}'.encode())
    log.close()
    note, error, body = (line.removeprefix("2026-01-01T12:00:00.000Z ") for line in output.lines)
    assert note == 'listening url=http://127.0.0.1:8484 workers=2 models=["a", "b c"] empty=""'
    assert error == r'no\nline headers={"Authorization": "***", "a": "=***"}'
    assert body.startswith(r'body body="{\"a\": \"xxx')
    assert len(body) < 66_000


NO_SPACE = OSError(errno.ENOSPC, "no space left on device")


@pytest.mark.parametrize(
    ("results", "lines"),
    [
        # four messages; the expected lines have no time
        ([NO_SPACE], ["log lines were dropped lines=1", "two", "three", "four"]),
        ([None, NO_SPACE], ["log lines were dropped lines=2", "three", "four"]),
        ([NO_SPACE, NO_SPACE, NO_SPACE], ["log lines were dropped lines=3", "four"]),
        ([BrokenPipeError()] * 4, []),
        ([5, NO_SPACE], ["one", "two", "three", "four"]),  # the first line is written in two parts
        ([5, NO_SPACE, 3, None, NO_SPACE], ["one", "log lines were dropped lines=2", "four"]),
        ([5, NO_SPACE, 24], ["one", "two", "three", "four"]),
        ([5, 5, 5], ["one", "two", "three", "four"]),
    ],
)
def test_dropped_lines_are_counted_when_disk_is_full(results: list[int | OSError | None], lines: list[str]) -> None:
    output = FakeOutput(*results)
    log = log_to(output)
    for message in ("one", "two", "three", "four"):
        log.info(message)
    log.close()
    assert [line.removeprefix("2026-01-01T12:00:00.000Z ") for line in output.lines] == lines
    assert log.dropped == 4 - sum("dropped" not in line for line in lines)


class SlowOutput:
    """Output that blocks until `may_write` is set."""

    def __init__(self) -> None:
        self.may_write = threading.Event()
        self.lines = FakeOutput()

    def write(self, data: bytes) -> int | None:
        self.may_write.wait(10)
        return self.lines.write(data)


def test_slow_output_does_not_block() -> None:
    output = SlowOutput()
    log = log_to(output, limit=5000)
    start = time.monotonic()
    for number in range(100):
        log.info("line", number=number)
    assert time.monotonic() - start < 2
    assert log.dropped == 90
    log.close(0.01)  # the wait is limited
    output.may_write.set()
    log.close()
    assert [line.split("=")[1] for line in output.lines.lines if "line number" in line] == [*"0123456789"]
    assert "log lines were dropped lines=90" in output.lines.lines[0]


def test_log_goes_to_standard_error() -> None:
    code = (
        "from interlingua.gateway.observability.log import GatewayLog\n"
        "from interlingua.gateway.settings import schema\n"
        "log = GatewayLog(schema.Log(), [])\n"
        "log.info('hello')\n"
        "log.close()"
    )
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, env=dict(os.environ))
    assert run.stderr.endswith("Z hello\n")
    assert run.stdout == ""


@pytest.fixture
def logger() -> Iterator[logging.Logger]:
    """Logger of the gateway, to which the program that runs the gateway may add handlers."""
    logger = logging.getLogger("interlingua.gateway")
    yield logger
    logger.handlers.clear()


class RecordingHandler(logging.Handler):
    """Handler that formats records, and raises the given errors first."""

    def __init__(self, formatter: logging.Formatter, *errors: Exception) -> None:
        super().__init__()
        self.setFormatter(formatter)
        self.errors = list(errors)
        self.lines: list[str] = []

    def emit(self, record: logging.LogRecord) -> None:
        if self.errors:
            raise self.errors.pop(0)
        self.lines.append(self.format(record))


@pytest.mark.parametrize(
    ("formatter", "line"),
    [
        (
            logging.Formatter("%(asctime)s.%(msecs)03d %(name)s %(levelname)s %(message)s %(fields)s", "%S"),
            "00.000 interlingua.gateway ERROR 100% of *** failed {'url': 'http://***@host'}",
        ),
        (TextFormatter(), "2026-01-01T12:00:00.000Z 100% of *** failed url=http://***@host"),
        (
            JsonFormatter(),
            '{"time": "2026-01-01T12:00:00.000Z", "level": "error", "message": "100% of *** failed", '
            '"url": "http://***@host"}',
        ),
    ],
    ids=["standard", "text", "json"],
)
def test_handlers_of_the_logger_receive_redacted_records(
    logger: logging.Logger, formatter: logging.Formatter, line: str
) -> None:
    handler, output = RecordingHandler(formatter), FakeOutput()
    logger.addHandler(handler)
    log = log_to(output)
    log.error(f"100% of {KEY} failed", url="http://me:pass@host")
    log.close()
    assert handler.lines == [line]
    assert output.lines == []


def test_lines_are_dropped_and_counted_when_a_handler_raises(logger: logging.Logger) -> None:
    handler = RecordingHandler(logging.Formatter("%(message)s %(fields)s"), ValueError("closed"), OSError())
    logger.addHandler(handler)
    log = log_to(FakeOutput())
    for message in ("one", "two", "three"):
        log.info(message)
    log.close()
    assert handler.lines == ["log lines were dropped {'lines': 2}", "three {}"]
    assert log.dropped == 2


def test_process_ends_while_standard_error_is_blocked() -> None:
    code = (
        "from interlingua.gateway.observability.log import GatewayLog\n"
        "from interlingua.gateway.settings import schema\n"
        "log = GatewayLog(schema.Log(), [])\n"
        "for _ in range(100):\n"
        "    log.info('x' * 10_000)\n"
        "log.close(0.1)"
    )
    reader, writer = os.pipe()
    try:
        assert subprocess.run([sys.executable, "-c", code], stderr=writer, timeout=20).returncode == 0
    finally:
        os.close(reader)
        os.close(writer)


def test_background_writer_keeps_order_and_limit() -> None:
    done: list[int] = []
    may_continue = threading.Event()

    def handle_item(item: int) -> None:
        may_continue.wait(10)
        done.append(item)

    writer = BackgroundWriter(handle_item, max_weight=10, name="test")
    assert writer.close()  # no item was queued, so no thread has started
    assert [writer.put(item, weight) for item, weight in [(1, 6), (2, 5), (3, 4), (4, 1), (5, 0)]] == [
        True,
        False,
        True,
        False,
        True,
    ]
    assert not writer.close(0.01)
    may_continue.set()
    assert writer.close()
    assert done == [1, 3, 5]


def test_background_writer_collects_items(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(background_writer, "COLLECT_SECONDS", 60)
    handled: list[tuple[int, int]] = []
    first_handled = threading.Event()

    def handle_item(item: int) -> None:
        handled.append((item, writer._queue.qsize()))
        first_handled.set()

    writer = BackgroundWriter(handle_item, max_weight=10, name="test")
    writer.put(0, 0)
    assert first_handled.wait(10)
    for item in (1, 2, 3):
        writer.put(item, 0)
    assert writer.close(), "close does not wait for further items"
    assert handled[1:] == [(1, 3), (2, 2), (3, 1)]  # with the entry that ends the thread
