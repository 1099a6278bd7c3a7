"""`interlingua serve`: run the gateway in the foreground."""

from __future__ import annotations

import argparse
import os
from collections.abc import Sequence
from typing import NamedTuple

from interlingua.agents import AGENTS, Agent, AgentTarget, format_shell_command
from interlingua.cli.common import console, gateway_options
from interlingua.errors import BadSettings, InterlinguaError, UsageError
from interlingua.gateway.observability.log_format import format_json_line
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
  interlingua serve --upstream https://openrouter.ai/api/v1 \\
      --upstream-key-env OPENROUTER_API_KEY
  interlingua serve --upstream https://api.moonshot.ai/anthropic \\
      --upstream-api anthropic-messages --upstream-key-env MOONSHOT_API_KEY
  interlingua serve --config interlingua.yaml --workers 2 --log-format json
  interlingua serve --demo --inspect
  interlingua serve --upstream http://localhost:8000/v1 --record cassettes
  interlingua serve --replay cassettes

signals:
  SIGTERM, Ctrl-C  stop: refuse new requests, let open streams finish, and end
                   the remaining ones with an error after `drain` seconds
  SIGHUP           without a terminal: reload the settings; open streams keep
                   the old ones. With a terminal: stop, because it was closed
"""
_CURL_EXAMPLES = """\
  curl -sN {base}/v1/chat/completions \\
    -H 'content-type: application/json'{auth} -d '{{
    "model": "{model}", "stream": true, "messages": [
      {{"role": "user", "content": "What is the weather in Paris and in Oslo?"}}],
    "tools": [{{"type": "function", "function": {{"name": "get_weather",
      "parameters": {{"type": "object", "required": ["city"],
        "properties": {{"city": {{"type": "string"}}}}}}}}}}]}}'

  curl -sN {base}/v1/messages \\
    -H 'content-type: application/json'{auth} -d '{{
    "model": "{model}", "max_tokens": 1000, "stream": true, "messages": [
      {{"role": "user", "content": "What is the weather in Paris and in Oslo?"}}],
    "tools": [{{"name": "get_weather",
      "input_schema": {{"type": "object", "required": ["city"],
        "properties": {{"city": {{"type": "string"}}}}}}}}]}}'

  curl -sN {base}/v1/responses \\
    -H 'content-type: application/json'{auth} -d '{{
    "model": "{model}", "stream": true,
    "input": "What is the weather in Paris and in Oslo?",
    "tools": [{{"type": "function", "name": "get_weather",
      "parameters": {{"type": "object", "required": ["city"],
        "properties": {{"city": {{"type": "string"}}}}}}}}]}}'
"""
_SDK_EXAMPLES = """\
  openai SDK:
    OpenAI(base_url="{base}/v1", api_key="{key}")
  anthropic SDK:
    Anthropic(base_url="{base}", api_key="{key}")
  other agents:
    `interlingua run AGENT` starts a gateway and an agent together
