"""Tests of the search for tools that the gateway runs: ranking, blocks and items of each API, rounds."""

from __future__ import annotations

import asyncio
import json
import time
from collections.abc import Iterator
from typing import Any

import anthropic
import openai
import pytest

from interlingua.core.tools import Tool
from interlingua.gateway.relay.server_tool_loop import MAX_ROUNDS
from interlingua.gateway.server_tools.tool_search import ToolSearch
from tests.support import upstream_server as up
from tests.support.gateway_process import GatewayProcess, run_gateway
from tests.support.upstream_server import UpstreamServer

Json = dict[str, Any]
CONFIG = """
upstreams:
  chat: {{url: {url}}}
  messages: {{url: {url}, api: anthropic-messages, profile: deepseek}}
models:
  "m-*": {{upstream: messages}}
  "*": {{upstream: chat}}
"""
BM25 = "tool_search_tool_bm25"
SEARCH: Any = {"type": f"{BM25}_20251119", "name": BM25}


def function(name: str, description: str, **fields: Any) -> Any:
    return {"name": name, "description": description, "input_schema": {"type": "object", "properties": {}}, **fields}


FORECAST = function("get_forecast", "Weather of the next days", defer_loading=True)
TICKET = function("create_ticket", "Open an issue in the tracker", defer_loading=True)
READ = function("read", "Read a file")
TOOLS: Any = [SEARCH, READ, FORECAST, TICKET]


@pytest.fixture(scope="module")
def gateway(upstream: UpstreamServer) -> Iterator[GatewayProcess]:
    with run_gateway(config=CONFIG.format(url=upstream.url)) as process:
        yield process


# ── ranking ───────────────────────────────────────────────────────────────────────────────────────────────────────

CATALOG = [
    Tool("get_forecast", description="Weather of the next days"),
    Tool("createTicket", description="Open an issue in the tracker"),
    Tool("slack__send_message", description="Send a message to a channel", namespace="slack", about="Team chat"),
    Tool("list_files", {"properties": {"folder": {"description": "directory to list"}}}, "List files"),
]


@pytest.mark.parametrize(
    ("query", "first"),
    [
        ("weather", "get_forecast"),
        ("what is the weather in the next days", "get_forecast"),
        ("ticket", "createTicket"),
        ("tickets", "createTicket"),
        ("team chat", "slack__send_message"),
        ("directory", "list_files"),
        ("create_.*|ticket", "createTicket"),
        ("unknown", None),
        ("", None),
    ],
)
def test_best_match_is_first(query: str, first: str | None) -> None:
    outcome = asyncio.run(ToolSearch("search", CATALOG).run({"query": query}))
    assert (outcome.found[0].name if outcome.found else None) == first


def test_number_of_results_is_limited() -> None:
    many = [Tool(f"tool_{n}", description="the same") for n in range(100)]
    search = ToolSearch("search", many)
    assert [len(asyncio.run(search.run({"query": "same", **limit})).found) for limit in ({}, {"limit": 2})] == [5, 2]
    assert len(asyncio.run(search.run({"query": "same", "limit": 1000})).found) == 20
    assert "and 60 more" in search.description


@pytest.mark.parametrize("arguments", [{}, {"query": 3}, {"pattern": "x"}])
def test_wrong_arguments_are_an_error(arguments: Json) -> None:
    assert asyncio.run(ToolSearch("search", CATALOG).run(arguments)).error == "invalid_tool_input"


# ── the upstream ──────────────────────────────────────────────────────────────────────────────────────────────────


def usage(prompt: int, completion: int) -> bytes:
    counts = {"prompt_tokens": prompt, "completion_tokens": completion, "total_tokens": prompt + completion}
    return up.event(
        {"id": "chatcmpl-1", "object": "chat.completion.chunk", "model": "m", "choices": [], "usage": counts}
    )


def calls(*named: tuple[str, Json], text: str = "") -> tuple[up.Step, ...]:
    stream = up.ROLE + (up.delta(text) if text else b"")
    for n, (name, arguments) in enumerate(named):
        stream += up.call(json.dumps(arguments), index=n, name=name)
    stream += up.delta(finish="tool_calls") + usage(10, 5) + up.DONE
    return up.stream_response(stream)


