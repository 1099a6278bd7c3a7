"""The first minute of a gateway: what keeps it from starting, what it tells to paste, what it leaves behind."""

from __future__ import annotations

import resource
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

UPSTREAM = "upstreams: {it: {url: 'http://localhost:1/v1'}}\n"


def loaded(folder: Path, text: str = "", environment: Mapping[str, str] | None = None, **flags: str) -> LoadedSettings:
    file = folder / "settings.yaml"
    file.write_text(UPSTREAM + text)
    return load_settings(file, environment or {}, Flags(**flags))


def told(settings: LoadedSettings) -> str:
    return startup_message(settings.settings, settings, 8484)


# ── what keeps it from starting ───────────────────────────────────────────────────────────────────────────────────────


def test_a_folder_for_captures_that_cannot_be_is_told_before_anything_listens(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    args = [sys.executable, "-m", "interlingua", "serve", "--demo", "--port", "0", "--capture", "file/captures"]
    ran = subprocess.run(args, cwd=tmp_path, capture_output=True, text=True, timeout=20)
    assert ran.returncode == 1
    assert ran.stderr.splitlines() == [
        "error: capture.dir: cannot write to file/captures: Not a directory",
        "hint: name a directory that the gateway may write to",
    ]


@pytest.mark.parametrize("missing", ["opentelemetry.trace", "opentelemetry.exporter.otlp.proto.http.trace_exporter"])
def test_what_traces_need_is_told_before_anything_listens(
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
        (["config", "check", "--confg", "x"], "see `interlingua config check --help`"),
    ],
)
def test_options_that_are_none(args: list[str], hint: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(args) == 2
    assert capsys.readouterr().err.splitlines()[1] == f"hint: {hint}"


def test_who_listens_for_all_is_told_where_keys_go(tmp_path: Path) -> None:
    with pytest.raises(BadInput) as raised:
        routes_for(loaded(tmp_path, host="0.0.0.0"))
    assert "`keys`, or into INTERLINGUA_KEYS" in raised.value.hint
    routes_for(loaded(tmp_path, environment={"INTERLINGUA_KEYS": "a-key-of-16-chars"}, host="0.0.0.0"))


def test_as_many_files_as_there_may_be(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    limits = [(1024, 20_000)]
    monkeypatch.setattr(resource, "getrlimit", lambda _: limits[-1])
    monkeypatch.setattr(resource, "setrlimit", lambda _, both: limits.append(both))
    assert serve.raise_file_limit(loaded(tmp_path).settings) == ""
    assert limits[-1] == (20_000, 20_000)
    limits.append((256, 2000))
    note = serve.raise_file_limit(loaded(tmp_path).settings)
    assert "2000 files can be open (ulimit -n), which is enough for 950 requests at once" in note


# ── what it tells to paste ────────────────────────────────────────────────────────────────────────────────────────────


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
def test_where_it_is(tmp_path: Path, host: str, listens: str, base: str) -> None:
    text = told(loaded(tmp_path, "keys: [a-key-of-16-chars]\n", host=host))
    assert f"listening on {listens} " in text
    assert f"ANTHROPIC_BASE_URL={shlex.quote(base)} " in text


def test_it_tells_whom_it_asks_and_which_settings_say_so(tmp_path: Path) -> None:
    """Settings may be a stranger's, in a folder that was fetched: then this is where one sees it."""
    settings = loaded(tmp_path)
    (upstream,) = settings.settings.upstreams.values()
    assert f"settings: {tmp_path / 'settings.yaml'}" in told(settings)
    assert f": {upstream.url} (" in told(settings)


def pasted(text: str, agent: str) -> list[str]:
    """The words of the line for this agent, and of those that belong to it."""
    lines = text.split(f"  {agent} ", 1)[1]
    return shlex.split(lines[: lines.index("\n  " + ("Codex" if agent == "Claude Code" else "opencode"))])


def test_all_models_of_claude_code_are_this_one(tmp_path: Path) -> None:
    words = pasted(told(loaded(tmp_path, demo="true")), "Claude Code")
    assert [word for word in words if word.endswith("=demo/kimi_k2")] == [
        "ANTHROPIC_MODEL=demo/kimi_k2",
        *(f"ANTHROPIC_DEFAULT_{tier}_MODEL=demo/kimi_k2" for tier in ("OPUS", "SONNET", "HAIKU")),
    ]
    assert words[-1] == "claude"


def test_codex_is_told_of_a_key_if_there_is_one(tmp_path: Path) -> None:
    assert pasted(told(loaded(tmp_path)), "Codex")[:2] == ["IL_KEY=any", "codex"]
    with_key = told(loaded(tmp_path, "keys: [a-key]\n", demo="true"))
    words = pasted(with_key, "Codex")
    assert (words[:2], words[-1]) == (["IL_KEY=KEY", "codex"], 'model_providers.il.env_key="IL_KEY"')
    assert with_key.count("-H 'authorization: Bearer KEY'") == 3


# ── what it leaves behind ─────────────────────────────────────────────────────────────────────────────────────────────


def test_reloads_leave_no_captures_behind(tmp_path: Path) -> None:
    settings = loaded(tmp_path, f"capture: {{dir: {tmp_path}/kept}}\n")
    gateway = GatewayState(settings, b"key", "")
    wrong = loaded(tmp_path, f"capture: {{dir: {tmp_path}/other}}\nmodels: {{x: {{upstream: nobody}}}}\n")
    with pytest.raises(BadInput):
        gateway.build_config(wrong)
    assert not (tmp_path / "other").exists()
    assert gateway.build_config(settings).captures is gateway.config.captures
    new_key = loaded(tmp_path, f"capture: {{dir: {tmp_path}/kept}}\nkeys: [a-new-secret]\n")
    assert gateway.build_config(new_key).captures is not gateway.config.captures


def test_the_last_spans_are_sent_and_waited_for_a_while() -> None:
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


def test_captures_leave_out_what_a_variable_has_brought_since(tmp_path: Path) -> None:
    """A header of the user's own has no name that tells a secret: only the variable does."""
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
