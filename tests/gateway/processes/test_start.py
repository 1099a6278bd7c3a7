"""Start of a gateway: start-up errors, the start-up message with commands to paste, and clean-up."""

from __future__ import annotations

import json
import os
import re
import shlex
import subprocess
import sys
import threading
from collections.abc import Mapping
from pathlib import Path

import pytest

from interlingua.cli import main
from interlingua.cli.gateway.serve import startup_message
from interlingua.errors import BadInput, UsageError
from interlingua.gateway.observability.tracing import Tracer
from interlingua.gateway.processes import server as serve
from interlingua.gateway.routing.routes import routes_for
from interlingua.gateway.settings.loader import LoadedSettings, load_settings
from interlingua.gateway.settings.overrides import Flags
from interlingua.gateway.state import GatewayState
from tests.support.gateway_process import wait_until_ready

UPSTREAM = "upstreams: {it: {url: 'http://localhost:1/v1'}}\n"


def loaded(folder: Path, text: str = "", environment: Mapping[str, str] | None = None, **flags: str) -> LoadedSettings:
    file = folder / "settings.yaml"
    file.write_text(UPSTREAM + text)
    return load_settings(file, environment or {}, Flags(**flags))


def message_for(settings: LoadedSettings) -> str:
    return "\n".join(startup_message(settings.settings, settings, 8484))


# ── start-up errors ───────────────────────────────────────────────────────────────────────────────────────────────────


