"""Clients of a gateway on real sockets, for all three APIs, with one form of view and the log entry of each request.

with stage() as on:
    model = on.add_scripts("cut", up.chat_stream("Hel", finish=None, done=False))
    view = on.send(model, MESSAGES)
    view.text, view.calls, view.error, view.log["outcome"]
"""

from __future__ import annotations

import json
import urllib.error
import urllib.request
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

from interlingua.faults.apis import APIS
from interlingua.faults.apis import CHAT_PATH as CHAT
from interlingua.faults.apis import MESSAGES_PATH as MESSAGES
from interlingua.faults.apis import RESPONSES_PATH as RESPONSES
from interlingua.faults.checker.client_view import ClientView, read_into_view
from interlingua.faults.upstream.chat_chunks import call
from interlingua.faults.upstream.script import send_chunked, stream_response, stream_then_reset
from tests.support.gateway_process import GatewayProcess, run_gateway
from tests.support.upstream_server import Step, UpstreamServer

__all__ = [
    "APIS",
    "CHAT",
    "MESSAGES",
    "RESPONSES",
    "GatewayStage",
    "LoggedClientView",
    "call",
    "request_fields",
    "send_chunked",
    "stage",
    "stream_response",
    "stream_then_reset",
]

KEY = "sk-upstream-0123456789abcdef"
TOOL = {"name": "read", "description": "", "parameters": {"type": "object", "properties": {"path": {"type": "string"}}}}

UPSTREAM_TEMPLATE = """
  {name}:
    url: {url}
    api: {api}
    key: {key}
    timeouts: {{connect: 2, first_event: {seconds}, idle: {seconds}, total: {seconds}}}
    retries: {{attempts: 2, backoff: 0.02, longest: 1, budget: 1}}"""
CONFIG_TEMPLATE = """
log: {{format: json}}
keepalive: 0.4
upstreams:{upstreams}
default: chat
models:
  messages-*: {{upstream: claude}}
  responses-*: {{upstream: responses}}
  hasty-*: {{upstream: hasty}}
  hasty-whole-*: {{upstream: hasty, delivery: whole}}
  whole-*: {{upstream: chat, delivery: whole}}
  nobody: {{upstream: nobody}}
  nobody-then-second: {{upstream: nobody, model: first, fallback: [second]}}
  first-then-second: {{upstream: chat, model: first, fallback: [second]}}
  busy-then-second: {{upstream: chat, model: 11-first, fallback: [second]}}
  second: {{upstream: other}}
"""
TIMEOUT_SECONDS, HASTY_TIMEOUT_SECONDS = 15, 1.2
"""Only models `hasty-*` have a short timeout, because a busy machine can take seconds for a reply."""
UNREACHABLE_URL = "http://127.0.0.1:9/v1"


@dataclass
class LoggedClientView(ClientView):
    """A client's view of a reply, and the log entry of the request."""

    log: dict[str, Any] = field(default_factory=dict)
    estimated: bool = False
    """True if the usage is estimated. That finding is removed from `log`, because most upstreams here send no usage."""


@dataclass
class GatewayStage:
    upstream: UpstreamServer
    gateway: GatewayProcess

    def add_scripts(self, model: str, *scripts: Step | tuple[Step, ...]) -> str:
        """Add scripts of the upstream for a model, one for each request. Returns the model."""
        for script in scripts:
            self.upstream.add(model, *(script if isinstance(script, tuple) else (script,)))
        return model

    def send(self, model: str, api: str = CHAT, stream: bool = True, **fields: Any) -> LoggedClientView:
        body = {"model": model, "stream": stream, **request_fields(api), **fields}
        request = urllib.request.Request(
            f"{self.gateway.base}/v1/{api}", json.dumps(body).encode(), {"content-type": "application/json"}
        )
        try:
            with urllib.request.urlopen(request, timeout=20) as response:
                view = LoggedClientView(
                    response.status, {k.lower(): v for k, v in response.headers.items()}, response.read()
                )
        except urllib.error.HTTPError as error:
            view = LoggedClientView(error.code, {k.lower(): v for k, v in error.headers.items()}, error.read())
        read_into_view(view, api)
        assert not view.violations + view.deviations, (view.violations, view.deviations, view.body[-500:])
        view.log = self.log_entry(view.headers["x-interlingua-id"])
        view.estimated = view.log["findings"].pop("usage-estimated", 0) == 1
        return view

    def send_all(self, model: str, stream: bool = True) -> dict[str, LoggedClientView]:
        """Send the request with one client of each API at the same time."""
        with ThreadPoolExecutor(len(APIS)) as pool:
            return dict(zip(APIS, pool.map(lambda api: self.send(model, api, stream), APIS), strict=True))

    def log_entry(self, id: str) -> dict[str, Any]:
        """Return the log entry of this request."""
        text = self.gateway.wait_for_log(f'"message": "request", "id": "{id}"[^\n]*\n')
        entry: dict[str, Any] = json.loads(next(line for line in text.splitlines() if f'"id": "{id}"' in line))
        return entry


@contextmanager
def stage() -> Iterator[GatewayStage]:
    upstream = UpstreamServer()
    try:
        with run_gateway(config=_config(upstream.url)) as gateway:
            yield GatewayStage(upstream, gateway)
    finally:
        upstream.stop()


def _config(url: str) -> str:
    apis = {
        "chat": "openai-chat",
        "other": "openai-chat",
        "hasty": "openai-chat",
        "claude": "anthropic-messages",
        "responses": "openai-responses",
        "nobody": "openai-chat",
    }
    upstreams = [
        UPSTREAM_TEMPLATE.format(
            name=name,
            url=UNREACHABLE_URL if name == "nobody" else url,
            api=api,
            key=KEY,
            seconds=HASTY_TIMEOUT_SECONDS if name == "hasty" else TIMEOUT_SECONDS,
        )
        for name, api in apis.items()
    ]
    return CONFIG_TEMPLATE.format(upstreams="".join(upstreams))


def request_fields(api: str) -> dict[str, Any]:
    """Return the required fields of each API, and one tool."""
    if api == RESPONSES:
        return {"input": "hi", "tools": [{"type": "function", **TOOL}]}
    messages = [{"role": "user", "content": "hi"}]
    if api == CHAT:
        return {"messages": messages, "tools": [{"type": "function", "function": TOOL}]}
    tool = {"name": TOOL["name"], "input_schema": TOOL["parameters"]}
    return {"messages": messages, "max_tokens": 100, "tools": [tool]}
