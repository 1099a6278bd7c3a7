"""Error responses of upstreams (row 10 of the fault table, on real sockets where that matters)."""

from __future__ import annotations

import asyncio
import gzip
import json
import time
from collections.abc import Iterator

import pytest

from interlingua.events import Failure
from interlingua.translation.upstream_errors import (
    CONTEXT_LENGTH_CODE,
    MAX_ERROR_BODY_BYTES,
    error_from_failure,
    error_from_response,
)
from tests.support import upstream_server as up
from tests.support.gateway_stage import APIS, KEY, MESSAGES, RESPONSES, GatewayStage, stage

BODY = json.dumps({"error": {"message": f"no luck with {KEY}", "type": "server_error", "code": "odd"}}).encode()
PAGE = b"<html><head><title>Bad gateway</title><style>p {color: red}</style></head><body><h1>Oh &amp; no</h1></body>"
GZIP = "content-encoding: gzip"
NOTHING = "the upstream returned status 500 without a message"


@pytest.fixture(scope="module")
def env() -> Iterator[GatewayStage]:
    with stage() as started:
        yield started


def endless(size: int) -> up.Step:
    async def step(received: up.ReceivedRequest) -> None:
        await up.send_headers("400 Bad Request", "text/plain", length=size)(received)
        while received.bytes_sent < size:
            await up.send(b"x" * 65536)(received)
            await asyncio.sleep(0)

    return step


BODIES: dict[str, tuple[up.Step | tuple[up.Step, ...], int, str]] = {
    # upstream response, status for the client, message
    "json": (up.send_response("500 Oh", BODY), 500, "no luck with ***"),
    "json of FastAPI": (up.send_response("422 Oh", b'{"detail": [{"msg": "required"}]}'), 422, '[{"msg":"required"}]'),
    "json of Google": (up.send_response("400 Oh", b'[{"error": {"message": "not so", "code": 400}}]'), 400, "not so"),
    "json of others": (up.send_response("404 Oh", b'{"error": "no such model"}'), 404, "no such model"),
    "json that is none": (up.send_response("400 Oh", b'{"error": {"mess'), 400, '{"error": {"mess'),
    "text": (up.send_response("403 Oh", b"go\n away ", "text/plain"), 403, "go away"),
    "html": (up.send_response("502 Oh", PAGE, "text/html"), 502, "Bad gateway Oh & no"),
    "nothing": (up.send_response("500 Oh", b""), 500, NOTHING),
    "bytes": (up.send_response("400 Oh", b"\xff\xfe", "application/octet-stream"), 400, "\ufffd\ufffd"),
    "gzip": (up.send_response("500 Oh", gzip.compress(BODY), "application/json", GZIP), 500, "no luck with ***"),
    "gzip that is none": (up.send_response("500 Oh", b"12345678" + BODY, "application/json", GZIP), 500, NOTHING),
    "gzip that is cut": (up.send_response("500 Oh", gzip.compress(BODY)[:12], "application/json", GZIP), 500, NOTHING),
    "a body that is cut": ((up.send_headers("400 Oh", length=999), up.send(BODY)), 400, "no luck with ***"),
    "a body that stalls": ((up.send_headers("400 Oh", length=999), up.send(BODY), up.wait(9)), 400, "no luck with ***"),
    "an invalid status": (up.send_response("999 Oh", b'{"error": "no luck"}'), 502, "no luck"),
    "an invalid status without a body": (up.send_response("600 Oh", b""), 502, "returned the invalid status 600"),
    "a redirect": (
        up.send_response("302 Found", b"", "text/html", "location: http://127.0.0.1:9/"),
        502,
        "which is not followed; set `url`",
    ),
    "a redirect with a page": (
        up.send_response("301 Moved Permanently", PAGE, "text/html", "location: http://127.0.0.1:9/"),
        502,
        "which is not followed; set `url`",
    ),
}


