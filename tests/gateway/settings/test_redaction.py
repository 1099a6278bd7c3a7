"""Tests of redaction: secrets are replaced, other text is unchanged."""

from __future__ import annotations

import base64
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any
from urllib.parse import quote

import pytest

from interlingua.gateway.settings.loader import load_settings
from interlingua.gateway.settings.redaction import Redactor, collect_secrets, credentials, printable
from interlingua.gateway.settings.schema import Model, Settings, State, Upstream
from interlingua.gateway.state import GatewayState
from tests.support.growth import check_growth

KEY = 'k3y/with+odd "signs" ü'
PLAIN = "correcthorse42"

# Text, and the redacted text; None: unchanged.
ROWS = [
    # by value, in every encoding
    (f"the key {PLAIN}.", "the key ***."),
    (f"a{PLAIN}b", "a***b"),
    (f"{KEY}", "***"),
    (json.dumps({"k": KEY}), '{"k": "***"}'),
    (json.dumps({"k": KEY}, ensure_ascii=False), '{"k": "***"}'),
    (f"https://x/{quote(KEY, safe='')}/y", "https://x/***/y"),
    # by pattern
    ("Incorrect API key provided: sk-abcDEF0123456789.", "Incorrect API key provided: ***."),
    ("sk-ant-api03-abc_DEF-0123456789", "***"),
    ("Authorization: Bearer abc.def", "Authorization: ***"),
    ("authorization: Basic dXNlcjpwYXNz", "authorization: ***"),
    ("Authorization: abcdef123", "Authorization: ***"),
    ('{"Authorization": "Bearer abcdef123", "a": 1}', '{"Authorization": "***", "a": 1}'),
    (r'{"s": "{\"authorization\": \"Bearer abcdef123\"}"}', r'{"s": "{\"authorization\": \"***\"}"}'),
    ("curl -H 'x-api-key: abcdef123' x", "curl -H 'x-api-key: ***' x"),
    ("X-Api-Key=abcdef123", "X-Api-Key=***"),
    ("Cookie: session=abc; b=c\nNext: x", "Cookie: ***\nNext: x"),
    ("with Bearer abcdef123, and", "with Bearer ***, and"),
    ("GET /v1beta/models?key=AB12&alt=sse HTTP/1.1", "GET /v1beta/models?key=***&alt=sse HTTP/1.1"),
    ("https://user:pass@host/v1", "https://***@host/v1"),
    ("eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxIn0.c2lnbmF0dXJl ok", "*** ok"),
    ("hf_abcdefghijklmnopqrstuvwx", "***"),
    # nested
    ("Bearer Bearer abcdef123", "Bearer *** ***"),
    ("Authorization: authorization: Basic dXNlcjpwYXNz", "Authorization: authorization: ***"),
    ("api_key=api_key=abcdef123", "api_key=***"),
    ("a-eyJhbGci-eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxIn0.c2ln ok", "a-*** ok"),
    # no secrets
    ("task-runner-with-a-long-name and risk-free-investments", None),
    ("https://example.com/@user?monkey=1&q=key", None),
    ("the bearer of it; a cookie; an API key", None),
    ("max_tokens: 4096, keyboard: yes", None),
    ("ollama", None),
    ("short", None),
]


@pytest.mark.parametrize(("text", "shown"), ROWS, ids=[row[0][:30] for row in ROWS])
def test_redact_text(text: str, shown: str | None) -> None:
    redactor = Redactor([KEY, PLAIN, "ollama", "short"])
    assert redactor.redact_text(text) == (text if shown is None else shown)
    assert redactor.redact_bytes(text.encode()) == (text if shown is None else shown).encode()
    assert redactor.redact_text(redactor.redact_text(text)) == redactor.redact_text(text)


_SIZE = 200_000
# For every secret pattern, text that would take quadratic time if an anchor were tried more than once.
SLOW = [
    "authorization:",
    "authorization: ",
    "authorization",
    "authorization:a ",
    "api-key:",
    "api_key=",
    "apikey \\",
    "cookie:",
    "cookie: a",
    "bearer ",
    "bearer",
    "?key=",
    "&access_token=a",
    "://",
    "://a:",
    "sk-",
    ".sk-",
    "eyJ",
    "-eyJ",
    "-eyJaaaaaaaa.",
    ".eyJaaaaaaaa",
    *(f"{sign}{prefix}" for sign in ("", ".") for prefix in ("gsk_", "github_pat_", "AIza", "AKIA")),
]


def redact(data: bytes) -> bytes:
    return Redactor().redact_bytes(data)


