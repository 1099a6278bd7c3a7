"""One line for each request: readable, without secrets, never in the way of a stream."""

from __future__ import annotations

import errno
import json
import os
import subprocess
import sys
import threading
import time
from typing import Any

import pytest

from interlingua.events import Finding, Usage
from interlingua.gateway.observability.background_writer import BackgroundWriter
from interlingua.gateway.observability.exchange_record import ExchangeRecord
from interlingua.gateway.observability.log import GatewayLog, LogOutput
from interlingua.gateway.settings import schema as settings

NOON = 1767268800.0
KEY = "correcthorse42"


class Lines:
    """Takes what is written; `takes` says what each further write does: bytes that are taken, None, or an error."""

    def __init__(self, *takes: int | OSError | None) -> None:
        self.written = b""
        self.takes = list(takes)

    def write(self, data: bytes) -> int | None:
        taken = self.takes.pop(0) if self.takes else len(data)
        if isinstance(taken, OSError):
            raise taken
        self.written += data[: taken or 0]
        return taken

    @property
    def lines(self) -> list[str]:
        return self.written.decode().splitlines()


def log_to(output: LogOutput, format: str = "text", level: str = "info", limit: int = 1 << 20) -> GatewayLog:
    wanted = settings.Log(format=format, level=level)  # type: ignore[arg-type]  # words of a settings file
    return GatewayLog(wanted, [KEY], output, limit, clock=lambda: NOON)


def exchange(**fields: Any) -> ExchangeRecord:
    return ExchangeRecord(
        **{"id": "req_1", "path": "/v1/messages", "wire": "anthropic-messages", "started": 10.0, **fields}
    )


FULL = exchange(
    model="claude-sonnet",
    upstream_model="moonshotai/kimi-k2",
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


@pytest.mark.parametrize(
    ("told", "line"),
    [
        (
            FULL,
            "2026-01-01T12:00:00.000Z 200 ok              anthropic-messages → openrouter"
            "  claude-sonnet → moonshotai/kimi-k2  kimi_k2  2 calls  noise×2 renamed  2 attempts  0.41s/3.20s"
            "  1200+340 tokens  req_1",
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
    ],
    ids=["all", "refused", "usual", "left", "injected"],
)
def test_a_request_as_text(told: ExchangeRecord, line: str) -> None:
    output = Lines()
    log = log_to(output)
    log.request(told)
    log.close()
    assert output.lines == [line]


def test_a_request_as_json() -> None:
    output = Lines()
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
        "model": "claude-sonnet",
        "stream": True,
        "upstream": "openrouter",
        "upstream_wire": "openai-chat",
        "upstream_model": "moonshotai/kimi-k2",
        "dialect": "kimi_k2",
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
        "tokens": {"input": 1200, "output": 340, "cached": 1000, "reasoning": 0},
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
def test_levels(level: str, written: list[str]) -> None:
    output = Lines()
    log = log_to(output, "json", level)
    log.request(FULL)
    log.request(exchange(outcome="upstream-failed"))
    log.info("hello")
    log.error("bad")
    log.debug("body", body=b'{"key": "x"}')
    log.close()
    assert [json.loads(line)["message"] for line in output.lines] == written


def test_notes_as_text() -> None:
    output = Lines()
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
    ("takes", "lines"),
    [
        # four notes; the time is left out
        ([NO_SPACE], ["log lines were lost lines=1", "two", "three", "four"]),
        ([None, NO_SPACE], ["log lines were lost lines=2", "three", "four"]),
        ([NO_SPACE, NO_SPACE, NO_SPACE], ["log lines were lost lines=3", "four"]),
        ([BrokenPipeError()] * 4, []),
        ([5, NO_SPACE], ["one", "two", "three", "four"]),  # the first one is written in part, and its rest later
        ([5, NO_SPACE, 3, None, NO_SPACE], ["one", "log lines were lost lines=2", "four"]),
        ([5, NO_SPACE, 24], ["one", "two", "three", "four"]),
        ([5, 5, 5], ["one", "two", "three", "four"]),
    ],
)
def test_a_disk_that_is_full_for_a_while(takes: list[int | OSError | None], lines: list[str]) -> None:
    output = Lines(*takes)
    log = log_to(output)
    for message in ("one", "two", "three", "four"):
        log.info(message)
    log.close()
    assert [line.removeprefix("2026-01-01T12:00:00.000Z ") for line in output.lines] == lines
    assert log.dropped == 4 - sum("lost" not in line for line in lines)


class Slow:
    """Takes nothing until it may."""

    def __init__(self) -> None:
        self.may = threading.Event()
        self.lines = Lines()

    def write(self, data: bytes) -> int | None:
        self.may.wait(10)
        return self.lines.write(data)


def test_a_slow_reader_holds_up_nobody() -> None:
    output = Slow()
    log = log_to(output, limit=5000)
    begun = time.monotonic()
    for number in range(100):
        log.info("line", number=number)
    assert time.monotonic() - begun < 2
    assert log.dropped == 90
    log.close(0.01)  # does not wait for ever either
    output.may.set()
    log.close()
    assert [line.split("=")[1] for line in output.lines.lines if "line number" in line] == [*"0123456789"]
    assert "log lines were lost lines=90" in output.lines.lines[0]


def test_standard_error() -> None:
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


def test_later_is_in_order_and_within_its_limit() -> None:
    done: list[int] = []
    may = threading.Event()

    def do(item: int) -> None:
        may.wait(10)
        done.append(item)

    later = BackgroundWriter(do, max_weight=10, name="test")
    assert later.close()  # nothing was put, and no thread has begun
    assert [later.put(item, weight) for item, weight in [(1, 6), (2, 5), (3, 4), (4, 1), (5, 0)]] == [
        True,
        False,
        True,
        False,
        True,
    ]
    assert not later.close(0.01)
    may.set()
    assert later.close()
    assert done == [1, 3, 5]
