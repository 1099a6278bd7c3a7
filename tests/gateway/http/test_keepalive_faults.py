"""Keep-alive frames in silent streams (row 2 of the fault table): replies stay the same."""

from __future__ import annotations

import re
import time
from collections.abc import Iterator
from typing import Any

import anthropic
import openai
import pytest

from tests.support import anthropic_scenarios as messages
from tests.support import responses_scenarios as responses
from tests.support import upstream_server as up
from tests.support.gateway_process import run_gateway
from tests.support.gateway_stage import APIS, CHAT, MESSAGES, RESPONSES, GatewayStage, call, request_fields

CONFIG = """
log: {{format: json}}
keepalive: 0.2
upstreams:
  chat: {{url: "{url}"}}
  claude: {{url: "{url}", api: anthropic-messages}}
  responses: {{url: "{url}", api: openai-responses}}
default: chat
models: {{messages-*: {{upstream: claude}}, responses-*: {{upstream: responses}}}}
"""
KEEPALIVES = {
    CHAT: b": keep-alive\n\n",
    MESSAGES: b'event: ping\ndata: {"type": "ping"}\n\n',
    RESPONSES: b": keep-alive\n\n",
}
FINISH = up.delta(finish="tool_calls") + up.DONE
CHAT_PIECES = [up.ROLE + up.delta("Let me see."), call('{"path": ', name="read"), call('"a"}') + FINISH]
MESSAGE = messages.sse(
    messages.message_start(),
    *messages.text_block(0, "Let me see."),
    *messages.tool_use_block(1, '{"path": "a"}', name="read"),
    *messages.message_end("tool_use"),
)
RESPONSE = responses.response_stream(
    responses.message_events(["Let me see."]), responses.call_events(['{"path": "a"}'], index=1, name="read")
)


def thirds(data: bytes) -> list[bytes]:
    """Split the data into three pieces, in the middle of events."""
    size = len(data) // 3
    return [data[:size], data[size : 2 * size], data[2 * size :]]


PIECES = {
    "in thirds": thirds(b"".join(CHAT_PIECES)),
    "in frames": CHAT_PIECES,
    "messages-": thirds(MESSAGE),
    "responses-": thirds(RESPONSE),
}


@pytest.fixture(scope="module")
def env() -> Iterator[GatewayStage]:
    upstream = up.UpstreamServer()
    try:
        with run_gateway(config=CONFIG.format(url=upstream.url)) as gateway:
            yield GatewayStage(upstream, gateway)
    finally:
        upstream.stop()


@pytest.mark.parametrize("what", PIECES)
def test_02_keepalives_are_sent_between_frames(env: GatewayStage, what: str) -> None:
    for api, view in env.send_all(
        env.add_scripts(what, (up.send_headers(), up.send_pieces(PIECES[what], 0.9)))
    ).items():
        assert (view.text, view.calls, view.error) == ("Let me see.", [("read", '{"path": "a"}')], "")
        assert view.ended
        first = view.body.index(b"Let")
        assert view.body.count(KEEPALIVES[api], first) >= 3
        for keepalive_frame in re.finditer(re.escape(KEEPALIVES[api]), view.body):
            assert view.body[: keepalive_frame.start()].endswith(b"\n\n") or not keepalive_frame.start()


def test_02_no_keepalives_while_content_arrives(env: GatewayStage) -> None:
    pieces = [up.ROLE, *[up.delta("word ")] * 30, up.delta(finish="stop") + up.DONE]
    for view in env.send_all(env.add_scripts("talks", (up.send_headers(), up.send_pieces(pieces, 0.03)))).values():
        assert b"keep-alive" not in view.body[view.body.index(b"word") :]
        assert b"ping" not in view.body


def sdk_tool(env: GatewayStage, api: str, model: str) -> Any:
    """Return the arguments of the call as the official SDK assembles them."""
    if api == MESSAGES:
        client = anthropic.Anthropic(api_key="none", base_url=env.gateway.base, max_retries=0)
        with client.messages.stream(model=model, **request_fields(api)) as stream:
            return stream.get_final_message().content[1].input  # type: ignore[union-attr]
    openai_client = openai.OpenAI(api_key="none", base_url=f"{env.gateway.base}/v1", max_retries=0)
    if api == CHAT:
        with openai_client.chat.completions.stream(model=model, **request_fields(api)) as chat:
            return chat.get_final_completion().choices[0].message.tool_calls[0].function.arguments  # type: ignore[index]
    with openai_client.responses.stream(model=model, **request_fields(api)) as response:
        return response.get_final_response().output[1].arguments  # type: ignore[union-attr]


@pytest.mark.parametrize("api", APIS)
def test_02_official_sdks_accept_keepalives(env: GatewayStage, api: str) -> None:
    model = env.add_scripts("in frames for an SDK", (up.send_headers(), up.send_pieces(CHAT_PIECES, 0.9)))
    began = time.monotonic()
    got = sdk_tool(env, api, model)
    assert got == ({"path": "a"} if api == MESSAGES else '{"path": "a"}')
    assert time.monotonic() - began > 1.5
