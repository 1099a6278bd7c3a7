"""Probes of upstreams with a URL that identifies no server (real sockets)."""

from __future__ import annotations

import asyncio
import json
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import pytest
from aiohttp import web

from interlingua.gateway.settings.schema import Model, Settings, Upstream
from interlingua.gateway.upstream.server_probe import FIRST_WAIT_SECONDS
from tests.support.gateway_in_process import InProcessGateway, run_in_process

REPLY = {
    "id": "c",
    "object": "chat.completion",
    "created": 1,
    "model": "m",
    "choices": [{"index": 0, "message": {"role": "assistant", "content": "Hi"}, "finish_reason": "stop"}],
    "usage": {"prompt_tokens": 5, "completion_tokens": 1, "total_tokens": 6},
}
MESSAGES_REPLY = {
    "id": "msg_1",
    "type": "message",
    "role": "assistant",
    "model": "m",
    "content": [{"type": "text", "text": "Hi"}],
    "stop_reason": "end_turn",
    "stop_sequence": None,
    "usage": {"input_tokens": 5, "output_tokens": 1},
}
VLLM_MODELS = {"data": [{"id": "kimi-k2.6", "owned_by": "vllm", "max_model_len": 4096}]}


class ModelServer:
    """A model server with these answers to GET requests. It records the chat completion requests and the GET paths."""

    def __init__(self, answers: dict[str, Any], delay: float = 0.0) -> None:
        self.requests: list[dict[str, Any]] = []
        self.paths: list[str] = []
        self._answers, self._delay = answers, delay

    async def handle(self, request: web.Request) -> web.Response:
        if request.method == "POST":
            self.requests.append(await request.json())
            return web.json_response(MESSAGES_REPLY if request.path.endswith("/messages") else REPLY)
        self.paths.append(request.path)
        await asyncio.sleep(self._delay)
        answer = self._answers.get(request.path)
        return web.json_response(answer or {"error": "no such path"}, status=200 if answer else 404)


@asynccontextmanager
async def gateway_before(server: ModelServer, **upstream: Any) -> AsyncIterator[InProcessGateway]:
    app = web.Application()
    app.router.add_route("*", "/{path:.*}", server.handle)
    runner = web.AppRunner(app, access_log=None)
    await runner.setup()
    site = web.TCPSite(runner, "127.0.0.1", 0)
    await site.start()
    port = runner.addresses[0][1]
    settings = Settings(
        upstreams={"local": Upstream(url=f"http://127.0.0.1:{port}/v1", **upstream)},
        models={"blind": Model(upstream="local", model="kimi-k2.6", vision=False)},
        default="local",
    )
    try:
        async with run_in_process(settings) as gateway:
            yield gateway
    finally:
        await runner.cleanup()


async def send(gateway: InProcessGateway, path: str = "chat/completions", **fields: Any) -> bytes:
    """Send a request and return the response, which is a success."""
    body = json.dumps({"model": "kimi-k2.6", "messages": [{"role": "user", "content": "hi"}], **fields}).encode()
    headers = ["host: localhost", "connection: close", f"content-length: {len(body)}"]
    head = "\r\n".join([f"POST /v1/{path} HTTP/1.1", *headers, "", ""])
    response = await gateway.send(head.encode() + body)
    assert response.startswith(b"HTTP/1.1 200"), response[:500]
    return response


LATE_SYSTEM = [
    {"role": "user", "content": "a"},
    {"role": "system", "content": "b"},
    {"role": "user", "content": "c"},
]
"""A conversation that profiles of model servers change, and an unknown upstream gets unchanged."""


@pytest.mark.parametrize(
    ("answers", "is_detected"),
    [
        ({"/v1/models": VLLM_MODELS}, True),
        ({"/version": {"version": "0.15.0"}}, True),
        ({"/props": {"default_generation_settings": {"n_ctx": 4096}}}, True),
        ({"/v1/models": {"data": [{"id": "m", "owned_by": "system"}]}}, False),
        ({}, False),
    ],
)
def test_first_request_is_adapted_to_the_detected_server(answers: dict[str, Any], is_detected: bool) -> None:
    server = ModelServer(answers)

    async def run() -> None:
        async with gateway_before(server) as gateway:
            for _ in range(3):
                await send(gateway, messages=LATE_SYSTEM)

    asyncio.run(run())
    for request in server.requests:
        roles = [message["role"] for message in request["messages"]]
        assert roles == (["user", "user", "user"] if is_detected else ["user", "system", "user"])
    assert server.paths.count("/v1/models") == 1, "one probe for all requests"