def test_invalid_capture_folder_is_reported_before_listening(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    args = [sys.executable, "-m", "interlingua", "serve", "--demo", "--port", "0", "--capture", "file/captures"]
    ran = subprocess.run(args, cwd=tmp_path, capture_output=True, text=True, timeout=20)
    assert ran.returncode == 1
    assert ran.stderr.splitlines() == [
        "error: capture.dir: cannot write to file/captures: Not a directory",
        "hint: choose a directory that the gateway can write to",
    ]


@pytest.mark.parametrize("missing", ["opentelemetry.trace", "opentelemetry.exporter.otlp.proto.http.trace_exporter"])
def test_missing_tracing_packages_are_reported_before_listening(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, missing: str
) -> None:
    monkeypatch.setitem(sys.modules, missing, None)
    with pytest.raises(UsageError, match="otel is set, but"):
        serve.check_settings(loaded(tmp_path, "otel: true\n"))


@pytest.mark.parametrize(
    ("args", "hint"),
    [
        (["serve", "--prot", "1"], "did you mean --port? see `interlingua serve --help`"),
        (["serve", "--prot=1"], "did you mean --port? see `interlingua serve --help`"),
        (["serve", "--xyzzy"], "see `interlingua serve --help`"),
        (["config", "check", "--confg", "x"], "did you mean --config? see `interlingua config check --help`"),
        (["config", "check", "--xyzzy", "x"], "see `interlingua config check --help`"),
    ],
)
def test_unknown_options(args: list[str], hint: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(args) == 2
    assert capsys.readouterr().err.splitlines()[1] == f"hint: {hint}"


def test_public_host_without_keys_is_rejected_with_a_hint(tmp_path: Path) -> None:
    with pytest.raises(BadInput) as raised:
        routes_for(loaded(tmp_path, host="0.0.0.0"))
    assert "`keys`, or set INTERLINGUA_KEYS" in raised.value.hint
    routes_for(loaded(tmp_path, environment={"INTERLINGUA_KEYS": "a-key-of-16-chars"}, host="0.0.0.0"))


# ── start-up message ──────────────────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize(
    ("host", "listens", "base"),
    [
        ("127.0.0.1", "http://127.0.0.1:8484", "http://127.0.0.1:8484"),
        ("::1", "http://[::1]:8484", "http://[::1]:8484"),
        ("[::1]", "http://[::1]:8484", "http://[::1]:8484"),
        ("0.0.0.0", "http://0.0.0.0:8484", "http://127.0.0.1:8484"),
        ("::", "http://[::]:8484", "http://[::1]:8484"),
    ],
)
def test_startup_message_shows_listen_address_and_base_url(tmp_path: Path, host: str, listens: str, base: str) -> None:
    text = message_for(loaded(tmp_path, "keys: [a-key-of-16-chars]\n", host=host))
    assert f"listening on {listens} " in text
    assert f"ANTHROPIC_BASE_URL={shlex.quote(base)} " in text


def test_startup_message_shows_upstreams_and_settings_file(tmp_path: Path) -> None:
    """The settings may come from a downloaded folder. The message lets the user notice an unknown upstream."""
    settings = loaded(tmp_path)
    (upstream,) = settings.settings.upstreams.values()
    assert f"settings: {tmp_path / 'settings.yaml'}" in message_for(settings)
    assert f": {upstream.url} (" in message_for(settings)


def test_json_log_is_json_from_its_first_line(tmp_path: Path) -> None:
    """Also notes, and the errors that keep the gateway from starting."""
    environment = {**os.environ, "HOME": str(tmp_path), "XDG_STATE_HOME": str(tmp_path), "INTERLINGUA_PROT": "1"}
    argv = [sys.executable, "-m", "interlingua", "serve", "--log-format", "json", "--port", "0"]
    process = subprocess.Popen(
        [*argv, "--demo"], cwd=tmp_path, env=environment, stderr=subprocess.PIPE, text=True, start_new_session=True
    )
    assert process.stderr is not None
    note, listening = (json.loads(process.stderr.readline()) for _ in range(2))
    wait_until_ready(listening["message"].removeprefix("listening on "))
    process.terminate()
    rest = [json.loads(line) for line in process.communicate(timeout=60)[1].splitlines()]
    assert "INTERLINGUA_PROT ignored" in note["message"]
    assert re.fullmatch(r"listening on http://127\.0\.0\.1:\d+", listening["message"])
    assert (listening["level"], listening["process"], listening["demo"]) == ("info", process.pid, True)
    assert [line["message"] for line in rest] == ["stopping", "stopped"]
    (tmp_path / "interlingua.yaml").write_text("prot: 1\nhsot: x\n")
    ran = subprocess.run(argv, cwd=tmp_path, env=environment, capture_output=True, text=True)
    errors = [json.loads(line) for line in ran.stderr.splitlines()]
    assert ran.returncode == 1
    assert [(error["level"], error["message"]) for error in errors] == [
        ("error", "interlingua.yaml:1: prot: unknown field"),
        ("error", "interlingua.yaml:2: hsot: unknown field"),
    ]
    assert errors[0]["hint"].startswith("did you mean 'port'?")


def command_words(text: str, agent: str) -> list[str]:
    """Return the shell words of the command for this agent."""
    match = re.search(rf"^  {agent}:\n((?: {{4}}.*\n)+)", text, re.MULTILINE)
    assert match, text
    return shlex.split(match[1])


def test_startup_message_sets_all_claude_code_models(tmp_path: Path) -> None:
    words = command_words(message_for(loaded(tmp_path, demo="true")), "Claude Code")
    assert [word for word in words if word.endswith("=demo/kimi_k2")] == [
        "ANTHROPIC_MODEL=demo/kimi_k2",
        *(f"ANTHROPIC_DEFAULT_{tier}_MODEL=demo/kimi_k2" for tier in ("OPUS", "SONNET", "HAIKU", "FABLE")),
    ]
    assert words[-1] == "claude"


def test_startup_message_contains_key_for_codex_if_configured(tmp_path: Path) -> None:
    assert command_words(message_for(loaded(tmp_path)), "Codex")[:2] == ["IL_KEY=any", "codex"]
    with_key = message_for(loaded(tmp_path, "keys: [a-key]\n", demo="true"))
    words = command_words(with_key, "Codex")
    assert (words[:2], words[-1]) == (["IL_KEY=KEY", "codex"], 'model_providers.il.env_key="IL_KEY"')
    assert with_key.count("-H 'authorization: Bearer KEY'") == 3


# ── reload and clean-up ───────────────────────────────────────────────────────────────────────────────────────────────


def test_reload_reuses_capture_writer_unless_settings_change(tmp_path: Path) -> None:
    settings = loaded(tmp_path, f"capture: {{dir: {tmp_path}/kept}}\n")
    gateway = GatewayState(settings, b"key", "")
    wrong = loaded(tmp_path, f"capture: {{dir: {tmp_path}/other}}\nmodels: {{x: {{upstream: nobody}}}}\n")
    with pytest.raises(BadInput):
        gateway.build_config(wrong)
    assert not (tmp_path / "other").exists()
    assert gateway.build_config(settings).captures is gateway.config.captures
    new_key = loaded(tmp_path, f"capture: {{dir: {tmp_path}/kept}}\nkeys: [a-new-secret]\n")
    assert gateway.build_config(new_key).captures is not gateway.config.captures


def test_tracer_close_flushes_spans_with_a_timeout() -> None:
    class Provider:
        def __init__(self) -> None:
            self.shut = threading.Event()
            self.hangs = threading.Event()

        def shutdown(self) -> None:
            self.shut.set()
            self.hangs.wait(5)

    provider = Provider()
    Tracer(provider).close(seconds=0.05)
    assert provider.shut.is_set()
    provider.hangs.set()
    Tracer().close()
    Tracer(object()).close()


def test_captures_redact_new_values_of_variables_after_reload(tmp_path: Path) -> None:
    """The name of a custom header does not reveal that its value is secret; the variable does."""
    file = tmp_path / "interlingua.yaml"
    file.write_text(
        "upstreams: {one: {url: 'http://127.0.0.1:9/v1', headers: {X-Org: '${ORG}'}}}\n"
        f"capture: {{dir: {tmp_path / 'kept'}}}\n"
    )
    before, after = (load_settings(file, {"ORG": org}) for org in ("first-of-all-secrets", "second-of-all-secrets"))
    gateway = GatewayState(before, b"key", "")
    old, new = gateway.config, gateway.build_config(after)
    assert new.captures is not old.captures
    assert gateway.build_config(before).captures is old.captures
    assert new.redactor.redact_text("second-of-all-secrets") == "***"
