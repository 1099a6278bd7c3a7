"""The LiteLLM callback in LiteLLM's proxy, with a scripted upstream and HTTP requests. `make engines` installs it."""

from __future__ import annotations

import json
import os
import socket
import subprocess
import time
import urllib.request
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import interlingua as il
from engines.environments import NotInstalled, python_of
from tests.support import upstream_server as up
from tests.support.harness import tool
from tests.support.upstream_server import UpstreamServer

pytestmark = pytest.mark.slow

START_SECONDS = 180
CALL = (
    "<|tool_calls_section_begin|><|tool_call_begin|>functions.ls:0<|tool_call_argument_begin|>"
    '{"path": "."}<|tool_call_end|><|tool_calls_section_end|>'
)
TEXTS = ["<think>Look.</think>", "I will.", CALL[:50], CALL[50:90], CALL[90:]]
KEY = f"sk-{os.urandom(24).hex()}"
MODEL = "moonshotai/kimi-k2.5"
CONFIG = """
model_list:
  - model_name: my-model
    litellm_params:
      model: openai/{model}
      api_base: http://127.0.0.1:{port}/v1
      api_key: any
      extra_body: {{tool_choice: none, skip_special_tokens: false}}
litellm_settings:
  callbacks: ["interlingua.integrations.litellm_callback.callback"]
general_settings: {{master_key: "{key}"}}
"""


@pytest.fixture(scope="module")
def proxy(upstream: UpstreamServer, tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    try:
        python = python_of("litellm")
    except NotInstalled as error:
        pytest.skip(str(error))
    folder = tmp_path_factory.mktemp("litellm")
    (folder / "config.yaml").write_text(CONFIG.format(model=MODEL, port=upstream.port, key=KEY), encoding="utf-8")
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    command = [str(python.parent / "litellm"), "--config", str(folder / "config.yaml"), "--host", "127.0.0.1"]
    with (folder / "log").open("wb") as log:
        process = subprocess.Popen(
            [*command, "--port", str(port)],
            stdout=log,
            stderr=subprocess.STDOUT,
            env={**os.environ, "LITELLM_LOCAL_MODEL_COST_MAP": "True", "LITELLM_TELEMETRY": "False"},
        )
        try:
            _wait_until_ready(f"http://127.0.0.1:{port}", process, folder / "log")
            yield f"http://127.0.0.1:{port}"
        finally:
            process.terminate()
            process.wait(timeout=30)


def _wait_until_ready(base: str, process: subprocess.Popen[bytes], log: Path) -> None:
    deadline = time.monotonic() + START_SECONDS
    while time.monotonic() < deadline and process.poll() is None:
        try:
            with urllib.request.urlopen(f"{base}/health/liveliness", timeout=5):
                return
        except OSError:
            time.sleep(0.5)
    raise AssertionError(log.read_text(encoding="utf-8", errors="replace")[-3000:])


def send(base: str, **fields: Any) -> bytes:
    body = {"model": "my-model", "messages": [{"role": "user", "content": "hi"}], "tools": [tool("ls", ["path"])]}
    request = urllib.request.Request(
        f"{base}/v1/chat/completions",
        json.dumps({**body, **fields}).encode(),
        {"content-type": "application/json", "authorization": f"Bearer {KEY}"},
    )
    with urllib.request.urlopen(request, timeout=60) as response:
        data: bytes = response.read()
    return data


def check(reply: il.Reply) -> None:
    assert reply.reasoning == "Look."
    assert reply.text == "I will."
    assert [(call.name, call.arguments) for call in reply.calls] == [("ls", '{"path": "."}')]
    assert reply.stop_reason == "tool_calls"


def test_streamed_reply(proxy: str, upstream: UpstreamServer) -> None:
    upstream.add(MODEL, up.chat_stream(*TEXTS))
    accumulator = il.Accumulator("openai-chat")
    accumulator.add(send(proxy, stream=True))
    check(accumulator.reply())


def test_complete_reply(proxy: str, upstream: UpstreamServer) -> None:
    message = {"role": "assistant", "content": "".join(TEXTS)}
    body = {
        "id": "chatcmpl-1",
        "object": "chat.completion",
        "created": 1,
        "model": MODEL,
        "choices": [{"index": 0, "message": message, "finish_reason": "stop"}],
        "usage": {"prompt_tokens": 1, "completion_tokens": 2, "total_tokens": 3},
    }
    upstream.add(MODEL, up.send_response("200 OK", json.dumps(body).encode()))
    reply = json.loads(send(proxy))
    assert reply["usage"]["total_tokens"] == 3
    (choice,) = reply["choices"]
    assert choice["finish_reason"] == "tool_calls"
    assert choice["message"]["reasoning_content"] == "Look."
    assert choice["message"]["content"] == "I will."
    (call,) = choice["message"]["tool_calls"]
    assert call["function"] == {"name": "ls", "arguments": '{"path": "."}'}
    request = upstream.wait_for_requests(MODEL)[-1].body
    assert (request["tool_choice"], request["skip_special_tokens"]) == ("none", False)


def test_text_of_a_request_without_tools_stays(proxy: str, upstream: UpstreamServer) -> None:
    upstream.add(MODEL, up.chat_stream("Hello ", "there."))
    accumulator = il.Accumulator("openai-chat")
    accumulator.add(send(proxy, stream=True, tools=None))
    assert (accumulator.text, accumulator.reply().stop_reason) == ("Hello there.", "stop")
