"""Redaction of an upstream's own secrets in the bytes of its replies."""

from __future__ import annotations

import pytest

from interlingua.gateway.settings.schema import Upstream
from interlingua.gateway.upstream.secret_filter import SecretFilter

KEY = "sk-upstream-sk-up-0123456789"
OTHER = "another-secret-0123456789"


def redact(*pieces: bytes, upstream: Upstream | None = None) -> tuple[list[bytes], int]:
    """Return the output for each piece, with the rest at the end, and the number of reports."""
    reports: list[None] = []
    secret_filter = SecretFilter(upstream or Upstream(url="http://a", key=KEY), lambda: reports.append(None))
    return [*map(secret_filter.feed, pieces), secret_filter.flush()], len(reports)


@pytest.mark.parametrize("text", [KEY, f"a {KEY} b {KEY}", f"sk-up{KEY}sk-", f"data: {KEY}\n\n", f"{KEY}{KEY}"])
def test_key_is_redacted_however_it_is_cut(text: str) -> None:
    data, expected = text.encode(), text.replace(KEY, "***").encode()
    for cut in range(len(data) + 1):
        pieces, reports = redact(data[:cut], data[cut:])
        assert (b"".join(pieces), reports) == (expected, 1), cut
    pieces, reports = redact(*(data[at : at + 1] for at in range(len(data))))
    assert (b"".join(pieces), reports) == (expected, 1)


@pytest.mark.parametrize(
    ("data", "sent"),
    [
        (b"data: {}\n\n", b"data: {}\n\n"),
        (b"Hello", b"Hello"),
        (b"books", b"book"),
        (b"Hello sk-upstr", b"Hello "),
        (b"sk-upstream-sk-up", b""),
        (b"x" + KEY[1:].encode(), b"x" + KEY[1:].encode()),
    ],
)
def test_only_the_start_of_a_key_is_held_back(data: bytes, sent: bytes) -> None:
    pieces, reports = redact(data, b"\n")
    assert (pieces[0], b"".join(pieces), reports) == (sent, data + b"\n", 0)


@pytest.mark.parametrize(
    ("upstream", "text", "expected"),
    [
        (Upstream(url="http://a", headers={"Authorization": f"Bearer {OTHER}"}), f"<{OTHER}>", "<***>"),
        (Upstream(url="http://a", key=KEY, headers={"X-Api-Key": OTHER}), f"<{OTHER} {KEY}>", "<*** ***>"),
        (Upstream(url="http://a", key='sk-with-a-"quote"-0123'), r'{"a": "sk-with-a-\"quote\"-0123"}', '{"a": "***"}'),
        (Upstream(url="http://a", key="sk-short"), "sk-short", "sk-short"),
        (Upstream(url="http://a", headers={"X-Title": OTHER}), OTHER, OTHER),
        (Upstream(url="http://a", passthrough=True), OTHER, OTHER),
        (Upstream(url="http://a"), "", ""),
    ],
    ids=["header", "two", "JSON", "short", "not secret", "passthrough", "none"],
)
def test_secrets_of_an_upstream(upstream: Upstream, text: str, expected: str) -> None:
    assert b"".join(redact(text.encode(), upstream=upstream)[0]) == expected.encode()
