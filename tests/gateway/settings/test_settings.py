"""Tests of load_text settings from file, environment and flags, and of the error message for every mistake."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import msgspec
import pytest

from interlingua.errors import BadInput, UsageError
from interlingua.gateway.routing.routes import routes_for
from interlingua.gateway.settings.loader import LoadedSettings, load_settings
from interlingua.gateway.settings.overrides import Flags
from interlingua.gateway.settings.schema import Capture, Log, Model, Settings, Timeouts, Upstream

LOCAL = "http://localhost:8000/v1"
BASE = f"upstreams:\n  local: {{url: {LOCAL}}}\n"


@pytest.fixture(autouse=True)
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Separate working directory for the test; its parent is the home directory."""
    folder = tmp_path / "here"
    folder.mkdir()
    monkeypatch.chdir(folder)
    return folder


def load_text(text: str, flags: Flags | None = None, **environment: str) -> LoadedSettings:
    path = Path("interlingua.yaml")
    path.write_text(text, encoding="utf-8")
    path.chmod(0o600)
    return load_settings(None, {"HOME": str(path.absolute().parent.parent), **environment}, flags)


def load_error(text: str, flags: Flags | None = None, **environment: str) -> tuple[str, str]:
    with pytest.raises(BadInput) as raised:
        routes_for(load_text(text, flags, **environment))
    return str(raised.value), raised.value.hint


# ── values ────────────────────────────────────────────────────────────────────────────────────────────────────────────

WHOLE = """\
host: localhost
port: 9000
demo: yes
drain: 1.5
keepalive: 7
upstreams:
  router:
    url: https://openrouter.ai/api/v1
    key: ${ROUTER_KEY}
    headers: {X-Title: "costs $$5 in ${CITY}"}
    extra: {provider: {order: [a, b], n: 1, x: 1.5, on: true, none: null, day: 2026-01-01, hex: 0x_}}
    timeouts: {idle: 300}
models:
  "kimi*": {upstream: router, fallback: [other], delivery: whole, timeouts: null}
  other: {upstream: router}
  fast: other
tiers: {opus: other}
keys: [one, "2"]
limits: {held: 2048, over: error}
capture: {dir: seen}
log: {level: debug}
"""


def test_complete_settings_file() -> None:
    settings = load_text(WHOLE, ROUTER_KEY="sk-1", CITY="Bern").settings
    extra = {"order": ["a", "b"], "n": 1, "x": 1.5, "on": True, "none": None, "day": "2026-01-01", "hex": "0x_"}
    assert settings == Settings(
        host="localhost",
        port=9000,
        demo=True,
        drain=1.5,
        keepalive=7,
        upstreams={
            "router": Upstream(
                url="https://openrouter.ai/api/v1",
                key="sk-1",
                headers={"X-Title": "costs $5 in Bern"},
                extra={"provider": extra},
                timeouts=Timeouts(idle=300),
            )
        },
        models={
            "kimi*": Model(upstream="router", fallback=["other"], delivery="whole"),
            "other": Model(upstream="router"),
            "fast": "other",
        },
        tiers={"opus": "other"},
        keys=["one", "2"],
        limits=settings.limits,
        capture=Capture(dir="seen"),
        log=Log(level="debug"),
    )
    assert (settings.limits.held, settings.limits.over, settings.limits.body) == (2048, "error", 32 * 1024 * 1024)


def test_defaults_without_any_source() -> None:
    loaded = load_settings(None, {"HOME": "/nonexistent"})
    searched = ["interlingua.yaml", "/nonexistent/.config/interlingua/interlingua.yaml"]
    assert loaded == LoadedSettings(Settings(), "", [], {}, searched=searched)


def test_precedence_of_flags_environment_and_file() -> None:
    text = BASE + "port: 1\nworkers: 1\nlog: {format: json, level: debug}\n"
    settings = load_text(
        text,
        Flags(workers="3"),
        INTERLINGUA_WORKERS="2",
        INTERLINGUA_PORT="2",
        INTERLINGUA_LOG__FORMAT="text",
        INTERLINGUA_UPSTREAMS__LOCAL__KEY="12345",
        INTERLINGUA_KEYS="a, b",
        INTERLINGUA_HOSTS='["c"]',
        INTERLINGUA_MODELS="{x: {upstream: local}}",
        INTERLINGUA_OTEL="on",
        INTERLINGUA_DEFAULT="",
    ).settings
    assert (settings.port, settings.workers, settings.log) == (2, 3, Log(format="text", level="debug"))
    assert settings.upstreams == {"local": Upstream(url=LOCAL, key="12345")}
    assert (settings.keys, settings.hosts, settings.otel) == (["a", "b"], ["c"], True)
    assert settings.models == {"x": Model(upstream="local")}


