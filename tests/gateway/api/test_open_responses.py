"""Behaviours of the Open Responses specification, over demo models of six dialects, streamed and whole.

Each response object and each event is checked against the schema (`tests/support/open_responses.py`).
"""

from __future__ import annotations

import asyncio
import base64
import json
import struct
import zlib
from collections.abc import Awaitable, Callable, Iterator
from typing import Any

import aiohttp
import pytest

from tests.support.gateway_process import GatewayProcess, run_gateway
from tests.support.open_responses import COMPACTION, ERROR, RESPONSE, check_schema, check_stream

Json = dict[str, Any]

DIALECTS = ("kimi_k2", "hermes", "qwen3_coder", "glm45", "deepseek_v31", "harmony")
TURN_TIMEOUT_SECONDS = 30.0
WEATHER = {
    "type": "function",
    "name": "get_weather",
    "description": "Weather of a place",
    "parameters": {"type": "object", "properties": {"city": {"type": "string"}}, "required": ["city"]},
}


@pytest.fixture(scope="module")
def gateway() -> Iterator[GatewayProcess]:
    with run_gateway("--demo") as process:
        yield process


def user(text: str) -> Json:
    return {"type": "message", "role": "user", "content": text}


def assistant(text: str, **fields: Any) -> Json:
    return {"type": "message", "role": "assistant", "content": text, **fields}


def red_png() -> str:
    """Return a small image as a data URL."""

    def chunk(kind: bytes, data: bytes) -> bytes:
        return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))

    header = struct.pack(">IIBBBBB", 8, 8, 8, 2, 0, 0, 0)
    pixels = zlib.compress((b"\0" + b"\xff\0\0" * 8) * 8)
    png = b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", header) + chunk(b"IDAT", pixels) + chunk(b"IEND", b"")
    return f"data:image/png;base64,{base64.b64encode(png).decode()}"


class Client:
    """Client of one gateway, with one model."""

    def __init__(self, session: aiohttp.ClientSession, base: str, dialect: str, stream: bool) -> None:
        self.session = session
        self.url = f"{base}/v1/responses"
        self.model = f"demo/{dialect}"
        self.stream = stream

    async def create(self, **fields: Any) -> Json:
        """Return a response, after checks of all that the gateway has sent."""
        streaming = {"stream": True} if self.stream else {}
        async with self.session.post(self.url, json={"model": self.model, **fields, **streaming}) as reply:
            data = await reply.read()
            assert reply.status == 200, data
            if not self.stream:
                response: Json = json.loads(data)
                check_schema(response, RESPONSE)
                return response
            assert reply.content_type == "text/event-stream"
            return check_stream(read_events(data))

    async def complete(self, **fields: Any) -> Json:
        """Return a response that is complete and has output."""
        return check_complete(await self.create(**fields))

    async def connect(self) -> Socket:
        return Socket(await self.session.ws_connect(self.url), self.model)


class Socket:
    """WebSocket to the gateway."""

    def __init__(self, socket: aiohttp.ClientWebSocketResponse, model: str) -> None:
        self.socket = socket
        self.model = model

    async def turn(self, **fields: Any) -> list[Json]:
        """Send a request, and return all events up to the end of its response."""
        await self.socket.send_json({"type": "response.create", "model": self.model, **fields})
        events: list[Json] = []
        while not events or events[-1]["type"] not in ("response.completed", "response.failed", "error"):
            events.append(json.loads(await asyncio.wait_for(self.socket.receive_str(), TURN_TIMEOUT_SECONDS)))
        return events

    async def complete(self, **fields: Any) -> Json:
        return check_complete(check_stream(await self.turn(**fields)))

    async def fail(self, **fields: Any) -> Json:
        """Return the error that answers a request."""
        events = await self.turn(**fields)
        assert [event["type"] for event in events] == ["error"]
        assert events[0]["status"] >= 400
        assert isinstance(events[0]["error"]["code"], str)
        error: Json = events[0]["error"]
        return error


def read_events(data: bytes) -> list[Json]:
    """Return the events of a stream as the simplest reader reads them: one line of data in each block."""
    blocks = [block.split(b"\n") for block in data.split(b"\n\n") if block and not block.startswith(b":")]
    events = []
    for name, line in blocks:
        event: Json = json.loads(line.removeprefix(b"data: "))
        assert name == f"event: {event['type']}".encode()
        events.append(event)
    return events


def check_complete(response: Json) -> Json:
    assert response["status"] == "completed"
    assert response["completed_at"] >= response["created_at"]
    assert response["output"]
    return response


def texts(response: Json) -> str:
    items = [item for item in response["output"] if item["type"] == "message"]
    return "".join(part["text"] for item in items for part in item["content"])


# ── behaviours over HTTP ──────────────────────────────────────────────────────────────────────────────────────────


async def basic_response(client: Client) -> None:
    response = await client.complete(input=[user("Say hello.")])
    assert texts(response)
    assert [item.get("phase") for item in response["output"] if item["type"] == "message"] == ["final_answer"]


async def text_input(client: Client) -> None:
    assert texts(await client.complete(input="Say hello.", instructions="Be brief."))