@pytest.mark.parametrize("profile", ["openai", "any"])
def test_configured_profile_is_kept(profile: str) -> None:
    server = ModelServer({"/v1/models": VLLM_MODELS})

    async def run() -> None:
        async with gateway_before(server, profile=profile) as gateway:
            await send(gateway, messages=LATE_SYSTEM)

    asyncio.run(run())
    assert (server.paths, len(server.requests[0]["messages"])) == ([], 3)
    assert server.requests[0]["messages"][1]["role"] != "user"


def test_window_of_the_server_limits_the_reply() -> None:
    server = ModelServer({"/v1/models": VLLM_MODELS})

    async def run() -> None:
        async with gateway_before(server) as gateway:
            await send(gateway, max_tokens=32000)

    asyncio.run(run())
    assert 3000 < server.requests[0]["max_tokens"] < 4096


def test_settings_of_a_model_hold_with_the_detected_profile() -> None:
    server = ModelServer({"/v1/models": VLLM_MODELS})
    image = {"type": "image_url", "image_url": {"url": "data:image/png;base64,AAAA"}}

    async def run() -> None:
        async with gateway_before(server) as gateway:
            await send(gateway, model="blind", messages=[{"role": "user", "content": [image]}])

    asyncio.run(run())
    assert "image omitted" in json.dumps(server.requests[0])


def test_slow_probe_delays_only_the_first_request_and_not_for_long() -> None:
    server = ModelServer({"/v1/models": VLLM_MODELS}, delay=1.2)
    seconds: list[float] = []

    async def run() -> None:
        async with gateway_before(server) as gateway:
            for _ in range(2):
                started = time.monotonic()
                await send(gateway, messages=LATE_SYSTEM)
                seconds.append(time.monotonic() - started)
            await asyncio.sleep(1.2)
            await send(gateway, messages=LATE_SYSTEM)

    asyncio.run(run())
    assert seconds[0] < FIRST_WAIT_SECONDS + 0.5
    assert seconds[1] < FIRST_WAIT_SECONDS
    roles = [[message["role"] for message in request["messages"]] for request in server.requests]
    assert roles == [["user", "system", "user"]] * 2 + [["user", "user", "user"]]


def test_prompt_that_ollama_truncates_is_reported(capfd: pytest.CaptureFixture[str]) -> None:
    loaded = {"models": [{"name": "kimi-k2.6:latest", "context_length": 4096}]}
    server = ModelServer(
        {"/v1/models": {"data": [{"id": "kimi-k2.6:latest", "owned_by": "library"}]}, "/api/ps": loaded}
    )
    long_text = "The quick brown fox jumps over the lazy dog. " * 1000  # more than twice the window
    responses: list[bytes] = []

    async def run() -> None:
        async with gateway_before(server) as gateway:
            texts = (long_text, long_text, "short")
            responses.extend([await send(gateway, messages=[{"role": "user", "content": text}]) for text in texts])

    asyncio.run(run())
    assert ["prompt-truncated" in response.decode() for response in responses] == [True, True, False]
    log = capfd.readouterr().err
    assert log.count("longer than the context of 4096 tokens, and the server removes its beginning") == 1
    assert "OLLAMA_CONTEXT_LENGTH" in log


def test_window_of_a_model_that_ollama_loads_later() -> None:
    answers: dict[str, Any] = {
        "/v1/models": {"data": [{"id": "kimi-k2.6", "owned_by": "library"}]},
        "/api/ps": {"models": []},
    }
    server = ModelServer(answers)
    now = time.monotonic()

    async def run() -> None:
        async with gateway_before(server) as gateway:
            await send(gateway)
            answers["/api/ps"] = {"models": [{"name": "kimi-k2.6", "context_length": 4096}]}
            with pytest.MonkeyPatch.context() as patch:
                patch.setattr("interlingua.gateway.upstream.server_probe.time.monotonic", lambda: now + 60)
                await send(gateway)
            await asyncio.sleep(0.2)
            await send(gateway, max_tokens=32000)

    asyncio.run(run())
    assert server.requests[-1]["max_tokens"] < 4096


@pytest.mark.parametrize("owner", ["vllm", "somebody"])
def test_gateway_runs_the_web_search_of_servers_that_are_not_known_to_do_it(owner: str) -> None:
    server = ModelServer({"/v1/models": {"data": [{"id": "kimi-k2.6", "owned_by": owner}]}})
    search = {"type": "web_search_20250305", "name": "web_search"}

    async def use() -> None:
        async with gateway_before(server, api="anthropic-messages") as gateway:
            await send(gateway, "messages", max_tokens=100, tools=[search])

    asyncio.run(use())
    (tool,) = server.requests[0]["tools"]
    assert "input_schema" in tool
    assert "type" not in tool
