"""Tests of web search: engines, and the blocks and items that clients receive."""

from __future__ import annotations

import asyncio
import json
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import aiohttp
import anthropic
import msgspec
import openai
import pytest

from interlingua.core.reasoning_signatures import write_value_envelope
from interlingua.gateway.http.error_responses import TooLarge
from interlingua.gateway.http.field_origins import Origin
from interlingua.gateway.http.sealed_values import SealedValues
from interlingua.gateway.server_tools.messages_history import SEAL_PURPOSE as EXCERPT_PURPOSE
from interlingua.gateway.server_tools.request_tools import convert_server_calls
from interlingua.gateway.server_tools.responses_history import RESULTS_NOT_KEPT, seal_results
from interlingua.gateway.server_tools.search_engine import SearchEngine
from interlingua.gateway.server_tools.server_tool import Outcome
from interlingua.gateway.server_tools.web_search import WebSearchTool
from interlingua.gateway.settings.schema import WebSearch
from tests.support import upstream_server as up
from tests.support.gateway_process import GatewayProcess, run_gateway
from tests.support.upstream_server import UpstreamServer
from tests.support.web_server import WebServer, run_web_server

Json = dict[str, Any]
KEY = "search-key-1234567890"
RESULT = {
    "url": "https://example.com/rain",
    "title": "Rain",
    "content": "It rains on Monday.",
    "publishedDate": "today",
}
OTHER = {"url": "https://docs.example.org/sun", "title": "Sun", "content": "Sun on Tuesday."}
CONFIG = """
upstreams:
  chat: {{url: {url}}}
web_search: {{engine: searxng, url: "{search}"}}
"""
SEARCH: Any = {"type": "web_search_20250305", "name": "web_search", "max_uses": 2}


@pytest.fixture(scope="module")
def web() -> Iterator[WebServer]:
    with run_web_server() as server:
        server.answer("/search", {"results": [RESULT, OTHER, {"url": "javascript:x", "title": "no page"}]})
        yield server


@pytest.fixture(scope="module")
def gateway(upstream: UpstreamServer, web: WebServer) -> Iterator[GatewayProcess]:
    with run_gateway(config=CONFIG.format(url=upstream.url, search=web.url)) as process:
        yield process


@pytest.fixture(scope="module")
def gateway_without_engine(upstream: UpstreamServer) -> Iterator[GatewayProcess]:
    with run_gateway(config=f"upstreams:\n  chat: {{url: {upstream.url}}}\n") as process:
        yield process


# ── engines ───────────────────────────────────────────────────────────────────────────────────────────────────────


def search(
    settings: WebSearch, query: Any, definition: Json | None = None, max_uses: int = 0
) -> tuple[Outcome, list[str]]:
    problems: list[str] = []

    async def run() -> Outcome:
        async with aiohttp.ClientSession() as session:
            engine = SearchEngine(settings, session, asyncio.Semaphore(1))
            tool = WebSearchTool("s", engine, settings.results, problems.append, definition or {}, max_uses)
            return await tool.run({"query": query})

    return asyncio.run(run()), problems


def test_each_engine_is_asked_in_its_own_way(web: WebServer) -> None:
    brave = {"url": RESULT["url"], "title": RESULT["title"], "description": RESULT["content"], "age": "today"}
    web.answer("/brave", {"web": {"results": [brave]}})
    web.answer("/tavily", {"results": [{**RESULT, "published_date": "today"}]})
    web.answer("/any", [{"link": RESULT["url"], "title": "Rain", "snippet": RESULT["content"], "date": "today"}])
    engines = [
        WebSearch(engine="searxng", url=f"{web.url}/"),
        WebSearch(engine="brave", url=f"{web.url}/brave", key=KEY),
        WebSearch(engine="tavily", url=f"{web.url}/tavily", key=KEY),
        WebSearch(engine="url", url=f"{web.url}/any?words={{query}}&n=3", key=KEY),
    ]
    web.requests.clear()
    for engine in engines:
        outcome, problems = search(engine, "will it rain?")
        assert problems == []
        page = outcome.pages[0]
        assert (page.url, page.title, page.text, page.age) == (RESULT["url"], "Rain", RESULT["content"], "today")
    (searxng, _, _), (brave_path, brave_headers, _), (_, tavily_headers, tavily), (any_path, any_headers, _) = (
        web.requests
    )
    assert "format=json" in searxng
    assert (brave_path.startswith("/brave?q="), brave_headers["x-subscription-token"]) == (True, KEY)
    assert (json.loads(tavily)["query"], tavily_headers["authorization"]) == ("will it rain?", f"Bearer {KEY}")
    assert (any_path, any_headers["authorization"]) == ("/any?words=will%20it%20rain%3F&n=3", f"Bearer {KEY}")