@pytest.mark.parametrize(
    ("text", "environment", "expected"),
    [
        ("keys: [a, b]", {}, {"key-1": "a", "key-2": "b"}),
        ("keys: {alice: '${A}', ci: b}", {"A": "a"}, {"alice": "a", "ci": "b"}),
        ("keys: []", {}, {}),
        ("keys: [a]", {"INTERLINGUA_KEYS": "x,y"}, {"key-1": "x", "key-2": "y"}),
        ("keys: [a]", {"INTERLINGUA_KEYS": "{bob: x}"}, {"bob": "x"}),
        ("keys: {alice: a}", {"INTERLINGUA_KEYS__BOB": "b"}, {"alice": "a", "bob": "b"}),
    ],
)
def test_keys_of_clients_by_name(text: str, environment: dict[str, str], expected: dict[str, str]) -> None:
    assert load_text(f"{BASE}{text}\n", None, **environment).settings.client_keys == expected


VARIABLES = {
    "a number": ("port: ${PORT}", {"PORT": "80"}, {"port": 80}),
    "a boolean": ("demo: ${D}", {"D": "true"}, {"demo": True}),
    "a literal": ("delivery: ${D}", {"D": "whole"}, {"delivery": "whole"}),
    "a string of digits": ("host: ${H}", {"H": "127"}, {"host": "127"}),
    "no reference": ("host: a$b}c$$d", {}, {"host": "a$b}c$d"}),
    "expanded only once": ("host: ${H}", {"H": "${X}"}, {"host": "${X}"}),
}


@pytest.mark.parametrize(("text", "environment", "expected"), VARIABLES.values(), ids=VARIABLES)
def test_variables_are_expanded(text: str, environment: dict[str, str], expected: dict[str, Any]) -> None:
    assert load_text(text, None, **environment).settings == msgspec.convert(expected, Settings)


DOTENV = """\
# a comment
A=plain
export B = "two \\"words\\"\\n"
C='single # no comment'  # a comment
D=bare value # a comment
E=a#b
F=
G="half
no line
"""


def test_dotenv_files(tmp_path: Path, here: Path) -> None:
    (here / ".env").write_text(DOTENV, encoding="utf-8")
    (tmp_path / ".env").write_text("A=beside\nE=beside\n", encoding="utf-8")
    config = tmp_path / "mine.yaml"
    config.write_text('hosts: ["${A}", "${B}", "${C}", "${D}", "${E}"]', encoding="utf-8")
    loaded = load_settings(config, {"E": "real"})
    assert loaded.settings.hosts == ["beside", 'two "words"\n', "single # no comment", "bare value", "real"]
    assert loaded.notes == [f".env:{n}: line ignored, because it is not NAME=VALUE" for n in (8, 9)]


def test_unreadable_dotenv_file_adds_note(here: Path) -> None:
    (here / ".env").write_bytes(b"A=\xff")
    assert load_text(BASE).notes == ["cannot read .env: it is not UTF-8"]


# ── lookup ────────────────────────────────────────────────────────────────────────────────────────────────────────────


def test_lookup_order_of_settings_file(tmp_path: Path, here: Path) -> None:
    home = tmp_path / ".config" / "interlingua" / "interlingua.yaml"
    xdg = tmp_path / "xdg" / "interlingua" / "interlingua.yaml"
    for n, path in enumerate((home, xdg, tmp_path / "given.yaml", tmp_path / "named.yaml"), 1):
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(f"port: {n}\n", encoding="utf-8")
    environment = {"HOME": str(tmp_path)}
    assert load_settings(None, environment).source == str(home)
    environment["XDG_CONFIG_HOME"] = str(tmp_path / "xdg")
    assert load_settings(None, environment).settings.port == 2
    (here / "interlingua.yaml").write_text("port: 9\n", encoding="utf-8")
    assert load_settings(None, environment).source == "interlingua.yaml"
    environment["INTERLINGUA_CONFIG"] = str(tmp_path / "named.yaml")
    assert load_settings(None, environment).settings.port == 4
    assert load_settings(tmp_path / "given.yaml", environment).settings.port == 3


