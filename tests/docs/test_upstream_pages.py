"""Tests of docs/upstreams: each settings block works, with a fake upstream on loopback."""

from __future__ import annotations

import json
import re
import urllib.request
from typing import Any
from urllib.parse import urlsplit

import pytest
import yaml

from interlingua.core.reply import Call, Reply
from interlingua.dialects.native_text import render
from interlingua.dialects.registry import dialect_for
from interlingua.upstreams import list_profiles
from tests.support import upstream_server as up
from tests.support.gateway_process import run_gateway
from tests.support.paths import ROOT
from tests.support.upstream_server import UpstreamServer

PAGES = sorted((ROOT / "docs" / "upstreams").glob("*.md"))
SETTINGS = [
    pytest.param(page.stem, block, id=f"{page.stem}-{number}")
    for page in PAGES
    for number, block in enumerate(re.findall(r"^```yaml\n(.*?)^```", page.read_text(encoding="utf-8"), re.M | re.S))
]
TOOL = {"name": "read", "parameters": {"type": "object", "properties": {"path": {"type": "string"}}}}
REPLY = Reply(parts=[Call("", "read", '{"path": "a"}'), Call("", "read", '{"path": "b"}')])


def test_common_upstreams_have_a_page() -> None:
    expected = {"openrouter", "moonshot", "deepseek", "vllm", "sglang", "llama.cpp", "ollama"}
    assert (
        expected <= {page.name.removesuffix(".md") for page in PAGES} <= {profile.name for profile in list_profiles()}
    )


@pytest.mark.one_row_in(3)
@pytest.mark.parametrize(("name", "text"), SETTINGS)
def test_settings_give_tool_calls_to_the_client(name: str, text: str, upstream: UpstreamServer) -> None:
    settings = yaml.safe_load(re.sub(r"\$\{\w+\}", "sk-from-the-page", text))
    (entry,) = settings["upstreams"].values()
    url = urlsplit(entry["url"])
    entry["url"] = f"http://127.0.0.1:{upstream.port}{url.path}"
    entry.setdefault("profile", name)  # the real address would identify the profile
    client, model = next(iter(settings["models"].items()))
    upstream_model = model.get("model", client)
    dialect = dialect_for(upstream_model) if "dialect" not in entry else dialect_for(entry["dialect"].replace("_", "-"))
    upstream.add(upstream_model, *_reply_steps(dialect.name))
    with run_gateway(config=yaml.safe_dump(settings)) as gateway:
        reply = _send(gateway.base, client)
    request = upstream.wait_for_requests(upstream_model)[-1]
    assert request.path == f"{url.path}/chat/completions"
    assert request.headers.get("authorization") == ("Bearer sk-from-the-page" if "key" in entry else None)
    assert entry.get("extra", {}).items() <= request.body.items()
    assert [tool["function"]["name"] for tool in request.body["tools"]] == ["read"]
    calls = [call["function"] for call in reply["choices"][0]["message"]["tool_calls"]]
    assert [(call["name"], json.loads(call["arguments"])) for call in calls] == [
        ("read", {"path": "a"}),
        ("read", {"path": "b"}),
    ]
    assert reply["choices"][0]["finish_reason"] == "tool_calls"
    assert not reply["choices"][0]["message"]["content"]


def _reply_steps(dialect: str) -> tuple[up.Step, ...]:
    """Return the steps that send the reply as the model writes it; as structured calls, if it has no native text."""
    if dialect != "standard":
        return (up.chat_stream(*render(REPLY, dialect=dialect), finish="stop"),)
    calls = [up.call(call.arguments, index, "read") for index, call in enumerate(REPLY.calls)]
    return up.stream_response(b"".join([up.ROLE, *calls, up.delta(finish="tool_calls"), up.DONE]))


def _send(base: str, model: str) -> Any:
    body = {
        "model": model,
        "messages": [{"role": "user", "content": "hi"}],
        "tools": [{"type": "function", "function": TOOL}],
    }
    request = urllib.request.Request(
        f"{base}/v1/chat/completions", json.dumps(body).encode(), {"content-type": "application/json"}
    )
    with urllib.request.urlopen(request, timeout=20) as response:
        return json.loads(response.read())
