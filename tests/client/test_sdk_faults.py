"""The official SDKs with our transport, where the upstream, the program or the address is not as it should be."""

from __future__ import annotations

import asyncio
import gc
import gzip
import json
import logging
import warnings
from collections.abc import Iterator
from typing import Any

import anthropic
import httpx
import httpx2
import openai
import pytest

from interlingua import client
from interlingua.client import Exchange
from interlingua.errors import UsageError
from tests.support import upstream_server as up
from tests.support.upstream_server import UpstreamServer

MODEL = "gpt-5"
HI: list[Any] = [{"role": "user", "content": "hi"}]
FRAMES = b'data: {"choices": [{"index": 0, "delta": {"content": "Hi"}, "finish_reason": "stop"}]}\n\ndata: [DONE]\n\n'
MODELS = b'{"object": "list", "data": [{"id": "m", "object": "model"}]}'


def body(text: str = "Hello") -> up.Step:
    choice = {"index": 0, "message": {"role": "assistant", "content": text}, "finish_reason": "stop"}
    said = {"id": "1", "object": "chat.completion", "created": 1, "model": MODEL, "choices": [choice]}
    return up.send_response("200 OK", json.dumps(said).encode())


@pytest.fixture
def server() -> Iterator[UpstreamServer]:
    server = UpstreamServer()
    yield server
    server.stop()


def ask(made: Any, stream: bool = False, **more: Any) -> str:
    """What it says, by Chat Completions or Messages."""
    if isinstance(made, anthropic.Anthropic):
        if stream:
            with made.messages.stream(model=MODEL, max_tokens=9, messages=HI) as events:
                return "".join(events.text_stream)
        return str(getattr(made.messages.create(model=MODEL, max_tokens=9, messages=HI).content[0], "text", ""))
    said = made.chat.completions.create(model=MODEL, messages=HI, stream=stream, **more)
    if not stream:
        return str(said.choices[0].message.content)
    return "".join(chunk.choices[0].delta.content or "" for chunk in said if chunk.choices)


# ── where it goes ─────────────────────────────────────────────────────────────────────────────────────────────────────


def test_a_key_goes_to_its_own_upstream_only(server: UpstreamServer) -> None:
    server.add(MODEL, body())
    made = client.openai(base_url=server.url, api_key="sk-a")
    assert ask(made.with_options(base_url=f"{server.url}/", api_key="sk-a")) == "Hello"
    for other in ("http://127.0.0.1:9/v1", "https://127.0.0.1/v1", server.url.replace("127.0.0.1", "localhost")):
        with pytest.raises(UsageError, match="this client is for"):
            ask(made.with_options(base_url=other, api_key="sk-b", max_retries=0))
    assert [asked.headers["authorization"] for asked in server.wait_for_requests(MODEL)] == ["Bearer sk-a"]


@pytest.mark.parametrize("sdk", ["openai", "anthropic"])
@pytest.mark.parametrize(
    ("address", "base"),
    [
        ("", "/v1"),
        ("/v1", "/v1"),
        ("/v1/", "/v1"),
        ("/api/v1", "/api/v1"),
        ("/v1/chat/completions", "/v1"),
        ("/x", "/x"),
    ],
)
def test_all_paths_have_one_base(sdk: str, address: str, base: str, server: UpstreamServer) -> None:
    server.add(MODEL, body())
    server.add("None", up.send_response("200 OK", MODELS))
    root = server.url.removesuffix("/v1")
    made = getattr(client, sdk)(base_url=f"{root}{address}", api_key="sk-a")
    assert ask(made) == "Hello"
    assert [model.id for model in made.models.list()] == ["m"]
    asked = [*server.wait_for_requests(MODEL), *server.wait_for_requests("None")]
    assert [one.path for one in asked] == [f"{base}/chat/completions", f"{base}/models"]
    assert [one.headers["authorization"] for one in asked] == ["Bearer sk-a"] * 2