def says(text: str) -> tuple[up.Step, ...]:
    return up.stream_response(up.ROLE + up.delta(text) + up.delta(finish="stop") + usage(20, 7) + up.DONE)


def function_names(body: Json) -> list[str]:
    return [tool["function"]["name"] for tool in body["tools"]]


# ── Messages ──────────────────────────────────────────────────────────────────────────────────────────────────────


def messages_client(gateway: GatewayProcess) -> anthropic.Anthropic:
    return anthropic.Anthropic(base_url=gateway.base, api_key="k", max_retries=0)


def ask(gateway: GatewayProcess, model: str, stream: bool, messages: Any = None, tools: Any = TOOLS) -> Json:
    fields: Any = {
        "model": model,
        "max_tokens": 100,
        "tools": tools,
        "messages": messages or [{"role": "user", "content": "Will it rain?"}],
    }
    client = messages_client(gateway)
    if stream:
        with client.messages.stream(**fields) as events:
            return events.get_final_message().to_dict()
    message: Json = client.messages.create(**fields).to_dict()
    return message


@pytest.mark.parametrize("stream", [True, False])
def test_search_runs_within_one_reply_of_messages(
    gateway: GatewayProcess, upstream: UpstreamServer, stream: bool
) -> None:
    model = f"search-{stream}"
    upstream.add(model, *calls((BM25, {"query": "weather"}), text="Let me look."))
    upstream.add(model, *calls(("get_forecast", {})))
    message = ask(gateway, model, stream)
    kinds = [block["type"] for block in message["content"]]
    assert kinds == ["text", "server_tool_use", "tool_search_tool_result", "tool_use"]
    use, result, call = message["content"][1:]
    assert (use["name"], use["input"], use["id"][:9]) == (BM25, {"query": "weather"}, "srvtoolu_")
    assert result["tool_use_id"] == use["id"]
    assert result["content"] == {
        "type": "tool_search_tool_search_result",
        "tool_references": [{"type": "tool_reference", "tool_name": "get_forecast"}],
    }
    assert (call["name"], message["stop_reason"]) == ("get_forecast", "tool_use")
    assert (message["usage"]["input_tokens"], message["usage"]["output_tokens"]) == (20, 10)
    first, second = (request.body for request in upstream.wait_for_requests(model, 2))
    assert function_names(first) == [BM25, "read"]
    assert function_names(second) == [BM25, "read", "get_forecast"]
    assert second["messages"][: len(first["messages"])] == first["messages"]
    call_message, answer = second["messages"][-2:]
    assert call_message["content"] == "Let me look."
    assert call_message["tool_calls"][0]["function"]["name"] == BM25
    assert answer["content"] == "[the tool get_forecast can be called from now on]"


@pytest.mark.parametrize("model", ["history", "m-history"])
def test_found_tools_stay_offered_in_later_requests(
    gateway: GatewayProcess, upstream: UpstreamServer, model: str
) -> None:
    if model == "history":
        upstream.add(model, *says("It will."))
    else:
        body: Json = {"id": "x", "type": "message", "role": "assistant", "model": "m", "content": []}
        body |= {"stop_reason": "end_turn", "stop_sequence": None, "usage": {"input_tokens": 1, "output_tokens": 1}}
        upstream.add(model, up.send_response("200 OK", json.dumps(body).encode()))
    reference = {"type": "tool_reference", "tool_name": "get_forecast"}
    content = [
        {"type": "server_tool_use", "id": "srvtoolu_1", "name": BM25, "input": {"query": "weather"}},
        {
            "type": "tool_search_tool_result",
            "tool_use_id": "srvtoolu_1",
            "content": {"type": "tool_search_tool_search_result", "tool_references": [reference]},
        },
        {"type": "tool_use", "id": "toolu_2", "name": "get_forecast", "input": {}},
    ]
    messages = [
        {"role": "user", "content": "Will it rain?"},
        {"role": "assistant", "content": content},
        {"role": "user", "content": [{"type": "tool_result", "tool_use_id": "toolu_2", "content": "rain"}]},
    ]
    ask(gateway, model, False, messages)
    sent = upstream.wait_for_requests(model)[0].body
    names = [tool["name"] if "name" in tool else tool["function"]["name"] for tool in sent["tools"]]
    assert names == [BM25, "read", "get_forecast"]
    roles = [message["role"] for message in sent["messages"]]
    result_role = "tool" if model == "history" else "user"
    assert roles == ["user", "assistant", result_role, "assistant", result_role]