@pytest.mark.parametrize(
    ("definition", "urls"),
    [
        ({}, [RESULT["url"], OTHER["url"]]),
        ({"allowed_domains": ["example.org"]}, [OTHER["url"]]),
        ({"blocked_domains": ["example.com"]}, [OTHER["url"]]),
        ({"filters": {"allowed_domains": ["example.com"]}}, [RESULT["url"]]),
        ({"allowed_domains": ["example.com/rain"]}, [RESULT["url"]]),
        ({"allowed_domains": ["ample.com"]}, []),
    ],
)
def test_results_of_other_domains_are_left_out(web: WebServer, definition: Json, urls: list[str]) -> None:
    outcome, _ = search(WebSearch(engine="searxng", url=web.url), "rain", definition)
    assert [page.url for page in outcome.pages] == urls


@pytest.mark.parametrize(
    ("path", "query", "error"),
    [
        ("/broken", "rain", "unavailable"),
        ("/html", "rain", "unavailable"),
        ("/redirect", "rain", "unavailable"),
        ("", "", "invalid_tool_input"),
        ("", 3, "invalid_tool_input"),
        ("", "x" * 500, "query_too_long"),
    ],
)
def test_failed_search_is_an_error(web: WebServer, path: str, query: Any, error: str) -> None:
    web.answer("/broken/search", {}, status=500)
    web.answer("/html/search", b"<html>")
    web.answer("/redirect/search", b"", status=302, location=f"{web.url}/search")
    outcome, problems = search(WebSearch(engine="searxng", url=web.url + path), query)
    assert (outcome, bool(problems)) == (Outcome(error=error), error == "unavailable")


def test_engine_that_cannot_be_reached_is_an_error_without_its_url() -> None:
    outcome, problems = search(WebSearch(engine="url", url="http://127.0.0.1:9/?key=secret&q={query}"), "rain")
    assert (outcome.error, "secret" in str(problems)) == ("unavailable", False)


# ── commands ──────────────────────────────────────────────────────────────────────────────────────────────────────


def python_command(code: str, *arguments: str) -> WebSearch:
    return WebSearch(engine="command", command=[sys.executable, "-c", code, *arguments], key=KEY, timeout=10)


ECHO = """
import json, os, sys
keys = [name for name in os.environ if "SECRET" in name]
text = json.dumps([sys.argv[1:], os.environ.get("SEARCH_KEY"), keys])
print(json.dumps({"results": [{"url": "https://example.com/", "title": "t", "content": text}]}))
"""