def test_tokens_are_counted_only_where_that_can_be_asked(server: UpstreamServer) -> None:
    made = client.anthropic(base_url=server.url, api_key="sk-a")
    with pytest.raises(anthropic.NotFoundError, match="tokens cannot be counted: the upstream speaks openai-chat"):
        made.messages.count_tokens(model=MODEL, messages=HI)
    server.add(MODEL, up.send_response("200 OK", b'{"input_tokens": 3}'))
    made = client.anthropic(base_url=server.url, api_key="sk-a", upstream_api="anthropic-messages")
    assert made.messages.count_tokens(model=MODEL, messages=HI).input_tokens == 3
    assert [one.path for one in server.wait_for_requests(MODEL)] == ["/v1/messages/count_tokens"]


def test_the_query_is_sent(server: UpstreamServer) -> None:
    server.add(MODEL, body())
    more = {"api-version": "2"}
    made = client.openai(base_url=f"{server.url}?api-version=1&x=y", api_key="k", default_query=more)
    assert ask(made, extra_query={"q": "a b"}) == "Hello"
    (asked,) = server.wait_for_requests(MODEL)
    assert asked.path == "/v1/chat/completions?x=y&api-version=2&q=a+b"


# ── what comes back ───────────────────────────────────────────────────────────────────────────────────────────────────

NO_REPLIES = [
    (b"<html>login</html>", "text/html", 502, "is no reply: '<html>login</html>'"),
    (b"", "text/plain", 502, "is no reply: ''"),
    (b'{"error": {"message": "slow down", "code": 429}}', "application/json", 429, "slow down"),
    (b'{"error": {"message": "odd", "code": "x"}}', "application/json", 502, "odd"),
    (b'{"object": "list"}', "application/json", 502, "no reply in this body"),
]


@pytest.mark.parametrize("sdk", ["openai", "anthropic"])
@pytest.mark.parametrize("stream", [False, True], ids=["whole", "stream"])
@pytest.mark.parametrize(("sent", "kind", "status", "said"), NO_REPLIES)
def test_what_is_no_reply_is_an_error(
    sdk: str, stream: bool, sent: bytes, kind: str, status: int, said: str, server: UpstreamServer
) -> None:
    told: list[Exchange] = []
    server.add(MODEL, up.send_response("200 OK", sent, kind))
    made = getattr(client, sdk)(base_url=server.url, api_key="k", max_retries=0, on_exchange=told.append)
    with pytest.raises((openai.APIStatusError, anthropic.APIStatusError), match=said) as raised:
        ask(made, stream)
    assert getattr(raised.value, "status_code", 0) == status
    assert [said in one.failure for one in told] == [True]


def test_a_stream_by_another_name_is_read(server: UpstreamServer) -> None:
    server.add(MODEL, up.send_response("200 OK", FRAMES, "text/plain"))
    made = client.openai(base_url=server.url, api_key="k", max_retries=0)
    assert ask(made, stream=True) == ask(made) == "Hi"


@pytest.mark.parametrize("in_loop", [False, True], ids=["sync", "async"])
def test_a_stream_that_is_compressed_all_the_same(in_loop: bool, server: UpstreamServer) -> None:
    packed = gzip.compress(FRAMES)
    server.add(MODEL, up.send_response("200 OK", packed, "text/event-stream", "Content-Encoding: gzip"))

    async def go() -> str:
        async with client.async_openai(base_url=server.url, api_key="k", max_retries=0) as made:
            said = await made.chat.completions.create(model=MODEL, messages=HI, stream=True)
            return "".join([chunk.choices[0].delta.content or "" async for chunk in said if chunk.choices])

    if in_loop:
        assert asyncio.run(go()) == "Hi"
    else:
        assert ask(client.openai(base_url=server.url, api_key="k", max_retries=0), stream=True) == "Hi"


TYPES = {
    400: "invalid_request_error",
    401: "authentication_error",
    403: "permission_error",
    404: "not_found_error",
    413: "request_too_large",
    422: "invalid_request_error",
    429: "rate_limit_error",
    500: "api_error",
    529: "overloaded_error",
}


