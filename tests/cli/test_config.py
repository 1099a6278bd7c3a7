"""Tests of `interlingua config` (check, show, schema) and of the options that override settings."""

from __future__ import annotations

import argparse
import json
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import msgspec
import pytest
import yaml

from docs.generate import EXAMPLE_SETTINGS_PATH, NESTED_SETTINGS
from interlingua.cli import main
from interlingua.cli.common.gateway_options import add_options, command_line, settings_from_args
from interlingua.cli.config.schema import struct_field_docs
from interlingua.errors import UsageError
from interlingua.gateway.routing.routes import routes_for
from interlingua.gateway.settings.loader import load_settings
from interlingua.gateway.settings.redaction import collect_secrets
from interlingua.gateway.settings.schema import Settings

FILE = """\
upstreams:
  router: {url: https://openrouter.ai/api/v1, key: "${KEY}", headers: {Authorization: Basic x, X-Title: mine}}
  own: {url: http://localhost:1/v1, passthrough: true, dialect: detect, extra: {api_key: x, max_tokens: 3, l: [1]}}
  open: {url: http://localhost:2/v1, api: anthropic-messages}
models:
  kimi: {upstream: router, model: moonshotai/kimi-k2, fallback: ["own/x"]}
  "own/*": {upstream: own, model: "*"}
  fast: kimi
tiers: {opus: fast}
demo: true
keys: ["${KEY}"]
seal_key: "${KEY}"
"""


class CommandResult(NamedTuple):
    status: int
    out: str
    err: str


Cli = Callable[..., CommandResult]


