"""What a gateway makes of an upstream's refusal: row 10 of the table of faults, on real sockets where that matters."""

from __future__ import annotations

import asyncio
import gzip
import json
import time
from collections.abc import Iterator

import pytest

from interlingua.events import Failure
from interlingua.gateway.upstream.errors import (
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
NOTHING = "status 500 and nothing else"


@pytest.fixture(scope="module")
def on() -> Iterator[GatewayStage]:
    with stage() as started:
        yield started


def endless(size: int) -> up.Step:
    async def step(asked: up.ReceivedRequest) -> None:
        await up.send_headers("400 Bad Request", "text/plain", length=size)(asked)
        while asked.bytes_sent < size:
            await up.send(b"x" * 65536)(asked)
            await asyncio.sleep(0)

    return step


BODIES: dict[str, tuple[up.Step | tuple[up.Step, ...], int, str]] = {
    # what came, the client's status, the message
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
    "a redirect": (
        up.send_response("302 Found", b"", "text/html", "location: http://127.0.0.1:9/"),
        502,
        "set its real",
    ),
}


@pytest.mark.parametrize("body", BODIES)
def test_10_every_body_has_a_message(on: GatewayStage, body: str) -> None:
    script, status, message = BODIES[body]
    heard = on.send(on.add_scripts(body, script), MESSAGES, stream=False)
    assert heard.status == status
    assert heard.error.startswith("chat: ")
    assert message in heard.error
    tries = 1 if 400 <= status < 500 else 2
    assert (heard.log["outcome"], heard.log["attempts"], heard.log["error"]) == ("upstream-failed", tries, heard.error)
    assert heard.log["upstream_status"] == (302 if body == "a redirect" else status)
    assert KEY not in json.dumps(heard.log)
    assert KEY.encode() not in heard.body


def test_10_of_a_huge_body_only_the_beginning_is_read(on: GatewayStage) -> None:
    size = 200_000_000
    heard = on.send(on.add_scripts("huge", endless(size)))
    assert (heard.status, heard.error_type) == (400, "invalid_request_error")
    assert len(heard.error) < 3000
    (asked,) = on.upstream.wait_for_requests("huge")
    assert asked.finished.wait(10)
    assert asked.bytes_sent < size / 4, "the rest was never fetched"


def test_10_a_huge_body_in_gzip_is_not_unpacked(on: GatewayStage) -> None:
    bomb = gzip.compress(b"x" * 100_000_000)
    heard = on.send(on.add_scripts("bomb", up.send_response("400 Oh", bomb, "text/plain", GZIP)))
    assert (heard.status, len(heard.error) < 3000) == (400, True)
    assert heard.log["seconds"] < 2


@pytest.mark.parametrize("status", ["400 Bad Request", "413 Too Large", "500 Oh"])
def test_10_a_prompt_that_is_too_long_is_told_as_agents_know_it(on: GatewayStage, status: str) -> None:
    said = "This model's maximum context length is 8192 tokens. However, you requested 9000 tokens."
    model = on.add_scripts(
        f"long {status}", up.send_response(status, json.dumps({"error": {"message": said}}).encode())
    )
    for api, heard in on.send_all(model).items():
        assert (heard.status, heard.error_type) == (400, "invalid_request_error")
        assert said in heard.error
        if api == MESSAGES:
            assert heard.error.startswith("prompt is too long")
        else:
            assert heard.error_code == CONTEXT_LENGTH_CODE
        assert heard.log["attempts"] == 1, "it would be as long again"


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


@pytest.mark.parametrize("said", TOO_LONG)
def test_10_what_upstreams_say_of_a_long_prompt(said: str) -> None:
    for error in (
        error_from_response(400, {}, json.dumps({"error": {"message": said}}).encode(), 0),
        error_from_failure(Failure(said)),
    ):
        assert (error.status, error.code, error.retryable) == (400, CONTEXT_LENGTH_CODE, False)


@pytest.mark.parametrize("said", ["Rate limit reached: too many tokens per minute", "maximum context length"])
def test_10_a_limit_of_the_rate_is_no_long_prompt(said: str) -> None:
    error = error_from_response(429, {"retry-after": "3"}, json.dumps({"error": {"message": said}}).encode(), 0)
    assert (error.status, error.code, error.retry_after, error.retryable) == (429, "", 3, True)


@pytest.mark.parametrize("status", [400, 401, 402, 403, 404, 405, 408, 409, 413, 415, 418, 422, 425, 451, 501])
def test_10_what_is_refused_for_good_is_not_asked_again(status: int) -> None:
    assert not error_from_response(status, {"retry-after": "1"}, b"", 0).retryable


@pytest.mark.parametrize("status", [429, 500, 502, 503, 504, 520, 524, 529])
def test_10_what_may_pass_is_asked_again(status: int) -> None:
    assert error_from_response(status, {}, b"", 0).retryable


def test_10_no_more_than_the_beginning_counts() -> None:
    assert len(str(error_from_response(400, {}, b"word " * MAX_ERROR_BODY_BYTES, 0))) < 3000


HOSTILE = ["<script", "<style ", "<script></style>", "<", "<<>", "<a", "</script>", "<script>a</script>", "&lt", " &#x"]
HOSTILE += ["input token count ", "exceeds the ", "maximum ", "prompt token count a", "context", "too many input "]


@pytest.mark.parametrize("unit", HOSTILE)
def test_10_a_hostile_page_takes_no_longer_than_any_other(unit: str) -> None:
    page = (unit * MAX_ERROR_BODY_BYTES).encode()[:MAX_ERROR_BODY_BYTES]
    times = []
    for _ in range(3):
        began = time.process_time()
        error_from_response(400, {}, page, 0)
        error_from_failure(Failure(page.decode()))
        times.append(time.process_time() - began)
    assert min(times) < 1  # a fortieth of it on an idle machine; quadratic, it took two seconds


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
def test_10_what_is_read_of_a_page(page: str, read: str) -> None:
    assert str(error_from_response(502, {}, page.encode(), 0)) == read


@pytest.mark.parametrize("api", APIS)
def test_10_a_whole_reply_that_is_an_error(on: GatewayStage, api: str) -> None:
    """Some servers answer 200, and mean something else."""
    model = on.add_scripts(f"200 {api}", up.send_response("200 OK", b'{"error": {"message": "busy", "code": 429}}'))
    for stream in (True, False):
        heard = on.send(model, api, stream)
        assert (heard.status, heard.error_type, heard.error) == (429, "rate_limit_error", "chat: busy")


def test_10_a_page_instead_of_a_reply(on: GatewayStage) -> None:
    model = on.add_scripts("200 page", up.send_response("200 OK", PAGE, "text/html"))
    for stream in (True, False):
        heard = on.send(model, RESPONSES, stream)
        assert (heard.status, heard.log["attempts"]) == (502, 2)
        assert "what it sent is no reply" in heard.error