@pytest.mark.parametrize("status", TYPES)
@pytest.mark.parametrize("sent", [{"error": {"message": "no"}}, {"detail": "no"}])
def test_an_error_has_the_type_of_its_status(status: int, sent: dict[str, Any], server: UpstreamServer) -> None:
    server.add(MODEL, up.send_response(f"{status} No", json.dumps(sent).encode()))
    made = client.anthropic(base_url=server.url, api_key="k", max_retries=0)
    with pytest.raises(anthropic.APIStatusError, match="no") as raised:
        ask(made)
    assert raised.value.status_code == status
    assert isinstance(raised.value.body, dict)
    assert raised.value.body["error"]["type"] == TYPES[status]


def test_the_time_it_took_is_known(server: UpstreamServer) -> None:
    server.add(MODEL, body())
    made = client.openai(base_url=server.url, api_key="k")
    raw = made.chat.completions.with_raw_response.create(model=MODEL, messages=HI)
    assert raw.elapsed.total_seconds() > 0


@pytest.mark.parametrize("stream", [False, True], ids=["whole", "stream"])
def test_a_hook_that_raises_costs_no_reply(
    stream: bool, server: UpstreamServer, caplog: pytest.LogCaptureFixture
) -> None:
    def hook(_: Exchange) -> None:
        raise ValueError("mine")

    server.add(MODEL, up.chat_stream("Hel", "lo") if stream else body())
    with caplog.at_level(logging.ERROR, "interlingua.client"):
        assert ask(client.openai(base_url=server.url, api_key="k", on_exchange=hook), stream) == "Hello"
    assert [record.getMessage() for record in caplog.records] == ["on_exchange raised"]


# ── what a program gives ──────────────────────────────────────────────────────────────────────────────────────────────

WRONG: list[tuple[dict[str, Any], str]] = [
    ({"dialect": "kimmi"}, "no dialect is called 'kimmi'"),
    ({"upstream_api": "anthropic"}, "no wire is called 'anthropic'"),
    ({"profile": "zzz"}, "no upstream is called 'zzz'"),
    ({"delivery": "zzz"}, "delivery"),
    ({"reasoning": "zzz"}, "reasoning"),
    ({"seal_key": "secret"}, "seal_key is bytes, not str"),
    ({"extra": "x"}, "extra is a dict, not str"),
    ({"on_exchange": "x"}, "on_exchange is a function"),
    ({"http_client": None}, "http_client is the one that translates here"),
    ({"inner": httpx.Client()}, r"inner is a httpx2.Client here, not a httpx.Client"),
    ({"inner": httpx2.AsyncClient()}, r"inner is a httpx2.Client here, not a httpx2.AsyncClient"),
    ({"base_url": "localhost:8000/v1"}, "is no address"),
    ({"base_url": "http://localhost:x/v1"}, "is no address"),
]


@pytest.mark.parametrize(("how", "said"), WRONG)
@pytest.mark.parametrize("make", [client.openai, client.anthropic, client.http_client])
def test_what_is_wrong_is_told_when_the_client_is_made(make: Any, how: dict[str, Any], said: str) -> None:
    key = {} if make is client.http_client else {"api_key": "k"}
    with pytest.raises(UsageError, match=said):
        make(**{"base_url": "http://localhost/v1", **key, **how})


def test_an_http_client_takes_nothing_of_the_sdks() -> None:
    with pytest.raises(UsageError, match="dialct: an HTTP client takes no such thing"):
        client.http_client("http://localhost/v1", dialct="kimi_k2")


def test_an_address_may_be_an_object(server: UpstreamServer) -> None:
    server.add(MODEL, body())
    assert ask(client.openai(base_url=httpx2.URL(server.url), api_key="k")) == "Hello"


def test_a_client_that_is_dropped_lets_go_of_its_connections(server: UpstreamServer) -> None:
    server.add(MODEL, body())
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        for _ in range(3):
            ask(client.openai(base_url=server.url, api_key="k"))
        gc.collect()
    assert [one for one in caught if issubclass(one.category, ResourceWarning)] == []