@pytest.mark.parametrize("unit", SLOW)
def test_redaction_time_is_linear_for_hostile_text(unit: str) -> None:
    for text in (unit * (_SIZE // len(unit)), unit + " " * _SIZE + unit * 1000):
        data = text.encode()
        check_growth(redact, data[: len(data) // 8], data, limit=20)


@pytest.mark.parametrize("user", ["", "u", "us", "use", "user"])
@pytest.mark.parametrize("encode", [base64.b64encode, base64.urlsafe_b64encode])
@pytest.mark.parametrize("key", [KEY, PLAIN, "??>>~~??>>"])
def test_secret_in_base64_credentials_is_redacted(user: str, encode: Callable[[bytes], bytes], key: str) -> None:
    """Only the padding and the two characters that also hold bits of neighbouring bytes are left."""
    whole = encode(f"{user}:{key}".encode()).decode()
    shown = Redactor([key]).redact_text(whole)
    before, after = shown.split("***")
    assert before == whole[: len(before)]
    assert len(before) <= -(-len(f"{user}:") * 8 // 6)
    assert len(after.rstrip("=")) <= 1


def test_secret_that_contains_another_secret() -> None:
    assert Redactor(["abcdef", "abcdefghi"]).redact_text("abcdefghi abcdef") == "*** ***"


def test_headers_with_secret_names_are_redacted() -> None:
    headers = {
        "Authorization": "Bearer x",
        "x-api-key": "x",
        "Cookie": "x",
        "Set-Cookie": "x",
        "cf-aig-authorization": "x",
        "X-Auth-Token": "x",
        "x-oauth-bearer": "x",
        "accessToken": "x",
        "client_secret_2": "x",
        "X-Author": "Ann",
        "anthropic-ratelimit-tokens-remaining": "12",
        "content-type": f"text/{PLAIN}",
    }
    shown = Redactor([PLAIN]).redact_headers(headers)
    assert [name for name, value in shown.items() if value != "***"] == [*headers][-3:]
    assert shown["content-type"] == "text/***"


def test_nested_values_are_redacted() -> None:
    shown = Redactor([PLAIN]).redact_value(
        {"a": [PLAIN, 1, None], "api_key": "x", "b": {PLAIN: PLAIN.encode()}, "key": 3}
    )
    assert shown == {"a": ["***", 1, None], "api_key": "***", "b": {"***": "***"}, "key": 3}


@pytest.mark.parametrize(
    "fields",
    [
        *({"id": "req_1", "text": text, "status": 200} for text, _ in ROWS),
        *({text: 1} for text, _ in ROWS),
        *({"findings": {text: 1}} for text, _ in ROWS),
        *({"first": "authorization:", "text": text} for text, _ in ROWS),
        {"api_key": "short", "n": None},
        {"nested": {"api_key": "short"}, "seconds": 0.5},
        {"list": [KEY], "body": PLAIN.encode()},
    ],
)
def test_fields_are_redacted_like_other_values(fields: dict[str, Any]) -> None:
    redactor = Redactor([PLAIN])
    for _ in range(2):  # the second time, the texts are known
        assert redactor.redact_fields(fields) == redactor.redact_value(fields)


def test_number_of_remembered_texts_is_bounded() -> None:
    redactor = Redactor([PLAIN])
    for number in range(3000):
        assert redactor.redact_fields({"id": f"{PLAIN} {number}"}) == {"id": f"*** {number}"}
    assert len(redactor._repeated) <= 1000


def test_client_key_is_redacted() -> None:
    redactor = Redactor([PLAIN])
    extended = redactor.with_credentials({"Authorization": "Bearer this-is-0123456789"})
    assert extended.redact_text(f"{PLAIN} this-is-0123456789") == "*** ***"
    assert redactor.with_credentials({"x-api-key": "interlingua", "content-type": "application/json"}) is redactor


def test_collect_secrets_of_settings() -> None:
    upstream = Upstream(url="http://x", key="up-key", headers={"X-Auth-Token": "Token tok", "X-Title": "no secret"})
    models: dict[str, Model | str] = {
        "m": Model(upstream="u", extra={"deep": [{"access_token": "in-extra", "n": 1}]}),
        "alias": "m",
    }
    settings = Settings(keys=["client-key"], seal_key="seal-key", upstreams={"u": upstream}, models=models)
    assert set(collect_secrets(settings)) == {"client-key", "seal-key", "up-key", "Token tok", "tok", "in-extra"}
    assert set(collect_secrets(Settings(), ["${X}"])) == {"${X}"}
    assert credentials({}) == set()


def test_password_of_the_database_is_a_secret() -> None:
    url = "postgresql://me:pass%40word@host/db"
    assert set(collect_secrets(Settings(state=State(url=url)))) == {url, "pass%40word", "pass@word"}


def test_partial_secret_at_end_of_data() -> None:
    redactor = Redactor([PLAIN])
    for cut in range(1, len(PLAIN)):
        assert redactor.has_partial_secret_at_end(f"some text {PLAIN[:cut]}".encode()), cut
    assert not redactor.has_partial_secret_at_end(f"some text {PLAIN}!".encode())
    assert not redactor.has_partial_secret_at_end(b"")
    assert not Redactor([]).has_partial_secret_at_end(b"anything")


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("kimi-k2 → é", "kimi-k2 → é"),
        ("a\nb\r\tc\x00\x7f", r"a\nb\r\tc\x00\x7f"),
        ("\x1b[31mred\x9b0m", r"\x1b[31mred\x9b0m"),
        ("\u202eright to left\u2028", r"\u202eright to left\u2028"),
        ("\ud800", r"\ud800"),
        ("x" * 301, "x" * 300 + "… (1 more)"),
    ],
)
def test_printable_escapes_control_characters(text: str, shown: str) -> None:
    assert printable(text) == shown


def test_values_of_variables_are_redacted(tmp_path: Path) -> None:
    file = tmp_path / "interlingua.yaml"
    file.write_text('upstreams: {u: {url: "http://localhost:1/v1", headers: {X-Org: "${ORG}"}}}', encoding="utf-8")
    gateway = GatewayState(load_settings(file, {"ORG": PLAIN}), b"", "")
    gateway.log.close()
    assert gateway.config.redactor.redact_text(f"it said {PLAIN}.") == "it said ***."
