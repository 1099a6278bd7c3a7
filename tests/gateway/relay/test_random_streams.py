"""Random streams through a gateway: the client gets what a `Translator` returns for the same bytes.

However the bytes arrive, and whichever path forwards them: in the callback in which they arrive, or in the task of the
request.
"""

from __future__ import annotations

import asyncio
import json
import random
import re
from dataclasses import dataclass
from itertools import product
from typing import Any

import pytest

from interlingua.faults import apis
from interlingua.gateway.chunk_framing import frame_chunk
from interlingua.gateway.http.response_stream import ResponseStream
from interlingua.gateway.relay.upstream_request import UpstreamRequest
from interlingua.gateway.settings.schema import Api, Model, Retries, Settings, Upstream
from interlingua.translation.exchange import ReplyReceiver
from tests.support import upstream_server as up
from tests.support.cuts import random_pieces
from tests.support.gateway_in_process import run_in_process
from tests.support.pair_scenes import (
    HM,
    SECTION_OF_TWO,
    CallPart,
    F,
    G,
    Scene,
    SceneEnding,
    ScenePart,
    SceneStop,
    TextPart,
    ThinkingPart,
)
from tests.support.pair_sources import CHAT, MESSAGES, RESPONSES, STREAMS
from tests.support.raw_client import build_request
from tests.support.upstream_server import UpstreamServer

APIS = {CHAT: apis.CHAT_PATH, MESSAGES: apis.MESSAGES_PATH, RESPONSES: apis.RESPONSES_PATH}
PAIRS = list(product((CHAT, MESSAGES, RESPONSES), repeat=2))
STREAMS_PER_PAIR = 8
HEADERS = b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\ntransfer-encoding: chunked\r\n\r\n"
PAUSE_SECONDS = 0.003
"""Pause between two writes: usually each of them is a read of the gateway."""
ALPHABET = 'abc défg 😀\n"\\{}[]<|tool_call>'
DIALECTS = ("standard", "kimi_k2", "hermes")
COMPLETED_AT = re.compile(rb'"completed_at": ?[\d.]+')


@dataclass
class RandomStream:
    """One stream of an upstream: its bytes, and the writes in which it sends them."""

    scene: Scene
    wire: str
    seed: int

    def __post_init__(self) -> None:
        rng = random.Random(self.seed)
        self.data = STREAMS[self.wire](self.scene, rng.choice((4, 8, 40)))
        if rng.random() < 0.3:  # as OpenRouter and Ollama send it
            self.data = self.data.replace(b'"delta": {"content"', b'"delta": {"role": "assistant", "content"')
        events = [event + b"\n\n" for event in self.data.split(b"\n\n") if event]
        end = b"0\r\n\r\n"
        match rng.choice(("events", "chunks", "anywhere")):
            case "events":  # each event is an HTTP chunk and a write
                self.writes = [*map(frame_chunk, events), end]
            case "chunks":  # an HTTP chunk ends anywhere in an event
                pieces = random_pieces(self.data, self.seed)
                self.writes = [*(frame_chunk(piece) for piece in pieces if piece), end]
            case _:  # a write ends anywhere in an HTTP chunk
                self.writes = random_pieces(b"".join(map(frame_chunk, events)) + end, self.seed)


def random_text(rng: random.Random) -> str:
    return "".join(rng.choices(ALPHABET, k=rng.randint(1, 120)))


def random_part(rng: random.Random, number: int) -> ScenePart:
    match rng.randrange(6):
        case 0:
            return ThinkingPart(random_text(rng))
        case 1:
            arguments = json.dumps({"path": random_text(rng), "n": rng.random()}, ensure_ascii=rng.random() < 0.5)
            return CallPart(rng.choice((F.name, G.name)), arguments, f"call_{number}")
        case 2:
            return TextPart(SECTION_OF_TWO)
        case 3:
            call = json.dumps({"name": "f", "arguments": {"a": random_text(rng)}})
            return TextPart(f"<tool_call>\n{call}\n</tool_call>")
        case _:
            return TextPart(random_text(rng))