def test_upstream_flag_replaces_settings_file() -> None:
    text = BASE + "port: 1\n"
    flags = Flags(
        upstream="https://openrouter.ai/api/v1",
        upstream_api="openai-responses",
        upstream_profile="vllm",
        dialect="hermes",
    )
    loaded = load_text(text, msgspec.structs.replace(flags, upstream_key_env="KEY"), KEY="sk-1")
    router = Upstream(
        url="https://openrouter.ai/api/v1", api="openai-responses", key="sk-1", profile="vllm", dialect="hermes"
    )
    assert (loaded.source, loaded.settings) == ("", Settings(upstreams={"openrouter": router}, default="openrouter"))
    assert load_text(text, INTERLINGUA_UPSTREAM=LOCAL, INTERLINGUA_DIALECT="glm45").settings == Settings(
        upstreams={"localhost": Upstream(url=LOCAL, dialect="glm45")}, default="localhost"
    )
    both = load_settings("interlingua.yaml", {}, flags)
    assert (both.settings.port, list(both.settings.upstreams)) == (1, ["local", "openrouter"])
    assert [route.name for route in routes_for(both).find("x")] == ["openrouter"]


def test_upstream_flag_drops_key_of_same_named_upstream() -> None:
    text = "upstreams:\n  localhost: {url: http://localhost:1, key: secret}\n"
    Path("mine.yaml").write_text(text, encoding="utf-8")
    assert load_settings("mine.yaml", {}, Flags(upstream=LOCAL)).settings.upstreams == {
        "localhost": Upstream(url=LOCAL)
    }


def test_flags_have_environment_variables() -> None:
    values = {"host": "::1", "port": "1", "workers": "2", "demo": "true", "capture": "dir", "log_level": "error"}
    expected = Settings(host="::1", port=1, workers=2, demo=True, capture=Capture(dir="dir"), log=Log(level="error"))
    assert load_settings(None, {"HOME": "/nonexistent"}, Flags(**values)).settings == expected
    environment = {f"INTERLINGUA_{name.upper()}": text for name, text in values.items()}
    assert load_settings(None, {"HOME": "/nonexistent", **environment}).settings == expected


# ── notes ─────────────────────────────────────────────────────────────────────────────────────────────────────────────


def test_unknown_variables_add_notes() -> None:
    environment = {"INTERLINGUA_PROT": "1", "INTERLINGUA_LOG__FORMT": "x", "INTERLINGUA_TIERS__OPIS": "x"}
    assert load_text(BASE, None, **environment).notes == [
        "INTERLINGUA_PROT ignored, because it is not a setting; did you mean 'INTERLINGUA_PORT'?",
        "INTERLINGUA_LOG__FORMT ignored, because it is not a setting; did you mean 'INTERLINGUA_LOG__FORMAT'?",
        "INTERLINGUA_TIERS__OPIS ignored, because it is not a setting; did you mean 'INTERLINGUA_TIERS'?",
    ]


SECRETS = {
    "a key": ("upstreams: {a: {url: http://a, key: sk-1}}", 0o644, "upstreams.a.key"),
    "keys of clients": ("keys: [abc]", 0o640, "keys.0"),
    "private file": ("keys: [abc]", 0o600, ""),
    "a variable": ("keys: ['${KEY}']", 0o644, ""),
    "nothing": ("seal_key: ''", 0o644, ""),
}


@pytest.mark.parametrize(("text", "mode", "name"), SECRETS.values(), ids=SECRETS)
def test_plaintext_secret_in_readable_file_adds_note(text: str, mode: int, name: str) -> None:
    path = Path("mine.yaml")
    path.write_text(text, encoding="utf-8")
    path.chmod(mode)
    note = (
        f"mine.yaml contains a secret ({name}) and is readable by other users: write ${{NAME}} there, or chmod 600 it"
    )
    assert load_settings(path, {"KEY": "k"}).notes == ([note] if name else [])


# ── errors ────────────────────────────────────────────────────────────────────────────────────────────────────────────