def test_call_of_the_client_ends_the_reply(gateway: GatewayProcess, upstream: UpstreamServer) -> None:
    upstream.add("both", *calls((BM25, {"query": "weather"}), ("read", {})))
    message = ask(gateway, "both", True)
    kinds = [block["type"] for block in message["content"]]
    assert (kinds, message["stop_reason"]) == (["server_tool_use", "tool_use", "tool_search_tool_result"], "tool_use")
    upstream.add("both", *says("done"))
    result = {"type": "tool_result", "tool_use_id": message["content"][1]["id"], "content": "text"}
    user = {"role": "user", "content": "Will it rain?"}
    ask(
        gateway,
        "both",
        True,
        [user, {"role": "assistant", "content": message["content"]}, {"role": "user", "content": [result]}],
    )
    sent = upstream.wait_for_requests("both", 2)[1].body["messages"]
    assert [len(message.get("tool_calls", [])) for message in sent] == [0, 2, 0, 0]
    assert [message.get("tool_call_id") for message in sent[2:]] == [call["id"] for call in sent[1]["tool_calls"]]


def test_number_of_rounds_is_limited(gateway: GatewayProcess, upstream: UpstreamServer) -> None:
    for _ in range(MAX_ROUNDS):
        upstream.add("endless", *calls((BM25, {"query": "nothing"})))
    message = ask(gateway, "endless", True)
    assert (message["stop_reason"], len(message["content"])) == ("pause_turn", 2 * MAX_ROUNDS)
    upstream.add("endless", *says("done"))
    user = {"role": "user", "content": "Will it rain?"}
    message = ask(gateway, "endless", True, [user, {"role": "assistant", "content": message["content"]}])
    assert message["content"] == [{"type": "text", "text": "done"}]


@pytest.mark.parametrize("stream", [True, False])
def test_error_of_the_first_round_is_an_error_response(
    gateway: GatewayProcess, upstream: UpstreamServer, stream: bool
) -> None:
    upstream.add("refused", up.send_response("400 Bad Request", b'{"error": {"message": "no such thing"}}'))
    with pytest.raises(anthropic.BadRequestError, match="no such thing"):
        ask(gateway, "refused", stream)


def test_error_of_a_later_round_ends_the_stream(gateway: GatewayProcess, upstream: UpstreamServer) -> None:
    upstream.add("later", *calls((BM25, {"query": "weather"})))
    upstream.add("later", up.send_response("400 Bad Request", b'{"error": {"message": "no such thing"}}'))
    with pytest.raises(anthropic.APIStatusError, match="no such thing"):
        ask(gateway, "later", True)


def test_thinking_goes_back_to_the_model(gateway: GatewayProcess, upstream: UpstreamServer) -> None:
    thought = up.ROLE + up.delta(reasoning_content="I need the weather.")
    search = up.call('{"query":"weather"}', name=BM25) + up.delta(finish="tool_calls") + up.DONE
    upstream.add("thinks", *up.stream_response(thought + search))
    upstream.add("thinks", *says("done"))
    message = ask(gateway, "thinks", True)
    kinds = [block["type"] for block in message["content"]]
    assert kinds == ["thinking", "server_tool_use", "tool_search_tool_result", "text"]
    assert message["content"][0]["signature"]
    past = upstream.wait_for_requests("thinks", 2)[1].body["messages"][1]
    assert past["reasoning_content"] == "I need the weather."


