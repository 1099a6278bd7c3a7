"""What of a value may be shown? No secrets, and nothing that a terminal would obey.

Log, captures, traces and error messages for clients all ask here. Secrets are known by value (those of the settings, in
every form that they travel in) or by their looks, such as `sk-…` or what follows `Authorization:`.
"""

from __future__ import annotations

import base64
import json
import re
from collections.abc import Iterable, Iterator, Mapping
from typing import Any
from urllib.parse import quote, quote_plus

from interlingua.gateway.settings.schema import Model, Settings

__all__ = ["REDACTED", "Redactor", "collect_secrets", "credentials", "is_secret_name", "printable"]

_MIN_SECRET_CHARS = 6
"""What is shorter stands in too many texts by chance."""
_MIN_CLIENT_KEY_CHARS = 16
"""Clients of a gateway without keys show any word, which should not vanish from all they say."""
_PLACEHOLDER_KEYS = {
    "ollama",
    "lm-studio",
    "not-needed",
    "no-key-required",
    "sk-no-key-required",
    "anything",
    "placeholder",
}
"""What people write where a server wants some key and looks at none."""

REDACTED = "***"
_SECRET_NAME = re.compile(
    r"(?i:authorization|cookie|secret|password|credential|api[-_]?key)"
    r"|(?i:(?:^|[-_])o?auth(?:$|[-_]))|(?i:(?:^|[-_])(?:key|token)$)|[a-z](?:Key|Token)$"
)
_ASSIGNMENT = rb"""(?:\\*["'])?\s*[:=]\s*+(?:\\*["'])?+(?!\*\*\*)"""
"""Between a name and its value: as a header, in JSON (also inside a string of JSON), in code."""
_SECRET_QUERY_PARAMETERS = ["key", "api_key", "api-key", "apikey", "access_token", "token", "sig", "signature"]
_KEY_PREFIXES = ["gsk_", "xai-", "hf_", "nvapi-", "pplx-", "csk-", "r8_", "fw_", "ghp_", "github_pat_", "AIza", "AKIA"]
_SECRET_PATTERNS: list[tuple[list[str], bytes]] = [
    # Where to look, and what has to stand there: the group is the secret.
    (["authorization"], rb"(?i:authorization)" + _ASSIGNMENT + rb"((?:[A-Za-z]+ +)?[\w.~+/=:-]{4,})"),
    (["api-key", "api_key", "apikey"], rb"(?i:api[-_]?key)" + _ASSIGNMENT + rb"([\w.~+/=:-]{4,})"),
    (["cookie"], rb"(?i:cookie)" + _ASSIGNMENT + rb"""([^\r\n"'\\]{4,})"""),
    (["bearer"], rb"(?i:bearer)\s+([\w.~+/=-]{6,})"),
    ([f"{sign}{name}=" for sign in "?&" for name in _SECRET_QUERY_PARAMETERS], rb"""[^=]+=([^&\s"'\\#<>*]+)"""),
    (["://"], rb"""://([^/\s"'\\@<>?#*]+)@"""),
    (["sk-", "sk_"], rb"(?<![\w-])(sk[-_][\w-]{8,})"),
    (["eyJ"], rb"\b(?:(eyJ[\w-]{8,}+\.[\w-]{8,}+\.[\w-]*+)|eyJ[\w-]*+)"),  # what is none is gone past as a whole
    (_KEY_PREFIXES, rb"(?<![\w-])([A-Za-z0-9]+(?:_pat)?[-_]?[\w-]{16,})"),
]
_ANCHORED_PATTERNS = [
    (place.lower().encode(), re.compile(pattern)) for places, pattern in _SECRET_PATTERNS for place in places
]
_ANY_ANCHOR = re.compile(b"|".join(re.escape(place) for place, _ in _ANCHORED_PATTERNS))
_MAX_SHORT_BYTES = 1000
"""Up to here one look for any place is faster than one for each; behind it, it is not."""


class Redactor:
    """Puts *** where a secret stands."""

    def __init__(self, secrets: Iterable[str] = ()) -> None:
        self._secrets = frozenset(
            v for v in secrets if len(v) >= _MIN_SECRET_CHARS and v.lower() not in _PLACEHOLDER_KEYS
        )
        forms = {form for value in self._secrets for form in _encoded_forms(value) if len(form) >= _MIN_SECRET_CHARS}
        self._forms = sorted(forms, key=lambda form: (-len(form), form))  # a secret may hold another one

    def with_credentials(self, headers: Mapping[str, str]) -> Redactor:
        """One that also knows the key that a client has shown, for that may be sent on to an upstream."""
        return self.with_secrets(value for value in credentials(headers) if len(value) >= _MIN_CLIENT_KEY_CHARS)

    def with_secrets(self, secrets: Iterable[str]) -> Redactor:
        """One that knows these secrets, too."""
        added = set(secrets)
        return Redactor(self._secrets | added) if added - self._secrets else self

    def redact_text(self, text: str) -> str:
        if len(text) < _MIN_SECRET_CHARS:
            return text
        return self.redact_bytes(text.encode("utf-8", "surrogatepass")).decode("utf-8", "surrogatepass")

    def redact_bytes(self, data: bytes) -> bytes:
        for form in self._forms:
            data = data.replace(form, REDACTED.encode())
        return _replace_spans(data, _find_secret_spans(data))

    def redact_headers(self, headers: Mapping[str, str]) -> dict[str, str]:
        return {name: self._redact_field(name, value) for name, value in headers.items()}

    def redact_value(self, value: Any) -> Any:
        """What can be written as JSON, with everything in it."""
        if isinstance(value, str):
            return self.redact_text(value)
        elif isinstance(value, bytes):
            return self.redact_text(value.decode("utf-8", "backslashreplace"))
        elif isinstance(value, Mapping):
            return {self.redact_text(str(name)): self._redact_field(str(name), item) for name, item in value.items()}
        elif isinstance(value, list | tuple):
            return [self.redact_value(item) for item in value]
        return value

    def _redact_field(self, name: str, value: Any) -> Any:
        return REDACTED if isinstance(value, str) and is_secret_name(name) else self.redact_value(value)

    def has_partial_secret_at_end(self, data: bytes) -> bool:
        """Whether the end of `data` may be the beginning of a secret known by value, so that more has to be seen."""
        for form in self._forms:
            start = data.find(form[:1], max(0, len(data) - len(form) + 1))
            while start >= 0:
                if form.startswith(data[start:]):
                    return True
                start = data.find(form[:1], start + 1)
        return False


