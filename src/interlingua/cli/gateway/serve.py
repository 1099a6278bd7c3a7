"""`interlingua serve`: the gateway."""

from __future__ import annotations

import argparse
import os

from interlingua.agents import AGENTS, Agent, Target, by_hand
from interlingua.cli.common import console as io
from interlingua.cli.common import gateway_options as serve_options
from interlingua.gateway.processes import systemd_notify as notify
from interlingua.gateway.routing.routes import routes_for
from interlingua.gateway.settings.loader import Loaded
from interlingua.gateway.settings.schema import Settings
from interlingua.gateway.settings.signing_key import kept_key

NAME = "serve"
HELP = "the gateway: point an agent at it, and its tool calls work"
DESCRIPTION = """\
Listens on loopback and answers Chat Completions, Messages and Responses, in
front of upstreams that speak any of the three. What models write as text
becomes the tool calls that the client's API has.

Settings come from a file, the environment (INTERLINGUA_*) and these options;
options win. See `interlingua config`."""
EPILOG = """\
examples:
  interlingua serve --demo
  interlingua serve --upstream http://localhost:8000/v1
  interlingua serve --upstream https://openrouter.ai/api/v1 --upstream-key-env OPENROUTER_API_KEY
  interlingua serve --upstream https://api.moonshot.ai/anthropic \\
      --upstream-api anthropic-messages --upstream-key-env MOONSHOT_API_KEY
  interlingua serve --config interlingua.yaml --workers 2 --log-format json

signals:
  SIGTERM, Ctrl-C  no new requests; streams may finish, then end properly
  SIGHUP           reads the settings again; streams go on with the old ones
"""
_CURL = """\
  curl -sN {base}/v1/chat/completions -H 'content-type: application/json'{auth} -d '{{
    "model": "{model}", "stream": true,
    "messages": [{{"role": "user", "content": "What is the weather in Paris and in Oslo?"}}],
    "tools": [{{"type": "function", "function": {{"name": "get_weather",
      "parameters": {{"type": "object", "properties": {{"city": {{"type": "string"}}}}, "required": ["city"]}}}}}}]}}'

  curl -sN {base}/v1/messages -H 'content-type: application/json'{auth} -d '{{
    "model": "{model}", "max_tokens": 1000, "stream": true,
    "messages": [{{"role": "user", "content": "What is the weather in Paris and in Oslo?"}}],
    "tools": [{{"name": "get_weather",
      "input_schema": {{"type": "object", "properties": {{"city": {{"type": "string"}}}}, "required": ["city"]}}}}]}}'

  curl -sN {base}/v1/responses -H 'content-type: application/json'{auth} -d '{{
    "model": "{model}", "stream": true,
    "input": "What is the weather in Paris and in Oslo?",
    "tools": [{{"type": "function", "name": "get_weather",
      "parameters": {{"type": "object", "properties": {{"city": {{"type": "string"}}}}, "required": ["city"]}}}}]}}'
"""
_SDKS = """\
  openai SDK    OpenAI(base_url="{base}/v1", api_key="{key}")
  anthropic SDK Anthropic(base_url="{base}", api_key="{key}")
  others        docs/reference/agents.md; `interlingua run` starts an agent and a gateway at once
"""
_TO_PASTE = ("claude", "codex", "opencode")
"""What is shorter than a screen."""


def add_options(parser: argparse.ArgumentParser) -> None:
    serve_options.add_options(parser)


def run(args: argparse.Namespace) -> None:
    from interlingua.gateway.processes.server import check, listen, raise_open_files, serve

    loaded = serve_options.loaded(args)
    check(loaded)  # what is wrong is told before anything listens
    settings = loaded.settings
    sockets = listen(settings)
    key, problem = (b"", "") if settings.seal_key else kept_key()
    for note in (*loaded.notes, problem, raise_open_files(settings)):
        if note:
            io.tell(f"interlingua: note: {note}")
    io.tell(hello(settings, loaded, sockets[0].getsockname()[1]))
    serve(loaded, sockets, key, lambda: serve_options.loaded(args))


def hello(settings: Settings, loaded: Loaded, port: int) -> str:
    """Where it is, what it does, and what to paste next, which no program needs that has started it."""
    host = settings.host.strip("[]")
    where = f", settings: {loaded.source}" if loaded.source else ""
    head = f"interlingua: listening on {notify.url(host, port)} (process {os.getpid()}{where})"
    upstreams = [f"  {name}: {one.url} ({one.api})" for name, one in settings.upstreams.items()]
    if settings.log.format == "json" or notify.is_wanted():
        return head
    base = notify.url(notify.reached_by(host), port)
    ids = routes_for(loaded).ids()
    model = "demo/kimi_k2" if settings.demo else next(iter(ids), "MODEL")
    parts = [head, *upstreams]
    if settings.demo:
        some = "demo/kimi_k2, demo/qwen3_coder, demo/deepseek_v31, demo/hermes"
        parts += [f"  demo models: {some} and {sum(id.startswith('demo/') for id in ids) - 4} more (GET /v1/models)"]
        auth = " -H 'authorization: Bearer KEY'" if settings.keys else ""
        parts += ["", "Try it, in another terminal:", "", _CURL.format(base=base, model=model, auth=auth).rstrip()]
    key = "KEY" if settings.keys else "any"
    agents = [_agent(AGENTS[name], base, model, key) for name in _TO_PASTE]
    return "\n".join([*parts, "", "Point an agent at it:", "", *agents, _SDKS.format(base=base, key=key)])


def _agent(agent: Agent, base: str, model: str, key: str) -> str:
    setup = agent.setup(Target(base=base, api=agent.apis[0], model=model, key=key, folder=""))
    return f"  {agent.title:<13} {by_hand(setup, indent=' ' * 18)}"
