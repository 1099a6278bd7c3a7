"""Tests of the end-to-end framework: selection of runs, success criteria, table. No client is started here."""

from __future__ import annotations

import argparse
import re
from datetime import date
from pathlib import Path
from typing import Any

import pytest
from msgspec import structs

from e2e.__main__ import DIALECTS, MODELS, _run_all, main
from e2e.client import Client, Launch, Task
from e2e.clients import CLIENTS
from e2e.gateway import Exchange, Gateway
from e2e.plain_servers import SERVERS
from e2e.results import Results
from e2e.run import Outcome, RunSpec, run
from e2e.scenario import PARALLEL_CALLS, Evidence, Scenario
from e2e.scenarios import SCENARIO_RUNS
from e2e.table import page, scenario_table, table
from interlingua.core.tools import Tool, ToolSet
from interlingua.dialects.registry import get_dialect
from interlingua.gateway.demo.prompt_language import parse_steps
from interlingua.upstreams.refusals import recognize_refusal

TOY = Client(name="toy", title="Toy", version="1.2", apis=("openai-chat",), start=lambda _: Launch(argv=["toy"]))


def exchange(calls: int, outcome: str = "ok", error: str = "", body: bytes = b"", status: int = 200) -> Exchange:
    return Exchange(body, calls, outcome, error, status)


class ScriptedGateway(Gateway, frozen=True):
    """Gateway with these exchanges."""

    seen: list[Exchange]

    def exchanges(self, *_: object) -> list[Exchange]:
        return self.seen


def run_script(folder: Path, script: str, seen: list[Exchange], scenario: Scenario = PARALLEL_CALLS) -> Outcome:
    """Run a shell script as the client. `$TOKEN` in it is the expected content of the proof file."""

    def start(task: Task) -> Launch:
        token = "".join(re.findall(r"printf %s (\w+)", task.prompt))
        return Launch(argv=["sh", "-c", script], environment={"TOKEN": token})

    client = structs.replace(TOY, start=start, seconds=2)
    gateway = ScriptedGateway("http://127.0.0.1:1", "key", folder, folder / "log", seen)
    return run(RunSpec(client, "openai-chat", "demo/kimi_k2", "", scenario), gateway, folder, folder / "run")


PROVE = 'printf %s "$TOKEN" > proof.txt'
SUCCESS = [exchange(2), exchange(1), exchange(0)]


@pytest.mark.parametrize(
    ("script", "calls", "why"),
    [
        (PROVE, [2, 1, 0], ""),
        (PROVE, [0, 2, 1, 0], ""),  # some clients request a title first
        (PROVE, [3, 1, 0], ""),
        (PROVE, [1, 1, 1, 0], "no reply had two calls"),
        (PROVE, [2, 0], "no later reply had a call"),
        (PROVE, [0], "no reply had two calls"),
        ("true", [2, 1, 0], "proof.txt is missing"),
        ("printf x > proof.txt", [2, 1, 0], "proof.txt is 'x' instead of "),
    ],
)
def test_run_succeeds_only_with_proof_file(tmp_path: Path, script: str, calls: list[int], why: str) -> None:
    outcome = run_script(tmp_path, script, [exchange(one) for one in calls])
    assert outcome.why.startswith(why) if why else not outcome.why
    assert outcome.exchanges == len(calls)


