"""`interlingua run`: a coding agent, with a gateway of its own for as long as it runs."""

from __future__ import annotations

import argparse
import os
import secrets
import shutil
import signal
import subprocess
import tempfile
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec

from interlingua.agents import AGENTS, Agent, Setup, Target
from interlingua.cli import io, serve_options
from interlingua.errors import BadInput, UsageError
from interlingua.gateway.routes import DEMO, Route
from interlingua.gateway.seal_key import kept_key
from interlingua.gateway.settings_file import Loaded

if TYPE_CHECKING:
    from interlingua.gateway.beside import Beside

HELP = "a coding agent, with a gateway of its own behind it"
DESCRIPTION = """\
Starts a gateway on a free port of loopback, points the agent at it, runs the
agent, and stops the gateway when it ends. Nothing of the agent's own settings
is changed: what it needs is in its environment and in a temporary folder. The
key that it shows to the gateway is made for this run."""
EPILOG = f"""\
agents:
{chr(10).join(f"  {name:<9} {agent.title}: {', '.join(agent.apis)}" for name, agent in AGENTS.items())}

examples:
  interlingua run claude --demo
  interlingua run claude --upstream http://localhost:8000/v1 --model Qwen/Qwen3-Coder-30B-A3B-Instruct
  interlingua run codex --upstream https://openrouter.ai/api/v1 \\
      --upstream-key-env OPENROUTER_API_KEY --model moonshotai/kimi-k2.5
  interlingua run opencode --config interlingua.yaml --model kimi
  interlingua run claude --demo -- -p "what is in this folder?"

The exit status is the agent's; 128 and the signal's number if one has ended it.
"""
LOOPBACK = "127.0.0.1"
DRAIN = 1.0
"""Nobody reads a stream whose agent has ended."""
KEYS = "INTERLINGUA_KEYS"
OWN = "INTERLINGUA_"
TAIL = 2000


def add_options(parser: argparse.ArgumentParser) -> None:
    add = parser.add_argument
    add("agent", metavar="AGENT", choices=AGENTS, help=", ".join(AGENTS))
    add("--model", help="what the agent asks for; default: the first of `models` in the settings")
    add("--api", help="what the agent speaks, if it can speak more than one")
    serve_options.add_upstream(parser)
    serve_options.add_witnesses(parser)
    add("--log", type=Path, metavar="FILE", help="add what the gateway tells to this file")
    parser.usage = "%(prog)s [options] AGENT [options] [-- ARGS]"
    parser.set_defaults(behind=[])


def run(args: argparse.Namespace) -> int:
    from interlingua.gateway.beside import beside  # other commands need no aiohttp
    from interlingua.gateway.serve import check, listen

    agent = AGENTS[args.agent]
    api = _api(agent, args.api)
    if shutil.which(agent.command) is None:
        raise BadInput(f"{agent.title} is not installed: no {agent.command} on PATH", _how_to_install(agent))
    key = secrets.token_urlsafe(24)
    loaded = _loaded(args, key)
    check(loaded)
    model = args.model or _first_model(loaded)
    route = loaded.routes().find(model)[0]
    listener = listen(loaded.settings)[0]
    base = f"http://{LOOPBACK}:{listener.getsockname()[1]}"
    seal_key, problem = (b"", "") if loaded.settings.seal_key else kept_key()
    for note in (*loaded.notes, problem):
        if note:
            io.tell(f"interlingua: note: {note}")
    io.tell(_way(agent, api, base, route))
    with tempfile.TemporaryDirectory(prefix="interlingua-") as folder:
        log = args.log or Path(folder, "gateway.log")
        config = Path(folder, "config")
        setup = agent.setup(Target(base=base, api=api, model=model, key=key, folder=str(config)))
        _write(config, setup)
        with beside(loaded, listener, seal_key, log) as gateway:
            code = _run_agent([*setup.argv, *setup.firm, *args.behind], _environment(setup, os.environ))
            _tell_if_it_died(gateway, log)
    return code


# ── what is asked where ───────────────────────────────────────────────────────────────────────────────────────────────


def _api(agent: Agent, asked: str | None) -> str:
    if asked and asked not in agent.apis:
        raise UsageError(f"{agent.title} does not speak {asked}", f"it speaks {', '.join(agent.apis)}")
    return asked or agent.apis[0]


def _loaded(args: argparse.Namespace, key: str) -> Loaded:
    """The settings as for `serve`, but on a port of its own, for nobody but the agent."""
    alone = {"host": LOOPBACK, "port": "0", "workers": "1"}
    loaded = serve_options.loaded(args, {**os.environ, KEYS: key}, **alone)
    settings = msgspec.structs.replace(loaded.settings, drain=min(loaded.settings.drain, DRAIN))
    return msgspec.structs.replace(loaded, settings=settings)


def _first_model(loaded: Loaded) -> str:
    ids = loaded.routes().ids()
    if not ids:
        raise UsageError("which model is meant is not known", "add --model NAME, as the upstream calls it")
    named = [id for id in ids if not id.startswith(f"{DEMO}/")]
    return (named or [f"{DEMO}/kimi_k2"])[0]


def _way(agent: Agent, api: str, base: str, route: Route) -> str:
    """What will be sent where."""
    demo = route.name == DEMO
    upstream = "the demo model in it" if demo else f"{route.upstream.url} ({route.upstream.api})"
    return (
        f"interlingua: {agent.title} asks {base} ({api}), with a key for this run alone\n"
        f"interlingua: that asks {upstream} for {route.model}, and reads its calls as {route.dialect_name}"
    )


def _how_to_install(agent: Agent) -> str:
    return f"npm install -g {agent.package}"


# ── the agent ─────────────────────────────────────────────────────────────────────────────────────────────────────────


def _write(folder: Path, setup: Setup) -> None:
    """The folder around it is for its owner only."""
    for name, text in setup.files.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")


def _environment(setup: Setup, own: Mapping[str, str]) -> dict[str, str]:
    """The user's own, without what is meant for the gateway or would lead elsewhere. No proxy leads to loopback."""
    kept = {name: text for name, text in own.items() if name not in setup.unset and not name.startswith(OWN)}
    direct = ",".join(filter(None, (own.get("NO_PROXY") or own.get("no_proxy"), LOOPBACK)))
    return {**kept, "NO_PROXY": direct, "no_proxy": direct, **setup.environment}


def _run_agent(argv: list[str], environment: dict[str, str]) -> int:
    """Its exit status. It has the terminal: what is typed there is for it to heed, and what we are told it is told."""
    running: list[subprocess.Popen[bytes]] = []

    def pass_on(number: int, _: object) -> None:
        for process in running:
            with suppress(ProcessLookupError):
                process.send_signal(number)

    for number in (signal.SIGINT, signal.SIGQUIT):
        signal.signal(number, lambda *_: None)  # not ignored: that would hold for the agent as well
    for number in (signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, pass_on)
    try:
        running.append(subprocess.Popen(argv, env=environment))
    except OSError as error:
        raise BadInput(f"cannot start {argv[0]}: {error.strerror}", "try to start it without interlingua") from error
    code = running[0].wait()
    return code if code >= 0 else 128 - code


def _tell_if_it_died(gateway: Beside, log: Path) -> None:
    if gateway.has_died():
        with suppress(OSError):
            io.tell(f"interlingua: the gateway ended before the agent did:\n{log.read_text(errors='replace')[-TAIL:]}")
