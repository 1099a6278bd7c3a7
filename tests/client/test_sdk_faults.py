"""Official SDKs with our transport: faulty upstreams, wrong options and wrong addresses."""

from __future__ import annotations

import asyncio
import gc
import gzip
import json
import logging
import resource
import traceback
import warnings
import zlib
from collections.abc import Iterator
from functools import cache
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
HINT = "hint: cannot connect to http://127.0.0.1:1; check base_url"
MODELS = b'{"object": "list", "data": [{"id": "m", "object": "model"}]}'


def body(text: str = "Hello") -> up.Step:
    choice = {"index": 0, "message": {"role": "assistant", "content": text}, "finish_reason": "stop"}
    completion = {"id": "1", "object": "chat.completion", "created": 1, "model": MODEL, "choices": [choice]}
    return up.send_response("200 OK", json.dumps(completion).encode())


@pytest.fixture
def server() -> Iterator[UpstreamServer]:
    server = UpstreamServer()
    yield server
    server.stop()


@pytest.mark.parametrize("make_client", [client.openai, client.anthropic])
def test_connection_error_names_the_server(make_client: Any) -> None:
    """The message of the SDKs is "Connection error."; the traceback shows the note of its cause."""
    sdk_client = make_client(base_url="http://127.0.0.1:1/v1", api_key="any", max_retries=0)
    with pytest.raises((openai.APIConnectionError, anthropic.APIConnectionError)) as raised:
        ask(sdk_client)
    assert HINT in "".join(traceback.format_exception(raised.value))


def test_connection_error_of_an_async_client_names_the_server() -> None:
    sdk_client = client.async_openai(base_url="http://127.0.0.1:1/v1", api_key="any", max_retries=0)
    with pytest.raises(openai.APIConnectionError) as raised:
        asyncio.run(sdk_client.chat.completions.create(model=MODEL, messages=HI))
    assert HINT in "".join(traceback.format_exception(raised.value))


def ask(sdk_client: Any, stream: bool = False, **options: Any) -> str:
    """Send a request with Chat Completions or Messages, and return the text of the reply."""
    if isinstance(sdk_client, anthropic.Anthropic):
        if stream:
            with sdk_client.messages.stream(model=MODEL, max_tokens=9, messages=HI) as events:
                return "".join(events.text_stream)
        return str(getattr(sdk_client.messages.create(model=MODEL, max_tokens=9, messages=HI).content[0], "text", ""))
    response = sdk_client.chat.completions.create(model=MODEL, messages=HI, stream=stream, **options)
    if not stream:
        return str(response.choices[0].message.content)
    return "".join(chunk.choices[0].delta.content or "" for chunk in response if chunk.choices)


# ── requests ──────────────────────────────────────────────────────────────────────────────────────────────────────────


def test_api_key_is_sent_only_to_the_configured_upstream(server: UpstreamServer) -> None:
    server.add(MODEL, body())
    sdk_client = client.openai(base_url=server.url, api_key="sk-a")
    assert ask(sdk_client.with_options(base_url=f"{server.url}/", api_key="sk-a")) == "Hello"
    for other in ("http://127.0.0.1:9/v1", "https://127.0.0.1/v1", server.url.replace("127.0.0.1", "localhost")):
        with pytest.raises(UsageError, match="this client is for"):
            ask(sdk_client.with_options(base_url=other, api_key="sk-b", max_retries=0))
    assert [request.headers["authorization"] for request in server.wait_for_requests(MODEL)] == ["Bearer sk-a"]


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
def test_all_endpoints_share_the_base_path(sdk: str, address: str, base: str, server: UpstreamServer) -> None:
    server.add(MODEL, body())
    server.add("None", up.send_response("200 OK", MODELS))
    root = server.url.removesuffix("/v1")
    sdk_client = getattr(client, sdk)(base_url=f"{root}{address}", api_key="sk-a")
    assert ask(sdk_client) == "Hello"
    assert [model.id for model in sdk_client.models.list()] == ["m"]
    requests = [*server.wait_for_requests(MODEL), *server.wait_for_requests("None")]
    assert [request.path for request in requests] == [f"{base}/chat/completions", f"{base}/models"]
    assert [request.headers["authorization"] for request in requests] == ["Bearer sk-a"] * 2


