"""What `make e2e` is made of: which runs there are, when one counts, how all are told. No client is started here."""

from __future__ import annotations

import re
from datetime import date
from pathlib import Path

import pytest

from e2e.__main__ import MODELS, main
from e2e.client import Client, Launch, Task
from e2e.clients import CLIENTS
from e2e.gateway import Exchange, Gateway
from e2e.run import Errand, Outcome, missing, prompt, run
from e2e.table import page, table
from interlingua.core.tools import Tool, ToolSet
from interlingua.dialects.registry import get_dialect
from interlingua.gateway.demo.prompt_language import parse_steps

TOY = Client(name="toy", title="Toy", version="1.2", apis=("openai-chat",), start=lambda _: Launch(argv=["toy"]))


def exchange(calls: int, outcome: str = "ok", error: str = "") -> Exchange:
    return Exchange(b"", calls, outcome, error)


@pytest.mark.parametrize(
    ("proof", "calls", "why"),
    [
        ("xy", [2, 1, 0], ""),
        ("xy", [0, 2, 1, 0], ""),  # some ask for a title first
        ("xy", [3, 1], ""),
        ("xy", [1, 1, 1, 0], "no reply had two calls"),
        ("xy", [2, 0], "no turn with a call came behind the two calls"),
        ("xy", [], "the gateway was not asked"),
        (None, [2, 1, 0], "no proof.txt was made"),
        ("x", [2, 1, 0], "proof.txt is 'x' instead of 'xy'"),
    ],
)
def test_a_run_counts_only_with_its_proof(proof: str | None, calls: list[int], why: str) -> None:
    assert missing(proof, "xy", [exchange(one) for one in calls]) == why


class Heard(Gateway, frozen=True):
    """One that was asked for all that is wanted."""

    def exchanges(self, *_: object) -> list[Exchange]:
        return [exchange(2), exchange(1), exchange(0)]


@pytest.mark.parametrize(
    ("then", "why"),
    [
        ("true", ""),
        ("echo some; echo done", ""),
        ("exit 3", "it ended with 3"),
        ("echo oh; exit 3", "it ended with 3; it said 'oh'"),
        ("sleep 60", "it had not ended after 2 s"),
        ("rm proof.txt; exit 3", "no proof.txt was made; it ended with 3"),
    ],
)
def test_a_client_has_to_end_well(tmp_path: Path, then: str, why: str) -> None:
    def start(task: Task) -> Launch:
        halves = "".join(re.findall(r"printf %s (\w+)", task.prompt))
        return Launch(argv=["sh", "-c", f"printf %s {halves} > proof.txt; {then}"])

    client = Client(name="toy", title="Toy", version="1.2", apis=("openai-chat",), start=start, seconds=2)
    gateway = Heard("http://127.0.0.1:1", "key", tmp_path)
    assert run(Errand(client, "openai-chat", "demo/kimi_k2"), gateway, tmp_path, tmp_path / "run").why == why


def test_a_request_that_failed_is_told_first() -> None:
    failed = exchange(0, "refused", "no such model")
    assert missing(None, "xy", [failed]) == "a request was refused: no such model"


@pytest.mark.parametrize("client", CLIENTS.values(), ids=list(CLIENTS))
def test_the_demo_model_understands_the_prompt(client: Client) -> None:
    schema = {"type": "object", "properties": {client.param: {"type": "string"}}}
    asked = parse_steps(prompt(client, "aa", "bb"), ToolSet([Tool(client.tool, schema)]))
    commands = [[wish.args[client.param] for wish in step] for step in asked]
    assert commands == [["printf %s aa > a.txt", "printf %s bb > b.txt"], ["cat a.txt b.txt > proof.txt"]]


@pytest.mark.parametrize("client", CLIENTS.values(), ids=list(CLIENTS))
def test_every_client_is_pinned_and_gets_the_key_in_secret(client: Client) -> None:
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
        told = [*launch.environment.values(), *launch.files.values()]
        assert not any("THE-KEY" in word for word in launch.argv)
        assert any("THE-KEY" in text for text in told)
        assert any("THE-PROMPT" in text for text in (*launch.argv, *told))


def test_models_of_the_table_are_dialects() -> None:
    assert [get_dialect(name).name for name in MODELS] == list(MODELS)


def test_a_table_and_its_page() -> None:
    outcomes = [
        Outcome(Errand(TOY, "openai-chat", "demo/kimi_k2"), 1.23),
        Outcome(Errand(TOY, "openai-chat", "demo/hermes"), 4.0, "it said 'a|b'"),
    ]
    assert table(outcomes).splitlines() == [
        "| client | version | API | `kimi_k2` | `hermes` |",
        "| --- | --- | --- | --- | --- |",
        "| Toy | 1.2 | `openai-chat` | ✅ | ❌ |",
    ]
    text = page(outcomes, 2, date(2026, 1, 2), 125)
    assert "2026-01-02. 1 of 2 runs are\ngreen; all took 2 minutes." in text
    assert "- Toy 1.2, `openai-chat`, `demo/hermes`: it said 'a\\|b'" in text
    assert "green; only 2 of 9 were made, and they took 2 minutes." in page(outcomes, 9, date(2026, 1, 2), 125)


def test_runs_can_be_chosen(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["--list", "--only", "claude", "--models", "kimi_k2"]) == 0
    assert capsys.readouterr().out == f"claude {CLIENTS['claude'].version} anthropic-messages demo/kimi_k2\n"


@pytest.mark.parametrize(
    ("args", "problem"),
    [
        (["--only", "nobody"], "'nobody' is none of claude, "),
        (["--only", ","], "'' is none of claude, "),
        (["--models", "nonsense"], "'nonsense' is none of "),
        (["--apis", "soap"], "'soap' is none of "),
        (["--only", "claude", "--apis", "openai-chat"], "claude cannot be run with openai-chat: see --list"),
    ],
)
def test_nothing_to_run_is_an_error(capsys: pytest.CaptureFixture[str], args: list[str], problem: str) -> None:
    for more in ([], ["--list"]):
        with pytest.raises(SystemExit) as stopped:
            main([*args, *more])
        assert stopped.value.code == 2
        assert problem in capsys.readouterr().err


def test_the_page_is_written_where_it_is_read(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr("e2e.__main__.PAGE", tmp_path / "clients.md")
    monkeypatch.setattr("e2e.__main__.installed", lambda *_: {})
    monkeypatch.setattr("e2e.__main__._run_all", lambda errands, *_: [Outcome(one, 1.0) for one in errands])
    assert main(["--only", "claude", "--write"]) == 0
    assert "6 of 6 runs are\ngreen; only 6 of " in (tmp_path / "clients.md").read_text()
    assert main(["--write", str(tmp_path / "other.md")]) == 0
    assert "green; all took" in (tmp_path / "other.md").read_text()
