"""`interlingua run`: a coding agent, with a gateway of its own for as long as it runs."""

from __future__ import annotations

import argparse
import os
import secrets
import shutil
import signal
import socket
import subprocess
import tempfile
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

import msgspec

from interlingua.agents import AGENTS, CONTEXT, Agent, Setup, Target
from interlingua.cli.common import console as io
from interlingua.cli.common import gateway_options as serve_options
from interlingua.cli.gateway.daemon.log_reader import Mark, of_failures
from interlingua.errors import BadInput, UnknownModel, UsageError
from interlingua.gateway.routing.routes import DEMO, Route, routes_for
from interlingua.gateway.settings.loader import Loaded
from interlingua.gateway.settings.signing_key import kept_key
from interlingua.gateway.upstream.connector__proxies import proxy_for

if TYPE_CHECKING:
    from interlingua.gateway.processes.sidecar import Beside

NAME = "run"
HELP = "a coding agent, with a gateway of its own behind it"
DESCRIPTION = """\
Starts a gateway on a free port of loopback, points the agent at it, runs the
agent, and stops the gateway when it ends. Nothing of the agent's own settings
is changed: what it needs is in its environment and in a temporary folder. The
key that it shows to the gateway is made for this run, and variables with the
keys of upstreams are not in its environment."""
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
SHOWN = 5
"""Lines about requests that failed, if the agent ends with an error."""
LEAST = 1000
CONNECTING = 2.0
"""Seconds in which an upstream should take a connection, or a person is told."""
SHORTEST = 6
"""What is shorter than this and a secret is the value of other variables by chance."""


def add_options(parser: argparse.ArgumentParser) -> None:
    add = parser.add_argument
    add("agent", metavar="AGENT", choices=AGENTS, help=", ".join(AGENTS))
    add("--model", help="what the agent asks for; default: the first of `models` in the settings")
    add("--api", help="what the agent speaks, if it can speak more than one")
    add("--context", metavar="N", help=f"for how many tokens the model has room; default: {CONTEXT}")
    serve_options.add_upstream(parser)
    serve_options.add_witnesses(parser)
    add("--log", type=Path, metavar="FILE", help="add what the gateway tells to this file")
    parser.usage = "%(prog)s [options] AGENT [options] [-- ARGS]"
    parser.set_defaults(behind=[])


def run(args: argparse.Namespace) -> int:
    from interlingua.gateway.processes.server import check, listen
    from interlingua.gateway.processes.sidecar import beside

    agent = AGENTS[args.agent]
    api, context = _api(agent, args.api), _context(agent, args.context)
    if shutil.which(agent.command) is None:
        raise BadInput(f"{agent.title} is not installed: no {agent.command} on PATH", _how_to_install(agent))
    key = secrets.token_urlsafe(24)
    loaded = _loaded(args, key)
    check(loaded)
    model = args.model or _first_model(loaded)
    route = _route(loaded, model)
    listener = listen(loaded.settings)[0]
    base = f"http://{LOOPBACK}:{listener.getsockname()[1]}"
    seal_key, problem = (b"", "") if loaded.settings.seal_key else kept_key()
    with tempfile.TemporaryDirectory(prefix="interlingua-") as folder:
        log = args.log or Path(folder, "gateway.log")
        config = Path(folder, "config")
        setup = agent.setup(Target(base=base, api=api, model=model, key=key, folder=str(config), context=context))
        _write(config, setup)
        with _opened(log) as told:
            for note in (*loaded.notes, problem, _nobody(route)):
                if note:
                    io.tell(f"interlingua: note: {note}")
            io.tell(_way(agent, api, base, route, context))
            environment = _environment(setup, os.environ, loaded.hidden)
            mark = Mark(log)
            with beside(loaded, listener, seal_key, told) as gateway:
                _check_that_it_lives(gateway, mark)
                code = _run_agent([*setup.argv, *setup.firm, *args.behind], environment)
                died = gateway.has_died()
        _tell_what_failed(mark, code, died=died)
    return code


# ── what is asked where ───────────────────────────────────────────────────────────────────────────────────────────────


def _api(agent: Agent, asked: str | None) -> str:
    if asked and asked not in agent.apis:
        raise UsageError(f"{agent.title} does not speak {asked}", f"it speaks {', '.join(agent.apis)}")
    return asked or agent.apis[0]


def _context(agent: Agent, asked: str | None) -> int:
    """For how many tokens the model has room."""
    if asked is None:
        return CONTEXT
    if not agent.heeds_context:
        raise UsageError(f"{agent.title} cannot be told of --context", "it goes by the model's name")
    if not (asked.isascii() and asked.isdigit() and int(asked) >= LEAST):
        raise UsageError(f"--context: {asked!r} is no number of tokens", f"for example: --context {CONTEXT}")
    return int(asked)