@pytest.fixture
def cli(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Cli:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("KEY", "sk-secret-0123456789")
    monkeypatch.delenv("XDG_CONFIG_HOME", raising=False)

    def run(*argv: str) -> CommandResult:
        try:
            status = main(argv)
        except SystemExit as end:
            status = int(end.code or 0)
        return CommandResult(status, *capsys.readouterr())

    return run


@pytest.mark.parametrize("command", ["check", "show", "schema"])
def test_every_command_has_help_with_examples(cli: Cli, command: str) -> None:
    result = cli("config", command, "--help")
    assert (result.status, result.err) == (0, "")
    assert f"interlingua config {command}" in result.out.partition("examples:")[2]
    assert f"interlingua config {command}" in cli("config", "--help").out


def test_check(cli: Cli) -> None:
    Path("interlingua.yaml").write_text(FILE, encoding="utf-8")
    expected = """\
settings: interlingua.yaml
listens on: 127.0.0.1:8484
upstreams:
  router  https://openrouter.ai/api/v1 (openai-chat, with a key)
  own     http://localhost:1/v1 (openai-chat, the client's key)
  open    http://localhost:2/v1 (anthropic-messages, no key)
  demo    demo/<dialect>, for every dialect
models:
  kimi    router: moonshotai/kimi-k2 (kimi_k2), then own: x (detect)
  own/*   own: *
  fast    router: moonshotai/kimi-k2 (kimi_k2), then own: x (detect)
tiers:
  opus    router: moonshotai/kimi-k2 (kimi_k2), then own: x (detect)
every other model: unknown
"""
    assert cli("config", "check") == cli("config") == CommandResult(0, expected, "")


def test_check_reports_errors_and_notes(cli: Cli, monkeypatch: pytest.MonkeyPatch) -> None:
    Path("mine.yaml").write_text(FILE.replace("fast: kimi", "fast: kimmi"), encoding="utf-8")
    result = cli("config", "check", "mine.yaml")
    error = "error: mine.yaml:8: models.fast: no entry of `models` is called 'kimmi'\nhint: did you mean 'kimi'?\n"
    assert result == CommandResult(1, "", error)
    monkeypatch.setenv("INTERLINGUA_PROT", "1")
    note = "note: INTERLINGUA_PROT ignored, because it is not a setting; did you mean 'INTERLINGUA_PORT'?\n"
    assert cli("config", "check", "mine.yaml").err == note + error


WRONG = """\
port: http
log: {format: xml, levle: debug}
upstreams:
  router: {url: openrouter.ai, key: "${NOT_SET}"}
  own: {api: openai-chat, profile: vlm}
default: ruter
models:
  kimi: {upstream: rooter, dialect: kimi_k3000}
  fast: kimmi
  slow: {upstrem: own}
tiers: {opis: kimi, haiku: slwo}
seal_key: short
"""
PROBLEMS = [
    ("interlingua.yaml:1: port: expected a whole number", "for example: port: 8484"),
    ("interlingua.yaml:2: log.format: expected one of text, json", "for example: format: text"),
    ("interlingua.yaml:2: log.levle: unknown field", "did you mean 'level'?"),
    ("interlingua.yaml:4: upstreams.router.key: the variable NOT_SET is not set", "set it in the environment"),
    ("interlingua.yaml:10: models.slow.upstrem: unknown field", "did you mean 'upstream'?"),
    ("interlingua.yaml:11: tiers.opis: unknown field", "did you mean 'opus'?"),
    ("interlingua.yaml:5: upstreams.own.url: required field is missing", "for example: url: https://"),
    (
        "interlingua.yaml:4: upstreams.router.url: 'openrouter.ai' is not an http or https URL",
        "did you mean https://openrouter.ai?",
    ),
    ("interlingua.yaml:12: seal_key: the key has less than 16 characters", "generate one"),
    ("interlingua.yaml:8: models.kimi.dialect: no dialect is called 'kimi_k3000'", "did you mean"),
    ("interlingua.yaml:5: upstreams.own.profile: no upstream is called 'vlm'", "did you mean 'vllm'?"),
    ("interlingua.yaml:6: default: no upstream is called 'ruter'", "did you mean 'router'?"),
    ("interlingua.yaml:8: models.kimi.upstream: no upstream is called 'rooter'", "did you mean 'router'?"),
    ("interlingua.yaml:9: models.fast: no entry of `models` is called 'kimmi'", "did you mean 'kimi'?"),
    ("interlingua.yaml:11: tiers.haiku: no model is called 'slwo'", "did you mean 'slow'?"),
]


@pytest.mark.parametrize("command", [("config", "check"), ("config", "show"), ("serve",), ("start",)], ids=" ".join)
def test_all_mistakes_are_reported_at_once(cli: Cli, command: tuple[str, ...]) -> None:
    Path("interlingua.yaml").write_text(WRONG, encoding="utf-8")
    result = cli(*command)
    lines = [line for line in result.err.splitlines() if not line.startswith(("note: ", "settings: "))]
    assert (result.status, result.out, len(lines)) == (1, "", 2 * len(PROBLEMS) + 1)
    for (problem, hint), error_line, hint_line in zip(PROBLEMS, lines[::2], lines[1::2], strict=False):
        assert error_line.startswith(f"error: {problem}")
        assert hint_line.startswith(f"hint: {hint}")
    assert lines[-1] == f"{len(PROBLEMS)} settings are wrong"


@pytest.mark.parametrize("command", ["check", "show"])
def test_file_can_be_given_as_in_other_commands(cli: Cli, command: str) -> None:
    Path("other.yaml").write_text("upstreams: {own: {url: http://127.0.0.1:1/v1}}\n", encoding="utf-8")
    assert cli("config", command, "--config", "other.yaml") == cli("config", command, "other.yaml")
    both = cli("config", command, "--config", "other.yaml", "other.yaml")
    assert (both.status, "--config and FILE" in both.err) == (2, True)


def test_check_json(cli: Cli) -> None:
    Path("interlingua.yaml").write_text(WRONG, encoding="utf-8")
    result = cli("config", "check", "--json")
    report = json.loads(result.out)
    assert (result.status, report["valid"], report["source"]) == (1, False, "interlingua.yaml")
    assert [set(problem) for problem in report["problems"]] == [{"message", "hint"}] * len(PROBLEMS)
    assert report["problems"][0]["message"].startswith(PROBLEMS[0][0])
    Path("interlingua.yaml").write_text(FILE, encoding="utf-8")
    result = cli("config", "check", "--json")
    report = json.loads(result.out)
    assert (result.status, report["valid"], report["problems"]) == (0, True, [])
    assert report["searched"] == ["interlingua.yaml", f"{Path.home()}/.config/interlingua/interlingua.yaml"]
    assert report["listen"] == "127.0.0.1:8484"
    assert report["upstreams"]["router"] == {
        "url": "https://openrouter.ai/api/v1",
        "api": "openai-chat",
        "key": "set",
    }
    assert report["models"]["kimi"] == [
        {"upstream": "router", "model": "moonshotai/kimi-k2", "dialect": "kimi_k2"},
        {"upstream": "own", "model": "x", "dialect": "detect"},
    ]
    assert report["tiers"]["opus"] == report["models"]["kimi"]
    assert report["default"] is None
    assert "sk-secret-0123456789" not in result.out


def test_show_json(cli: Cli) -> None:
    Path("interlingua.yaml").write_text(FILE, encoding="utf-8")
    assert json.loads(cli("config", "show", "--json").out) == yaml.safe_load(cli("config", "show").out)


def test_tier_that_names_a_model_by_mistake_is_a_note(cli: Cli) -> None:
    """With a default upstream, every model id is valid. A similar one in `models` is what the user means."""
    Path("interlingua.yaml").write_text(
        "upstreams: {one: {url: 'http://localhost:1/v1'}}\n"
        "models: {kimi: {upstream: one, model: x}}\ntiers: {opus: kimmi, haiku: other}\n",
        encoding="utf-8",
    )
    note = "tiers.opus: 'kimmi' is not in `models`, so it goes to one under this name; did you mean 'kimi'?"
    assert cli("config", "check").err == f"note: interlingua.yaml:3: {note}\n"


def test_commands_without_a_file_say_where_they_looked(cli: Cli, monkeypatch: pytest.MonkeyPatch) -> None:
    in_home = f"{Path.home()}/.config/interlingua/interlingua.yaml"
    searched = f"no settings file was found: neither interlingua.yaml nor {in_home}"
    error = (
        f"error: upstreams: no upstream is configured, and {searched}\n"
        "hint: use --upstream URL or --demo; `interlingua config init` writes a settings file\n"
    )
    assert cli("config", "check") == cli("serve") == cli("start") == CommandResult(1, "", error)
    monkeypatch.setenv("INTERLINGUA_DEMO", "true")
    assert cli("config", "check").out.splitlines()[0] == f"settings: {searched}"
    monkeypatch.setenv("INTERLINGUA_UPSTREAM", "http://localhost:8000/v1")
    result = cli("config", "check")
    assert (result.status, result.out.splitlines()[0]) == (0, "settings: no file, because INTERLINGUA_UPSTREAM is set")
    assert result.out.endswith("every other model: localhost\n")


def test_show(cli: Cli) -> None:
    Path("interlingua.yaml").write_text(FILE, encoding="utf-8")
    result = cli("config", "show")
    assert (result.status, result.err) == (0, "settings: interlingua.yaml\n")
    assert "sk-secret-0123456789" not in result.out
    shown = yaml.safe_load(result.out)
    assert list(shown) == list(Settings.__struct_fields__)
    router = shown["upstreams"]["router"]
    assert (router["key"], router["headers"]) == ("***", {"Authorization": "***", "X-Title": "mine"})
    assert shown["upstreams"]["own"]["extra"] == {"api_key": "***", "max_tokens": 3, "l": [1]}
    assert (shown["upstreams"]["own"]["key"], shown["keys"], shown["seal_key"]) == ("", ["***"], "***")
    assert msgspec.convert(shown, Settings).models == load_settings("interlingua.yaml", {"KEY": "k"}).settings.models


def test_show_redacts_values_from_variables(cli: Cli, monkeypatch: pytest.MonkeyPatch) -> None:
    text = """\
upstreams:
  u:
    url: "http://${HOST}/v1"
    headers: {X-Org: "${ORG}", X-Team: "team ${SHORT}", X-Title: mine, authToken: open-secret}
    extra: {custom: "${CUSTOM}", deep: {list: ["${SHORT}"]}, plain: "a org-0123456789 b", n: 3}
models:
  m: {upstream: u, model: "${MODEL}", extra: {custom: "${CUSTOM}"}}
"""
    Path("interlingua.yaml").write_text(text, encoding="utf-8")
    environment = {
        "ORG": "org-0123456789",
        "SHORT": "abc",
        "CUSTOM": "some words",
        "HOST": "localhost:1",
        "MODEL": "kimi",
    }
    for name, value in environment.items():
        monkeypatch.setenv(name, value)
    shown = yaml.safe_load(cli("config", "show").out)
    upstream, model = shown["upstreams"]["u"], shown["models"]["m"]
    assert upstream["headers"] == {"X-Org": "***", "X-Team": "***", "X-Title": "mine", "authToken": "***"}
    assert upstream["extra"] == {"custom": "***", "deep": {"list": ["***"]}, "plain": "a *** b", "n": 3}
    assert (upstream["url"], model["model"], model["extra"]) == ("http://localhost:1/v1", "kimi", {"custom": "***"})

    loaded = load_settings("interlingua.yaml", environment)
    assert loaded.variable_secrets == {"org-0123456789", "abc", "team abc", "some words"}
    assert {*loaded.variable_secrets, "open-secret"} == set(collect_secrets(loaded.settings, loaded.variable_secrets))


def test_schema(cli: Cli) -> None:
    schema = json.loads(cli("config", "schema").out)
    parts = schema["$defs"]
    assert parts["Settings"]["properties"]["port"] == {
        "type": "integer",
        "minimum": 0,
        "maximum": 65535,
        "default": 8484,
        "description": "TCP port that the gateway listens on. 0: any free port.",
    }
    assert parts["Upstream"]["properties"]["key"]["writeOnly"] is True
    assert {name: part["required"] for name, part in parts.items() if part.get("required")} == {
        "Upstream": ["url"],
        "Model": ["upstream"],
        "Capture": ["dir"],
        "Cassettes": ["dir"],
    }


@pytest.mark.parametrize("kind", [Settings, *NESTED_SETTINGS.values()], ids=lambda kind: str(kind.__name__))
def test_every_setting_has_a_docstring(kind: type[msgspec.Struct]) -> None:
    assert [name for name in kind.__struct_fields__ if not struct_field_docs(kind).get(name)] == []


def test_example_settings() -> None:
    settings = load_settings(EXAMPLE_SETTINGS_PATH, {"OPENROUTER_API_KEY": "k"})
    assert settings.notes == []
    routes_by_id = {id: routes_for(settings).find(id) for id in ("claude-opus-4-5", "or/z-ai/glm-4.5", "haiku", "else")}
    assert {
        id: [(route.name, route.model, route.dialect_name) for route in routes] for id, routes in routes_by_id.items()
    } == {
        "claude-opus-4-5": [
            ("openrouter", "moonshotai/kimi-k2-0905", "kimi_k2"),
            ("vllm", "Qwen/Qwen3-Coder-30B-A3B-Instruct", "detect"),
        ],
        "or/z-ai/glm-4.5": [("openrouter", "z-ai/glm-4.5", "glm45")],
        "haiku": [("vllm", "Qwen/Qwen3-Coder-30B-A3B-Instruct", "detect")],
        "else": [("openrouter", "else", "standard")],
    }


# ── options of `serve` ────────────────────────────────────────────────────────────────────────────────────────────────


def load_from_options(*argv: str) -> Any:
    parser = argparse.ArgumentParser()
    add_options(parser)
    return settings_from_args(parser.parse_args(argv))


def test_options_are_passed_on_to_another_process() -> None:
    parser = argparse.ArgumentParser()
    add_options(parser)
    options = [action for action in parser._actions if action.dest != "help"]
    argv = [option.option_strings[0] + ("" if option.nargs == 0 else "=1") for option in options]
    args = parser.parse_args(argv)
    assert all(vars(args).values())
    assert parser.parse_args(command_line(args)) == args
    assert command_line(parser.parse_args([])) == []


@pytest.mark.usefixtures("cli")
def test_options_override_settings() -> None:
    Path("mine.yaml").write_text(FILE, encoding="utf-8")
    assert load_from_options("--config", "mine.yaml", "--port", "1").settings.port == 1
    loaded = load_from_options(
        "--upstream", "http://localhost:8000/v1", "--upstream-key-env=KEY", "--demo", "--capture=d", "--workers=2"
    )
    settings = loaded.settings
    assert (settings.demo, settings.workers, settings.default) == (True, 2, "localhost")
    assert settings.upstreams["localhost"].key == "sk-secret-0123456789"
    with pytest.raises(UsageError, match=re.escape("--workers: expected a whole number from 1 to 256")):
        load_from_options("--workers", "0")