def test_count_tokens_needs_an_upstream_on_messages(server: UpstreamServer) -> None:
    sdk_client = client.anthropic(base_url=server.url, api_key="sk-a")
    with pytest.raises(anthropic.NotFoundError, match="tokens cannot be counted: the upstream's API openai-chat"):
        sdk_client.messages.count_tokens(model=MODEL, messages=HI)
    server.add(MODEL, up.send_response("200 OK", b'{"input_tokens": 3}'))
    sdk_client = client.anthropic(base_url=server.url, api_key="sk-a", upstream_api="anthropic-messages")
    assert sdk_client.messages.count_tokens(model=MODEL, messages=HI).input_tokens == 3
    assert [request.path for request in server.wait_for_requests(MODEL)] == ["/v1/messages/count_tokens"]


def test_query_of_base_url_is_sent(server: UpstreamServer) -> None:
    server.add(MODEL, body())
    more = {"api-version": "2"}
    sdk_client = client.openai(base_url=f"{server.url}?api-version=1&x=y", api_key="k", default_query=more)
    assert ask(sdk_client, extra_query={"q": "a b"}) == "Hello"
    (request,) = server.wait_for_requests(MODEL)
    assert request.path == "/v1/chat/completions?x=y&api-version=2&q=a+b"


# ── redirects ─────────────────────────────────────────────────────────────────────────────────────────────────────────

COMPLETION = {"id": "1", "object": "chat.completion", "created": 1, "model": MODEL}
COMPLETION |= {"choices": [{"index": 0, "message": {"role": "assistant", "content": "Hello"}, "finish_reason": "stop"}]}
FOLLOWED_REDIRECTS = [
    ("https://api.example/v1", "https://api.example/v2/chat/completions"),
    ("https://api.example/v1", "/v2/chat/completions"),
    ("http://api.example/v1", "https://api.example/v1/chat/completions"),
    ("http://127.0.0.1:8000/v1", "http://127.0.0.1:8000/v2/chat/completions"),
]
REFUSED_REDIRECTS = [
    ("https://api.example/v1", "https://evil.example/v1/chat/completions"),
    ("https://api.example/v1", "//evil.example/v1/chat/completions"),
    ("https://api.example/v1", "https://api.example.evil.example/v1"),
    ("https://api.example/v1", "https://evil.api.example/v1"),
    ("https://api.example/v1", "https://api.example@evil.example/v1"),
    ("https://api.example/v1", "http://api.example/v1/chat/completions"),
    ("https://api.example/v1", "https://api.example:8443/v1/chat/completions"),
    ("http://127.0.0.1:8000/v1", "http://127.0.0.1:8001/v1/chat/completions"),
    ("http://127.0.0.1:8000/v1", "https://127.0.0.1/v1/chat/completions"),
]


def redirect_once(status: int, location: str, requests: list[httpx2.Request]) -> httpx2.Client:
    """Return an HTTP client whose first response is a redirect, and that records all requests."""

    def respond(request: httpx2.Request) -> httpx2.Response:
        requests.append(request)
        redirect = httpx2.Response(status, headers={"location": location})
        return redirect if len(requests) == 1 else httpx2.Response(200, json=COMPLETION)

    return httpx2.Client(transport=httpx2.MockTransport(respond), follow_redirects=True)


@pytest.mark.parametrize("status", [307, 308])
@pytest.mark.parametrize(("base_url", "location"), FOLLOWED_REDIRECTS)
def test_redirect_to_the_same_host_is_followed(base_url: str, location: str, status: int) -> None:
    requests: list[httpx2.Request] = []
    sdk_client = client.openai(base_url=base_url, api_key="sk-a", inner=redirect_once(status, location, requests))
    assert ask(sdk_client) == "Hello"
    assert str(requests[1].url) == str(requests[0].url.join(location))
    assert requests[1].headers["authorization"] == "Bearer sk-a"


@pytest.mark.parametrize("status", [301, 302, 303, 307, 308])
@pytest.mark.parametrize(("base_url", "location"), REFUSED_REDIRECTS)
def test_redirect_to_another_host_is_not_followed(base_url: str, location: str, status: int) -> None:
    requests: list[httpx2.Request] = []
    sdk_client = client.openai(base_url=base_url, api_key="sk-a", inner=redirect_once(status, location, requests))
    with pytest.raises(openai.APIStatusError, match=r"which is not followed.*set base_url") as raised:
        ask(sdk_client)
    assert raised.value.status_code == status
    assert len(requests) == 1


