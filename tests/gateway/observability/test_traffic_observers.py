"""Tests of logging bodies: with `--log-level debug` the log contains the bodies, but no key."""

from __future__ import annotations

import json
import urllib.request

import pytest

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