def test_client_must_send_a_request(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("e2e.run.CAPTURED", 0)
    assert run_script(tmp_path, PROVE, []).why == "the gateway received no request"


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
    assert run_script(tmp_path, f"{PROVE}; {then}", SUCCESS).why == why


@pytest.mark.parametrize(
    ("expected", "why", "count"),
    [
        ("", "a request failed (refused): too long", 1),
        ("short", "a request failed (refused): too long", 1),
        ("long", "", 1),
    ],
)
def test_failed_request_is_reported_unless_the_scenario_expects_it(
    tmp_path: Path, expected: str, why: str, count: int
) -> None:
    scenario = structs.replace(PARALLEL_CALLS, expected_error=expected)
    refused = exchange(0, "refused", "too long", status=400)
    outcome = run_script(tmp_path, PROVE, [refused, *SUCCESS], scenario)
    assert outcome.why == why
    assert outcome.other_statuses == count


def schema_of(param: str) -> dict[str, Any]:
    return {"type": "object", "properties": {param: {"type": "string"}}}


@pytest.mark.parametrize("client", CLIENTS.values(), ids=list(CLIENTS))
def test_demo_model_parses_the_prompt(client: Client) -> None:
    tools = [Tool(client.tool, schema_of(client.param))]
    look: list[list[str]] = []
    if client.image_tool:
        name, param = client.image_tool.split()
        tools.append(Tool(name, schema_of(param)))
        look = [["/work/dot.png"]]
    steps = parse_steps(PARALLEL_CALLS.prompt(client, "aabb", Path("/work")), ToolSet(tools))
    values = [[value for call in step for value in call.args.values()] for step in steps]
    assert values == [*look, ["printf %s aa > a.txt", "printf %s bb > b.txt"], ["cat a.txt b.txt > proof.txt"]]


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
    assert [get_dialect(name).name for name in DIALECTS] == list(DIALECTS)
    assert set(MODELS) == {*DIALECTS, *SERVERS}


LARGE = [{"role": "user", "content": "x" * 200_000}]
QUESTION = [{"role": "user", "content": "hi"}]
IMAGE = [{"role": "user", "content": [{"type": "image_url", "image_url": {"url": "data:image/png;base64,AA=="}}]}]
TOOLS = [{"type": "function", "function": {"name": "ls", "parameters": {}}}]


LATE_SYSTEM = [*QUESTION, {"role": "system", "content": "now"}]


@pytest.mark.parametrize(
    ("server", "body", "kind"),
    [
        ("vllm", {"messages": QUESTION}, None),
        ("vllm", {"messages": QUESTION, "tools": TOOLS, "tool_choice": "none", "max_tokens": 4000}, None),
        ("vllm", {"messages": QUESTION, "tools": TOOLS}, "no-tool-parser"),
        ("vllm", {"messages": IMAGE}, "no-images"),
        ("vllm", {"messages": QUESTION, "max_tokens": 64_000}, "window"),
        ("vllm", {"messages": LARGE}, "window"),
        ("llama.cpp", {"messages": QUESTION, "tools": TOOLS, "max_tokens": 64_000}, None),
        ("llama.cpp", {"messages": IMAGE}, "no-images"),
        ("llama.cpp", {"messages": LATE_SYSTEM}, "unknown"),  # the gateway sends no such request to llama.cpp
        ("llama.cpp", {"messages": LARGE}, "window"),
        ("ollama", {"messages": LATE_SYSTEM, "tools": TOOLS, "reasoning_effort": "none"}, None),
        ("ollama", {"messages": QUESTION, "reasoning_effort": "high"}, "no-thinking"),
        ("ollama", {"messages": IMAGE}, "no-images"),
        ("ollama", {"messages": LARGE}, "window"),
    ],
)
def test_plain_servers_refuse_as_the_gateway_expects(server: str, body: dict[str, Any], kind: str | None) -> None:
    refusal = SERVERS[server].refuse(body)
    if refusal is None:
        assert kind is None
        return
    recognized = recognize_refusal(refusal.status, refusal.message)
    assert (recognized.kind if recognized else "unknown") == kind


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
    text = page(outcomes, 0, 2, date(2026, 1, 2), 125)
    assert "2026-01-02. 1 of 2 runs are\ngreen; all took 2 minutes." in text
    assert "- Toy 1.2, `openai-chat`, `demo/hermes`: last output: 'a\\|b'" in text
    assert "green; only 2 of 9 were run, and they took 2 minutes." in page(outcomes, 0, 9, date(2026, 1, 2), 125)


def test_scenario_table() -> None:
    scenario = structs.replace(PARALLEL_CALLS, name="long", title="long prompt", expected_error="too long")
    outcomes = [
        Outcome(RunSpec(TOY, "openai-chat", SERVERS["vllm"].model, "vllm", scenario), 1.0, "", 7, 2),
        Outcome(RunSpec(TOY, "openai-chat", "demo/hermes", "", scenario), 1.0, "", 5, 0),
        Outcome(RunSpec(TOY, "openai-chat", "demo/hermes"), 1.0, "", 3, 0),
    ]
    assert scenario_table(outcomes).splitlines()[2:] == [
        "| long prompt | Toy | `openai-chat` | plain vLLM | ✅ | 2 of 7: “too long” |",
        "| long prompt | Toy | `openai-chat` | `hermes` | ✅ | 0 of 5 |",
    ]
    text = page(outcomes, 1, 3, date(2026, 1, 2), 125)
    assert "Requests to models: 15. Answered with another status than 200: 3," in text
    assert "of which the scenarios explain 2; unexplained: 1. Aborted by the client: 0." in text


@pytest.mark.parametrize(
    ("options", "expected"),
    [
        (["--only", "claude", "--models", "kimi_k2"], "claude {version} anthropic-messages demo/kimi_k2\n"),
        (
            ["--only", "claude", "--scenarios", "unknown-window"],
            f"claude {{version}} anthropic-messages {SERVERS['vllm'].model} unknown-window\n",
        ),
    ],
)
def test_options_select_runs(capsys: pytest.CaptureFixture[str], options: list[str], expected: str) -> None:
    assert main(["--list", *options]) == 0
    assert capsys.readouterr().out == expected.format(version=CLIENTS["claude"].version)


@pytest.mark.parametrize("spec", SCENARIO_RUNS, ids=lambda spec: spec.name)
def test_scenarios_fail_without_their_evidence(tmp_path: Path, spec: RunSpec) -> None:
    """Even with the proof file, a run in which nothing of the scenario has happened is red."""
    (tmp_path / "proof.txt").write_text("token")
    evidence = Evidence("token", tmp_path, tmp_path, [exchange(1, body=b"{}"), exchange(0, body=b"{}")])
    assert spec.scenario.find_problem(evidence)
    assert "token" in spec.scenario.prompt(spec.client, "token", tmp_path)


@pytest.mark.parametrize(
    ("args", "problem"),
    [
        (["--only", "unknown"], "'unknown' is unknown; known: claude, "),
        (["--only", ","], "'' is unknown; known: claude, "),
        (["--models", "nonsense"], "'nonsense' is unknown; known: "),
        (["--scenarios", "nonsense"], "'nonsense' is unknown; known: none, "),
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
    def succeed(specs: list[RunSpec], _: object, results: Results, __: object) -> None:
        for spec in specs:
            results.add(Outcome(spec, 1.0))

    monkeypatch.setattr("e2e.__main__.PAGE", tmp_path / "clients.md")
    monkeypatch.setattr("e2e.__main__.FOLDER", tmp_path)
    monkeypatch.setattr("e2e.__main__.install_clients", lambda *_: {})
    monkeypatch.setattr("e2e.__main__._run_all", succeed)
    assert main(["--only", "claude", "--write"]) == 0
    runs = len(MODELS) + sum(spec.client.name == "claude" for spec in SCENARIO_RUNS)
    assert f"{runs} of {runs} runs are\ngreen; only {runs} of " in (tmp_path / "clients.md").read_text()
    assert main(["--write", str(tmp_path / "other.md")]) == 0
    assert "green; all took" in (tmp_path / "other.md").read_text()


def test_test_can_be_run_in_parts(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    done: list[str] = []

    def run_two(specs: list[RunSpec], _: object, results: Results, __: object) -> None:
        for number, spec in enumerate(specs[:2]):
            done.append(spec.name)
            results.add(Outcome(spec, 1.0, "broken" if number else "", 3))
        results.add_part(2.0, 0)

    monkeypatch.setattr("e2e.__main__.FOLDER", tmp_path)
    monkeypatch.setattr("e2e.__main__.install_clients", lambda *_: {})
    monkeypatch.setattr("e2e.__main__._run_all", run_two)
    options = ["--only", "claude", "--models", "kimi_k2,hermes,vllm"]
    assert main(options) == 1
    assert main([*options, "--resume"]) == 1  # the red one is repeated, and then the next one is red
    first, second, third, fourth = done
    assert SERVERS["vllm"].model.rpartition("/")[2] in first
    assert (second, fourth) == (third, "claude-anthropic-messages-hermes")
    assert main(options) == 1
    assert done[4] == first


def test_no_run_is_started_after_the_time(tmp_path: Path) -> None:
    results = Results(tmp_path / "results.jsonl", resume=False)
    spec = RunSpec(TOY, "openai-chat", "demo/kimi_k2")
    args = argparse.Namespace(minutes=1e-12, jobs=1, keep=False)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("e2e.__main__.FOLDER", tmp_path)
        _run_all([spec], {}, results, args)
    assert results.outcomes([spec]) == []
    assert results.seconds > 0