@pytest.mark.one_row_in(3)
@pytest.mark.parametrize("upstream_api", ["openai-chat", "anthropic-messages"])
@pytest.mark.parametrize("sdk", ["openai", "anthropic", "async_openai", "async_anthropic"])
@pytest.mark.parametrize("stream", [False, True], ids=["whole", "stream"])
def test_redirect_sends_neither_prompt_nor_key_to_another_host(
    sdk: str, upstream_api: str, stream: bool, server: UpstreamServer
) -> None:
    exchanges: list[Exchange] = []
    other = UpstreamServer()
    redirect = up.send_response("307 Away", b"", "text/html", f"location: {other.url}/messages")
    server.add(MODEL, redirect)
    server.add("None", redirect)
    make = getattr(client, sdk)
    sdk_client = make(base_url=server.url, api_key="k", upstream_api=upstream_api, on_exchange=exchanges.append)
    create = sdk_client.messages.create if "anthropic" in sdk else sdk_client.chat.completions.create

    async def run_async() -> None:
        with pytest.raises((openai.APIStatusError, anthropic.APIStatusError), match="not followed"):
            await create(model=MODEL, max_tokens=9, messages=HI, stream=stream)
        with pytest.raises((openai.APIStatusError, anthropic.APIStatusError), match="not followed"):
            await sdk_client.models.list()

    if sdk.startswith("async"):
        asyncio.run(run_async())
    else:
        with pytest.raises((openai.APIStatusError, anthropic.APIStatusError), match="not followed"):
            create(model=MODEL, max_tokens=9, messages=HI, stream=stream)
        with pytest.raises((openai.APIStatusError, anthropic.APIStatusError), match="not followed"):
            sdk_client.models.list()
    assert (other.count(MODEL), other.count("None"), server.count(MODEL)) == (0, 0, 1)
    assert ["not followed" in exchange.failure for exchange in exchanges] == [True]
    other.stop()


def test_endless_redirects_end(server: UpstreamServer) -> None:
    server.add(MODEL, up.send_response("307 Away", b"", "text/html", "location: /v1/chat/completions"))
    with pytest.raises(openai.APIStatusError, match="redirects more than 5 times"):
        ask(client.openai(base_url=server.url, api_key="k"))
    assert server.count(MODEL) == 6


# ── responses ─────────────────────────────────────────────────────────────────────────────────────────────────────────

RESPONSES_WITHOUT_REPLY = [
    (b"<html>login</html>", "text/html", 502, "is not a valid reply: '<html>login</html>'"),
    (b"", "text/plain", 502, "the upstream's response is empty"),
    (b'{"error": {"message": "slow down", "code": 429}}', "application/json", 429, "slow down"),
    (b'{"error": {"message": "odd", "code": "x"}}', "application/json", 502, "odd"),
    (b'{"object": "list"}', "application/json", 502, "the upstream's response has no reply in it"),
]


@pytest.mark.parametrize("sdk", ["openai", "anthropic"])
@pytest.mark.parametrize("stream", [False, True], ids=["whole", "stream"])
@pytest.mark.parametrize(("response", "content_type", "status", "message"), RESPONSES_WITHOUT_REPLY)
def test_response_without_a_reply_raises_status_error(
    sdk: str, stream: bool, response: bytes, content_type: str, status: int, message: str, server: UpstreamServer
) -> None:
    exchanges: list[Exchange] = []
    server.add(MODEL, up.send_response("200 OK", response, content_type))
    sdk_client = getattr(client, sdk)(base_url=server.url, api_key="k", max_retries=0, on_exchange=exchanges.append)
    with pytest.raises((openai.APIStatusError, anthropic.APIStatusError), match=message) as raised:
        ask(sdk_client, stream)
    assert getattr(raised.value, "status_code", 0) == status
    assert [message in exchange.failure for exchange in exchanges] == [True]


def test_stream_with_wrong_content_type_is_read(server: UpstreamServer) -> None:
    server.add(MODEL, up.send_response("200 OK", FRAMES, "text/plain"))
    sdk_client = client.openai(base_url=server.url, api_key="k", max_retries=0)
    assert ask(sdk_client, stream=True) == ask(sdk_client) == "Hi"


