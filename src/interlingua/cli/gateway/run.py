"""`interlingua run`: run a coding agent with a temporary gateway."""

from __future__ import annotations

import argparse
import asyncio
import os
import secrets
import shutil
import signal
import subprocess
import tempfile
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING

import aiohttp
import msgspec

from interlingua.agents import AGENTS, DEFAULT_CONTEXT_TOKENS, Agent, AgentSetup, AgentTarget
from interlingua.cli.common import console, gateway_options
from interlingua.cli.gateway.daemon.log_reader import LogPosition, failure_lines
from interlingua.cli.gateway.model_choice import choose_model
from interlingua.errors import BadInput, UsageError
from interlingua.gateway.routing.routes import DEMO_UPSTREAM, REPLAY_UPSTREAM, Route, routes_for
from interlingua.gateway.settings.loader import LoadedSettings
from interlingua.gateway.settings.signing_key import load_or_create_key

if TYPE_CHECKING:
    from interlingua.gateway.processes.sidecar import SidecarProcess

DESCRIPTION = """\
Starts a gateway on a free loopback port, runs the agent against it, and stops
the gateway when the agent exits.

The agent's own settings are not changed: it is configured by environment
variables and by files in a temporary folder. The API key that the agent uses
for the gateway is generated for this run. Environment variables that hold
upstream keys are removed from the agent's environment.

Before the agent starts, the upstream is asked for its models: if it cannot be
reached, refuses the key, or has no such model, nothing is started."""
EPILOG = f"""\
agents:
{chr(10).join(f"  {name:<8}  {agent.title}: {', '.join(agent.apis)}" for name, agent in AGENTS.items())}

examples:
  interlingua run claude --demo
  interlingua run claude --upstream http://localhost:8000/v1 \\
      --model Qwen/Qwen3-Coder-30B-A3B-Instruct
  interlingua run codex --upstream https://openrouter.ai/api/v1 \\
      --upstream-key-env OPENROUTER_API_KEY --model moonshotai/kimi-k2.5
  interlingua run opencode --config interlingua.yaml --model kimi
  interlingua run claude --demo -- -p "what is in this folder?"
  interlingua run claude --demo --record cassettes
  interlingua run claude --replay cassettes --model demo/kimi_k2

The exit status is that of the agent, or 128 + N if signal N ended the agent.
"""
LOOPBACK = "127.0.0.1"
MAX_DRAIN_SECONDS = 1.0
"""Upper limit for `drain`: after the agent has exited, no client reads the streams."""
CLIENT_KEYS_VARIABLE = "INTERLINGUA_KEYS"
OWN_VARIABLE_PREFIX = "INTERLINGUA_"
MAX_LOG_TAIL_CHARS = 2000
MAX_LISTED_FAILURES = 5
"""Maximum number of failed requests that are listed after the agent's exit."""
MIN_CONTEXT_TOKENS = 1000
MIN_SECRET_CHARS = 6
"""Shorter secrets are not removed from the environment: unrelated variables can have the same value by chance."""


def add_options(parser: argparse.ArgumentParser) -> None:
    add = parser.add_argument
    add("agent", metavar="AGENT", choices=tuple(AGENTS), help=", ".join(AGENTS))
    add(
        "--model",
        help="model that the agent requests; default: the first of `models` in the settings, or the upstream's only"
        " model",
    )
    add(
        "--no-check",
        dest="check",
        action="store_false",
        help="start the agent without a look at the upstream's model list",
    )
    add("--api", help="API that the agent uses, if it supports more than one")
    add(
        "--context",
        metavar="N",
        help="context window of the model in tokens; default: the smallest that the model's upstreams report, where"
        f" one that reports none counts as {DEFAULT_CONTEXT_TOKENS}",
    )
    gateway_options.add_upstream_options(parser)
    gateway_options.add_cassette_options(parser)
    gateway_options.add_observability_options(parser)
    add("--log", type=Path, metavar="FILE", help="append the gateway's log to this file")
    parser.usage = "%(prog)s [options] AGENT [options] [-- ARGS]"
    parser.set_defaults(program_args=[])


