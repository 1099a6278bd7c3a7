"""Tests of `interlingua config init`: what it writes is valid, complete with comments, and never replaces a file."""

from __future__ import annotations

import io
import os
import stat
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from interlingua.cli import main
from interlingua.cli.config import init
from interlingua.cli.gateway.model_choice import UpstreamModels
from interlingua.errors import BadInput
from interlingua.gateway.routing.routes import routes_for
from interlingua.gateway.settings.loader import load_settings


class CommandResult(NamedTuple):
    status: int
    out: str
    err: str


Cli = Callable[..., CommandResult]


@pytest.fixture
def cli(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Cli:
    """Run a command. With answers, standard input is a terminal."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(init, "list_models", lambda _: UpstreamModels(["moonshotai/kimi-k2.5", "z-ai/glm-4.6"]))

    def run(*argv: str, answers: list[str] | None = None) -> CommandResult:
        stdin = io.StringIO("".join(f"{answer}\n" for answer in answers or []))
        monkeypatch.setattr(stdin, "isatty", lambda: answers is not None, raising=False)
        monkeypatch.setattr(sys, "stdin", stdin)
        return CommandResult(main(["config", "init", *argv]), *capsys.readouterr())

    return run


FLAGS: dict[str, tuple[list[str], dict[str, Any]]] = {
    # options; settings that result from them
    "a server": (
        ["--upstream", "http://localhost:8000/v1"],
        {"upstreams": {"localhost": "http://localhost:8000/v1"}, "default": "localhost", "models": [], "keys": []},
    ),
    "a name": (["--upstream", "ollama"], {"upstreams": {"ollama": "http://localhost:11434/v1"}, "default": "ollama"}),
    "a provider and a model": (
        ["--upstream", "openrouter", "--model", "moonshotai/kimi-k2.5"],
        {
            "upstreams": {"openrouter": "https://openrouter.ai/api/v1"},
            "models": ["kimi-k2.5"],
            "tiers": {"opus": "kimi-k2.5", "sonnet": "kimi-k2.5", "haiku": "kimi-k2.5"},
        },
    ),
    "clients": (
        ["--upstream", "vllm", "--client", "alice", "--client", "ci", "--host", "0.0.0.0", "--port", "9000"],
        {"keys": ["alice", "ci"], "host": "0.0.0.0", "port": 9000},
    ),
    "odd names": (
        ["--upstream", "http://[::1]:1/v1", "--model", "a: b # 'c'*"],
        {"upstreams": {"::1": "http://[::1]:1/v1"}},
    ),
}


@pytest.mark.parametrize(("options", "expected"), FLAGS.values(), ids=FLAGS)
def test_settings_from_options(cli: Cli, options: list[str], expected: dict[str, Any]) -> None:
    result = cli(*options)
    assert (result.status, result.out) == (0, ""), result.err
    loaded = load_settings("interlingua.yaml", {"OPENROUTER_API_KEY": "sk-1"})
    routes_for(loaded)
    settings = loaded.settings
    actual = {
        "upstreams": {name: upstream.url for name, upstream in settings.upstreams.items()},
        "default": settings.default,
        "models": list(settings.models),
        "tiers": settings.tiers,
        "keys": list(settings.client_keys),
        "host": settings.host,
        "port": settings.port,
    }
    assert {name: actual[name] for name in expected} == expected
    text = Path("interlingua.yaml").read_text(encoding="utf-8")
    assert text.count("\n# ") >= 8, "the file explains itself"
    assert max(map(len, text.splitlines())) <= 80
    assert "next: interlingua config check" in result.err


def test_generated_keys_are_in_a_private_file(cli: Cli) -> None:
    Path(".env").write_text("ALICE_KEY=mine\nOTHER=x", encoding="utf-8")
    os.chmod(".env", 0o644)
    result = cli("--upstream", "vllm", "--client", "alice", "--client", "bob-2")
    lines = Path(".env").read_text(encoding="utf-8").splitlines()
    assert lines[:2] == ["ALICE_KEY=mine", "OTHER=x"]
    name, _, key = lines[2].partition("=")
    assert (name, len(lines)) == ("BOB_2_KEY", 3)
    assert len(key) >= 32
    assert stat.S_IMODE(os.stat(".env").st_mode) == 0o600
    assert load_settings("interlingua.yaml", {}).settings.client_keys == {"alice": "mine", "bob-2": key}
    assert key not in Path("interlingua.yaml").read_text() + result.err


def test_questions_on_a_terminal(cli: Cli, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPENROUTER_API_KEY", "sk-1")
    result = cli(answers=["openrouter", "", "2", "alice, bob"])
    assert result.status == 0, result.err
    settings = load_settings("interlingua.yaml", {"OPENROUTER_API_KEY": "sk-1"}).settings
    assert settings.upstreams["openrouter"].key == "sk-1"
    assert list(settings.models) == ["glm-4.6"]
    assert list(settings.client_keys) == ["alice", "bob"]
    assert "  2  z-ai/glm-4.6" in result.err


def test_answers_can_be_left_out(cli: Cli) -> None:
    assert cli(answers=["", "", "", ""]).status == 0
    settings = load_settings("interlingua.yaml", {}).settings
    assert settings.upstreams["vllm"].url == "http://localhost:8000/v1"
    assert (settings.models, settings.keys) == ({}, [])


def test_unusable_answer_is_asked_again(cli: Cli) -> None:
    result = cli(answers=["not a url", "http://localhost:1/v1", "", "7", "1", "no spaces", "alice"])
    assert result.status == 0, result.err
    assert "'not a url' is not an http or https URL" in result.err
    assert "'7' is not in the list" in result.err
    assert "'no spaces' cannot be the name of a client" in result.err


def test_unreachable_upstream_is_no_error(cli: Cli, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(_: object) -> UpstreamModels:
        raise BadInput("the upstream cannot be used: Connection refused", "")

    monkeypatch.setattr(init, "list_models", fail)
    result = cli(answers=["vllm", "", "my-model", ""])
    assert result.status == 0
    assert "note: the upstream cannot be used: Connection refused" in result.err
    assert list(load_settings("interlingua.yaml", {}).settings.models) == ["my-model"]


@pytest.mark.parametrize(
    ("options", "status", "error"),
    [
        ([], 2, "error: --upstream is not specified\nhint: for example: --upstream http://localhost:8000/v1"),
        (["--upstream", "nonsense"], 1, "error: 'nonsense' is not an http or https URL\nhint: known: deepseek, "),
        (["--upstream", "vlm"], 1, "error: 'vlm' is not an http or https URL\nhint: did you mean 'vllm'?"),
        (["--upstream", "vllm", "--host", "0.0.0.0"], 2, "so a key is required\nhint: add --client NAME"),
        (["--upstream", "vllm", "--upstream-key-env", "A-B"], 1, "error: 'A-B' is not the name of a variable"),
        (["--upstream", "vllm", "--client", "a b"], 1, "error: keys.a b: 'a b' cannot be the name of a client"),
        (["--upstream", "vllm", "--port", "x"], 1, "error: port: expected a whole number"),
        (["--upstream", "vllm", "-o", "none/x.yaml"], 1, "error: cannot write none/x.yaml: No such file or directory"),
    ],
)
def test_errors(cli: Cli, options: list[str], status: int, error: str) -> None:
    result = cli(*options)
    assert (result.status, result.out) == (status, "")
    assert error in result.err
    assert not Path("interlingua.yaml").exists()
    assert not Path(".env").exists()


def test_existing_file_is_kept(cli: Cli) -> None:
    Path("interlingua.yaml").write_text("demo: true\n", encoding="utf-8")
    result = cli("--upstream", "vllm")
    assert result.status == 1
    assert "error: interlingua.yaml exists already\nhint: --force replaces it" in result.err
    assert Path("interlingua.yaml").read_text(encoding="utf-8") == "demo: true\n"
    assert cli("--upstream", "vllm", "-o", "other.yaml").status == 0
    assert cli("--upstream", "vllm", "--force").status == 0
    assert load_settings("interlingua.yaml", {}).settings.demo is False