SCHEMA = "`interlingua config schema` prints all settings"
MISTAKES: dict[str, tuple[str, str, str]] = {
    "an unknown field": ("prot: 1", "1: prot: unknown field", "did you mean 'port'? for example: port: 8484"),
    "an unknown field, deeper": (
        f"{BASE}models:\n  kimi:\n    upstrem: local",
        "5: models.kimi.upstrem: unknown field",
        "did you mean 'upstream'?",
    ),
    "an unknown tier": (f"{BASE}tiers: {{opis: x}}", "3: tiers.opis: unknown field", "did you mean 'opus'?"),
    "a text for a number": (
        "\nport: http",
        "2: port: expected a whole number from 0 to 65535, got the text 'http'",
        "for example: port: 8484",
    ),
    "too large a number": (
        "port: 70000",
        "1: port: expected a whole number from 0 to 65535, got the number 70000",
        "for example: port: 8484",
    ),
    "not an integer": (
        "workers: 1.5",
        "1: workers: expected a whole number from 1 to 256, got the number 1.5",
        "for example: workers: 1",
    ),
    "too small a number": (
        "limits: {body: 1}",
        "1: limits.body: expected a whole number of at least 1024, got the number 1",
        "for example: body: 33554432",
    ),
    "zero seconds": ("drain: 0", "1: drain: expected a number over 0, got the number 0", "for example: drain: 30"),
    "infinite seconds": (
        "drain: .inf",
        "1: drain: expected a number over 0, got the number .inf",
        "for example: drain: 30",
    ),
    "malformed number": (
        "drain: 0x_",
        "1: drain: expected a number over 0, got the number 0x_",
        "for example: drain: 30",
    ),
    "too large a number for a float": (
        f"drain: {'9' * 400}",
        f"1: drain: expected a number over 0, got the number {'9' * 400}",
        "for example: drain: 30",
    ),
    "a number for a text": (
        "host: 127",
        "1: host: expected a text, got the number 127; put it in quotes to make it text",
        "for example: host: 127.0.0.1",
    ),
    "a text for a boolean": (
        "demo: maybe",
        "1: demo: expected true or false, got the text 'maybe'",
        "for example: demo: false",
    ),
    "unknown literal": (
        "log: {format: xml}",
        "1: log.format: expected one of text, json, got the text 'xml'",
        "for example: format: text",
    ),
    "a text for a list": ("keys: abc", "1: keys: expected a mapping or a list, got the text 'abc'", SCHEMA),
    "a list for a mapping": ("upstreams: [a]", "1: upstreams: expected a mapping, got a list", SCHEMA),
    "nothing for a mapping": ("log:", "1: log: expected a mapping, got nothing", SCHEMA),
    "a number for a mapping": (
        "upstreams: {u: {url: x, timeouts: 3}}",
        "1: upstreams.u.timeouts: expected a mapping, got the number 3",
        SCHEMA,
    ),
    "a list for the file": ("- a", "1: expected a mapping, got a list", SCHEMA),
    "a list for a model": ("models: {a: []}", "1: models.a: expected a mapping or a text, got a list", SCHEMA),
    "a missing field": (
        "upstreams:\n  a: {key: x}",
        "2: upstreams.a.url: required field is missing; expected a text",
        "for example: url: https://openrouter.ai/api/v1",
    ),
    "a model without an upstream": (
        f"{BASE}models:\n  a: {{}}",
        "4: models.a.upstream: required field is missing; expected a text",
        "name one of `upstreams`",
    ),
    "a capture without a directory": (
        "capture: {keep: 1}",
        "1: capture.dir: required field is missing; expected a text",
        "for example: dir: captures",
    ),
    "a limit of zero": (
        "port: 1\nlimits: {held: 0}",
        "2: limits: Limits.held: less than 1",
        "set it to 1 or more",
    ),
    "undefined variable": (
        "port: 1\nhost: ${HOTS}",
        "2: host: the variable HOTS is not set",
        "set it in the environment or in a .env file",
    ),
    "misspelled variable": (
        "seal_key: ${MY_SECERT}",
        "1: seal_key: the variable MY_SECERT is not set",
        "did you mean 'MY_SECRET'?",
    ),
    "an empty variable": (
        "seal_key: ${NOTHING}",
        "1: seal_key: the variable NOTHING is empty",
        "set it in the environment or in a .env file",
    ),
    "malformed variable name": (
        "hosts: ['${a-b}']",
        "1: hosts.0: '${a-b}' is not a variable reference",
        "write ${NAME}, or $$ for a dollar sign",
    ),
    "unclosed reference": (
        "host: ${ab",
        "1: host: '${ab' is not a variable reference",
        "write ${NAME}, or $$ for a dollar sign",
    ),
    "invalid value of a variable": (
        "port: ${MY_SECRET}",
        "1: port: expected a whole number from 0 to 65535, got the value of ${MY_SECRET}",
        "for example: port: 8484",
    ),
    "duplicate field": ("port: 1\nport: 2", "2: duplicate field 'port'", "remove one of them"),
    "an asterisk": (
        "models:\n  *kimi*: {upstream: a}",
        "2: expected alphabetic or numeric character, but found '*'",
        'put text that starts with * in quotes: "*…"',
    ),
    "a variable inside braces": (
        "upstreams:\n  u: {url: x, key: ${NOPE}}",
        "2: expected ',' or '}', but got '{'",
        'quote it inside of {…} and […]: "${NOPE}"',
    ),
    "a variable inside brackets": (
        "keys: [${NOPE}, b]",
        "1: expected ',' or ']', but got '{'",
        'quote it inside of {…} and […]: "${NOPE}"',
    ),
    "an unclosed variable inside brackets": (
        "keys: [${NOPE\n, b]",
        "1: expected ',' or ']', but got '{'",
        'quote it inside of {…} and […]: "${NOPE}"',
    ),
    "malformed YAML": (
        "port: [1",
        "1: expected ',' or ']', but got '<stream end>'",
        "write YAML: a colon and a space after each name, and the same indent for all fields of a block",
    ),
    "unknown upstream": (
        f"{BASE}models:\n  a:\n    upstream: locl",
        "5: models.a.upstream: no upstream is called 'locl'",
        "did you mean 'local'?",
    ),
    "unknown fallback": (
        f"{BASE}models:\n  a:\n    upstream: local\n    fallback:\n    - b",
        "6: models.a.fallback: no entry of `models` is called 'b'",
        "known: a",
    ),
    "no upstream configured": (
        "port: 1",
        "1: upstreams: no upstream is configured",
        "use --upstream URL or --demo; `interlingua config init` writes a settings file",
    ),
}