async def system_prompt(client: Client) -> None:
    system = {"type": "message", "role": "system", "content": "You are a pirate."}
    await client.complete(input=[system, user("Say hello.")])


async def multi_turn(client: Client) -> None:
    await client.complete(input=[user("My name is Alice."), assistant("Hello Alice."), user("What is my name?")])


async def assistant_phase(client: Client) -> None:
    history = [
        user("Look at the file."),
        assistant("I will read it.", phase="commentary"),
        assistant("It is empty.", phase="final_answer"),
    ]
    await client.complete(input=[*history, user("Thanks.")])


async def image_input(client: Client) -> None:
    content = [{"type": "input_text", "text": "What is this?"}, {"type": "input_image", "image_url": red_png()}]
    await client.complete(input=[{"type": "message", "role": "user", "content": content}])


async def tool_calling(client: Client) -> None:
    """A call, and a second turn with its result."""
    prompt = user("What is the weather in San Francisco?")
    response = await client.complete(input=[prompt], tools=[WEATHER])
    call = next(item for item in response["output"] if item["type"] == "function_call")
    assert call["status"] == "completed"
    assert json.loads(call["arguments"])["city"]
    assert [item["phase"] for item in response["output"] if item["type"] == "message"] in ([], ["commentary"])
    assert response["tools"] == [{**WEATHER, "strict": None}]
    result = {"type": "function_call_output", "call_id": call["call_id"], "output": "sunny"}
    answer = await client.complete(input=[prompt, *response["output"], result], tools=[WEATHER])
    assert "sunny" in texts(answer)


async def forced_tool(client: Client) -> None:
    choice = {"type": "function", "name": "get_weather"}
    response = await client.complete(input=[user("Hello.")], tools=[WEATHER], tool_choice=choice)
    assert response["tool_choice"] == choice
    assert [item["name"] for item in response["output"] if item["type"] == "function_call"] == ["get_weather"]


async def forbidden_tool(client: Client) -> None:
    prompt = user("What is the weather in San Francisco?")
    response = await client.complete(input=[prompt], tools=[WEATHER], tool_choice="none")
    assert not [item for item in response["output"] if item["type"] == "function_call"]


async def continuation(client: Client) -> None:
    first = await client.complete(input=[user("My name is Alice.")])
    assert first["store"] is True
    second = await client.complete(input=[user("What is my name?")], previous_response_id=first["id"])
    assert second["previous_response_id"] == first["id"]


async def unknown_continuation(client: Client) -> None:
    body = {"model": client.model, "input": "Hello.", "previous_response_id": "resp_unknown"}
    async with client.session.post(client.url, json=body) as reply:
        error = (await reply.json())["error"]
        assert reply.status == 400
    check_schema(error, ERROR)
    assert (error["code"], error["param"]) == ("previous_response_not_found", "previous_response_id")


async def echoed_settings(client: Client) -> None:
    """Settings are told back, the others have their defaults."""
    sent: Json = {
        "instructions": "Be brief. " * 200,
        "max_output_tokens": 4000,
        "max_tool_calls": 3,
        "metadata": {"topic": "demo"},
        "parallel_tool_calls": False,
        "prompt_cache_key": "key-1",
        "safety_identifier": "user-1",
        "store": False,
        "temperature": 0.5,
        "text": {"format": {"type": "text"}, "verbosity": "low"},
        "top_p": 0.9,
        "truncation": "auto",
        "user": "user-1",
    }
    response = await client.complete(
        input="Say hello.",
        reasoning={"effort": "low"},
        service_tier="auto",
        tools=[WEATHER],
        tool_choice="auto",
        **sent,
    )
    assert {name: response[name] for name in sent} == sent
    assert response["reasoning"] == {"effort": "low", "summary": None}
    assert (response["service_tier"], response["background"], response["presence_penalty"]) == ("default", False, 0.0)


async def compact_response(client: Client) -> None:
    history = [user("My name is Alice."), assistant("Hello Alice."), user("Remember it.")]
    body = {"model": client.model, "input": history, "prompt_cache_key": "key-1"}
    async with client.session.post(f"{client.url}/compact", json=body) as reply:
        compaction = await reply.json()
        assert reply.status == 200, compaction
    check_schema(compaction, COMPACTION)
    assert [item["type"] for item in compaction["output"]] == ["compaction"]
    await client.complete(input=[*compaction["output"], user("What is my name?")], tools=[])


async def compaction_trigger(client: Client) -> None:
    history = [user("My name is Alice."), assistant("Hello Alice."), {"type": "compaction_trigger"}]
    response = await client.complete(input=history, temperature=0.5, tools=[WEATHER])
    assert [item["type"] for item in response["output"]] == ["compaction"]
    assert (response["temperature"], response["tool_choice"]) == (0.5, "auto")


async def compact_missing_model(client: Client) -> None:
    async with client.session.post(f"{client.url}/compact", json={"input": "Hello."}) as reply:
        assert reply.status in (400, 422)
        check_schema((await reply.json())["error"], ERROR)