"""
EXIT_FAILED, EXIT_USAGE = 1, 2
_PRINTED_AGENTS = ("claude", "codex")
"""A selection, so that the startup message fits on a screen."""
MAX_LINE_CHARS = 80


def add_options(parser: argparse.ArgumentParser) -> None:
    gateway_options.add_options(parser)


def run(args: argparse.Namespace) -> int | None:
    loaded = gateway_options.settings_from_args(args)
    if loaded.settings.log.format == "text":
        _serve(args, loaded)
        return None
    try:
        _serve(args, loaded)
    except InterlinguaError as error:  # programs read the log: its last line is JSON, too
        for problem in error.problems if isinstance(error, BadSettings) else [error]:
            console.print_unwrapped(format_json_line("error", str(problem), hint=problem.hint))
        return EXIT_USAGE if isinstance(error, UsageError) else EXIT_FAILED
    return None


def _serve(args: argparse.Namespace, loaded: LoadedSettings) -> None:
    from interlingua.gateway.processes.server import check_settings, open_listeners, serve

    check_settings(loaded)  # reports invalid settings before the port is opened
    settings = loaded.settings
    sockets = open_listeners(settings)
    key, key_problem = (b"", "") if settings.seal_key or settings.cassettes else load_or_create_key()
    raise_descriptor_limit()
    is_json = settings.log.format == "json"
    for note in (*loaded.notes, key_problem, describe_reduced_limits(settings.limits)):
        if note and is_json:
            console.print_unwrapped(format_json_line("info", note))
        elif note:
            console.print_stderr(f"interlingua: note: {note}")
    port = sockets[0].getsockname()[1]
    if is_json:
        console.print_unwrapped(_startup_line(settings, loaded, port))
    else:
        message = startup_message(settings, loaded, port)
        console.print_stderr(message.facts)
        if message.commands:
            console.print_unwrapped(message.commands)
    serve(loaded, sockets, key, lambda: gateway_options.settings_from_args(args))


def _startup_line(settings: Settings, loaded: LoadedSettings, port: int) -> str:
    """Return the startup message as the first line of a JSON log."""
    upstreams = {name: upstream.url for name, upstream in settings.upstreams.items()}
    fields = {"process": os.getpid(), "settings": loaded.source, "upstreams": upstreams, "demo": settings.demo}
    return format_json_line("info", f"listening on {_address(settings, port)}", **fields)


def _address(settings: Settings, port: int) -> str:
    return systemd_notify.http_url(settings.host.strip("[]"), port)


class StartupMessage(NamedTuple):
    facts: str
    """Address, upstreams, inspector and demo models."""
    commands: str
    """Commands and code to copy; "" if a service manager started the gateway."""


def startup_message(settings: Settings, loaded: LoadedSettings, port: int) -> StartupMessage:
    """Return what `serve` prints when it listens, unless its log is JSON."""
    source_note = f", settings: {loaded.source}" if loaded.source else ""
    heading = f"interlingua: listening on {_address(settings, port)} (process {os.getpid()}{source_note})"
    if systemd_notify.is_enabled():
        return StartupMessage(heading, "")
    base = systemd_notify.http_url(systemd_notify.client_host(settings.host.strip("[]")), port)
    ids = routes_for(loaded).model_ids()
    facts = [heading, *_upstream_lines(settings)]
    if settings.inspect.enabled:
        note = " (it asks for inspect.key, or the gateway's key)" if settings.inspect.key or settings.keys else ""
        facts.append(f"  inspector: {base}/inspector/{note}")
    if settings.demo:
        number = sum(id.startswith("demo/") for id in ids)
        facts.append(f"  demo models: demo/kimi_k2, demo/qwen3_coder, demo/hermes and {number - 3} more")
    return StartupMessage("\n".join(facts), _commands_to_copy(settings, base, ids))


def _upstream_lines(settings: Settings) -> list[str]:
    lines = [f"  {name}: {upstream.url} ({upstream.api})" for name, upstream in settings.upstreams.items()]
    if cassettes := settings.cassettes:
        replays = "replays {}: no upstream is asked"
        line = {"record": "records {}", "replay": replays, "hybrid": "replays {}, and records what is missing"}
        lines = [] if cassettes.mode == "replay" else lines
        lines.append(f"  {line[cassettes.mode].format(cassettes.dir)}")
    return lines


def _commands_to_copy(settings: Settings, base: str, ids: Sequence[str]) -> str:
    model = "demo/kimi_k2" if settings.demo else next(iter(ids), "MODEL")
    parts: list[str] = []
    if settings.demo:
        auth = " -H 'authorization: Bearer KEY'" if settings.keys else ""
        examples = _CURL_EXAMPLES.format(base=base, model=model, auth=auth).rstrip()
        parts += ["", "Try it in another terminal:", "", examples]
    key = "KEY" if settings.keys else "any"
    agents = [_agent_instructions(AGENTS[name], base, model, key) for name in _PRINTED_AGENTS]
    return "\n".join([*parts, "", "Point an agent at it:", "", *agents, _SDK_EXAMPLES.format(base=base, key=key)])


def _agent_instructions(agent: Agent, base: str, model: str, key: str) -> str:
    setup = agent.setup(AgentTarget(gateway_url=base, api=agent.apis[0], model=model, key=key, folder=""))
    return f"  {agent.title}:\n    {format_shell_command(setup, indent=' ' * 6, max_chars=MAX_LINE_CHARS)}"