@pytest.mark.parametrize("in_loop", [False, True], ids=["sync", "async"])
def test_compressed_stream_despite_identity_encoding(in_loop: bool, server: UpstreamServer) -> None:
    compressed = gzip.compress(FRAMES)
    server.add(MODEL, up.send_response("200 OK", compressed, "text/event-stream", "Content-Encoding: gzip"))

    async def go() -> str:
        async with client.async_openai(base_url=server.url, api_key="k", max_retries=0) as sdk_client:
            stream = await sdk_client.chat.completions.create(model=MODEL, messages=HI, stream=True)
            return "".join([chunk.choices[0].delta.content or "" async for chunk in stream if chunk.choices])

    if in_loop:
        assert asyncio.run(go()) == "Hi"
    else:
        assert ask(client.openai(base_url=server.url, api_key="k", max_retries=0), stream=True) == "Hi"


@cache
def compressed_zeros(megabytes: int) -> bytes:
    compressor = zlib.compressobj(1, wbits=31)
    return b"".join(compressor.compress(bytes(2**20)) for _ in range(megabytes)) + compressor.flush()


@pytest.mark.one_row_in(3)
@pytest.mark.parametrize("stream", [False, True], ids=["whole", "stream"])
@pytest.mark.parametrize("in_loop", [False, True], ids=["sync", "async"])
@pytest.mark.parametrize("status", ["200 OK", "400 Bad"])
def test_decompression_bomb_is_stopped_at_the_limit(
    stream: bool, in_loop: bool, status: str, server: UpstreamServer
) -> None:
    bomb = compressed_zeros(400)
    content_type = "text/event-stream" if stream else "application/json"
    server.add(MODEL, up.send_response(status, bomb, content_type, "Content-Encoding: gzip"))
    options: dict[str, Any] = {"base_url": server.url, "api_key": "k", "max_retries": 0}

    async def run_async() -> None:
        async with client.async_openai(**options) as sdk_client:
            response: Any = await sdk_client.chat.completions.create(model=MODEL, messages=HI, stream=stream)
            [chunk async for chunk in response]

    memory_before = peak_memory()
    with pytest.raises(openai.APIError, match=r"larger than|more than"):
        asyncio.run(run_async()) if in_loop else ask(client.openai(**options), stream)
    assert peak_memory() - memory_before < 250 * 2**20


def peak_memory() -> int:
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024