async def background(client: Client) -> None:
    """A response in the background is complete in all of its states."""
    if client.stream:
        assert (await client.complete(input="Say hello.", background=True))["background"] is True
        return
    response = await client.create(input="Say hello.", background=True, temperature=0.5)
    for _ in range(300):
        async with client.session.get(f"{client.url}/{response['id']}") as reply:
            response = await reply.json()
        check_schema(response, RESPONSE)
        if response["status"] not in ("queued", "in_progress"):
            break
        await asyncio.sleep(0.1)
    assert (response["background"], response["store"], response["temperature"]) == (True, True, 0.5)
    check_complete(response)


# ── behaviours over a WebSocket ───────────────────────────────────────────────────────────────────────────────────


async def websocket_response(client: Client) -> None:
    socket = await client.connect()
    assert texts(await socket.complete(input=[user("Say hello.")]))


async def websocket_sequential_responses(client: Client) -> None:
    socket = await client.connect()
    for _ in range(2):
        await socket.complete(input=[user("Say hello.")], store=False)


async def websocket_continuation(client: Client) -> None:
    socket = await client.connect()
    first = await socket.complete(input=[user("My name is Alice.")], store=False)
    second = await socket.complete(
        input=[user("What is my name?")], store=False, previous_response_id=first["id"], tools=[WEATHER]
    )
    assert second["previous_response_id"] == first["id"]
    assert second["store"] is False


async def websocket_reconnect_store_false_recovery(client: Client) -> None:
    first = await (await client.connect()).complete(input=[user("My name is Alice.")], store=False)
    socket = await client.connect()
    error = await socket.fail(input=[user("My name?")], store=False, previous_response_id=first["id"])
    assert error["code"] == "previous_response_not_found"
    await socket.complete(input=[user("Say hello.")], store=False)


async def websocket_previous_response_not_found(client: Client) -> None:
    socket = await client.connect()
    error = await socket.fail(input=[user("Hello.")], store=False, previous_response_id="resp_unknown")
    assert error["code"] == "previous_response_not_found"


async def websocket_failed_continuation_evicts_cache(client: Client) -> None:
    socket = await client.connect()
    first = await socket.complete(input=[user("Say hello.")], store=False)
    unknown_result = {"type": "function_call_output", "call_id": "call_unknown", "output": "1"}
    await socket.fail(input=[unknown_result], store=False, previous_response_id=first["id"])
    error = await socket.fail(input=[user("And now?")], store=False, previous_response_id=first["id"])
    assert error["code"] == "previous_response_not_found"


async def websocket_compact_new_chain(client: Client) -> None:
    body = {"model": client.model, "input": [user("My name is Alice."), assistant("Hello Alice.")]}
    async with client.session.post(f"{client.url}/compact", json=body) as reply:
        output = (await reply.json())["output"]
    socket = await client.connect()
    await socket.complete(input=[*output, user("What is my name?")], tools=[], store=False)


async def websocket_warm_up(client: Client) -> None:
    """A request that generates nothing is answered with complete objects, and can be continued."""
    socket = await client.connect()
    events = await socket.turn(input=[user("My name is Alice.")], generate=False, store=False, tools=[WEATHER])
    for event in events:
        check_schema(event["response"], RESPONSE)
    await socket.complete(
        input=[user("What is my name?")], store=False, previous_response_id=events[-1]["response"]["id"]
    )


Behaviour = Callable[[Client], Awaitable[None]]
ON_HTTP: list[Behaviour] = [
    *(basic_response, text_input, system_prompt, multi_turn, assistant_phase, image_input, tool_calling),
    *(forced_tool, forbidden_tool, continuation, echoed_settings, compact_response, compaction_trigger, background),
]
"""Behaviours with a response that can be streamed or whole."""
OTHERS: list[Behaviour] = [
    *(unknown_continuation, compact_missing_model, websocket_response, websocket_sequential_responses),
    *(websocket_continuation, websocket_reconnect_store_false_recovery, websocket_previous_response_not_found),
    *(websocket_failed_continuation_evicts_cache, websocket_compact_new_chain, websocket_warm_up),
]


ROWS = [
    *((behaviour, dialect, stream) for behaviour in ON_HTTP for dialect in DIALECTS for stream in (True, False)),
    *((behaviour, dialect, True) for behaviour in OTHERS for dialect in DIALECTS),
]


@pytest.mark.one_row_in(5)  # each behaviour has six rows or more
@pytest.mark.parametrize(("behaviour", "dialect", "stream"), ROWS, ids=lambda value: getattr(value, "__name__", None))
def test_behaviour(gateway: GatewayProcess, behaviour: Behaviour, dialect: str, stream: bool) -> None:
    async def run() -> None:
        async with aiohttp.ClientSession() as session:
            await behaviour(Client(session, gateway.base, dialect, stream))

    asyncio.run(run())


def test_all_behaviours_at_once(gateway: GatewayProcess) -> None:
    async def run() -> None:
        async with aiohttp.ClientSession() as session:
            client = Client(session, gateway.base, "kimi_k2", True)
            await asyncio.gather(*(behaviour(client) for behaviour in (*ON_HTTP, *OTHERS)))

    asyncio.run(run())
