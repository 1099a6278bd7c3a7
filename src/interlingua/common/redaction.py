"""Redaction of secrets, and escaping of control characters for terminals.

Used for the log, captures, cassettes, traces and error messages to clients. Secrets are found by value (the secrets of
the settings, in every encoding in which they are sent) or by pattern (`secret_patterns.py`).
"""

from __future__ import annotations

import base64
import json
import re
from collections.abc import Iterable, Mapping
from functools import lru_cache
from typing import Any
from urllib.parse import quote, quote_plus

from interlingua.common.secret_patterns import find_secret_spans

__all__ = ["REDACTED", "Redactor", "credentials", "is_secret_name", "printable"]

_MIN_SECRET_CHARS = 6
"""Shorter secrets occur in too many texts by chance."""
_MIN_CLIENT_KEY_CHARS = 16
"""Minimum length of a client's key to be redacted. Clients of a gateway without keys send any word as key, which must
not disappear from all their texts."""
_PLACEHOLDER_KEYS = {
    "ollama",
    "lm-studio",
    "not-needed",
    "no-key-required",
    "sk-no-key-required",
    "anything",
    "placeholder",
}
"""Dummy keys for servers that require a key but do not check it."""

REDACTED = "***"
_SECRET_NAME = re.compile(
    r"(?i:authorization|cookie|secret|password|credential|api[-_]?key)"
    r"|(?i:(?:^|[-_])o?auth(?:$|[-_]))|(?i:(?:^|[-_])(?:key|token)$)|[a-z](?:Key|Token)$"
)
_MAX_REPEATED_TEXTS, _MAX_REPEATED_CHARS = 1000, 200
"""Number and length of the texts of log lines that are searched for secrets only once."""


class Redactor:
    """Replaces secrets by `***`."""

    def __init__(self, secrets: Iterable[str] = ()) -> None:
        self._secrets = frozenset(
            v for v in secrets if len(v) >= _MIN_SECRET_CHARS and v.lower() not in _PLACEHOLDER_KEYS
        )
        forms = {form for value in self._secrets for form in _encoded_forms(value) if len(form) >= _MIN_SECRET_CHARS}
        self._forms = sorted(
            forms, key=lambda form: (-len(form), form)
        )  # longest first: a secret may contain another one
        self.longest_secret_bytes = len(self._forms[0]) if self._forms else 0
        """Length of the longest secret known by value, in any encoding."""
        self._repeated: dict[str | tuple[str, ...], str] = {}  # redacted texts of log lines, such as names of models

    def with_credentials(self, headers: Mapping[str, str]) -> Redactor:
        """Return a redactor that also redacts the client's key, which may be forwarded to an upstream."""
        return self.with_secrets(value for value in credentials(headers) if len(value) >= _MIN_CLIENT_KEY_CHARS)

    def with_secrets(self, secrets: Iterable[str]) -> Redactor:
        """Return a redactor that also redacts these secrets."""
        added = set(secrets)
        return Redactor(self._secrets | added) if added - self._secrets else self

    def redact_text(self, text: str) -> str:
        if len(text) < _MIN_SECRET_CHARS:
            return text
        return self.redact_bytes(text.encode("utf-8", "surrogatepass")).decode("utf-8", "surrogatepass")

    def redact_bytes(self, data: bytes) -> bytes:
        for form in self._forms:
            data = data.replace(form, REDACTED.encode())
        return _replace_spans(data, find_secret_spans(data))

    def find_spans(self, data: bytes) -> list[tuple[int, int]]:
        """Return the spans of the secrets, in order and without overlaps."""
        known = [match.span() for form in self._forms for match in re.finditer(re.escape(form), data)]
        spans: list[tuple[int, int]] = []
        for start, end in sorted([*known, *find_secret_spans(data)]):
            if spans and start < spans[-1][1]:
                spans[-1] = (spans[-1][0], max(end, spans[-1][1]))
            else:
                spans.append((start, end))
        return spans

    def redact_headers(self, headers: Mapping[str, str]) -> dict[str, str]:
        return {name: self._redact_field(name, value) for name, value in headers.items()}

    def redact_value(self, value: Any) -> Any:
        """Redact a JSON value recursively. Bytes become text."""
        if isinstance(value, str):
            return self.redact_text(value)
        elif isinstance(value, bytes):
            return self.redact_text(value.decode("utf-8", "backslashreplace"))
        elif isinstance(value, Mapping):
            return {self.redact_text(str(name)): self._redact_field(str(name), item) for name, item in value.items()}
        elif isinstance(value, list | tuple):
            return [self.redact_value(item) for item in value]
        return value

    def redact_fields(self, fields: dict[str, Any]) -> dict[str, Any]:
        """Redact the fields of a log line, as `redact_value` does. A short text that lines repeat is searched once."""
        names = tuple(fields)
        if names not in self._repeated:
            text = "\n".join(names)
            if any(map(is_secret_name, names)) or self.redact_text(text) != text:
                redacted: dict[str, Any] = self.redact_value(fields)
                return redacted
            self._remember(names, "")
        return {name: self._redact_repeated(value) for name, value in fields.items()}

    def _redact_repeated(self, value: Any) -> Any:
        if type(value) is dict and all(type(number) is int for number in value.values()):
            return {self._redact_repeated(name): number for name, number in value.items()}
        if type(value) is not str:
            return self.redact_value(value)
        redacted = self._repeated.get(value)
        if redacted is None:
            redacted = self.redact_text(value)
            if len(value) <= _MAX_REPEATED_CHARS:
                self._remember(value, redacted)
        return redacted

    def _remember(self, text: str | tuple[str, ...], redacted: str) -> None:
        if len(self._repeated) >= _MAX_REPEATED_TEXTS:
            self._repeated.clear()
        self._repeated[text] = redacted

    def _redact_field(self, name: str, value: Any) -> Any:
        return REDACTED if isinstance(value, str) and is_secret_name(name) else self.redact_value(value)

    def has_partial_secret_at_end(self, data: bytes) -> bool:
        """Return whether `data` ends with a prefix of a secret known by value, so that more data is needed."""
        for form in self._forms:
            start = data.find(form[:1], max(0, len(data) - len(form) + 1))
            while start >= 0:
                if form.startswith(data[start:]):
                    return True
                start = data.find(form[:1], start + 1)
        return False


