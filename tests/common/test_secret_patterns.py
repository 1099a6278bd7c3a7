"""Secrets that are found by pattern, and text that only looks like one."""

from __future__ import annotations

import base64
import json
import random

import pytest

from interlingua.common.redaction import REDACTED, Redactor
from tests.support.growth import check_growth

SOME = "0123456789abcdefghijABCDEFGHIJ"
TOKENS = [  # written in two parts, so that scanners for secrets find none in this file
    "sk-" + SOME,
    "sk-ant-api03-" + SOME + "-" + SOME + "-AA",
    "sk-" + "proj-" + "AbCdEfGhIjKlMnOpQrStUvWx",
    "sk-" + "abcdefghijklmnopqrstuvwx",
    "sk_" + "live_" + SOME,
    "rk_" + "test_" + SOME,
    *(prefix + SOME + "klmnop" for prefix in ("ghp_", "gho_", "ghu_", "ghs_", "ghr_")),
    "github_pat_" + "11ABCDEFG0" + SOME + "_" + SOME + SOME,
    "glpat-" + SOME[:20],
    "glpat-" + SOME + ".01." + SOME[:9],
    "xoxb-" + "123456789012-1234567890123-" + SOME,
    "xoxp-" + "123456789012-123456789012-" + SOME,
    "xoxa-" + "2-123456789012-" + SOME,
    "xapp-" + "1-A0123456789-1234567890123-" + SOME,
    "AKIA" + "IOSFODNN7EXAMPLE",
    "ASIA" + "IOSFODNN7EXAMPLE",
    "AIza" + "SyA-" + SOME + "_",
    "ya29." + "a0AfH6SM-" + SOME,
    "GOCSPX-" + SOME[:28],
    "hf_" + SOME,
    "gsk_" + SOME,
    "xai-" + SOME,
    "pplx-" + SOME,
    "csk-" + SOME,
    "r8_" + SOME,
    "fw_" + SOME,
    "npm_" + SOME,
    "nvapi-" + SOME + "-" + SOME,
    "tvly-" + "dev-" + SOME,
    "pypi-" + "AgEIcHlwaS5vcmc" + SOME + SOME,
    "dckr_pat_" + SOME,
    "AGE-SECRET-KEY-1" + (SOME + SOME).upper(),
    "eyJhbGciOiJIUzI1NiJ9" + ".eyJzdWIiOiIxIn0." + SOME,
]


@pytest.mark.parametrize("token", TOKENS, ids=[token[:12] for token in TOKENS])
def test_token_of_known_format_is_redacted(token: str) -> None:
    redactor = Redactor()
    for before, after in (
        ("", ""),
        ("it is ", ", not"),
        ('{"k": "', '"}'),
        (r"{\"k\": \"", r"\"}"),
        ("K=", "\n"),
        ("`", "`"),
    ):
        text = before + token + after
        assert redactor.redact_text(text) == before + REDACTED + after
        assert redactor.redact_text(text + " " * 2000) == before + REDACTED + after + " " * 2000, "in a long text"
    for before in ("\n", "\t", "\x01", "<"):
        nested = before + token
        for _ in range(3):
            nested = json.dumps({"k": nested}).replace("<", "\\u003c")
            assert token not in redactor.redact_text(nested)


ASSIGNED = [
    "Authorization: Key 01234567:89abcdef",
    "Authorization: Token abcdefgh",
    "Bearer abcdefghijkl",
    "Bearer token-abcdef",
    "OPENAI_API_KEY=abcdef0123456789",
    'api_key = "correct-horse-battery"',
    "client_secret: 0123456789abcdef",
    "AWS_SECRET_ACCESS_KEY=wJalrXUtnFEMI/K7MDENG/bPxRfiCYEXAMPLEKEY",
    '"SecretAccessKey": "wJalrXUtnFEMI/K7MDENG/bPxRfiCYEXAMPLEKEY"',
    "aws_session_token = " + SOME + "/+" + SOME + "==",
    "DefaultEndpointsProtocol=https;AccountKey=" + SOME + SOME + "==;EndpointSuffix=x",
    "https://hooks.slack.com/services/T01234567/B01234567/" + SOME,
    "Set-Cookie: id=abcdef; Path=/",
]