def test_command_gets_the_query_and_the_key_without_a_shell(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("UPSTREAM_SECRET", "s")
    outcome, problems = search(python_command(ECHO, "--", "q={query}"), "--rain; $(touch x) 'y'")
    assert problems == []
    assert json.loads(outcome.pages[0].text) == [["--", "q=rain; $(touch x) 'y'"], KEY, []]


@pytest.mark.parametrize(
    ("code", "problem"),
    [
        ("import sys; print('no network', file=sys.stderr); sys.exit(3)", "status 3: no network"),
        ("print('{')", "no list of results"),
        ("print('[]' * 3_000_000)", "too large"),
        ("import sys; sys.stderr.write('x' * 6_000_000)", "too large"),
    ],
)
def test_command_that_fails_is_an_error(code: str, problem: str) -> None:
    outcome, problems = search(python_command(code, "{query}"), "rain")
    assert outcome == Outcome(error="unavailable")
    assert problem in problems[0]


def test_command_that_hangs_is_ended_with_what_it_started(tmp_path: Path) -> None:
    code = (
        "import os, subprocess, time; child = subprocess.Popen(['sleep', '60']);"
        f"open({str(tmp_path / 'pids')!r}, 'w').write(f'{{os.getpid()}} {{child.pid}}'); time.sleep(60)"
    )
    settings = msgspec.structs.replace(python_command(code, "{query}"), timeout=1.5)
    outcome, problems = search(settings, "rain")
    assert (outcome.error, problems) == ("unavailable", ["no answer within 1.5 s"])
    pids = [int(pid) for pid in (tmp_path / "pids").read_text().split()]
    deadline = time.monotonic() + 10
    while any(map(is_running, pids)) and time.monotonic() < deadline:
        time.sleep(0.01)
    assert not any(map(is_running, pids))


def is_running(pid: int) -> bool:
    """Return whether a process runs. One that has ended may wait for its parent."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except FileNotFoundError:
        return False


# ── clients ───────────────────────────────────────────────────────────────────────────────────────────────────────


def searches(*queries: str, name: str = "web_search") -> tuple[up.Step, ...]:
    stream = up.ROLE
    for n, query in enumerate(queries):
        stream += up.call(json.dumps({"query": query}), index=n, name=name)
    return up.stream_response(stream + up.delta(finish="tool_calls") + up.DONE)


def ask(gateway: GatewayProcess, model: str, stream: bool, messages: Any = None, tools: Any = None) -> Json:
    client = anthropic.Anthropic(base_url=gateway.base, api_key="k", max_retries=0)
    question = [{"role": "user", "content": "Perform a web search for the query: rain"}]
    fields: Any = {"model": model, "max_tokens": 100, "tools": tools or [SEARCH], "messages": messages or question}
    if stream:
        with client.messages.stream(**fields) as events:
            return events.get_final_message().to_dict()
    message: Json = client.messages.create(**fields).to_dict()
    return message


@pytest.mark.parametrize("stream", [True, False])
def test_search_of_messages_and_its_return(gateway: GatewayProcess, upstream: UpstreamServer, stream: bool) -> None:
    model = f"messages-{stream}"
    upstream.add(model, *searches("rain"))
    upstream.add(model, up.chat_stream("It rains: ", "https://example.com/rain"))
    message = ask(gateway, model, stream)
    use, result, text = message["content"]
    (citation,) = text["citations"]
    assert (citation["type"], citation["url"], citation["title"], citation["cited_text"]) == (
        *("web_search_result_location", RESULT["url"], "Rain", RESULT["content"]),
    )
    assert citation["encrypted_index"]
    assert (use["type"], use["name"], use["input"]) == ("server_tool_use", "web_search", {"query": "rain"})
    assert (result["type"], result["tool_use_id"]) == ("web_search_tool_result", use["id"])
    assert [(page["type"], page["url"], page["title"]) for page in result["content"]] == [
        ("web_search_result", RESULT["url"], "Rain"),
        ("web_search_result", OTHER["url"], "Sun"),
    ]
    assert result["content"][0]["page_age"] == "today"
    assert "It rains" not in result["content"][0]["encrypted_content"]
    assert (text["text"], message["stop_reason"]) == ("It rains: https://example.com/rain", "end_turn")
    assert message["usage"]["server_tool_use"]["web_search_requests"] == 1
    first, second = (request.body for request in upstream.wait_for_requests(model, 2))
    assert first["tools"][0]["function"]["name"] == "web_search"
    answer = second["messages"][-1]
    assert (answer["role"], RESULT["content"] in answer["content"], OTHER["url"] in answer["content"]) == (
        "tool",
        True,
        True,
    )
    upstream.add(model, up.chat_stream("Yes."))
    history = [
        {"role": "user", "content": "Perform a web search for the query: rain"},
        {"role": "assistant", "content": message["content"]},
        {"role": "user", "content": "Sure?"},
    ]
    ask(gateway, model, stream, history)
    third = upstream.wait_for_requests(model, 3)[2].body["messages"]
    assert third[: len(second["messages"])] == second["messages"]


LOCATION = {"type": "approximate", "city": "Köln", "region": "NRW", "country": "DE", "timezone": "Europe/Berlin"}


def test_location_and_amount_reach_the_engine(web: WebServer) -> None:
    web.answer("/brave", {"web": {"results": [RESULT] * 8}})
    web.answer("/tavily", {"results": [RESULT] * 8})
    engines = {
        "brave": WebSearch(engine="brave", url=f"{web.url}/brave", key=KEY),
        "tavily": WebSearch(engine="tavily", url=f"{web.url}/tavily", key=KEY),
    }
    for size, count in (("low", 4), ("medium", 8), ("high", 8), (None, 8)):
        definition = {"search_context_size": size, "user_location": LOCATION}
        web.requests.clear()
        assert [len(search(engine, "rain", definition)[0].pages) for engine in engines.values()] == [count, count]
        (brave_path, headers, _), (_, _, tavily) = web.requests
        assert f"count={count}" in brave_path
        assert json.loads(tavily)["max_results"] == count
        located = {name: value for name, value in headers.items() if name.startswith("x-loc")}
        assert located == {"x-loc-state-name": "NRW", "x-loc-country": "DE", "x-loc-timezone": "Europe/Berlin"}


@pytest.mark.parametrize(
    ("given", "words"),
    [
        (LOCATION, " The user is in Köln, NRW, DE (time zone Europe/Berlin)."),
        ({"type": "approximate", "country": "DE"}, " The user is in DE."),
        ({"type": "approximate", "city": "a\nb" + "x" * 500, "country": 3}, f" The user is in a b{'x' * 97}."),
        ({"type": "approximate"}, ""),
        ("Berlin", ""),
        (None, ""),
    ],
)
@pytest.mark.parametrize("api", ["messages", "responses"])
def test_model_gets_the_location(
    gateway: GatewayProcess, upstream: UpstreamServer, api: str, given: Any, words: str
) -> None:
    model = f"location-{api}-{words}"
    upstream.add(model, up.chat_stream("hi"))
    if api == "messages":
        ask(gateway, model, False, tools=[{**SEARCH, "user_location": given}])
    else:
        tools: Any = [{"type": "web_search", "user_location": given}]
        responses_client(gateway).responses.create(model=model, input="hi", tools=tools)
    (tool,) = upstream.wait_for_requests(model)[-1].body["tools"]
    assert tool["function"]["description"].partition("that you use.")[2] == words


def test_searches_of_a_round_run_at_the_same_time_and_are_sent_in_order(upstream: UpstreamServer) -> None:
    """The engine answers the first query last."""
    code = (
        "import sys, time, json; query = sys.argv[1]; time.sleep(3 - int(query)); "
        "print(json.dumps([{'url': 'https://e.com/' + query}]))"
    )
    config = f"""
upstreams:
  chat: {{url: {upstream.url}}}
web_search: {{engine: command, command: [{sys.executable}, -c, "{code}", "{{query}}"]}}
"""
    upstream.add("at-once", *searches("0", "1", "2"))
    upstream.add("at-once", up.chat_stream("done"))
    with run_gateway(config=config) as gateway:
        started = time.monotonic()
        content = ask(gateway, "at-once", True, tools=[{**SEARCH, "max_uses": 9}])["content"]
        seconds = time.monotonic() - started
    results = [block["content"][0]["url"] for block in content if block["type"] == "web_search_tool_result"]
    assert results == ["https://e.com/0", "https://e.com/1", "https://e.com/2"]
    assert seconds < 5.5, "one after another, they take six"


def test_number_of_searches_in_a_round_is_bounded(gateway: GatewayProcess, upstream: UpstreamServer) -> None:
    upstream.add("many", *searches(*(f"{n}" for n in range(40))))
    upstream.add("many", up.chat_stream("done"))
    content = ask(gateway, "many", True, tools=[{**SEARCH, "max_uses": 100}])["content"]
    results = [block["content"] for block in content if block["type"] == "web_search_tool_result"]
    assert [isinstance(result, list) for result in results] == [True] * 32 + [False] * 8


def test_calls_beyond_the_maximum_of_the_request_are_not_run(gateway: GatewayProcess, upstream: UpstreamServer) -> None:
    upstream.add("max-calls", *searches("a", "b"))
    upstream.add("max-calls", *searches("c", "d"))
    upstream.add("max-calls", up.chat_stream("done"))
    raw = responses_client(gateway).responses.with_raw_response.create(
        model="max-calls", input="hi", tools=[{"type": "web_search"}], max_tool_calls=3
    )
    response = raw.parse()
    statuses = [item.status for item in response.output if item.type == "web_search_call"]
    assert statuses == ["completed", "completed", "completed", "failed"]
    assert (response.status, response.output_text, response.max_tool_calls) == ("completed", "done", 3)
    assert "field-dropped" not in raw.headers.get("x-interlingua-findings", "")
    answers = [
        m["content"] for m in upstream.wait_for_requests("max-calls", 3)[2].body["messages"] if m["role"] == "tool"
    ]
    assert "max_uses_exceeded" in answers[-1]


def test_search_without_an_engine_is_an_error_of_the_api(
    gateway_without_engine: GatewayProcess, upstream: UpstreamServer
) -> None:
    upstream.add("no-engine", *searches("rain"))
    upstream.add("no-engine", up.chat_stream("I cannot search."))
    message = ask(gateway_without_engine, "no-engine", True)
    assert message["content"][1]["content"] == {"type": "web_search_tool_result_error", "error_code": "unavailable"}
    answer = upstream.wait_for_requests("no-engine", 2)[1].body["messages"][-1]["content"]
    assert "web_search failed: unavailable" in answer


def test_number_of_searches_is_limited(gateway: GatewayProcess, upstream: UpstreamServer) -> None:
    upstream.add("uses", *searches("a", "b", "c"))
    upstream.add("uses", up.chat_stream("done"))
    results = [block["content"] for block in ask(gateway, "uses", True)["content"] if "result" in block["type"]]
    assert [isinstance(result, list) for result in results] == [True, True, False]
    assert results[2]["error_code"] == "max_uses_exceeded"


def responses_client(gateway: GatewayProcess) -> openai.OpenAI:
    return openai.OpenAI(base_url=f"{gateway.base}/v1", api_key="k", max_retries=0)


@pytest.mark.parametrize("stream", [True, False])
@pytest.mark.parametrize("type", ["web_search", "web_search_preview"])
def test_search_of_responses(gateway: GatewayProcess, upstream: UpstreamServer, stream: bool, type: str) -> None:
    model, client = f"responses-{stream}-{type}", responses_client(gateway)
    upstream.add(model, *searches("rain"))
    text = f"It rains, [they say]({RESULT['url']})."
    upstream.add(model, up.chat_stream(text[:20], text[20:]))
    fields: Any = {"model": model, "input": "Will it rain?", "tools": [{"type": type}], "tool_choice": "required"}
    if stream:
        events: list[Any] = list(client.responses.create(stream=True, **fields))
        assert [event.sequence_number for event in events] == list(range(len(events)))
        types = [event.type for event in events if "web_search" in event.type or "output_item" in event.type]
        assert types[:5] == [
            "response.output_item.added",
            "response.web_search_call.in_progress",
            "response.web_search_call.searching",
            "response.web_search_call.completed",
            "response.output_item.done",
        ]
        assert not any("function_call" in event.type for event in events)
        (added,) = (event for event in events if event.type == "response.output_text.annotation.added")
        part = next(event.part for event in events if event.type == "response.content_part.done")
        assert [added.annotation.to_dict()] == [annotation.to_dict() for annotation in part.annotations]
        response = events[-1].response
    else:
        response = client.responses.create(**fields)
    call, sealed, message = (item.to_dict() for item in response.output)
    link = f"[they say]({RESULT['url']})"
    place = {"start_index": text.index(link), "end_index": text.index(link) + len(link)}
    assert message["content"][0]["annotations"] == [
        {"type": "url_citation", "url": RESULT["url"], "title": "Rain", **place}
    ]
    assert (call["type"], call["status"]) == ("web_search_call", "completed")
    assert [tool.type for tool in response.tools] == [type], "the response repeats the client's tools"
    assert response.tool_choice == "required"
    assert call["action"]["query"] == "rain"
    assert call["action"]["sources"] == [{"type": "url", "url": page["url"]} for page in (RESULT, OTHER)]
    assert message["content"][0]["text"] == text
    assert (sealed["type"], sealed["summary"], "Monday" in sealed["encrypted_content"]) == ("reasoning", [], False)
    first, second = (request.body for request in upstream.wait_for_requests(model, 2))
    assert (first["tool_choice"], second["tool_choice"]) == ("required", "auto")
    assert RESULT["content"] in second["messages"][-1]["content"]
    for n, items in enumerate(([call, sealed, message], [call, message])):
        upstream.add(model, up.chat_stream("Yes."))
        client.responses.create(model=model, input=fields_input(*items), tools=fields["tools"])
        later = upstream.wait_for_requests(model, 3 + n)[2 + n].body["messages"]
        assert [message["role"] for message in later] == ["user", "assistant", "tool", "assistant", "user"]
        kept = later[: len(second["messages"])] == second["messages"]
        assert (kept, "search again" in later[2]["content"]) == ((True, False), (False, True))[n]


def test_results_of_an_earlier_search_are_found_by_the_stored_response(
    gateway: GatewayProcess, upstream: UpstreamServer
) -> None:
    model, client = "stored-search", responses_client(gateway)
    tools: Any = [{"type": "web_search"}]
    for script in (searches("rain"), (up.chat_stream("Rain."),), (up.chat_stream("Yes."),)):
        upstream.add(model, *script)
    first = client.responses.create(model=model, input="Will it rain?", tools=tools)
    client.responses.create(model=model, input="Sure?", tools=tools, previous_response_id=first.id)
    assert RESULT["content"] in upstream.wait_for_requests(model, 3)[2].body["messages"][2]["content"]


def test_sealed_results_of_another_key_are_not_read() -> None:
    search_call: Json = {"type": "web_search_call", "id": "ws_1", "action": {"query": "rain"}}
    sealed = seal_results("ws_1", "It rains.", b"k" * 32)
    body = {"input": [search_call, sealed]}
    for key, result in ((b"k" * 32, "It rains."), (b"x" * 32, RESULTS_NOT_KEPT)):
        converted = convert_server_calls("openai-responses", body, SealedValues(key, 10_000))
        assert converted is not None
        request, origins = converted
        assert request["input"][1]["output"] == result
        assert [origins.find(n) for n in range(2)] == [Origin("input[0]", is_same=False)] * 2
    with pytest.raises(TooLarge):
        convert_server_calls("openai-responses", body, SealedValues(b"k" * 32, 10))


def test_excerpts_of_searches_have_a_maximum_size() -> None:
    key, text = b"k" * 32, "It rains. " * 100
    page = {"type": "web_search_result", "encrypted_content": write_value_envelope(text, EXCERPT_PURPOSE, "", key)}
    use = {"type": "server_tool_use", "id": "s", "name": "web_search", "input": {"query": "rain"}}
    result = {"type": "web_search_tool_result", "tool_use_id": "s", "content": [page]}
    body = {"messages": [{"role": "assistant", "content": [use, result]}]}
    converted = convert_server_calls("anthropic-messages", body, SealedValues(key, 10_000))
    assert converted is not None
    call, answer = converted[0]["messages"]
    assert (call["content"][0]["type"], text in answer["content"][0]["content"]) == ("tool_use", True)
    with pytest.raises(TooLarge):
        convert_server_calls("anthropic-messages", body, SealedValues(key, 10))


@pytest.mark.parametrize("id", [None, 1, [], {"a": 1}])
def test_ids_and_types_of_any_kind_are_read(id: Any) -> None:
    use = {"type": "server_tool_use", "id": id, "name": "web_search", "input": {}}
    result = {"type": "web_search_tool_result", "tool_use_id": id, "content": id}
    body = {"messages": [{"role": "assistant", "content": [use, {"type": id}, result]}]}
    assert convert_server_calls("anthropic-messages", body, SealedValues(b"k" * 32, 10_000)) is not None
    search = {"type": "web_search_call", "id": id, "action": id}
    assert convert_server_calls("openai-responses", {"input": [search]}, SealedValues(b"k" * 32, 10_000)) is not None


@pytest.mark.parametrize("tools", [[], [{"name": "other", "input_schema": {"type": "object"}}]])
def test_results_of_messages_are_kept_in_a_request_without_the_search(
    gateway: GatewayProcess, upstream: UpstreamServer, tools: list[Json]
) -> None:
    model = f"messages-later-{len(tools)}"
    upstream.add(model, *searches("rain"))
    upstream.add(model, up.chat_stream("Rain."))
    content = ask(gateway, model, False)["content"]
    upstream.add(model, up.chat_stream("Yes."))
    history = [
        {"role": "user", "content": "Will it rain?"},
        {"role": "assistant", "content": content},
        {"role": "user", "content": "Sure?"},
    ]
    client = anthropic.Anthropic(base_url=gateway.base, api_key="k", max_retries=0)
    fields: Any = {"messages": history, **({"tools": tools} if tools else {})}
    client.messages.create(model=model, max_tokens=100, **fields)
    later = upstream.wait_for_requests(model, 3)[2].body["messages"]
    assert [message["role"] for message in later] == ["user", "assistant", "tool", "assistant", "user"]
    assert RESULT["content"] in later[2]["content"]


@pytest.mark.parametrize("path", ["responses", "compact", "stored"])
def test_results_of_responses_are_kept_in_a_request_without_the_search(
    gateway: GatewayProcess, upstream: UpstreamServer, path: str
) -> None:
    model, client = f"responses-later-{path}", responses_client(gateway)
    upstream.add(model, *searches("rain"))
    upstream.add(model, up.chat_stream("Rain."))
    first = client.responses.create(model=model, input="Will it rain?", tools=[{"type": "web_search"}])
    upstream.add(model, up.chat_stream("Yes."))
    items = fields_input(*(item.to_dict() for item in first.output))
    if path == "responses":
        client.responses.create(model=model, input=items, store=False)
    elif path == "compact":
        client.responses.compact(model=model, input=items)
    else:
        client.responses.create(model=model, input="Sure?", previous_response_id=first.id)
    later = upstream.wait_for_requests(model, 3)[2].body["messages"]
    assert [message["role"] for message in later][:4] == ["user", "assistant", "tool", "assistant"]
    assert RESULT["content"] in later[2]["content"]


def fields_input(*items: Json) -> list[Any]:
    return [{"role": "user", "content": "Will it rain?"}, *items, {"role": "user", "content": "Sure?"}]


def test_responses_without_an_engine_are_not_offered_a_search(
    gateway_without_engine: GatewayProcess, upstream: UpstreamServer
) -> None:
    upstream.add("not-offered", up.chat_stream("hi"))
    responses_client(gateway_without_engine).responses.create(
        model="not-offered", input="hi", tools=[{"type": "web_search"}]
    )
    assert "tools" not in upstream.wait_for_requests("not-offered")[0].body


def test_call_of_another_tool_beside_a_search(gateway: GatewayProcess, upstream: UpstreamServer) -> None:
    stream = up.ROLE + up.call('{"query":"rain"}', name="web_search") + up.call("{}", index=1, name="read")
    upstream.add("beside", *up.stream_response(stream + up.delta(finish="tool_calls") + up.DONE))
    read: Any = {
        "type": "function",
        "name": "read",
        "parameters": {"type": "object", "properties": {}},
        "strict": False,
    }
    response = responses_client(gateway).responses.create(
        model="beside", input="hi", tools=[{"type": "web_search"}, read]
    )
    assert [item.type for item in response.output] == ["web_search_call", "function_call", "reasoning"]
    assert upstream.count("beside") == 1
