"""One end-to-end run: a client does a task with one model, and its own tools write a proof file.

The client must exit with status 0, its proof file must have the expected text, and the gateway's captures must show
what the scenario is about. See `scenario.py` for the task of most runs, and `scenarios/` for the others.
"""

from __future__ import annotations

import os
import secrets
import signal
import subprocess
import time
from contextlib import suppress
from pathlib import Path

from msgspec import Struct, structs

from e2e.client import Client, Launch, Task
from e2e.gateway import Exchange, Gateway
from e2e.install import search_path
from e2e.scenario import PARALLEL_CALLS, Evidence, Scenario

__all__ = ["Outcome", "RunSpec", "run"]

SHOWN = 300
ABORTED = "client-left"
CAPTURED = 5.0
"""Seconds to wait for the capture file of the last exchange."""


class RunSpec(Struct, frozen=True):
    """Client, API, model and task of one run."""

    client: Client
    api: str
    model: str
    server: str = ""
    """Name of the plain server that has the model; empty: the gateway's own demo."""
    scenario: Scenario = PARALLEL_CALLS

    @property
    def name(self) -> str:
        parts = (self.client.name, self.api, self.model.rpartition("/")[2], self.scenario.name)
        return "-".join(filter(None, parts)).replace(":", "_")


class Outcome(Struct, frozen=True):
    spec: RunSpec
    seconds: float
    why: str = ""
    """Reason of the failure; "": success."""
    exchanges: int = 0
    other_statuses: int = 0
    """Exchanges with another status than 200. A green run has only those that its scenario expects."""
    aborted: int = 0
    """Exchanges whose reply the client did not wait for."""


def run(spec: RunSpec, gateway: Gateway, installed: Path, folder: Path, token: str = "") -> Outcome:
    """Run the client in a new folder, wait for it, end all processes that it started, and check the evidence.

    `token` is the content of the proof file; empty: a new one, so that no earlier run can have written it.
    """
    scenario, token = spec.scenario, token or secrets.token_hex(8)
    home, work = folder / "home", folder / "work"
    work.mkdir(parents=True)
    scenario.prepare(work)
    task = Task(
        base=gateway.base,
        api=spec.api,
        model=spec.model,
        key=gateway.key,
        prompt=scenario.prompt(spec.client, token, work),
        home=str(home),
        npm=str(installed / "npm"),
        context_tokens=scenario.context_tokens,
    )
    launch = scenario.extend(spec.client.start(task), task, work)
    _write(home, launch.files)
    began, started = time.time(), time.monotonic()
    ended = _execute(launch, spec.client, home, work, installed)
    seconds = time.monotonic() - started
    exchanges = _exchanges(gateway, token, began)
    problem = _status_problem(exchanges, scenario)
    problem = problem or scenario.find_problem(Evidence(token, work, home, exchanges))
    failed = [part for part in (problem, ended) if part]
    why = "; ".join([*failed, *_last_output(folder)]) if failed else ""
    aborted = sum(one.outcome == ABORTED for one in exchanges)
    others = sum(one.status != 200 and one.outcome != ABORTED for one in exchanges)
    return Outcome(spec, seconds, why, len(exchanges), others, aborted)


def _status_problem(exchanges: list[Exchange], scenario: Scenario) -> str:
    """Return the first request that failed, except those whose error the scenario expects."""
    if not exchanges:
        return "the gateway received no request"
    for one in exchanges:
        is_expected = bool(scenario.expected_error) and scenario.expected_error in one.error
        is_fine = one.outcome == ABORTED or (one.outcome == "ok" and one.status == 200)
        if not is_fine and not is_expected:
            return f"a request failed ({one.outcome}): {one.error[:SHOWN]}"
    return ""


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


def _exchanges(gateway: Gateway, token: str, since: float) -> list[Exchange]:
    """Return the exchanges of this run. Wait for the last one, whose capture may not be written yet."""
    until = time.monotonic() + CAPTURED
    while True:
        exchanges = gateway.exchanges(token, since)
        if (exchanges and not exchanges[-1].calls) or time.monotonic() > until:
            return [structs.replace(one, error=one.error or "") for one in exchanges]
        time.sleep(0.1)


def _last_output(folder: Path) -> list[str]:
    """Return the last line of the client's output, if there is one."""
    lines = (folder / "output").read_text(errors="replace").strip().splitlines()
    return [f"last output: {line.strip()[:SHOWN]!r}" for line in lines[-1:]]
