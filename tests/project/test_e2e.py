"""Tests of the end-to-end framework: selection of runs, success criteria, table. No client is started here."""

from __future__ import annotations

import re
from datetime import date
from pathlib import Path
from typing import Any

import pytest

from e2e.__main__ import MODELS, PLAIN, main
from e2e.client import Client, Launch, Task
from e2e.clients import CLIENTS
from e2e.gateway import Exchange, Gateway
from e2e.plain_server import refusal
from e2e.run import Outcome, RunSpec, find_problem, prompt, run
from e2e.table import page, table
from interlingua.core.tools import Tool, ToolSet
from interlingua.dialects.registry import get_dialect
from interlingua.gateway.demo.prompt_language import parse_steps
from interlingua.upstreams.refusals import recognize_refusal

TOY = Client(name="toy", title="Toy", version="1.2", apis=("openai-chat",), start=lambda _: Launch(argv=["toy"]))


def exchange(calls: int, outcome: str = "ok", error: str = "") -> Exchange:
    return Exchange(b"", calls, outcome, error)


@pytest.mark.parametrize(
    ("proof", "calls", "why"),
    [
        ("xy", [2, 1, 0], ""),
        ("xy", [0, 2, 1, 0], ""),  # some clients request a title first
        ("xy", [3, 1], ""),
        ("xy", [1, 1, 1, 0], "no reply had two calls"),
        ("xy", [2, 0], "no later reply had a call"),
        ("xy", [], "the gateway received no request"),
        (None, [2, 1, 0], "proof.txt is missing"),
        ("x", [2, 1, 0], "proof.txt is 'x' instead of 'xy'"),
    ],
)
def test_run_succeeds_only_with_proof_file(proof: str | None, calls: list[int], why: str) -> None:
    assert find_problem(proof, "xy", [exchange(one) for one in calls]) == why


class SuccessfulGateway(Gateway, frozen=True):
    """Gateway with all exchanges of a successful run."""

    def exchanges(self, *_: object) -> list[Exchange]:
        return [exchange(2), exchange(1), exchange(0)]


@pytest.mark.parametrize(
    ("then", "why"),
    [
        ("true", ""),
        ("echo some; echo done", ""),
        ("exit 3", "exit status 3"),
        ("echo oh; exit 3", "exit status 3; last output: 'oh'"),
        ("sleep 60", "the client was still running after 2 s"),
        ("rm proof.txt; exit 3", "proof.txt is missing; exit status 3"),
    ],
)
def test_client_must_exit_with_status_0(tmp_path: Path, then: str, why: str) -> None:
    def start(task: Task) -> Launch:
        halves = "".join(re.findall(r"printf %s (\w+)", task.prompt))
        return Launch(argv=["sh", "-c", f"printf %s {halves} > proof.txt; {then}"])

    client = Client(name="toy", title="Toy", version="1.2", apis=("openai-chat",), start=start, seconds=2)
    gateway = SuccessfulGateway("http://127.0.0.1:1", "key", tmp_path)
    assert run(RunSpec(client, "openai-chat", "demo/kimi_k2"), gateway, tmp_path, tmp_path / "run").why == why


def test_failed_request_is_reported_first() -> None:
    failed = exchange(0, "refused", "no such model")
    assert find_problem(None, "xy", [failed]) == "a request failed (refused): no such model"


@pytest.mark.parametrize("client", CLIENTS.values(), ids=list(CLIENTS))
def test_demo_model_parses_the_prompt(client: Client) -> None:
    schema = {"type": "object", "properties": {client.param: {"type": "string"}}}
    steps = parse_steps(prompt(client, "aa", "bb"), ToolSet([Tool(client.tool, schema)]))
    commands = [[call.args[client.param] for call in step] for step in steps]
    assert commands == [["printf %s aa > a.txt", "printf %s bb > b.txt"], ["cat a.txt b.txt > proof.txt"]]


@pytest.mark.parametrize("client", CLIENTS.values(), ids=list(CLIENTS))
def test_client_is_pinned_and_key_is_not_in_arguments(client: Client) -> None:
    assert client.npm or client.python
    assert client.version in {**client.npm, **client.python}.values()
    for api in client.apis:
        task = Task(
            base="http://127.0.0.1:1",
            api=api,
            model="demo/kimi_k2",
            key="THE-KEY",
            prompt="THE-PROMPT",
            home="/home/x",
            npm="/npm",
        )
        launch = client.start(task)
        texts = [*launch.environment.values(), *launch.files.values()]
        assert not any("THE-KEY" in argument for argument in launch.argv)
        assert any("THE-KEY" in text for text in texts)
        assert any("THE-PROMPT" in text for text in (*launch.argv, *texts))


