"""A wire needs only its own module and the registry: a made-up wire works in every part of the program."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import pytest
from aiohttp.test_utils import TestClient, TestServer

import interlingua as il
from interlingua.agents import AgentTarget
from interlingua.client.sdk.upstream_config import UpstreamConfig, wire_for_path
from interlingua.client.tools.toolbox import ToolBox
from interlingua.core.options import Options
from interlingua.errors import UnknownModel
from interlingua.gateway.api.app import make_app
from interlingua.gateway.api.openapi import openapi_document
from interlingua.gateway.demo.server import start_demo_server
from interlingua.gateway.http.error_responses import error_body
from interlingua.gateway.observability.exchange_record import ExchangeRecord
from interlingua.gateway.observability.tracing import _span_attributes
from interlingua.gateway.settings.loader import LoadedSettings
from interlingua.gateway.settings.schema import Log, Settings, Upstream
from interlingua.gateway.state import GatewayState
from interlingua.tokens.estimator import estimate_tokens
from interlingua.translation.request_translation import prepare_request
from interlingua.wires import WIRES, get_wire
from interlingua.wires.base import Wire
from tests.support import made_up_wire
from tests.support.made_up_wire import NAME
from tests.support.request_tables import MINIMAL_REQUESTS, TOOL

Json = dict[str, Any]
CHAT, MESSAGES, RESPONSES = WIRES[:3]
KEY = b"a key"
TURNS = [{"role": "user", "content": "hi"}]
CALL = {"id": "call_1", "type": "function", "function": {"name": "ping", "arguments": '{"a":1}'}}
BODY: Json = {
    "id": "r1",
    "object": "chat.completion",
    "created": 1,
    "model": "m",
    "choices": [
        {
            "index": 0,
            "message": {"role": "assistant", "content": "hm", "tool_calls": [CALL]},
            "finish_reason": "tool_calls",
        }
    ],
}


@pytest.fixture(autouse=True)
def new_wire(monkeypatch: pytest.MonkeyPatch) -> None:
    made_up_wire.register(monkeypatch)


def finding_kinds(findings: list[Any]) -> set[str]:
    return {finding.kind for finding in findings}


def test_made_up_wire_has_every_name_of_a_wire() -> None:
    wire = get_wire(NAME)
    names = {*Wire.__annotations__, *(name for name in vars(Wire) if not name.startswith("_")), "NAME", "read_request"}
    assert [name for name in names if not hasattr(wire, name)] == []


# ── requests ──────────────────────────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize("source", [CHAT, MESSAGES, RESPONSES])
def test_request_is_translated_to_the_new_wire(source: str) -> None:
    body = {"model": "m", **MINIMAL_REQUESTS[source], "tools": [TOOL[source]]}
    body.pop("max_tokens", None)
    prepared = prepare_request(body, source, NAME)
    assert prepared.body["turns"] == TURNS
    assert [tool["function"]["name"] for tool in prepared.body["tools"]] == ["ping"]
    assert prepared.body["max_tokens"] == 32_000
    assert finding_kinds(prepared.findings) == {"no-max-tokens"}


@pytest.mark.parametrize("target", [CHAT, MESSAGES, RESPONSES])
def test_request_is_translated_from_the_new_wire(target: str) -> None:
    body = {"model": "m", "turns": TURNS, "tools": [TOOL[CHAT]], "odd": 1, "max_tokens": 9}
    prepared = prepare_request(body, NAME, target)
    conversation = prepared.body[get_wire(target).TRAITS.conversation_field]
    assert "hi" in json.dumps(conversation)
    assert finding_kinds(prepared.findings) == {"field-dropped"}
    assert "odd" not in prepared.body


def test_profile_does_not_restrict_a_wire_that_does_not_vary_by_server() -> None:
    body = {"model": "m", "messages": TURNS, "top_k": 3, "user": "u", "stop": ["\n"] * 20, "max_tokens": 9}
    assert finding_kinds(prepare_request(body, CHAT, NAME, upstream="mistral").findings) == set()
    assert finding_kinds(prepare_request(body, CHAT, CHAT, upstream="mistral").findings) >= {"setting-dropped"}


def test_request_on_the_same_wire_keeps_unknown_fields() -> None:
    body = {"model": "m", "turns": [{**TURNS[0], "odd": 1}], "odd": 1, "max_tokens": 9}
    assert prepare_request(body, NAME, NAME).body == body
    assert prepare_request(body, NAME, NAME, upstream="vllm").body == body


# ── replies ───────────────────────────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize("target", [CHAT, MESSAGES, RESPONSES])
def test_reply_is_translated_from_the_new_wire_and_back(target: str) -> None:
    translated = il.translate_reply(BODY, NAME, target)
    assert translated == il.translate_reply(BODY, CHAT, target)
    message = il.translate_reply(translated, target, NAME)["choices"][0]["message"]
    assert (message["content"], message["tool_calls"][0]["function"]) == ("hm", CALL["function"])


@pytest.mark.parametrize("target", [CHAT, MESSAGES, RESPONSES, NAME])
def test_stream_is_translated_from_the_new_wire(target: str) -> None:
    stream = il.Translator(CHAT, NAME).stream(BODY)
    translator = il.Translator(NAME, target)
    translated = translator.feed(stream) + translator.close()
    assert translator.findings == []
    accumulator = il.Accumulator(target)
    accumulator.add(translated)
    accumulator.close()
    assert accumulator.finished
    assert (accumulator.text, [call.name for call in accumulator.calls]) == ("hm", ["ping"])


def test_signatures_of_the_same_wire_are_signed_and_restored() -> None:
    detail = {"type": "reasoning.encrypted", "data": "secret"}
    message = {"role": "assistant", "content": "hm", "reasoning_details": [detail]}
    body = {**BODY, "choices": [{"index": 0, "message": message, "finish_reason": "stop"}]}
    options = Options(seal_key=KEY, upstream="@acme")
    sent = il.Translator(NAME, NAME, options=options).reply(body)["choices"][0]["message"]
    assert sent["reasoning_details"][0]["data"].startswith("il2.")
    request = {"model": "m", "turns": [*TURNS, sent, *TURNS], "max_tokens": 9}
    own = prepare_request(request, NAME, NAME, options=options)
    assert own.body["turns"][1]["reasoning_details"] == [detail]
    other = prepare_request(request, NAME, NAME, options=Options(seal_key=KEY, upstream="@other"))
    assert "reasoning_details" not in other.body["turns"][1]


def test_tool_box_writes_messages_and_tools() -> None:
    def ping(a: int) -> str:
        return f"pong {a}"

    box, accumulator = ToolBox(ping), il.Accumulator(NAME)
    accumulator.add(BODY)
    accumulator.close()
    messages = box.messages(NAME, accumulator.reply(), box.run_sync(accumulator.calls))
    assert [message["role"] for message in messages] == ["assistant", "tool"]
    assert box.offer(NAME)[0]["function"]["name"] == "ping"


# ── HTTP ──────────────────────────────────────────────────────────────────────────────────────────────────────────────


def test_error_body_is_of_the_new_wire() -> None:
    assert json.loads(error_body(NAME, UnknownModel("x", ["y"]), "req_1")) == {
        "fault": "missing",
        "text": "model: no model is called 'x' (GET /v1/models lists the known models)",
        "at": "model",
        "request": "req_1",
    }


def test_trace_names_the_provider() -> None:
    record = ExchangeRecord(id="1", path="/v1/turns", wire=NAME, started=0.0, upstream_wire=NAME)
    assert _span_attributes(record)["gen_ai.provider.name"] == "acme"


def test_sdk_transport_and_agents_know_the_address() -> None:
    config = UpstreamConfig(url="http://localhost:8000", api=NAME)
    assert config.endpoint == "http://localhost:8000/v1/turns"
    assert wire_for_path("/v1/turns") == NAME
    target = AgentTarget(gateway_url="http://localhost:1", api=NAME, model="m", key="k", folder="/f")
    assert target.api_base_url == "http://localhost:1/v1"


def test_tokens_of_the_conversation_are_estimated() -> None:
    turns = [{"role": "user", "content": "What is the weather in Paris? " * 10}]
    assert estimate_tokens({"model": "m", "turns": turns}) == estimate_tokens({"model": "m", "messages": turns}) > 50


def test_openapi_document_describes_the_new_wire() -> None:
    document = openapi_document()
    assert document["paths"]["/turns"]["post"]["operationId"] == "turns"
    assert document["paths"]["/turns/count"]["post"]["operationId"] == "count_turns"
    schemas = document["components"]["schemas"]
    assert {"TurnsRequest", "TurnsReply", "AcmeError"} <= schemas.keys()
    assert {"$ref": "#/components/schemas/AcmeError"} in schemas["EitherError"]["anyOf"]
    assert "Acme Turns for clients that send `acme-version`" in schemas["EitherError"]["description"]


@asynccontextmanager
async def running_gateway(settings: Settings, demo_url: str = "") -> AsyncIterator[TestClient[Any, Any]]:
    gateway = GatewayState(LoadedSettings(settings, "", [], {}), KEY, demo_url)
    await gateway.connect()
    try:
        async with TestClient(TestServer(make_app(gateway))) as client:
            yield client
    finally:
        await gateway.close()


@asynccontextmanager
async def demo_gateway() -> AsyncIterator[TestClient[Any, Any]]:
    """Run a gateway whose upstream is the demo model, with Chat Completions."""
    url, demo = await start_demo_server(0)
    try:
        async with running_gateway(Settings(demo=True, log=Log(level="error")), url) as client:
            yield client
    finally:
        await demo.cleanup()


async def reply_text(client: TestClient[Any, Any]) -> str:
    reply = await client.post("/v1/turns", json={"model": "demo/hermes", "turns": TURNS})
    assert reply.status == 200
    text: str = (await reply.json())["choices"][0]["message"]["content"]
    return text


async def check_served_paths() -> None:
    async with demo_gateway() as client:
        assert await reply_text(client)
        counted = await client.post("/v1/turns/count", json={"model": "demo/hermes", "turns": TURNS})
        assert (await counted.json())["unit"] == "token"
        unknown_model = await client.post("/v1/turns", json={"model": "nobody/knows", "turns": TURNS})
        assert (unknown_model.status, (await unknown_model.json())["fault"]) == (404, "missing")
        unknown_path = await client.get("/v1/nothing", headers={"acme-version": "1"})
        assert (unknown_path.status, (await unknown_path.json())["fault"]) == (404, "missing")
        other_method = await (await client.get("/v1/turns")).json()
        assert other_method["fault"] == "invalid_request_error"
        assert "/v1/turns" in other_method["text"]


async def check_upstream() -> None:
    async with demo_gateway() as upstream:
        settings = Upstream(url=str(upstream.make_url("")), api=NAME)  # type: ignore[arg-type]  # `Api`: real wires only
        async with running_gateway(Settings(upstreams={"up": settings}, log=Log(level="error"))) as client:
            body = {"model": "demo/hermes", **MINIMAL_REQUESTS[MESSAGES]}
            blocks = (await (await client.post("/v1/messages", json=body)).json())["content"]
            assert [block["text"] for block in blocks if block["type"] == "text"] == [await reply_text(upstream)]
            failed = await client.post("/v1/messages", json={**body, "model": "nobody/knows"})
            assert (failed.status, (await failed.json())["type"]) == (404, "error")


def test_gateway_serves_the_new_wire() -> None:
    asyncio.run(check_served_paths())


def test_gateway_sends_requests_to_an_upstream_of_the_new_wire() -> None:
    asyncio.run(check_upstream())
