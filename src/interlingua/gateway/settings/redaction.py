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

__all__ = ["HIDDEN", "Redactor", "credentials", "names_a_secret", "printable", "secrets_of"]

_SHORTEST = 6
"""What is shorter stands in too many texts by chance."""
_SHORTEST_OF_CLIENTS = 16
"""Clients of a gateway without keys show any word, which should not vanish from all they say."""
_NO_SECRETS = {"ollama", "lm-studio", "not-needed", "no-key-required", "sk-no-key-required", "anything", "placeholder"}
"""What people write where a server wants some key and looks at none."""

HIDDEN = "***"
_NAME = re.compile(
    r"(?i:authorization|cookie|secret|password|credential|api[-_]?key)"
    r"|(?i:(?:^|[-_])o?auth(?:$|[-_]))|(?i:(?:^|[-_])(?:key|token)$)|[a-z](?:Key|Token)$"
)
_ASSIGN = rb"""(?:\\*["'])?\s*[:=]\s*+(?:\\*["'])?+(?!\*\*\*)"""
"""Between a name and its value: as a header, in JSON (also inside a string of JSON), in code."""
_QUERY = ["key", "api_key", "api-key", "apikey", "access_token", "token", "sig", "signature"]
_PREFIXES = ["gsk_", "xai-", "hf_", "nvapi-", "pplx-", "csk-", "r8_", "fw_", "ghp_", "github_pat_", "AIza", "AKIA"]
_LOOKS: list[tuple[list[str], bytes]] = [
    # Where to look, and what has to stand there: the group is the secret.
    (["authorization"], rb"(?i:authorization)" + _ASSIGN + rb"((?:[A-Za-z]+ +)?[\w.~+/=:-]{4,})"),
    (["api-key", "api_key", "apikey"], rb"(?i:api[-_]?key)" + _ASSIGN + rb"([\w.~+/=:-]{4,})"),
    (["cookie"], rb"(?i:cookie)" + _ASSIGN + rb"""([^\r\n"'\\]{4,})"""),
    (["bearer"], rb"(?i:bearer)\s+([\w.~+/=-]{6,})"),
    ([f"{sign}{name}=" for sign in "?&" for name in _QUERY], rb"""[^=]+=([^&\s"'\\#<>*]+)"""),
    (["://"], rb"""://([^/\s"'\\@<>?#*]+)@"""),
    (["sk-", "sk_"], rb"(?<![\w-])(sk[-_][\w-]{8,})"),
    (["eyJ"], rb"\b(?:(eyJ[\w-]{8,}+\.[\w-]{8,}+\.[\w-]*+)|eyJ[\w-]*+)"),  # what is none is gone past as a whole
    (_PREFIXES, rb"(?<![\w-])([A-Za-z0-9]+(?:_pat)?[-_]?[\w-]{16,})"),
]
_PLACES = [(place.lower().encode(), re.compile(pattern)) for places, pattern in _LOOKS for place in places]
_ANY_PLACE = re.compile(b"|".join(re.escape(place) for place, _ in _PLACES))
_SHORT = 1000
"""Up to here one look for any place is faster than one for each; behind it, it is not."""


class Redactor:
    """Puts *** where a secret stands."""

    def __init__(self, values: Iterable[str] = ()) -> None:
        self._values = frozenset(v for v in values if len(v) >= _SHORTEST and v.lower() not in _NO_SECRETS)
        forms = {form for value in self._values for form in _forms(value) if len(form) >= _SHORTEST}
        self._forms = sorted(forms, key=lambda form: (-len(form), form))  # a secret may hold another one

    def with_credentials(self, headers: Mapping[str, str]) -> Redactor:
        """One that also knows the key that a client has shown, for that may be sent on to an upstream."""
        return self.knowing(value for value in credentials(headers) if len(value) >= _SHORTEST_OF_CLIENTS)

    def knowing(self, values: Iterable[str]) -> Redactor:
        """One that knows these secrets, too."""
        more = set(values)
        return Redactor(self._values | more) if more - self._values else self

    def text(self, text: str) -> str:
        if len(text) < _SHORTEST:
            return text
        return self.data(text.encode("utf-8", "surrogatepass")).decode("utf-8", "surrogatepass")

    def data(self, data: bytes) -> bytes:
        for form in self._forms:
            data = data.replace(form, HIDDEN.encode())
        return _without(data, _found_by_looks(data))

    def headers(self, headers: Mapping[str, str]) -> dict[str, str]:
        return {name: self._field(name, value) for name, value in headers.items()}

    def value(self, value: Any) -> Any:
        """What can be written as JSON, with everything in it."""
        if isinstance(value, str):
            return self.text(value)
        elif isinstance(value, bytes):
            return self.text(value.decode("utf-8", "backslashreplace"))
        elif isinstance(value, Mapping):
            return {self.text(str(name)): self._field(str(name), item) for name, item in value.items()}
        elif isinstance(value, list | tuple):
            return [self.value(item) for item in value]
        return value

    def _field(self, name: str, value: Any) -> Any:
        return HIDDEN if isinstance(value, str) and names_a_secret(name) else self.value(value)

    def may_begin(self, data: bytes) -> bool:
        """Whether the end of `data` may be the beginning of a secret known by value, so that more has to be seen."""
        for form in self._forms:
            start = data.find(form[:1], max(0, len(data) - len(form) + 1))
            while start >= 0:
                if form.startswith(data[start:]):
                    return True
                start = data.find(form[:1], start + 1)
        return False