def is_secret_name(name: str) -> bool:
    """Whether what stands under this name is a secret: a header, or a field of anything."""
    return _SECRET_NAME.search(name) is not None


def collect_secrets(settings: Settings, variable_secrets: Iterable[str] = ()) -> list[str]:
    """All that must never be shown of these settings. `expanded` is what variables have brought (`Loaded.secrets`)."""
    secrets = [*settings.keys, settings.seal_key, *variable_secrets]
    for upstream in settings.upstreams.values():
        secrets += [upstream.key, *credentials(upstream.headers), *_secrets_by_field_name(upstream.extra)]
    for model in settings.models.values():
        secrets += _secrets_by_field_name(model.extra) if isinstance(model, Model) else ()
    return [value for value in secrets if value]


def credentials(headers: Mapping[str, str]) -> set[str]:
    """The secrets among headers, by their names: whole, and without the word that says what they are."""
    values = {value for name, value in headers.items() if is_secret_name(name)}
    return values | {value.split(None, 1)[1] for value in values if len(value.split(None, 1)) == 2}


def _secrets_by_field_name(value: Any) -> Iterator[str]:
    if isinstance(value, dict):
        yield from (item for name, item in value.items() if isinstance(item, str) and is_secret_name(name))
    for item in value.values() if isinstance(value, dict) else value if isinstance(value, list) else ():
        yield from _secrets_by_field_name(item)


def printable(text: str, max_chars: int = 300) -> str:
    """A value as one line of a terminal may show it: no line end, no escape sequence, no change of direction."""
    visible = text[:max_chars]
    if not visible.isprintable():
        visible = "".join(c if c.isprintable() else c.encode("unicode_escape").decode("ascii") for c in visible)
    return visible if len(text) <= max_chars else f"{visible}… ({len(text) - max_chars} more)"


def _find_secret_spans(data: bytes) -> list[tuple[int, int]]:
    """Where they stand, in order. Each place is found by a plain search, for long bodies should hold up nobody.

    Of the places inside what was found only the last is tried: all of them would end there, and `cookie:cookie:…` would
    take the square of its length.
    """
    lower = data.lower()
    if len(data) < _MAX_SHORT_BYTES and not _ANY_ANCHOR.search(lower):
        return []
    spans = []
    for anchor, pattern in _ANCHORED_PATTERNS:
        position = lower.find(anchor)
        while position >= 0:
            anchor_end = position + len(anchor)
            match = pattern.match(data, position)
            if match is None:
                position = lower.find(anchor, anchor_end)
                continue
            if match[1] is not None:
                spans.append(match.span(1))
            nested_position = lower.rfind(anchor, anchor_end, match.end())
            position = nested_position if nested_position >= 0 else lower.find(anchor, match.end())
    return sorted(spans)


def _replace_spans(data: bytes, spans: list[tuple[int, int]]) -> bytes:
    chunks, position = [], 0
    for start, end in spans:
        if start >= position:
            chunks += [data[position:start], REDACTED.encode()]
        position = max(position, end)
    return b"".join([*chunks, data[position:]]) if spans else data


def _encoded_forms(value: str) -> Iterable[bytes]:
    """A secret as it stands in texts, in JSON, in a URL, and in the middle of something in Base64."""
    yield value.encode("utf-8", "surrogatepass")
    yield json.dumps(value)[1:-1].encode("ascii")
    yield json.dumps(value, ensure_ascii=False)[1:-1].encode("utf-8", "surrogatepass")
    yield quote(value, safe="", errors="replace").encode("ascii")
    yield quote_plus(value, errors="replace").encode("ascii")
    raw = value.encode("utf-8", "surrogatepass")
    for offset in range(3):
        # The characters that hang on no neighbour: `user:` may stand before it, and `:` behind.
        last = (offset + len(raw)) * 8 // 6
        encoded = base64.b64encode(b"\0" * offset + raw)[(0, 2, 3)[offset] : last]
        yield encoded
        yield encoded.translate(bytes.maketrans(b"+/", b"-_"))