def run(args: argparse.Namespace) -> int:
    from interlingua.gateway.processes.server import check_settings, open_listeners
    from interlingua.gateway.processes.sidecar import run_sidecar

    agent = AGENTS[args.agent]
    api, requested_context = _resolve_api(agent, args.api), _resolve_context(agent, args.context)
    if shutil.which(agent.command) is None:
        raise BadInput(f"{agent.title} is not installed: no {agent.command} on PATH", _install_hint(agent))
    key = secrets.token_urlsafe(24)
    loaded = _load_settings(args, key)
    check_settings(loaded)
    choice = choose_model(routes_for(loaded), args.model, is_checked=args.check)
    model, route = choice.model, choice.route
    context = Context(requested_context) if requested_context else _find_context(agent, [route, *choice.fallbacks])
    listener = open_listeners(loaded.settings)[0]
    base = f"http://{LOOPBACK}:{listener.getsockname()[1]}"
    has_key = loaded.settings.seal_key or loaded.settings.cassettes
    seal_key, key_problem = (b"", "") if has_key else load_or_create_key()
    with tempfile.TemporaryDirectory(prefix="interlingua-") as folder:
        log = args.log or Path(folder, "gateway.log")
        config = Path(folder, "config")
        setup = agent.setup(
            AgentTarget(
                gateway_url=base, api=api, model=model, key=key, folder=str(config), context_tokens=context.tokens
            )
        )
        _write_files(config, setup)
        with _open_log(log) as log_fd:
            for note in (*loaded.notes, key_problem, *choice.notes):
                if note:
                    console.print_stderr(f"interlingua: note: {note}")
            console.print_stderr(_describe_route(agent, api, base, route, context))
            if loaded.settings.inspect.enabled:
                page_key = loaded.settings.inspect.key or key
                console.print_stderr(f"interlingua: inspector: {base}/inspector/#key={page_key}")
            environment = _agent_environment(setup, os.environ, loaded.all_secrets)
            log_position = LogPosition(log)
            with run_sidecar(loaded, listener, seal_key, log_fd) as gateway:
                _check_gateway_alive(gateway, log_position)
                exit_code = _run_agent([*setup.argv, *setup.override_argv, *args.program_args], environment)
                gateway_died = gateway.has_died()
        _report_failures(log_position, exit_code, gateway_died=gateway_died)
    return exit_code


# ── API, model and route ──────────────────────────────────────────────────────────────────────────────────────────────


def _resolve_api(agent: Agent, requested: str | None) -> str:
    if requested and requested not in agent.apis:
        raise UsageError(f"{agent.title} does not support the API {requested}", f"it supports {', '.join(agent.apis)}")
    return requested or agent.apis[0]


def _resolve_context(agent: Agent, requested: str | None) -> int:
    """Return the size of the context window in tokens; 0 if it is not specified."""
    if requested is None:
        return 0
    if not agent.has_context_setting:
        raise UsageError(
            f"--context does not work with {agent.title}",
            "leave it out: this agent derives the context size from the model name",
        )
    if not (requested.isascii() and requested.isdigit() and int(requested) >= MIN_CONTEXT_TOKENS):
        raise UsageError(
            f"--context: {requested!r} is not a number of tokens (at least {MIN_CONTEXT_TOKENS})",
            f"for example: --context {DEFAULT_CONTEXT_TOKENS}",
        )
    return int(requested)


class Context(msgspec.Struct, frozen=True):
    """Context window for which the agent is configured."""

    tokens: int
    origin: str = ""
    """The fallback that needs it; "" if it is the window of the first upstream."""


def _find_context(agent: Agent, routes: list[Route]) -> Context:
    """Return the largest context window that every upstream of the model can take."""
    reported = asyncio.run(_ask_windows(routes)) if agent.has_context_setting else [0]
    windows = [window if window >= MIN_CONTEXT_TOKENS else DEFAULT_CONTEXT_TOKENS for window in reported]
    smallest = windows.index(min(windows))
    if smallest == 0:
        return Context(windows[0])
    origin = "that of" if windows[smallest] == reported[smallest] else "assumed for"
    return Context(windows[smallest], f"{origin} the fallback {routes[smallest].upstream.url}")


async def _ask_windows(routes: list[Route]) -> list[int]:
    """Return the context window that each upstream reports for its model; 0 if it reports none."""
    from interlingua.gateway.upstream.connector import make_connector
    from interlingua.gateway.upstream.server_probe import find_window, is_probed

    async def ask_window(route: Route) -> int:
        return await find_window(session, route) if is_probed(route) else 0

    async with aiohttp.ClientSession(connector=make_connector()) as session:
        return await asyncio.gather(*map(ask_window, routes))


def _load_settings(args: argparse.Namespace, key: str) -> LoadedSettings:
    """Load the settings as `serve` does, but with a free loopback port, one worker and `key` as the only client key."""
    overrides = {"host": LOOPBACK, "port": "0", "workers": "1"}
    loaded = gateway_options.settings_from_args(args, {**os.environ, CLIENT_KEYS_VARIABLE: key}, **overrides)
    log_settings = msgspec.structs.replace(loaded.settings.log, file="")  # the log goes to --log
    settings = msgspec.structs.replace(
        loaded.settings, drain=min(loaded.settings.drain, MAX_DRAIN_SECONDS), log=log_settings
    )
    return msgspec.structs.replace(loaded, settings=settings)