def names_a_secret(name: str) -> bool:
    """Whether what stands under this name is a secret: a header, or a field of anything."""
    return _NAME.search(name) is not None


def secrets_of(settings: Settings, expanded: Iterable[str] = ()) -> list[str]:
    """All that must never be shown of these settings. `expanded` is what variables have brought (`Loaded.secrets`)."""
    found = [*settings.keys, settings.seal_key, *expanded]
    for upstream in settings.upstreams.values():
        found += [upstream.key, *credentials(upstream.headers), *_under_their_names(upstream.extra)]
    for model in settings.models.values():
        found += _under_their_names(model.extra) if isinstance(model, Model) else ()
    return [value for value in found if value]


def credentials(headers: Mapping[str, str]) -> set[str]:
    """The secrets among headers, by their names: whole, and without the word that says what they are."""
    values = {value for name, value in headers.items() if names_a_secret(name)}
    return values | {value.split(None, 1)[1] for value in values if len(value.split(None, 1)) == 2}


def _under_their_names(value: Any) -> Iterator[str]:
    if isinstance(value, dict):
        yield from (item for name, item in value.items() if isinstance(item, str) and names_a_secret(name))
    for item in value.values() if isinstance(value, dict) else value if isinstance(value, list) else ():
        yield from _under_their_names(item)


def printable(text: str, longest: int = 300) -> str:
    """A value as one line of a terminal may show it: no line end, no escape sequence, no change of direction."""
    shown = text[:longest]
    if not shown.isprintable():
        shown = "".join(c if c.isprintable() else c.encode("unicode_escape").decode("ascii") for c in shown)
    return shown if len(text) <= longest else f"{shown}… ({len(text) - longest} more)"


def _found_by_looks(data: bytes) -> list[tuple[int, int]]:
    """Where they stand, in order. Each place is found by a plain search, for long bodies should hold up nobody.

    Of the places inside what was found only the last is tried: all of them would end there, and `cookie:cookie:…` would
    take the square of its length.
    """
    lower = data.lower()
    if len(data) < _SHORT and not _ANY_PLACE.search(lower):
        return []
    spans = []
    for place, looks in _PLACES:
        at = lower.find(place)
        while at >= 0:
            behind = at + len(place)
            match = looks.match(data, at)
            if match is None:
                at = lower.find(place, behind)
                continue
            if match[1] is not None:
                spans.append(match.span(1))
            inside = lower.rfind(place, behind, match.end())
            at = inside if inside >= 0 else lower.find(place, match.end())
    return sorted(spans)


def _without(data: bytes, spans: list[tuple[int, int]]) -> bytes:
    kept, done = [], 0
    for start, end in spans:
        if start >= done:
            kept += [data[done:start], HIDDEN.encode()]
        done = max(done, end)
    return b"".join([*kept, data[done:]]) if spans else data


def _forms(value: str) -> Iterable[bytes]:
    """A secret as it stands in texts, in JSON, in a URL, and in the middle of something in Base64."""
    yield value.encode("utf-8", "surrogatepass")
    yield json.dumps(value)[1:-1].encode("ascii")
    yield json.dumps(value, ensure_ascii=False)[1:-1].encode("utf-8", "surrogatepass")
    yield quote(value, safe="", errors="replace").encode("ascii")
    yield quote_plus(value, errors="replace").encode("ascii")
    raw = value.encode("utf-8", "surrogatepass")
    for before in range(3):
        # The characters that hang on no neighbour: `user:` may stand before it, and `:` behind.
        last = (before + len(raw)) * 8 // 6
        whole = base64.b64encode(b"\0" * before + raw)[(0, 2, 3)[before] : last]
        yield whole
        yield whole.translate(bytes.maketrans(b"+/", b"-_"))