@lru_cache(1024)
def is_secret_name(name: str) -> bool:
    """Return whether the value of a header or field with this name is a secret."""
    return _SECRET_NAME.search(name) is not None


def credentials(headers: Mapping[str, str]) -> set[str]:
    """Return the secret values among the headers, each one whole and without its scheme (`Bearer`)."""
    values = {value for name, value in headers.items() if is_secret_name(name)}
    return values | {value.split(None, 1)[1] for value in values if len(value.split(None, 1)) == 2}


def printable(text: str, max_chars: int = 300) -> str:
    """Return the text as one safe line for a terminal: line ends, escape sequences and direction marks are escaped."""
    visible = text[:max_chars]
    if not visible.isprintable():
        visible = "".join(c if c.isprintable() else c.encode("unicode_escape").decode("ascii") for c in visible)
    return visible if len(text) <= max_chars else f"{visible}… ({len(text) - max_chars} more)"


def _replace_spans(data: bytes, spans: list[tuple[int, int]]) -> bytes:
    chunks, position = [], 0
    for start, end in spans:
        if start >= position:
            chunks += [data[position:start], REDACTED.encode()]
        position = max(position, end)
    return b"".join([*chunks, data[position:]]) if spans else data


def _encoded_forms(value: str) -> Iterable[bytes]:
    """Yield the secret as it appears in text, in JSON, in a URL, and inside Base64 data at any offset."""
    yield value.encode("utf-8", "surrogatepass")
    yield json.dumps(value)[1:-1].encode("ascii")
    yield json.dumps(value, ensure_ascii=False)[1:-1].encode("utf-8", "surrogatepass")
    yield quote(value, safe="", errors="replace").encode("ascii")
    yield quote_plus(value, errors="replace").encode("ascii")
    raw = value.encode("utf-8", "surrogatepass")
    for offset in range(3):
        # Only the Base64 characters that do not depend on neighbouring bytes: `user:` may precede it, `:` may follow.
        last = (offset + len(raw)) * 8 // 6
        encoded = base64.b64encode(b"\0" * offset + raw)[(0, 2, 3)[offset] : last]
        yield encoded
        yield encoded.translate(bytes.maketrans(b"+/", b"-_"))