def test_client_that_leaves_ends_the_round(gateway: GatewayProcess, upstream: UpstreamServer) -> None:
    upstream.add("left", *calls((BM25, {"query": "weather"})))
    upstream.add("left", up.send_headers(), up.send(up.ROLE + up.delta("It")), up.wait(30))
    fields: Any = {"model": "left", "max_tokens": 100, "tools": TOOLS, "messages": [{"role": "user", "content": "hi"}]}
    with messages_client(gateway).messages.stream(**fields) as events:
        assert next(iter(events.text_stream)) == "It"
    request = upstream.wait_for_requests("left", 2)[1]
    assert request.finished.wait(10)
    assert request.client_left_at is not None
    gateway.wait_for_log("client-left.*left")


def test_forced_choice_holds_for_the_first_round(gateway: GatewayProcess, upstream: UpstreamServer) -> None:
    upstream.add("forced", *calls((BM25, {"query": "weather"})))
    upstream.add("forced", *says("done"))
    messages_client(gateway).messages.create(
        model="forced",
        max_tokens=100,
        tools=TOOLS,
        tool_choice={"type": "any"},
        messages=[{"role": "user", "content": "Will it rain?"}],
    )
    choices = [request.body.get("tool_choice") for request in upstream.wait_for_requests("forced", 2)]
    assert choices == ["required", "auto"]


# ── Responses ─────────────────────────────────────────────────────────────────────────────────────────────────────

NAMESPACE: Any = {
    "type": "namespace",
    "name": "weather",
    "description": "Weather service",
    "tools": [
        {
            "type": "function",
            "name": name,
            "description": about,
            "parameters": {"type": "object"},
            "defer_loading": True,
        }
        for name, about in (("forecast", "Weather of the next days"), ("units", "Known units"))
    ],
}
HOSTED: Any = [{"type": "tool_search"}, NAMESPACE]


def responses_client(gateway: GatewayProcess) -> openai.OpenAI:
    return openai.OpenAI(base_url=f"{gateway.base}/v1", api_key="k", max_retries=0)


@pytest.mark.parametrize("stream", [True, False])
@pytest.mark.parametrize("store", [True, False])
def test_search_runs_within_one_response(
    gateway: GatewayProcess, upstream: UpstreamServer, stream: bool, store: bool
) -> None:
    model, client = f"hosted-{stream}-{store}", responses_client(gateway)
    upstream.add(model, *calls(("tool_search", {"query": "forecast"})))
    upstream.add(model, *calls(("weather__forecast", {})))
    fields: Any = {"model": model, "input": "Will it rain?", "tools": HOSTED, "store": store}
    if stream:
        events: list[Any] = list(client.responses.create(stream=True, **fields))
        assert [event.sequence_number for event in events] == list(range(len(events)))
        indexes = [event.output_index for event in events if event.type == "response.output_item.done"]
        assert indexes == [0, 1, 2]
        assert sum(event.type == "response.created" for event in events) == 1
        response = events[-1].response
    else:
        response = client.responses.create(**fields)
    search, output, call = (item.to_dict() for item in response.output)
    assert (search["type"], search["execution"], search["arguments"]) == (
        "tool_search_call",
        "server",
        {"query": "forecast"},
    )
    assert (output["type"], output["execution"]) == ("tool_search_output", "server")
    assert output["tools"] == [{**NAMESPACE, "tools": NAMESPACE["tools"][:1]}]
    assert (call["type"], call["name"], call["namespace"]) == ("function_call", "forecast", "weather")
    assert (response.usage.input_tokens, response.usage.output_tokens) == (20, 10)
    first, second = (request.body for request in upstream.wait_for_requests(model, 2))
    assert (function_names(first), function_names(second)) == (["tool_search"], ["tool_search", "weather__forecast"])
    assert second["messages"][-1]["content"] == "[the tool weather__forecast can be called from now on]"
    upstream.add(model, *says("It will."))
    answer = {"type": "function_call_output", "call_id": call["call_id"], "output": "rain"}
    history = {"previous_response_id": response.id, "input": [answer]}
    if not store:
        history = {"input": [{"role": "user", "content": "Will it rain?"}, search, output, call, answer]}
    client.responses.create(model=model, tools=HOSTED, **history)
    third = upstream.wait_for_requests(model, 3)[2].body
    assert function_names(third) == ["tool_search", "weather__forecast"]
    assert [message["role"] for message in third["messages"]] == ["user", "assistant", "tool", "assistant", "tool"]