def random_stream(wire: str, seed: int) -> RandomStream:
    rng = random.Random(seed)
    parts = [TextPart("So: "), *(random_part(rng, number) for number in range(rng.randint(1, 5)))]
    if wire != CHAT and rng.random() < 0.3:
        parts.insert(0, HM)
    stop: SceneStop = "tool_calls" if any(isinstance(part, CallPart) for part in parts) else "stop"
    endings: tuple[SceneEnding, ...] = ("well", "well", "well", "error", "broken off")
    return RandomStream(Scene(f"seed {seed}", parts, stop, ending=rng.choice(endings)), wire, seed)


def unchunk(body: bytes) -> bytes:
    content = b""
    while body:
        size, _, body = body.partition(b"\r\n")
        content += body[: int(size, 16)]
        body = body[int(size, 16) + 2 :]
    return content


def settings(url: str) -> Settings:
    wires: tuple[Api, ...] = ("openai-chat", "anthropic-messages", "openai-responses")
    upstreams: dict[str, Upstream] = {
        wire: Upstream(url=url, api=wire, profile="any", retries=Retries(attempts=1)) for wire in wires
    }
    models: dict[str, Model | str] = {
        f"{wire}-{dialect}-*": Model(upstream=wire, dialect=dialect) for wire, dialect in product(wires, DIALECTS)
    }
    return Settings(upstreams=upstreams, models=models)


def stream_request(wire: str, model: str) -> bytes:
    api = APIS[wire]
    tools = [
        tool for name in ("f", "g", "get_weather") for tool in apis.tools_field(api, name, {"type": "object"})["tools"]
    ]
    return build_request(f"/v1/{api}", json.dumps(apis.minimal_body(api, model, tools=tools)).encode())


def with_fixed_time(reply: bytes) -> bytes:
    return COMPLETED_AT.sub(b'"completed_at":0', reply)


@pytest.mark.parametrize(("source", "target"), PAIRS)
def test_client_gets_what_a_translator_returns(
    upstream: UpstreamServer, monkeypatch: pytest.MonkeyPatch, source: str, target: str
) -> None:
    expected: dict[str, bytes] = {}
    direct_writes = 0
    streams = {
        f"{source}-{DIALECTS[number % len(DIALECTS)]}-{target}-{number}": random_stream(source, number)
        for number in range(STREAMS_PER_PAIR)
    }
    receive, write_delta = UpstreamRequest.receive, ResponseStream.write_delta

    def translate_and_receive(request: UpstreamRequest, *args: Any) -> ReplyReceiver:
        """Translate the whole stream at once with a receiver of its own."""
        receiver = receive(request, *args)
        expected[request.route.model] = receiver.feed(streams[request.route.model].data) + receiver.close()
        return receive(request, *args)

    def count_and_write(stream: ResponseStream, data: bytes) -> bool:
        nonlocal direct_writes
        direct_writes += 1
        return write_delta(stream, data)

    monkeypatch.setattr(UpstreamRequest, "receive", translate_and_receive)
    monkeypatch.setattr(ResponseStream, "write_delta", count_and_write)
    for model, stream in streams.items():
        upstream.add(model, up.send(HEADERS), up.send_pieces(stream.writes, PAUSE_SECONDS))

    async def main() -> list[bytes]:
        async with asyncio.timeout(60), run_in_process(settings(upstream.url)) as gateway:
            return await asyncio.gather(*(gateway.send(stream_request(target, model)) for model in streams))

    for (model, stream), response in zip(streams.items(), asyncio.run(main()), strict=True):
        received = unchunk(response.partition(b"\r\n\r\n")[2])
        assert with_fixed_time(received) == with_fixed_time(expected[model]), stream
    assert direct_writes >= 5 * STREAMS_PER_PAIR