def _describe_route(agent: Agent, api: str, base: str, route: Route, context: Context) -> str:
    """Return the startup lines: agent, gateway, upstream, model, dialect."""
    built_in = {DEMO_UPSTREAM: "its built-in demo model", REPLAY_UPSTREAM: "recorded replies"}
    upstream = built_in.get(route.name, f"{route.upstream.url} ({route.upstream.api})")
    lines = [
        f"{agent.title} uses the gateway at {base} ({api}), with a key that is valid for this run only",
        f"the gateway uses {upstream}: model {route.model}, dialect {route.dialect_name}",
    ]
    if agent.has_context_setting:
        origin = f", {context.origin}" if context.origin else ""
        lines.append(f"{agent.title} is configured for a context window of {context.tokens} tokens{origin} (--context)")
    return "\n".join(f"interlingua: {line}" for line in lines)


def _install_hint(agent: Agent) -> str:
    return f"npm install -g {agent.package}"


# ── the agent ─────────────────────────────────────────────────────────────────────────────────────────────────────────


def _write_files(folder: Path, setup: AgentSetup) -> None:
    """Write the agent's configuration files. The temporary folder that holds them is accessible to its owner only."""
    for name, text in setup.files.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")


def _agent_environment(setup: AgentSetup, inherited: Mapping[str, str], secret_values: Iterable[str]) -> dict[str, str]:
    """Return the agent's environment.

    It is the user's environment without INTERLINGUA_*, without variables that would point the agent at another
    server, and without every variable that contains a secret of the gateway: a command that a model writes could
    print it. NO_PROXY includes loopback, so that requests to the gateway use no proxy.
    """
    long_secrets = {secret for secret in secret_values if len(secret) >= MIN_SECRET_CHARS}
    filtered = {
        name: text
        for name, text in inherited.items()
        if name not in setup.unset_variables
        and not name.startswith(OWN_VARIABLE_PREFIX)
        and not _contains_secret(text, long_secrets)
    }
    no_proxy = ",".join(filter(None, (inherited.get("NO_PROXY") or inherited.get("no_proxy"), LOOPBACK)))
    return {**filtered, "NO_PROXY": no_proxy, "no_proxy": no_proxy, **setup.environment}


def _contains_secret(text: str, secret_values: Iterable[str]) -> bool:
    """Return whether the value contains a secret, or is part of one (as NAME is in `Bearer ${NAME}`)."""
    return any(secret in text or (len(text) >= MIN_SECRET_CHARS and text in secret) for secret in secret_values)


def _run_agent(argv: list[str], environment: dict[str, str]) -> int:
    """Run the agent and return its exit status.

    The agent shares the terminal, so Ctrl-C and Ctrl-\\ reach it directly and are ignored here. SIGTERM and SIGHUP
    are forwarded to it.
    """
    processes: list[subprocess.Popen[bytes]] = []

    def forward_signal(number: int, _: object) -> None:
        for process in processes:
            with suppress(ProcessLookupError):
                process.send_signal(number)

    for number in (signal.SIGINT, signal.SIGQUIT):
        signal.signal(number, lambda *_: None)  # not SIG_IGN, which the agent would inherit
    for number in (signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, forward_signal)
    try:
        processes.append(subprocess.Popen(argv, env=environment))
    except OSError as error:
        raise BadInput(
            f"cannot start {argv[0]}: {error.strerror}", "check whether it starts without interlingua"
        ) from error
    exit_code = processes[0].wait()
    return exit_code if exit_code >= 0 else 128 - exit_code


# ── the gateway's log ─────────────────────────────────────────────────────────────────────────────────────────────────


@contextmanager
def _open_log(log: Path) -> Iterator[int]:
    """Open the gateway's log. It is opened before the agent takes the terminal, so that the user sees errors."""
    try:
        descriptor = os.open(log, os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC, 0o600)
    except OSError as error:
        raise BadInput(
            f"cannot write the log {log}: {error.strerror}", "choose a --log file in a folder that you can write to"
        ) from error
    try:
        yield descriptor
    finally:
        os.close(descriptor)


def _check_gateway_alive(gateway: SidecarProcess, log_position: LogPosition) -> None:
    if gateway.has_died():
        raise BadInput(
            f"the gateway failed to start:\n{_log_tail(log_position)}",
            "run `interlingua serve` with the same options to reproduce it",
        )


def _report_failures(log_position: LogPosition, exit_code: int, *, gateway_died: bool) -> None:
    """Print log lines that may explain the failure, if the gateway or the agent failed."""
    if gateway_died:
        console.print_stderr(f"interlingua: the gateway ended before the agent:\n{_log_tail(log_position)}")
    elif exit_code and (lines := failure_lines(log_position.read_after())[-MAX_LISTED_FAILURES:]):
        failures = [f"  {console.printable(line)[:MAX_LOG_TAIL_CHARS]}" for line in lines]
        console.print_stderr(
            "\n".join(["interlingua: the agent ended with an error; these requests failed:", *failures])
        )


def _log_tail(log_position: LogPosition) -> str:
    return log_position.read_after().decode("utf-8", "replace")[-MAX_LOG_TAIL_CHARS:]
