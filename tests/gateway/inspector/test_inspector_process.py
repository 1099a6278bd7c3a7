"""The inspector of a running gateway: its process, several workers, keys, and what happens when it dies."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
import urllib.error
import urllib.request
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any, TypeVar

import pytest

from tests.support.gateway_process import GatewayProcess, run_gateway

T = TypeVar("T")
TIMEOUT_SECONDS = 60
TOOL = {"name": "ls", "input_schema": {"type": "object", "properties": {"path": {"type": "string"}}}}


def get(gateway: GatewayProcess, path: str, key: str = "", **headers: str) -> tuple[int, Any]:
    sent = {**({"authorization": f"Bearer {key}"} if key else {}), **headers}
    request = urllib.request.Request(f"{gateway.base}{path}", headers=sent)
    try:
        with urllib.request.urlopen(request, timeout=TIMEOUT_SECONDS) as response:
            data = response.read()
            return response.status, json.loads(data) if path.startswith("/inspector/api/") else data
    except urllib.error.HTTPError as error:
        return error.code, error.read()


def ask(gateway: GatewayProcess, text: str, key: str = "any", model: str = "demo/kimi_k2") -> None:
    """Send a request to a demo model, on a connection of its own."""
    body = {"model": model, "max_tokens": 99, "stream": True, "tools": [TOOL]}
    body["messages"] = [{"role": "user", "content": text}]
    headers = {"authorization": f"Bearer {key}", "connection": "close"}
    request = urllib.request.Request(f"{gateway.base}/v1/messages", json.dumps(body).encode(), headers)
    with urllib.request.urlopen(request, timeout=TIMEOUT_SECONDS) as response:
        response.read()


def wait_for(find: Callable[[], T]) -> T:
    """Call the function until it returns something true, and return that."""
    deadline = time.monotonic() + TIMEOUT_SECONDS
    while not (found := find()):
        assert time.monotonic() < deadline, "waited too long"
        time.sleep(0.05)
    return found


def finished(gateway: GatewayProcess, count: int, key: str = "") -> list[dict[str, Any]]:
    """Wait for so many finished exchanges, and return them in the order of their requests."""

    def find() -> list[dict[str, Any]]:
        status, listed = get(gateway, "/inspector/api/exchanges", key)
        exchanges = listed["exchanges"] if status == 200 else []
        done = [one for one in exchanges if one.get("outcome") == "ok"]
        return sorted(done, key=lambda one: one["time"]) if len(done) >= count else []

    return wait_for(find)


def child_processes(process: int, name: str) -> list[int]:
    """Return the ids of the processes below this one whose command line has this name."""
    found = []
    for task in Path("/proc").glob("[0-9]*"):
        with suppress(OSError, ValueError, IndexError):
            command = (task / "cmdline").read_bytes().replace(b"\0", b" ").decode()
            parent = int((task / "stat").read_text().rpartition(")")[2].split()[1])
            if parent == process and name in command:
                found.append(int(task.name))
    return found


def test_exchanges_of_a_running_gateway_are_shown(tmp_path: Path) -> None:
    keep = tmp_path / "kept.db"
    with run_gateway("--demo", "--inspect", INTERLINGUA_INSPECT__KEEP=str(keep)) as gateway:
        log = gateway.wait_for_log("inspector: ")
        assert f"inspector: {gateway.base}/inspector/" in log
        ask(gateway, "use ls path=/etc")
        (exchange,) = finished(gateway, 1)
        assert exchange["title"] == "use ls path=/etc"
        assert (exchange["upstream"], exchange["dialect"], exchange["calls"]) == ("demo", "kimi_k2", 1)
        status, detail = get(gateway, f"/inspector/api/exchanges/{exchange['id']}")
        assert status == 200
        assert detail["attempts"][0]["connect_seconds"] > 0
        assert get(gateway, "/inspector/")[0] == 200
        assert get(gateway, "/inspector/api/exchanges", host="evil.example")[0] == 403
        assert get(gateway, "/inspector/api/exchanges", origin="http://evil.example")[0] == 403
        (inspector,) = child_processes(gateway.process.pid, "inspector.process_main")
        assert gateway.stop() == 0
        wait_for(lambda: not Path(f"/proc/{inspector}").exists())
    with run_gateway("--demo", "--inspect", INTERLINGUA_INSPECT__KEEP=str(keep)) as gateway:
        (kept,) = finished(gateway, 1)
        assert kept["id"] == exchange["id"], "it is kept over a restart"


def test_gateway_without_the_option_has_no_inspector() -> None:
    with run_gateway("--demo") as gateway:
        assert get(gateway, "/inspector/")[0] == 404
        assert child_processes(gateway.process.pid, "inspector") == []


@pytest.mark.slow
def test_exchanges_of_all_workers_are_shown() -> None:
    with run_gateway("--demo", "--inspect", "--workers", "2") as gateway:
        texts = [f"use ls path=/{number}" for number in range(12)]
        for text in texts:
            ask(gateway, text)
        assert [one["title"] for one in finished(gateway, 12)] == texts
        # The kernel spreads connections over the workers: each of them shows the exchanges of both.
        for _ in range(8):
            assert len(get(gateway, "/inspector/api/exchanges")[1]["exchanges"]) == 12
        assert gateway.stop() == 0


@pytest.mark.slow
@pytest.mark.parametrize("workers", ["1", "2"])
def test_dead_inspector_is_replaced(workers: str) -> None:
    with run_gateway("--demo", "--inspect", "--workers", workers) as gateway:
        ask(gateway, "before")
        finished(gateway, 1)
        wait_for(lambda: child_processes(gateway.process.pid, "inspector.process_main"))
        time.sleep(5.1)  # a process that dies sooner is not started again
        (inspector,) = child_processes(gateway.process.pid, "inspector.process_main")
        os.kill(inspector, signal.SIGKILL)
        gateway.wait_for_log("the inspector's process has died", TIMEOUT_SECONDS)
        ask(gateway, "still served")

        def is_recorded() -> bool:
            ask(gateway, "recorded again")
            status, listed = get(gateway, "/inspector/api/exchanges")
            return status == 200 and any(one.get("title") == "recorded again" for one in listed["exchanges"])

        wait_for(is_recorded)
        assert gateway.stop() == 0


def test_page_of_a_gateway_with_keys_needs_the_operators_key() -> None:
    config = (
        "demo: true\nkeys: [first-key-0123456789, second-key-0123456789]\n"
        "inspect: {enabled: true, key: operator-key-0123456789}\n"
    )
    with run_gateway(config=config) as gateway:
        ask(gateway, "my key is second-key-0123456789", "second-key-0123456789")
        assert get(gateway, "/inspector/")[0] == 200
        assert get(gateway, "/inspector/api/exchanges")[0] == 401
        assert get(gateway, "/inspector/api/exchanges", "first-key-0123456789")[0] == 401
        (exchange,) = finished(gateway, 1, "operator-key-0123456789")
        assert exchange["key"] == "key-2"
        assert exchange["title"] == "my key is ***"
        for path in ("", "/request", "/export/html", "/export/curl", "/export/capture"):
            request = urllib.request.Request(
                f"{gateway.base}/inspector/api/exchanges/{exchange['id']}{path}",
                headers={"authorization": "Bearer operator-key-0123456789"},
            )
            with urllib.request.urlopen(request, timeout=TIMEOUT_SECONDS) as response:
                data = response.read()
            for key in (b"first-key", b"second-key", b"operator-key"):
                assert key not in data, path


@pytest.mark.parametrize(
    ("config", "problem"),
    [
        ("keys: [a1, b2]\ninspect: {enabled: true}\n", "each client could read the conversations of the others"),
        (
            "host: 0.0.0.0\nkeys: [0123456789abcdefgh]\ninspect: {enabled: true, key: short}\n",
            "could be guessed from other machines",
        ),
    ],
)
def test_settings_that_would_show_conversations_are_refused(tmp_path: Path, config: str, problem: str) -> None:
    (tmp_path / "interlingua.yaml").write_text(f"demo: true\n{config}")
    result = subprocess.run(
        [sys.executable, "-m", "interlingua", "config", "check", str(tmp_path / "interlingua.yaml")],
        capture_output=True,
        text=True,
    )
    assert result.returncode == 1
    assert problem in result.stderr
