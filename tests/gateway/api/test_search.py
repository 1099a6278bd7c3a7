"""Tests of the endpoint for Codex's own search tool. Requests and replies are those of its client code."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from typing import Any

import httpx
import pytest

from interlingua.gateway.server_tools.search_commands import PageReferences
from tests.support import upstream_server as up
from tests.support.gateway_process import GatewayProcess, run_gateway
from tests.support.upstream_server import UpstreamServer
from tests.support.web_server import WebServer, run_web_server

Json = dict[str, Any]
KEYS = ("first-key-0123456789", "second-key-0123456789")
CONFIG = """
upstreams:
  chat: {{url: {url}}}
  openai: {{url: {url}, api: openai-responses, profile: openai}}
  with_key: {{url: {url}, api: openai-responses, profile: openai, key: sk-upstream-0123456789}}
models:
  gpt-5: {{upstream: openai}}
  fast: {{upstream: openai, model: gpt-5-mini}}
  quoted: {{upstream: with_key, model: quoted}}
default: chat
keys: [{keys}]
"""
ENGINE = """
web_search: {{engine: searxng, url: "{search}"}}
web_fetch: {{enabled: true, private: [127.0.0.1]}}
"""


@pytest.fixture(scope="module")
def web() -> Iterator[WebServer]:
    with run_web_server() as server:
        page = {
            "url": f"{server.url}/rain",
            "title": "Rain",
            "content": "It rains on Monday.",
            "publishedDate": "today",
        }
        other = {"url": "https://docs.example.org/sun", "title": "Sun", "content": "Sun on Tuesday."}
        server.answer("/search", {"results": [page, other]})
        server.answer("/rain", b"<title>Rain</title><p>Monday: rain</p><p>Tuesday: sun</p><p>No RAIN on Friday</p>")
        yield server


@pytest.fixture(scope="module")
def gateway(upstream: UpstreamServer, web: WebServer) -> Iterator[GatewayProcess]:
    config = (CONFIG + ENGINE).format(url=upstream.url, search=web.url, keys=", ".join(KEYS))
    with run_gateway(config=config) as process:
        yield process


@pytest.fixture(scope="module")
def gateway_without_engine(upstream: UpstreamServer) -> Iterator[GatewayProcess]:
    with run_gateway(config=CONFIG.format(url=upstream.url, keys=KEYS[0])) as process:
        yield process


def send(gateway: GatewayProcess, commands: Any, key: str = KEYS[0], **fields: Any) -> httpx.Response:
    body = {
        "id": "session-1",
        "model": "demo",
        "input": [{"type": "message", "role": "user", "content": [{"type": "input_text", "text": "Will it rain?"}]}],
        "commands": commands,
        "settings": {"allowed_callers": ["direct"], "external_web_access": True},
        "max_output_tokens": 10_000,
        **fields,
    }
    headers = {"authorization": f"Bearer {key}", "content-type": "application/json"}
    return httpx.post(f"{gateway.base}/v1/alpha/search", content=json.dumps(body), headers=headers)


def output(gateway: GatewayProcess, commands: Any, **fields: Any) -> str:
    response = send(gateway, commands, **fields)
    assert response.status_code == 200, response.text
    text: str = response.json()["output"]
    return text


def test_search_returns_a_text_for_the_model_and_results(gateway: GatewayProcess, web: WebServer) -> None:
    reply = send(gateway, {"search_query": [{"q": "rain"}]}).json()
    assert reply["encrypted_output"] is None
    assert "It rains on Monday." in reply["output"]
    first, second = reply["results"]
    assert (first["type"], first["url"], first["title"]) == ("text_result", f"{web.url}/rain", "Rain")
    assert (first["snippet"], second["url"]) == ("It rains on Monday.", "https://docs.example.org/sun")
    assert f"ref_id: {first['ref_id']}" in reply["output"]


@pytest.mark.parametrize(
    ("query", "filters", "count"),
    [
        ({"q": "rain"}, {"allowed_domains": ["example.org"]}, 1),
        ({"q": "rain"}, {"blocked_domains": ["example.org"]}, 1),
        ({"q": "rain", "domains": ["example.org"]}, {}, 1),
        ({"q": "rain", "domains": ["example.org"]}, {"allowed_domains": ["127.0.0.1"]}, 0),
    ],
)
def test_domains_of_the_query_and_of_the_session_apply(
    gateway: GatewayProcess, query: Json, filters: Json, count: int
) -> None:
    reply = send(gateway, {"search_query": [query]}, settings={"filters": filters}).json()
    assert len(reply["results"]) == count


def test_page_that_was_found_can_be_opened_and_searched(gateway: GatewayProcess) -> None:
    found = send(gateway, {"search_query": [{"q": "rain"}]}).json()["results"][0]["ref_id"]
    assert re.search("L1: Monday: rain\nL2: Tuesday: sun\n", output(gateway, {"open": [{"ref_id": found}]}))
    from_second = output(gateway, {"open": [{"ref_id": found, "lineno": 2}]})
    assert "L2: Tuesday" in from_second
    assert "L1: Monday" not in from_second
    lines = output(gateway, {"find": [{"ref_id": found, "pattern": "rain"}]}).splitlines()
    assert lines[-2:] == ["L1: Monday: rain", "L3: No RAIN on Friday"]


def test_url_of_the_users_message_can_be_opened(gateway: GatewayProcess, web: WebServer) -> None:
    assert "Monday" in output(gateway, {"open": [{"ref_id": f"{web.url}/rain"}]}, input=f"Read {web.url}/rain")


@pytest.mark.parametrize(
    ("reference", "key", "settings", "error"),
    [
        ("{url}", KEYS[0], {}, "url_not_in_prior_context"),
        ("0123456789ab:{url}", KEYS[0], {}, "url_not_in_prior_context"),
        ("{found}", KEYS[1], {}, "url_not_in_prior_context"),
        ("{found}/other", KEYS[0], {}, "url_not_in_prior_context"),
        ("{found}", KEYS[0], {"external_web_access": False}, "external_web_access is false"),
        ("{found}", KEYS[0], {"filters": {"allowed_domains": ["example.org"]}}, "url_not_allowed"),
    ],
    ids=["plain URL", "made-up signature", "another client's", "changed", "no live access", "other domain"],
)
def test_page_is_opened_only_by_a_reference_of_this_client(
    gateway: GatewayProcess, web: WebServer, reference: str, key: str, settings: Json, error: str
) -> None:
    found = send(gateway, {"search_query": [{"q": "rain"}]}).json()["results"][0]["ref_id"]
    ref_id = reference.format(url=f"{web.url}/rain", found=found)
    web.requests.clear()
    assert f"[open failed: {error}" in output(gateway, {"open": [{"ref_id": ref_id}]}, key=key, settings=settings)
    assert web.requests == []


def test_command_that_is_not_available_leaves_the_others_alone(gateway: GatewayProcess) -> None:
    commands = {
        "weather": [{"location": "Rome"}],
        "search_query": [{"q": ""}, {"q": "rain"}],
        "time": [{"utc_offset": "+03:00"}, {"utc_offset": "noon"}],
        "response_length": "short",
    }
    text = output(gateway, commands)
    for part in (
        "[weather is not available on this server]",
        "[search_query failed: invalid_tool_input]",
        "It rains on Monday.",
        "The time at UTC+03:00 is 20",
        "[time failed: 'noon'",
    ):
        assert part in text


def test_output_has_the_length_that_the_client_wants(gateway: GatewayProcess) -> None:
    assert len(output(gateway, {"search_query": [{"q": "rain"}]}, max_output_tokens=10)) == 40


def test_search_without_an_engine_is_a_text_for_the_model(gateway_without_engine: GatewayProcess) -> None:
    text = output(gateway_without_engine, {"search_query": [{"q": "rain"}], "open": [{"ref_id": "https://a.example/"}]})
    assert "[search_query failed: unavailable: this server has no access to the web]" in text
    assert "[open failed: unavailable" in text


def test_upstream_of_the_same_api_searches_itself(
    gateway_without_engine: GatewayProcess, upstream: UpstreamServer
) -> None:
    upstream.add("gpt-5", up.send_response("200 OK", b'{"output": "from upstream"}'))
    assert output(gateway_without_engine, {"search_query": [{"q": "rain"}]}, model="gpt-5") == "from upstream"
    request = upstream.wait_for_requests("gpt-5")[0]
    assert (request.path, request.body["commands"]) == ("/v1/alpha/search", {"search_query": [{"q": "rain"}]})


def test_upstream_that_searches_receives_its_own_id_of_the_model(
    gateway_without_engine: GatewayProcess, upstream: UpstreamServer
) -> None:
    upstream.add("gpt-5-mini", up.send_response("200 OK", b'{"output": "from upstream"}'))
    assert output(gateway_without_engine, {"search_query": [{"q": "rain"}]}, model="fast") == "from upstream"
    request = upstream.wait_for_requests("gpt-5-mini")[0]
    assert (request.body["model"], request.body["id"]) == ("gpt-5-mini", "session-1")


@pytest.mark.parametrize(("status", "sent"), [(200, "200 OK"), (401, "401 Unauthorized")])
def test_key_that_the_upstream_quotes_is_redacted(
    gateway_without_engine: GatewayProcess, upstream: UpstreamServer, status: int, sent: str
) -> None:
    text = "wrong key: sk-upstream-0123456789"
    reply = {"output": text} if status == 200 else {"error": {"message": text, "type": "invalid_request_error"}}
    upstream.add("quoted", up.send_response(sent, json.dumps(reply).encode()))
    response = send(gateway_without_engine, {"search_query": [{"q": "rain"}]}, model="quoted")
    assert response.status_code == status
    assert "0123456789" not in response.text
    assert "wrong key" in response.text


@pytest.mark.parametrize(
    ("fields", "status"), [({"key": "wrong-key-0123456789"}, 401), ({"commands": []}, 400), ({"commands": "x"}, 400)]
)
def test_refused_requests(gateway: GatewayProcess, fields: Json, status: int) -> None:
    commands = fields.pop("commands", {})
    response = send(gateway, commands, **fields)
    assert (response.status_code, "error" in response.json()) == (status, True)


@pytest.mark.parametrize(
    ("fields", "param"),
    [
        *(
            ({"commands": {name: operations}}, f"commands.{name}")
            for name, operations in [
                ("search_query", "rain"),
                ("search_query", {"q": "rain"}),
                ("open", 1),
                ("time", {}),
            ]
        ),
        ({"commands": {"search_query": [{"q": 1}]}}, "commands.search_query[0].q"),
        ({"commands": {"search_query": [{"q": "rain", "domains": "x.org"}]}}, "commands.search_query[0].domains"),
        ({"commands": {"open": [{"ref_id": "x", "lineno": "1"}]}}, "commands.open[0].lineno"),
        ({"commands": {"time": [{"utc_offset": 10**400}]}}, "commands.time[0].utc_offset"),
        ({"settings": []}, "settings"),
        ({"settings": {"filters": "example.org"}}, "settings.filters"),
        ({"settings": {"filters": {"allowed_domains": [1]}}}, "settings.filters.allowed_domains[0]"),
        ({"settings": {"external_web_access": "no"}}, "settings.external_web_access"),
        ({"max_output_tokens": "1000"}, "max_output_tokens"),
        ({"max_output_tokens": "\ud800"}, None),
        ({"max_output_tokens": -1}, "max_output_tokens"),
        ({"max_output_tokens": 1.5}, "max_output_tokens"),
    ],
)
def test_fields_of_wrong_types_are_refused(gateway: GatewayProcess, fields: Json, param: str | None) -> None:
    response = send(gateway, fields.pop("commands", {}), **fields)
    error = response.json()["error"]
    assert (response.status_code, error["type"]) == (400, "invalid_request_error")
    assert error["param"] == param
    assert "xpected" in error["message"]


@pytest.mark.parametrize("value", ["\x00", "\ud800", "x" * 100_000, "٣", "-"])
@pytest.mark.parametrize(
    ("name", "field"), [("search_query", "q"), ("open", "ref_id"), ("find", "pattern"), ("time", "utc_offset")]
)
def test_texts_of_any_kind_have_an_outcome(gateway: GatewayProcess, name: str, field: str, value: str) -> None:
    assert output(gateway, {name: [{field: value}]})


def test_huge_numbers_have_an_outcome(gateway: GatewayProcess, web: WebServer) -> None:
    commands = {"open": [{"ref_id": f"{web.url}/rain", "lineno": 10**18}, {"ref_id": "x", "lineno": -(10**18)}]}
    text = output(gateway, commands, input=f"Read {web.url}/rain", max_output_tokens=10**18)
    assert "[open failed: " in text


def test_commands_beyond_the_maximum_are_named(gateway: GatewayProcess) -> None:
    assert "[3 more commands were not run: at most 16 in one request]" in output(gateway, {"time": [{}] * 19})


def test_reference_cannot_be_made_for_another_page() -> None:
    references, others = PageReferences(b"key"), PageReferences(b"another key")
    reference = references.write("https://example.com/a")
    assert references.read(reference) == ("https://example.com/a", True)
    assert others.read(reference) == (reference, False)
    assert references.read("https://example.com/a") == ("https://example.com/a", False)


@pytest.mark.parametrize("reference", ["\ud800", "0123456789ab:https://example.com/\ud800"])
def test_reference_with_an_unpaired_surrogate_is_that_of_no_page(reference: str) -> None:
    assert PageReferences(b"key").read(reference) == (reference, False)


@pytest.mark.parametrize(
    ("offset", "is_valid"),
    [
        *((offset, True) for offset in ("+03:00", "-3", "+0530", "+14:00", "-09:30")),
        *((offset, False) for offset in ("+99:99", "+05:75", "+15:00", "5", "+1:-2", "+ 1", "+03:00:00", "+٣", "Z")),
    ],
)
def test_time_needs_a_utc_offset_that_exists(gateway: GatewayProcess, offset: str, is_valid: bool) -> None:
    text = output(gateway, {"time": [{"utc_offset": offset}]})
    assert text.startswith(f"The time at UTC{offset} is 20" if is_valid else "[time failed")