@pytest.mark.one_row_in(2)
@pytest.mark.parametrize("in_loop", [False, True], ids=["sync", "async"])
def test_endless_stream_ends_with_an_error(
    in_loop: bool, server: UpstreamServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("interlingua.client.sdk.httpx_transport.MAX_STREAM_BYTES", 2**20)
    server.add(MODEL, up.send_headers(), up.send_pieces([up.delta("Hello")] * 100_000))
    options: dict[str, Any] = {"base_url": server.url, "api_key": "k", "max_retries": 0}

    async def run_async() -> None:
        async with client.async_openai(**options) as sdk_client:
            async for _ in await sdk_client.chat.completions.create(model=MODEL, messages=HI, stream=True):
                pass

    with pytest.raises(openai.APIError, match="larger than 1,048,576 bytes"):
        asyncio.run(run_async()) if in_loop else ask(client.openai(**options), stream=True)


@pytest.mark.parametrize("stream", [False, True], ids=["whole", "stream"])
@pytest.mark.parametrize(
    ("encoding", "message"), [("br", "compressed its reply with 'br'"), ("gzip", "cannot be decoded")]
)
def test_body_that_cannot_be_decoded_raises_api_error(
    encoding: str, message: str, stream: bool, server: UpstreamServer
) -> None:
    content_type = "text/event-stream" if stream else "application/json"
    server.add(MODEL, up.send_response("200 OK", FRAMES, content_type, f"Content-Encoding: {encoding}"))
    with pytest.raises(openai.APIError, match=message):
        ask(client.openai(base_url=server.url, api_key="k", max_retries=0), stream)


def test_response_that_a_hook_has_read_is_translated(server: UpstreamServer) -> None:
    server.add(MODEL, up.send_response("200 OK", gzip.compress(FRAMES), "text/plain", "Content-Encoding: gzip"))
    inner = httpx2.Client(event_hooks={"response": [lambda response: response.read() and None]})
    assert ask(client.openai(base_url=server.url, api_key="k", inner=inner)) == "Hi"


ERROR_TYPES = {
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


@pytest.mark.parametrize("status", ERROR_TYPES)
@pytest.mark.parametrize("response", [{"error": {"message": "no"}}, {"detail": "no"}])
def test_error_type_matches_the_status(status: int, response: dict[str, Any], server: UpstreamServer) -> None:
    server.add(MODEL, up.send_response(f"{status} No", json.dumps(response).encode()))
    sdk_client = client.anthropic(base_url=server.url, api_key="k", max_retries=0)
    with pytest.raises(anthropic.APIStatusError, match="no") as raised:
        ask(sdk_client)
    assert raised.value.status_code == status
    assert isinstance(raised.value.body, dict)
    assert raised.value.body["error"]["type"] == ERROR_TYPES[status]


def test_elapsed_time_is_available(server: UpstreamServer) -> None:
    server.add(MODEL, body())
    sdk_client = client.openai(base_url=server.url, api_key="k")
    raw = sdk_client.chat.completions.with_raw_response.create(model=MODEL, messages=HI)
    assert raw.elapsed.total_seconds() > 0


@pytest.mark.parametrize("stream", [False, True], ids=["whole", "stream"])
def test_hook_that_raises_does_not_break_the_reply(
    stream: bool, server: UpstreamServer, caplog: pytest.LogCaptureFixture
) -> None:
    def hook(_: Exchange) -> None:
        raise ValueError("mine")

    server.add(MODEL, up.chat_stream("Hel", "lo") if stream else body())
    with caplog.at_level(logging.ERROR, "interlingua.client"):
        assert ask(client.openai(base_url=server.url, api_key="k", on_exchange=hook), stream) == "Hello"
    assert [record.getMessage() for record in caplog.records] == ["on_exchange raised"]


# ── options ───────────────────────────────────────────────────────────────────────────────────────────────────────────

INVALID_OPTIONS: list[tuple[dict[str, Any], str]] = [
    ({"dialect": "kimmi"}, "no dialect is called 'kimmi'"),
    ({"upstream_api": "anthropic"}, "no wire is called 'anthropic'"),
    ({"profile": "zzz"}, "no upstream is called 'zzz'"),
    ({"delivery": "zzz"}, "delivery"),
    ({"reasoning": "zzz"}, "reasoning"),
    ({"seal_key": "secret"}, "seal_key should be bytes, not str"),
    ({"extra": "x"}, "extra should be a dict, not str"),
    ({"on_exchange": "x"}, "on_exchange should be a function"),
    ({"http_client": None}, "http_client cannot be set: it is the client that translates"),
    ({"inner": httpx.Client()}, r"inner should be a httpx2.Client, not a httpx.Client"),
    ({"inner": httpx2.AsyncClient()}, r"inner should be a httpx2.Client, not a httpx2.AsyncClient"),
    ({"base_url": "localhost:8000/v1"}, "is not a valid URL"),
    ({"base_url": "http://localhost:x/v1"}, "is not a valid URL"),
]


@pytest.mark.parametrize(("options", "message"), INVALID_OPTIONS)
@pytest.mark.parametrize("make", [client.openai, client.anthropic, client.http_client])
def test_invalid_options_raise_in_the_factory(make: Any, options: dict[str, Any], message: str) -> None:
    key = {} if make is client.http_client else {"api_key": "k"}
    with pytest.raises(UsageError, match=message):
        make(**{"base_url": "http://localhost/v1", **key, **options})


def test_http_client_rejects_sdk_options() -> None:
    with pytest.raises(UsageError, match="dialct: not an option of the HTTP client"):
        client.http_client("http://localhost/v1", dialct="kimi_k2")


def test_base_url_may_be_a_url_object(server: UpstreamServer) -> None:
    server.add(MODEL, body())
    assert ask(client.openai(base_url=httpx2.URL(server.url), api_key="k")) == "Hello"


def test_garbage_collected_client_closes_its_connections(server: UpstreamServer) -> None:
    server.add(MODEL, body())
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        for _ in range(3):
            ask(client.openai(base_url=server.url, api_key="k"))
        gc.collect()
    assert [warning for warning in caught if issubclass(warning.category, ResourceWarning)] == []