def test_models_in_table_are_dialects() -> None:
    dialects = [name for name in MODELS if name != PLAIN]
    assert [get_dialect(name).name for name in dialects] == dialects


LARGE = [{"role": "user", "content": "x" * 200_000}]
QUESTION = [{"role": "user", "content": "hi"}]
IMAGE = [{"role": "user", "content": [{"type": "image_url", "image_url": {"url": "data:image/png;base64,AA=="}}]}]
TOOLS = [{"type": "function", "function": {"name": "ls", "parameters": {}}}]


@pytest.mark.parametrize(
    ("body", "kind"),
    [
        ({"messages": QUESTION}, None),
        ({"messages": QUESTION, "tools": TOOLS, "tool_choice": "none", "max_tokens": 4000}, None),
        ({"messages": QUESTION, "tools": TOOLS}, "no-tool-parser"),
        ({"messages": IMAGE}, "no-images"),
        ({"messages": QUESTION, "max_tokens": 64_000}, "window"),
        ({"messages": LARGE}, "window"),
    ],
)
def test_plain_server_refuses_as_the_gateway_expects(body: dict[str, Any], kind: str | None) -> None:
    message = refusal(body)
    recognized = recognize_refusal(400, message) if message else None
    assert (recognized.kind if recognized else None) == kind


def test_table_and_page() -> None:
    outcomes = [
        Outcome(RunSpec(TOY, "openai-chat", "demo/kimi_k2"), 1.23),
        Outcome(RunSpec(TOY, "openai-chat", "demo/hermes"), 4.0, "last output: 'a|b'"),
    ]
    assert table(outcomes).splitlines() == [
        "| client | version | API | `kimi_k2` | `hermes` |",
        "| --- | --- | --- | --- | --- |",
        "| Toy | 1.2 | `openai-chat` | ✅ | ❌ |",
    ]
    text = page(outcomes, 2, date(2026, 1, 2), 125)
    assert "2026-01-02. 1 of 2 runs are\ngreen; all took 2 minutes." in text
    assert "- Toy 1.2, `openai-chat`, `demo/hermes`: last output: 'a\\|b'" in text
    assert "green; only 2 of 9 were run, and they took 2 minutes." in page(outcomes, 9, date(2026, 1, 2), 125)


def test_options_select_runs(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["--list", "--only", "claude", "--models", "kimi_k2"]) == 0
    assert capsys.readouterr().out == f"claude {CLIENTS['claude'].version} anthropic-messages demo/kimi_k2\n"


@pytest.mark.parametrize(
    ("args", "problem"),
    [
        (["--only", "unknown"], "'unknown' is unknown; known: claude, "),
        (["--only", ","], "'' is unknown; known: claude, "),
        (["--models", "nonsense"], "'nonsense' is unknown; known: "),
        (["--apis", "soap"], "'soap' is unknown; known: "),
        (["--only", "claude", "--apis", "openai-chat"], "no run of claude with openai-chat: see --list"),
    ],
)
def test_empty_selection_is_an_error(capsys: pytest.CaptureFixture[str], args: list[str], problem: str) -> None:
    for more in ([], ["--list"]):
        with pytest.raises(SystemExit) as stopped:
            main([*args, *more])
        assert stopped.value.code == 2
        assert problem in capsys.readouterr().err


def test_page_is_written_to_its_path(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr("e2e.__main__.PAGE", tmp_path / "clients.md")
    monkeypatch.setattr("e2e.__main__.install_clients", lambda *_: {})
    monkeypatch.setattr("e2e.__main__._run_all", lambda specs, *_: [Outcome(one, 1.0) for one in specs])
    assert main(["--only", "claude", "--write"]) == 0
    assert "7 of 7 runs are\ngreen; only 7 of " in (tmp_path / "clients.md").read_text()
    assert main(["--write", str(tmp_path / "other.md")]) == 0
    assert "green; all took" in (tmp_path / "other.md").read_text()