@pytest.mark.parametrize("text", ASSIGNED)
def test_assigned_secret_is_redacted(text: str) -> None:
    redacted = Redactor().redact_text(text)
    assert redacted.count(REDACTED) == 1
    for part in ("abcdef", "horse", "EXAMPLEKEY", "0123456789"):
        assert part not in redacted
    assert Redactor().redact_text(redacted) == redacted


CODE = [
    "client = OpenAI(api_key=api_key, base_url=url)",
    'client = OpenAI(api_key=os.environ["OPENAI_API_KEY"])',
    "api_key: str | None = None",
    "apiKey: process.env.OPENAI_API_KEY,",
    "def f(*, api_key: Optional[str] = None) -> None:",
    "if not api_key:\n    raise ValueError",
    "headers = {'Authorization': f'Bearer {token}'}",
    'headers["Authorization"] = "Bearer " + token',
    "`Authorization: Bearer ${token}`",
    "authorization: string;",
    "authorization = request.headers.get('authorization')",
    "cookie = SimpleCookie(**fields)",
    "cookie: Optional[str] = None,",
    "uses bearer authentication, and Bearer tokens, a bearer credential.",
    'url = f"{base}?key={key}&token=${token}"',
    "sorted(names, key=len)",
    "git+ssh://git@github.com/owner/name",
    "struct sk_buff *sk_stream_alloc_skb(struct sock *sk)",
    ".sk-fading-circle .sk-folding-cube { }",
    "sk-ssh-ed25519@openssh.com and sk-ecdsa-sha2-nistp256@openssh.com",
    "from huggingface_hub import hf_hub_download_with_retries",
    "npm_config_user_agent npm_lifecycle_event_name",
    "fw_version_number_string, r8_register_operand_size",
    "xoxo-kisses-and-hugs",
    "Asia/Singapore, akia",
    'if "-----BEGIN RSA PRIVATE KEY-----" in text:\n    raise ValueError("-----END RSA PRIVATE KEY-----")',
    "-----BEGIN PRIVATE KEY-----\n...\n-----END PRIVATE KEY-----",
    "-----BEGIN CERTIFICATE-----\n" + SOME * 2 + "\n-----END CERTIFICATE-----",
    "-----BEGIN PUBLIC KEY-----\n" + SOME * 2 + "\n-----END PUBLIC KEY-----",
    "eyJust a word, eyJ.eyJ.x",
]


@pytest.mark.parametrize("text", CODE, ids=[text[:40] for text in CODE])
def test_code_without_a_secret_is_not_changed(text: str) -> None:
    redactor = Redactor()
    for form in (text, json.dumps({"content": text}), json.dumps(json.dumps({"content": text})), text + " " * 2000):
        assert redactor.redact_text(form) == form


def test_images_are_not_changed() -> None:
    """Base64 data has every short text by chance."""
    data = base64.b64encode(random.Random(1).randbytes(3_000_000))
    assert Redactor().redact_bytes(data) == data


# ── private keys ──────────────────────────────────────────────────────────────────────────────────────────────────────

_LINES = ["MIIEpAIBAAKCAQEA" + SOME + SOME[:18], SOME[:4] + "+/" * 14 + SOME + "==", "Zz09"]
KINDS = ["", "RSA ", "EC ", "OPENSSH ", "ENCRYPTED "]


def private_key(kind: str, line_end: str = "\n", header: str = "") -> str:
    return line_end.join(
        [f"-----BEGIN {kind}PRIVATE KEY-----", header + _LINES[0], *_LINES[1:], f"-----END {kind}PRIVATE KEY-----"]
    )


def no_line_of_the_key(text: str) -> bool:
    return not any(line in text for line in _LINES)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("line_end", ["\n", "\r\n", "\n    ", "", " "])
