"""`interlingua serve`: run the gateway in the foreground."""

from __future__ import annotations

import argparse
import os

from interlingua.agents import AGENTS, Agent, AgentTarget, format_shell_command
from interlingua.cli.common import console, gateway_options
from interlingua.gateway.processes import systemd_notify
from interlingua.gateway.routing.routes import routes_for
from interlingua.gateway.settings.descriptor_limit import describe_reduced_limits, raise_descriptor_limit
from interlingua.gateway.settings.loader import LoadedSettings
from interlingua.gateway.settings.schema import Settings
from interlingua.gateway.settings.signing_key import load_or_create_key

DESCRIPTION = """\
Listens on loopback and serves three APIs: OpenAI Chat Completions, Anthropic
Messages and OpenAI Responses. Upstreams can have any of these APIs. Tool calls
that a model writes as text are translated to tool calls of the client's API.

Settings come from a file, the environment (INTERLINGUA_*) and these options.
The environment overrides the file, and options override both. See
`interlingua config`."""
EPILOG = """\
examples:
  interlingua serve --demo
  interlingua serve --upstream http://localhost:8000/v1
  interlingua serve --upstream https://openrouter.ai/api/v1 --upstream-key-env OPENROUTER_API_KEY
  interlingua serve --upstream https://api.moonshot.ai/anthropic \\
      --upstream-api anthropic-messages --upstream-key-env MOONSHOT_API_KEY
  interlingua serve --config interlingua.yaml --workers 2 --log-format json
  interlingua serve --upstream http://localhost:8000/v1 --record cassettes
  interlingua serve --replay cassettes

signals:
  SIGTERM, Ctrl-C  stop: refuse new requests, let open streams finish, and end the
                   remaining ones with an error after `drain` seconds
  SIGHUP           reload the settings; open streams keep the old ones
"""
_CURL_EXAMPLES = """\
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
_SDK_EXAMPLES = """\
  openai SDK    OpenAI(base_url="{base}/v1", api_key="{key}")
  anthropic SDK Anthropic(base_url="{base}", api_key="{key}")
  others        see docs/reference/agents.md; `interlingua run` starts a gateway and an agent together
"""
_PRINTED_AGENTS = ("claude", "codex", "opencode")
"""A selection, so that the startup message fits on a screen."""


def add_options(parser: argparse.ArgumentParser) -> None:
    gateway_options.add_options(parser)


def run(args: argparse.Namespace) -> None:
    from interlingua.gateway.processes.server import bind_sockets, check_settings, serve

    loaded = gateway_options.settings_from_args(args)
    check_settings(loaded)  # reports invalid settings before the port is opened
    settings = loaded.settings
    sockets = bind_sockets(settings)
    key, key_problem = (b"", "") if settings.seal_key or settings.cassettes else load_or_create_key()
    raise_descriptor_limit()
    for note in (*loaded.notes, key_problem, describe_reduced_limits(settings.limits)):
        if note:
            console.print_stderr(f"interlingua: note: {note}")
    console.print_stderr(startup_message(settings, loaded, sockets[0].getsockname()[1]))
    serve(loaded, sockets, key, lambda: gateway_options.settings_from_args(args))


def startup_message(settings: Settings, loaded: LoadedSettings, port: int) -> str:
    """Return the startup message: address, upstreams, and commands to copy.

    The commands are left out if the log is JSON or a service manager started the gateway.
    """
    host = settings.host.strip("[]")
    source_note = f", settings: {loaded.source}" if loaded.source else ""
    heading = f"interlingua: listening on {systemd_notify.http_url(host, port)} (process {os.getpid()}{source_note})"
    upstream_lines = [f"  {name}: {upstream.url} ({upstream.api})" for name, upstream in settings.upstreams.items()]
    if cassettes := settings.cassettes:
        replays = "replays {}: no upstream is asked"
        line = {"record": "records {}", "replay": replays, "hybrid": "replays {}, and records what is missing"}
        upstream_lines = [] if cassettes.mode == "replay" else upstream_lines
        upstream_lines.append(f"  {line[cassettes.mode].format(cassettes.dir)}")
    if settings.log.format == "json" or systemd_notify.is_enabled():
        return heading
    base = systemd_notify.http_url(systemd_notify.client_host(host), port)
    ids = routes_for(loaded).model_ids()
    model = "demo/kimi_k2" if settings.demo else next(iter(ids), "MODEL")
    parts = [heading, *upstream_lines]
    if settings.demo:
        examples = "demo/kimi_k2, demo/qwen3_coder, demo/deepseek_v31, demo/hermes"
        parts += [
            f"  demo models: {examples} and {sum(id.startswith('demo/') for id in ids) - 4} more (GET /v1/models)"
        ]
        auth = " -H 'authorization: Bearer KEY'" if settings.keys else ""
        parts += [
            "",
            "Try it in another terminal:",
            "",
            _CURL_EXAMPLES.format(base=base, model=model, auth=auth).rstrip(),
        ]
    key = "KEY" if settings.keys else "any"
    agents = [_agent_instructions(AGENTS[name], base, model, key) for name in _PRINTED_AGENTS]
    return "\n".join([*parts, "", "Point an agent at it:", "", *agents, _SDK_EXAMPLES.format(base=base, key=key)])


def _agent_instructions(agent: Agent, base: str, model: str, key: str) -> str:
    setup = agent.setup(AgentTarget(gateway_url=base, api=agent.apis[0], model=model, key=key, folder=""))
    return f"  {agent.title:<13} {format_shell_command(setup, indent=' ' * 18)}"
