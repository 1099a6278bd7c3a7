"""Tests of logging bodies: with `--log-level debug` the log contains the bodies, but no key."""

from __future__ import annotations

import json
import urllib.request

import pytest

from interlingua.gateway.observability.log import GatewayLog
from interlingua.gateway.observability.traffic_observers import LogObserver
from interlingua.gateway.settings.redaction import Redactor
from tests.support.gateway_process import run_gateway


@pytest.mark.parametrize("stream", [True, False])
@pytest.mark.parametrize("level", ["debug", "info"])
def test_bodies_are_logged_at_level_debug_only(level: str, stream: bool) -> None:
    with run_gateway("--demo", "--log-level", level) as gateway:
        body = {
            "model": "demo/hermes",
            "stream": stream,
            "messages": [{"role": "user", "content": "the word is swordfish"}],
        }
        headers = {"authorization": "Bearer sk-0123456789abcdef"}
        request = urllib.request.Request(f"{gateway.base}/v1/chat/completions", json.dumps(body).encode(), headers)
        with urllib.request.urlopen(request, timeout=10) as response:
            assert response.read()
        gateway.stop()
        log = gateway.log.read_text(encoding="utf-8")
    for direction in ("from the client", "to http://127.0.0.1", "from the upstream", "to the client"):
        assert (direction in log) == (level == "debug"), direction
    assert ("swordfish" in log) == (level == "debug")
    assert "sk-0123456789abcdef" not in log


class DebugLog(GatewayLog):
    """Log that keeps the bodies."""

    def __init__(self) -> None:
        self.bodies: list[str] = []

    def debug(self, message: str, **fields: str) -> None:  # noqa: ARG002
        self.bodies.append(fields["body"])


def logged_body(data: bytes) -> str:
    log = DebugLog()
    LogObserver(log, "req_1", Redactor(["secret-0123456789abcdef"])).on_received(data)
    return log.bodies[0]


def test_only_the_start_of_a_large_body_is_logged() -> None:
    assert logged_body(b"x" * 32_768) == "x" * 32_768
    assert logged_body(b"x" * 1_000_000) == "x" * 32_768 + "… (967,232 more bytes)"


@pytest.mark.parametrize("secret", [b"secret-0123456789abcdef", b"authorization: bearer qwertzuiopasdfghjkl"])
def test_secret_at_the_end_of_the_logged_part_is_redacted(secret: bytes) -> None:
    for before in range(32_768 - len(secret), 32_768):
        logged = logged_body(b"x" * before + b" " + secret + b" " + b"x" * 100_000)
        assert "0123" not in logged
        assert "qwert" not in logged
    many = logged_body((secret + b" ") * 10_000)
    assert "0123" not in many
    assert "qwert" not in many