@pytest.mark.parametrize("body", BODIES)
def test_10_every_error_body_yields_a_message(env: GatewayStage, body: str) -> None:
    script, status, message = BODIES[body]
    upstream_status = {
        "an invalid status": 999,
        "an invalid status without a body": 600,
        "a redirect": 302,
        "a redirect with a page": 301,
    }
    view = env.send(env.add_scripts(body, script), MESSAGES, stream=False)
    assert view.status == status
    assert view.error.startswith("chat: ")
    assert message in view.error
    tries = 1 if 400 <= status < 500 else 2
    assert (view.log["outcome"], view.log["attempts"], view.log["error"]) == ("upstream-failed", tries, view.error)
    assert view.log["upstream_status"] == upstream_status.get(body, status)
    assert KEY not in json.dumps(view.log)
    assert KEY.encode() not in view.body


@pytest.mark.parametrize("stream", [True, False])
@pytest.mark.parametrize(
    ("encoding", "message"),
    [
        ("gzip", "chat: the reply cannot be decoded: Can not decode content-encoding: gzip"),
        ("br", "returned a response that cannot be decoded: Can not decode content-encoding: brotli (br)"),
    ],
)
def test_10_reply_that_cannot_be_decoded_is_no_lost_connection(
    env: GatewayStage, encoding: str, message: str, stream: bool
) -> None:
    junk = up.send_response("200 OK", b"12345678" + BODY, "application/json", f"content-encoding: {encoding}")
    view = env.send(env.add_scripts(f"junk-{encoding}-{stream}", junk), MESSAGES, stream=stream)
    assert view.status == 502
    assert message in view.error
    assert "lost" not in view.error
    assert "400" not in view.error


def test_10_only_the_start_of_a_huge_error_body_is_read(env: GatewayStage) -> None:
    size = 200_000_000
    view = env.send(env.add_scripts("huge", endless(size)))
    assert (view.status, view.error_type) == (400, "invalid_request_error")
    assert len(view.error) < 3000
    (received,) = env.upstream.wait_for_requests("huge")
    assert received.finished.wait(10)
    assert received.bytes_sent < size / 4, "the rest of the body is never read"


def test_10_gzip_bomb_as_error_body_is_not_decompressed(env: GatewayStage) -> None:
    bomb = gzip.compress(b"x" * 100_000_000)
    view = env.send(env.add_scripts("bomb", up.send_response("400 Oh", bomb, "text/plain", GZIP)))
    assert (view.status, len(view.error) < 3000) == (400, True)
    assert view.log["seconds"] < 2


@pytest.mark.parametrize("status", ["400 Bad Request", "413 Too Large", "500 Oh"])
def test_10_context_length_error_in_the_form_that_agents_recognize(env: GatewayStage, status: str) -> None:
    text = "This model's maximum context length is 8192 tokens. However, you requested 9000 tokens."
    model = env.add_scripts(
        f"long {status}", up.send_response(status, json.dumps({"error": {"message": text}}).encode())
    )
    for api, view in env.send_all(model).items():
        assert (view.status, view.error_type) == (400, "invalid_request_error")
        assert text in view.error
        if api == MESSAGES:
            assert view.error.startswith("prompt is too long")
        else:
            assert view.error_code == CONTEXT_LENGTH_CODE
        assert view.log["attempts"] == 1, "a retry would be too long again"


TOO_LONG = [
    "This model's maximum context length is 128000 tokens. However, your messages resulted in 130000 tokens.",
    "prompt is too long: 200001 tokens > 200000 maximum",
    "The decoder prompt (length 40000) is longer than the maximum model length of 32768.",
    "the request exceeds the available context size. try increasing the context size or enable context shift",
    "Requested token count exceeds the model's maximum context length of 8192 tokens.",
    "The input token count (1200000) exceeds the maximum number of tokens allowed (1048576).",
    "prompt token count of 130000 exceeds the limit of 128000",
    "Invalid request: Your request exceeded model token limit: 131072",
    "This model's maximum prompt length is 131072 but the request contains 537812 tokens.",
    "Prompt exceeds max length",
    "Input is too long for requested model.",
    "Input validation error: `inputs` tokens + `max_new_tokens` must be <= 8193.",
    "invalid params, context window exceeds limit",
    "too many tokens: total number of tokens in the prompt exceeds the limit of 4081",
]