def _route(loaded: Loaded, model: str) -> Route:
    routes = routes_for(loaded)
    try:
        return routes.find(model)[0]
    except UnknownModel as error:
        ids = sorted(routes.ids())
        more = f" and {len(ids) - SHOWN} more" if len(ids) > SHOWN else ""
        known = f"known are {', '.join(ids[:SHOWN])}{more}; `interlingua config show` has the settings"
        hint = error.hint if error.hint.startswith("did you mean") else known if ids else "add --upstream URL"
        raise UsageError(f"--model: no model is called {model!r}", hint) from None


def _nobody(route: Route) -> str:
    """A word about an upstream that takes no connection. An agent would only ask it again and again, for minutes."""
    url = urlsplit(route.upstream.url)
    if route.name == DEMO or not url.hostname or proxy_for(url.scheme, url.hostname):
        return ""
    try:
        port = url.port or {"https": 443}.get(url.scheme, 80)
        socket.create_connection((url.hostname, port), timeout=CONNECTING).close()
    except OSError as error:
        return f"nobody answers at {route.upstream.url}: {error.strerror or error}"
    return ""


def _loaded(args: argparse.Namespace, key: str) -> Loaded:
    """The settings as for `serve`, but on a port of its own, for nobody but the agent."""
    alone = {"host": LOOPBACK, "port": "0", "workers": "1"}
    loaded = serve_options.loaded(args, {**os.environ, KEYS: key}, **alone)
    log = msgspec.structs.replace(loaded.settings.log, file="")  # --log says where to
    settings = msgspec.structs.replace(loaded.settings, drain=min(loaded.settings.drain, DRAIN), log=log)
    return msgspec.structs.replace(loaded, settings=settings)


def _first_model(loaded: Loaded) -> str:
    ids = routes_for(loaded).ids()
    if not ids:
        raise UsageError("which model is meant is not known", "add --model NAME, as the upstream calls it")
    named = [id for id in ids if not id.startswith(f"{DEMO}/")]
    return (named or [f"{DEMO}/kimi_k2"])[0]


def _way(agent: Agent, api: str, base: str, route: Route, context: int) -> str:
    """What will be sent where."""
    demo = route.name == DEMO
    upstream = "the demo model in it" if demo else f"{route.upstream.url} ({route.upstream.api})"
    lines = [
        f"{agent.title} asks {base} ({api}), with a key for this run alone",
        f"that asks {upstream} for {route.model}, and reads its calls as {route.dialect_name}",
    ]
    if agent.heeds_context:
        lines.append(f"{agent.title} is told that this model has room for {context} tokens (--context)")
    return "\n".join(f"interlingua: {line}" for line in lines)


def _how_to_install(agent: Agent) -> str:
    return f"npm install -g {agent.package}"


# ── the agent ─────────────────────────────────────────────────────────────────────────────────────────────────────────


def _write(folder: Path, setup: Setup) -> None:
    """The folder around it is for its owner only."""
    for name, text in setup.files.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")


def _environment(setup: Setup, own: Mapping[str, str], secrets: Iterable[str]) -> dict[str, str]:
    """The user's own, without what is meant for the gateway or would lead elsewhere. No proxy leads to loopback.

    Nor has it what the gateway keeps secret, under whatever name: a command that a model writes could print it.
    """
    hidden = {secret for secret in secrets if len(secret) >= SHORTEST}
    kept = {
        name: text
        for name, text in own.items()
        if name not in setup.unset and not name.startswith(OWN) and not _is_part(text, hidden)
    }
    direct = ",".join(filter(None, (own.get("NO_PROXY") or own.get("no_proxy"), LOOPBACK)))
    return {**kept, "NO_PROXY": direct, "no_proxy": direct, **setup.environment}


def _is_part(text: str, secrets: Iterable[str]) -> bool:
    """Whether a secret is made of it, as `Bearer ${NAME}` is, or it has one in it."""
    return any(secret in text or (len(text) >= SHORTEST and text in secret) for secret in secrets)


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


# ── the gateway's log ─────────────────────────────────────────────────────────────────────────────────────────────────


@contextmanager
def _opened(log: Path) -> Iterator[int]:
    """What the gateway tells goes there. It is opened before anything runs: nobody sees what goes wrong later."""
    try:
        file = os.open(log, os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC, 0o600)
    except OSError as error:
        raise BadInput(
            f"cannot write the log {log}: {error.strerror}", "give --log a file in a folder of yours"
        ) from error
    try:
        yield file
    finally:
        os.close(file)


def _check_that_it_lives(gateway: Beside, mark: Mark) -> None:
    if gateway.has_died():
        raise BadInput(f"the gateway ended at once:\n{_tail(mark)}", "`interlingua serve` shows it, too")


def _tell_what_failed(mark: Mark, code: int, *, died: bool) -> None:
    """If the agent did, the gateway may know why."""
    if died:
        io.tell(f"interlingua: the gateway ended before the agent did:\n{_tail(mark)}")
    elif code and (lines := of_failures(mark.behind())[-SHOWN:]):
        told = [f"  {io.printable(line)[:TAIL]}" for line in lines]
        io.tell("\n".join(["interlingua: the agent ended with an error; these requests had failed:", *told]))


def _tail(mark: Mark) -> str:
    return mark.behind().decode("utf-8", "replace")[-TAIL:]