def test_response_has_the_id_of_its_request(gateway: GatewayProcess, upstream: UpstreamServer) -> None:
    upstream.add("named", *calls(("tool_search", {"query": "forecast"})))
    upstream.add("named", *says("done"))
    raw = responses_client(gateway).responses.with_raw_response.create(model="named", input="hi", tools=HOSTED)
    assert raw.parse().id == raw.headers["x-interlingua-id"].replace("req_", "resp_")
    assert len({item.id for item in raw.parse().output}) == 3


def test_search_in_the_background(gateway: GatewayProcess, upstream: UpstreamServer) -> None:
    client = responses_client(gateway)
    upstream.add("background", *calls(("tool_search", {"query": "forecast"})))
    upstream.add("background", *says("done"))
    response = client.responses.create(model="background", input="hi", tools=HOSTED, background=True)
    id = response.id
    deadline = time.monotonic() + 10
    while response.status in ("queued", "in_progress") and time.monotonic() < deadline:
        time.sleep(0.05)
        response = client.responses.retrieve(response.id)
    assert (response.status, response.id) == ("completed", id)
    assert [item.type for item in response.output] == ["tool_search_call", "tool_search_output", "message"]


def test_error_of_a_later_round_fails_the_response(gateway: GatewayProcess, upstream: UpstreamServer) -> None:
    upstream.add("fails", *calls(("tool_search", {"query": "forecast"})))
    upstream.add("fails", up.send_response("400 Bad Request", b'{"error": {"message": "no such thing"}}'))
    events: list[Any] = list(
        responses_client(gateway).responses.create(model="fails", input="hi", tools=HOSTED, stream=True)
    )
    assert (events[-1].type, events[-1].response.error.message) == (
        "response.failed",
        events[-1].response.error.message,
    )
    assert "no such thing" in events[-1].response.error.message


# ── requests that cannot be read ──────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize(
    "tools",
    [
        [SEARCH, "no tool"],
        [SEARCH, {"defer_loading": True}],
        [SEARCH, {"defer_loading": True, "name": 3}],
        [SEARCH, {"defer_loading": True, "name": "x", "input_schema": []}],
        {"type": SEARCH["type"]},
        [{"type": SEARCH["type"]}],
        [{"type": SEARCH["type"], "name": [1]}],
        [{**SEARCH, "input_schema": {"type": "object"}}],
        [{"type": "web_search_20250305"}],
        [{"type": "web_fetch_20250910", "name": None}],
    ],
)
def test_malformed_tools_are_an_error_of_the_client(
    gateway: GatewayProcess, upstream: UpstreamServer, tools: Any
) -> None:
    upstream.add("malformed", *says("hi"))
    try:
        ask(gateway, "malformed", False, tools=tools)
    except anthropic.APIStatusError as error:
        assert error.status_code == 400  # noqa: PT017 (a reply is fine, too)


@pytest.mark.parametrize(
    "fields",
    [
        {"tools": [{"type": "tool_search"}, {"type": "namespace", "tools": [3]}]},
        {"tools": [{"type": "tool_search"}, {"type": "namespace", "name": "n", "tools": "x"}]},
        {"tools": [{"type": "tool_search"}, {"type": "function"}]},
        {"tools": [{"type": "tool_search"}], "input": [3, {"type": "tool_search_call", "execution": "server"}]},
        {"tools": [{"type": "tool_search"}], "input": {"a": 1}},
    ],
)
def test_malformed_responses_requests_are_errors_of_the_client(
    gateway: GatewayProcess, upstream: UpstreamServer, fields: Any
) -> None:
    upstream.add("malformed-responses", *says("hi"))
    body = {"model": "malformed-responses", "input": "hi", **fields}
    try:
        responses_client(gateway).post("/responses", body=body, cast_to=object)
    except openai.APIStatusError as error:
        assert error.status_code == 400  # noqa: PT017 (a reply is fine, too)