@pytest.mark.parametrize("text", TOO_LONG)
def test_10_context_length_messages_of_upstreams_are_recognized(text: str) -> None:
    for error in (
        error_from_response(400, {}, json.dumps({"error": {"message": text}}).encode(), 0),
        error_from_failure(Failure(text)),
    ):
        assert (error.status, error.code, error.retryable) == (400, CONTEXT_LENGTH_CODE, False)


@pytest.mark.parametrize("text", ["Rate limit reached: too many tokens per minute", "maximum context length"])
def test_10_rate_limit_is_not_taken_for_a_context_length_error(text: str) -> None:
    error = error_from_response(429, {"retry-after": "3"}, json.dumps({"error": {"message": text}}).encode(), 0)
    assert (error.status, error.code, error.retry_after, error.retryable) == (429, "", 3, True)


def test_error_body_may_begin_with_a_byte_order_mark() -> None:
    body = json.dumps({"error": {"message": "boom"}}).encode()
    assert str(error_from_response(400, {}, b"\xef\xbb\xbf" + body, 0)) == "boom"


@pytest.mark.parametrize("status", [400, 401, 402, 403, 404, 405, 408, 409, 413, 415, 418, 422, 425, 451, 501])
def test_10_permanent_errors_are_not_retryable(status: int) -> None:
    assert not error_from_response(status, {"retry-after": "1"}, b"", 0).retryable


@pytest.mark.parametrize("status", [429, 500, 502, 503, 504, 520, 524, 529])
def test_10_temporary_errors_are_retryable(status: int) -> None:
    assert error_from_response(status, {}, b"", 0).retryable


def test_10_error_message_is_truncated() -> None:
    assert len(str(error_from_response(400, {}, b"word " * MAX_ERROR_BODY_BYTES, 0))) < 3000


HOSTILE = ["<script", "<style ", "<script></style>", "<", "<<>", "<a", "</script>", "<script>a</script>", "&lt", " &#x"]
HOSTILE += ["input token count ", "exceeds the ", "maximum ", "prompt token count a", "context", "too many input "]


@pytest.mark.parametrize("unit", HOSTILE)
def test_10_hostile_error_page_is_parsed_in_linear_time(unit: str) -> None:
    page = (unit * MAX_ERROR_BODY_BYTES).encode()[:MAX_ERROR_BODY_BYTES]
    times = []
    for _ in range(3):
        began = time.process_time()
        error_from_response(400, {}, page, 0)
        error_from_failure(Failure(page.decode()))
        times.append(time.process_time() - began)
    assert min(times) < 1  # about 25 ms on an idle machine; a quadratic version took two seconds


PAGES = [
    ("<script>a</script>b", "b"),
    ("a<SCRIPT src=x>\n1 < 2</Script>b<style>p {}</style>c", "a b c"),
    ("<scripted>a</scripted>", "a"),
    ("<script>a<style>b", "a b"),
    ("<style>a<script>b</script>c</style>d", "d"),
    ("1 < 2 and 3 > 2", "1 2"),
    ("no tags", "no tags"),
    ("İİİİ<script>a</script>b", "İİİİ b"),
]


@pytest.mark.parametrize(("page", "read"), PAGES)
def test_10_visible_text_of_an_error_page(page: str, read: str) -> None:
    assert str(error_from_response(502, {}, page.encode(), 0)) == read


@pytest.mark.parametrize("api", APIS)
def test_10_status_200_with_an_error_body_is_an_error(env: GatewayStage, api: str) -> None:
    """Some servers send errors with status 200."""
    model = env.add_scripts(f"200 {api}", up.send_response("200 OK", b'{"error": {"message": "busy", "code": 429}}'))
    for stream in (True, False):
        view = env.send(model, api, stream)
        assert (view.status, view.error_type, view.error) == (429, "rate_limit_error", "chat: busy")


def test_10_html_page_instead_of_a_reply_is_an_error(env: GatewayStage) -> None:
    model = env.add_scripts("200 page", up.send_response("200 OK", PAGE, "text/html"))
    for stream in (True, False):
        view = env.send(model, RESPONSES, stream)
        assert (view.status, view.log["attempts"]) == (502, 2)
        assert "response is not a valid reply" in view.error
