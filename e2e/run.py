"""One client does one task with one model: its own tool has to make the proof.

The model is asked for two calls in one reply, each of which writes a half, and behind their results for a third that
puts the halves together. So the proof is there only if both calls were run, their results went back, and the next turn
was understood as well; the gateway's captures tell that they came in one reply. And the client must end well by itself.
"""

from __future__ import annotations

import os
import secrets
import signal
import subprocess
import time
from contextlib import suppress
from pathlib import Path

from msgspec import Struct

from e2e.client import Client, Launch, Task
from e2e.gateway import Exchange, Gateway
from e2e.install import search_path

__all__ = ["Errand", "Outcome", "missing", "prompt", "run"]

PROOF = "proof.txt"
SHOWN = 300
CAPTURED = 5.0
"""How long the capture of the last exchange may take to get its name."""


class Errand(Struct, frozen=True):
    """One cell of the table."""

    client: Client
    api: str
    model: str


class Outcome(Struct, frozen=True):
    errand: Errand
    seconds: float
    why: str = ""
    """What is missing; "": all is well."""


def prompt(client: Client, first: str, second: str) -> str:
    """The task in the demo model's little language."""

    def call(command: str) -> str:
        return f"{client.tool} {client.param}='{command}'"

    halves = " and ".join(call(f"printf %s {half} > {name}.txt") for name, half in (("a", first), ("b", second)))
    return f"Use {halves}, then {call(f'cat a.txt b.txt > {PROOF}')}"


def run(errand: Errand, gateway: Gateway, installed: Path, folder: Path) -> Outcome:
    """Starts the client in a fresh folder, waits for it, ends all it has started, and looks at what it has made."""
    first, second = secrets.token_hex(8), secrets.token_hex(8)
    home, work = folder / "home", folder / "work"
    work.mkdir(parents=True)
    task = Task(
        base=gateway.base,
        api=errand.api,
        model=errand.model,
        key=gateway.key,
        prompt=prompt(errand.client, first, second),
        home=str(home),
        npm=str(installed / "npm"),
    )
    launch = errand.client.start(task)
    _write(home, launch.files)
    began, started = time.time(), time.monotonic()
    ended = _execute(launch, errand.client, home, work, installed)
    seconds = time.monotonic() - started
    exchanges = _exchanges(gateway, first, began)
    made = work / PROOF
    lacks = missing(made.read_text(errors="replace") if made.exists() else None, first + second, exchanges)
    failed = [part for part in (lacks, ended) if part]
    return Outcome(errand, seconds, "; ".join([*failed, *_said(folder)]) if failed else "")


def missing(proof: str | None, expected: str, exchanges: list[Exchange]) -> str:
    """Why this is no success; "": it is one."""
    failed = next((one for one in exchanges if one.outcome not in ("ok", "client-left")), None)
    if failed:
        return f"a request was {failed.outcome}: {failed.error[:SHOWN]}"
    if not exchanges:
        return "the gateway was not asked"
    several = next((at for at, one in enumerate(exchanges) if one.calls >= 2), None)
    if several is None:
        return "no reply had two calls"
    if not any(one.calls for one in exchanges[several + 1 :]):
        return "no turn with a call came behind the two calls"
    if proof is None:
        return f"no {PROOF} was made"
    return "" if proof == expected else f"{PROOF} is {proof[:80]!r} instead of {expected!r}"


def _write(home: Path, files: dict[str, str]) -> None:
    (home / "tmp").mkdir(parents=True)
    for name, text in files.items():
        path = home / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")


def _execute(launch: Launch, client: Client, home: Path, work: Path, installed: Path) -> str:
    """How it ended, if not well. Whatever it has started ends with it."""
    environment = {
        "PATH": search_path(installed, client, os.environ.get("PATH", os.defpath)),
        "HOME": str(home),
        "TMPDIR": str(home / "tmp"),
        "LANG": "C.UTF-8",
        "TERM": "dumb",
        "npm_config_offline": "true",  # some install more of themselves once they run
        **launch.environment,
    }
    with (home.parent / "output").open("wb") as output:
        process = subprocess.Popen(
            ["env", *launch.argv],  # found on the client's PATH, not on ours
            cwd=work,
            env=environment,
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=subprocess.STDOUT,
            start_new_session=True,
        )
    try:
        code = process.wait(client.seconds)
    except subprocess.TimeoutExpired:
        return f"it had not ended after {client.seconds:.0f} s"
    finally:
        with suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
        process.wait()
    return f"it ended with {code}" if code else ""


def _exchanges(gateway: Gateway, about: str, since: float) -> list[Exchange]:
    """Those of this run. The last one's capture may still be on its way to the disk."""
    until = time.monotonic() + CAPTURED
    while True:
        exchanges = gateway.exchanges(about, since)
        if (exchanges and not exchanges[-1].calls) or time.monotonic() > until:
            return exchanges
        time.sleep(0.1)


def _said(folder: Path) -> list[str]:
    """Its last words, if there are any."""
    lines = (folder / "output").read_text(errors="replace").strip().splitlines()
    return [f"it said {line.strip()[:SHOWN]!r}" for line in lines[-1:]]