@pytest.mark.parametrize(("text", "message", "hint"), MISTAKES.values(), ids=MISTAKES)
def test_errors_in_settings_file(text: str, message: str, hint: str) -> None:
    assert load_error(text, MY_SECRET="sk-1", NOTHING="") == (f"interlingua.yaml:{message}", hint)


def test_unreadable_settings_files(here: Path) -> None:
    (here / "latin.yaml").write_bytes(b"host: \xe9")
    (here / "empty.yaml").write_text("# nothing\n", encoding="utf-8")
    (here / "long.yaml").write_text("#" * 2_000_000, encoding="utf-8")
    values = {}
    for name in ("none.yaml", "latin.yaml", "empty.yaml", "long.yaml"):
        with pytest.raises(BadInput) as raised:
            load_settings(name, {})
        values[name] = str(raised.value)
    assert values == {
        "none.yaml": "cannot read none.yaml: No such file or directory",
        "latin.yaml": "latin.yaml is not UTF-8: unexpected end of data at byte 6",
        "empty.yaml": "empty.yaml is empty",
        "long.yaml": "long.yaml has 2000000 characters; the maximum is 1048576",
    }


def test_errors_in_environment() -> None:
    message = "INTERLINGUA_PORT: expected a whole number from 0 to 65535, got the text 'x'"
    assert load_error(BASE, INTERLINGUA_PORT="x") == (message, SCHEMA)
    message = "INTERLINGUA_UPSTREAMS__A__KEY: upstreams.a.url: required field is missing; expected a text"
    assert load_error(BASE, INTERLINGUA_UPSTREAMS__A__KEY="x") == (
        message,
        "for example: url: https://openrouter.ai/api/v1",
    )
    message = "INTERLINGUA_LOG:1: log.format: expected one of text, json, got the text 'xml'"
    assert load_error(BASE, INTERLINGUA_LOG="{format: xml}") == (message, "for example: format: text")


FLAGS = {
    "not a number": (
        Flags(port="x"),
        "--port: expected a whole number from 0 to 65535, got the text 'x'",
        SCHEMA,
    ),
    "unknown literal": (
        Flags(log_level="loud"),
        "--log-level: expected one of error, info, debug, got the text 'loud'",
        SCHEMA,
    ),
    "no upstream": (
        Flags(dialect="hermes"),
        "--dialect requires --upstream, which is not set",
        "add --upstream URL",
    ),
    "undefined variable": (
        Flags(upstream=LOCAL, upstream_key_env="ROUTER_KY"),
        "--upstream-key-env: the variable ROUTER_KY is not set",
        "did you mean 'ROUTER_KEY'?",
    ),
}


@pytest.mark.parametrize(("flags", "message", "hint"), FLAGS.values(), ids=FLAGS)
def test_errors_in_flags(flags: Flags, message: str, hint: str) -> None:
    with pytest.raises(UsageError) as raised:
        load_text(BASE, flags, ROUTER_KEY="k")
    assert (str(raised.value), raised.value.hint) == (message, hint)


def test_malformed_url_in_upstream_flag() -> None:
    assert load_error(BASE, Flags(upstream="http://[x")) == (
        "--upstream: 'http://[x' is not an http or https URL",
        "for example: https://openrouter.ai/api/v1",
    )
