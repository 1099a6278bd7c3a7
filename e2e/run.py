"""One end-to-end run: a client does one task with one model, and its own tool writes a proof file.

The prompt makes the model send two calls in one reply, each of which writes one half, and after their results a third
call that joins the halves. So the proof file exists only if the client ran both calls, sent their results back, and
understood the next turn. The gateway's captures show that the two calls came in one reply. The client must also exit
with status 0. A client that can read images first reads one, also with models that see none.
"""

from __future__ import annotations

import os
import secrets
import signal
import subprocess
import time
from base64 import b64decode
from contextlib import suppress
from pathlib import Path

from msgspec import Struct

from e2e.client import Client, Launch, Task
from e2e.gateway import Exchange, Gateway
from e2e.install import search_path

__all__ = ["Outcome", "RunSpec", "find_problem", "prompt", "run"]

PROOF = "proof.txt"
IMAGE = b64decode("iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mP8z8BQDwAEhQGAhKmMIQAAAABJRU5ErkJggg==")
"""PNG of one pixel."""
SHOWN = 300
CAPTURED = 5.0
"""Seconds to wait for the capture file of the last exchange."""


class RunSpec(Struct, frozen=True):
    """Client, API and model of one run: one cell of the table."""

    client: Client
    api: str
    model: str


class Outcome(Struct, frozen=True):
    spec: RunSpec
    seconds: float
    why: str = ""
    """Reason of the failure; "": success."""


def prompt(client: Client, first: str, second: str, image: str = "") -> str:
    """Return the task in the prompt language of the demo model. `image`: path of an image to be read first."""

    def call(command: str) -> str:
        return f"{client.tool} {client.param}='{command}'"

    halves = " and ".join(call(f"printf %s {half} > {name}.txt") for name, half in (("a", first), ("b", second)))
    look = f"{client.image_tool}='{image}', then " if client.image_tool and image else ""
    return f"Use {look}{halves}, then {call(f'cat a.txt b.txt > {PROOF}')}"


def run(
    spec: RunSpec, gateway: Gateway, installed: Path, folder: Path, halves: tuple[str, str] | None = None
) -> Outcome:
    """Run the client in a new folder, wait for it, end all processes that it started, and check the proof file.

    `halves` are the halves of the proof; None: new ones, so that no earlier run can have written them.
    """
    first, second = halves or (secrets.token_hex(8), secrets.token_hex(8))
    home, work = folder / "home", folder / "work"
    work.mkdir(parents=True)
    (work / "dot.png").write_bytes(IMAGE)
    task = Task(
        base=gateway.base,
        api=spec.api,
        model=spec.model,
        key=gateway.key,
        prompt=prompt(spec.client, first, second, str(work / "dot.png")),
        home=str(home),
        npm=str(installed / "npm"),
    )
    launch = spec.client.start(task)
    _write(home, launch.files)
    began, started = time.time(), time.monotonic()
    ended = _execute(launch, spec.client, home, work, installed)
    seconds = time.monotonic() - started
    exchanges = _exchanges(gateway, first, began)
    made = work / PROOF
    lacks = find_problem(made.read_text(errors="replace") if made.exists() else None, first + second, exchanges)
    failed = [part for part in (lacks, ended) if part]
    return Outcome(spec, seconds, "; ".join([*failed, *_last_output(folder)]) if failed else "")


def find_problem(proof: str | None, expected: str, exchanges: list[Exchange]) -> str:
    """Return the reason why the run failed; "": it succeeded."""
    failed = next((one for one in exchanges if one.outcome not in ("ok", "client-left")), None)
    if failed:
        return f"a request failed ({failed.outcome}): {failed.error[:SHOWN]}"
    if not exchanges:
        return "the gateway received no request"
    several = next((at for at, one in enumerate(exchanges) if one.calls >= 2), None)
    if several is None:
        return "no reply had two calls"
    if not any(one.calls for one in exchanges[several + 1 :]):
        return "no later reply had a call"
    if proof is None:
        return f"{PROOF} is missing"
    return "" if proof == expected else f"{PROOF} is {proof[:80]!r} instead of {expected!r}"


def _write(home: Path, files: dict[str, str]) -> None:
    (home / "tmp").mkdir(parents=True)
    for name, text in files.items():
        path = home / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")


def _execute(launch: Launch, client: Client, home: Path, work: Path, installed: Path) -> str:
    """Run the client and end all processes that it started.

    Returns:
        How the client failed; "": it exited with status 0.
    """
    environment = {
        "PATH": search_path(installed, client, os.environ.get("PATH", os.defpath)),
        "HOME": str(home),
        "TMPDIR": str(home / "tmp"),
        "LANG": "C.UTF-8",
        "TERM": "dumb",
        "npm_config_offline": "true",  # some clients install more packages when they run
        **launch.environment,
    }
    with (home.parent / "output").open("wb") as output:
        process = subprocess.Popen(
            ["env", *launch.argv],  # searches the client's PATH, not ours
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
        return f"the client was still running after {client.seconds:.0f} s"
    finally:
        with suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
        process.wait()
    return f"exit status {code}" if code else ""


def _exchanges(gateway: Gateway, about: str, since: float) -> list[Exchange]:
    """Return the exchanges of this run. Wait for the last one, whose capture may not be written yet."""
    until = time.monotonic() + CAPTURED
    while True:
        exchanges = gateway.exchanges(about, since)
        if (exchanges and not exchanges[-1].calls) or time.monotonic() > until:
            return exchanges
        time.sleep(0.1)


def _last_output(folder: Path) -> list[str]:
    """Return the last line of the client's output, if there is one."""
    lines = (folder / "output").read_text(errors="replace").strip().splitlines()
    return [f"last output: {line.strip()[:SHOWN]!r}" for line in lines[-1:]]