def test_private_key_is_redacted(kind: str, line_end: str) -> None:
    text = f"before {private_key(kind, line_end)} after"
    redacted = f"before -----BEGIN {kind}PRIVATE KEY-----***-----END {kind}PRIVATE KEY----- after"
    redactor = Redactor()
    assert redactor.redact_text(text) == redacted
    assert redactor.redact_text(redacted) == redacted
    nested = text
    for _ in range(3):
        nested = json.dumps({"text": nested, "after": "x"})
        shown = redactor.redact_text(nested)
        assert no_line_of_the_key(shown)
        assert json.loads(shown)["after"] == "x"


def test_private_key_with_headers_is_redacted() -> None:
    header = "Proc-Type: 4,ENCRYPTED\nDEK-Info: AES-128-CBC,0123456789ABCDEF\n\n"
    assert no_line_of_the_key(Redactor().redact_text(private_key("RSA ", header=header)))


def test_pgp_key_is_redacted() -> None:
    text = f"-----BEGIN PGP PRIVATE KEY BLOCK-----\n\n{SOME * 2}\n=abcd\n-----END PGP PRIVATE KEY BLOCK-----"
    assert SOME not in Redactor().redact_text(text)


@pytest.mark.parametrize("number", ["{:6}\t", "{:6}→", "{}: ", "{}:", "+", "> ", "| "])
def test_private_key_in_numbered_lines_is_redacted(number: str) -> None:
    """As agents read files, and as diffs show them."""
    lines = private_key("RSA ").split("\n")
    text = "\n".join(number.format(count) + line for count, line in enumerate(lines, 1))
    redactor = Redactor()
    for form in (text, json.dumps(text), json.dumps(text, ensure_ascii=False)):
        assert no_line_of_the_key(redactor.redact_text(form))


def test_private_key_that_is_cut_off_is_redacted() -> None:
    for number in ("", "{:6}\t", "{:6}→", "{}:"):
        lines = private_key("RSA ").split("\n")[:3]
        text = "\n".join(number.format(count) + line for count, line in enumerate(lines, 1))
        for form in (text, json.dumps({"a": text, "b": "c"}), json.dumps({"a": text, "b": "c"}, ensure_ascii=False)):
            shown = Redactor().redact_text(form)
            assert no_line_of_the_key(shown)
            assert form is text or json.loads(shown)["b"] == "c"
    assert Redactor().redact_text("\n".join(lines) + "\nand so on, in words").endswith("\nand so on, in words")


def test_two_private_keys_are_redacted_one_by_one() -> None:
    text = f"{private_key('RSA ')} and {private_key('')}"
    assert Redactor().redact_text(text).count(REDACTED) == 2


# ── time ──────────────────────────────────────────────────────────────────────────────────────────────────────────────

_BEGIN = "-----BEGIN PRIVATE KEY-----"
SLOW = [
    *(form for token in TOKENS for form in (f".{token[:5]}", f".{token[:12]}")),
    "xoxb-xoxb-",
    "client_secret=",
    "client_secret: a",
    "authorization: bearer ",
    "authorization: a b",
    "bearer a",
    "AccountKey=",
    "secret_access_key=a",
    "cookie:a=",
    "cookie=",
    "?key={",
    "hooks.slack.com/services/a",
    _BEGIN,
    f"{_BEGIN}\n",
    f"{_BEGIN}a",
    f"{_BEGIN}-",
    f"{_BEGIN}{SOME}",
    f"{_BEGIN}{SOME}{SOME}\n",
    f"{_BEGIN}-a--b---c----",
    "-----BEGIN ",
    "-----BEGIN A ",
]
_SIZE = 200_000


def redact(data: bytes) -> bytes:
    return Redactor().redact_bytes(data)


@pytest.mark.parametrize("unit", dict.fromkeys(SLOW))
def test_time_is_linear_for_hostile_text(unit: str) -> None:
    for text in (unit * (_SIZE // len(unit)), unit + " " * _SIZE + unit * 1000, unit + "1\\n" * (_SIZE // 3)):
        data = text.encode()
        check_growth(redact, data[: len(data) // 8], data, limit=20)
