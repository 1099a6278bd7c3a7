"""Checks of the settings that types cannot express: addresses, headers, keys."""

from __future__ import annotations

import re
import shutil
from collections.abc import Iterator
from ipaddress import ip_address
from urllib.parse import urlsplit

from interlingua.errors import BadSetting
from interlingua.gateway.settings.schema import Settings, Upstream, WebSearch

__all__ = ["find_problems", "is_loopback"]

MIN_CLIENT_KEY_CHARS = 16
"""Minimum length of client keys if the gateway is reachable from other machines."""
MIN_SEAL_KEY_CHARS = 16
"""Minimum length of the key of envelopes, which clients can try to guess without sending requests."""
_NO_UPSTREAM_HINT = "use --upstream URL or --demo; `interlingua config init` writes a settings file"
_GENERATE_HINT = "generate one: python -c 'import secrets; print(secrets.token_urlsafe(32))'"
_KEY_HINT = f"add one to `keys`, or set INTERLINGUA_KEYS; {_GENERATE_HINT}"
_URL_HINT = "for example: https://openrouter.ai/api/v1"
_SCHEMELESS_URL = re.compile(r"[A-Za-z0-9-]+(\.[A-Za-z0-9-]+)*(:\d+)?(/[\w./-]*)?")
_DATABASE_HINT = "for example: postgresql://user:password@host/database"
_HEADER_NAME = re.compile(r"[!#$%&'*+.^_`|~0-9A-Za-z-]+")
_UPSTREAM_NAME = re.compile(r"[\x21-\xff](?:[\x20-\xff]*[\x21-\xff])?")
_CLIENT_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._@-]{0,63}")
_CLIENT_NAME_HINT = "use at most 64 letters, digits, dots, dashes, underscores and @"
_CONTROL_CHARACTER_PROBLEM = "contains a line break or a control character"
_FORBIDDEN_HEADER_CHARACTER = re.compile(r"[\x00-\x08\x0a-\x1f\x7f]")


def find_problems(settings: Settings) -> Iterator[BadSetting]:
    """Yield an error for each setting that is wrong."""
    if not settings.upstreams:
        yield BadSetting(("upstreams",), "no upstream is configured", _NO_UPSTREAM_HINT)
    for name, upstream in settings.upstreams.items():
        yield from _check_upstream_name(name)
        yield from _check_upstream_url(("upstreams", name, "url"), upstream.url)
        yield from _check_upstream_headers(("upstreams", name), upstream)
    yield from _check_client_keys(settings)
    yield from _check_seal_key(settings)
    yield from _check_inspector_key(settings)
    yield from _check_state(settings)
    yield from _check_web_search(settings.web_search)


def is_loopback(host: str) -> bool:
    """Return whether the host is reachable only from this machine."""
    name = host.removeprefix("[").removesuffix("]").lower()
    try:
        return ip_address(name).is_loopback
    except ValueError:
        return name == "localhost"


def _check_upstream_name(name: str) -> Iterator[BadSetting]:
    """Check that the name can be a header value: a response header names the upstream that replied."""
    if not _UPSTREAM_NAME.fullmatch(name) or not name.isprintable():
        yield BadSetting(("upstreams", name), f"{name!r} cannot be sent in a header", "use letters and digits")


def _scheme_hint(url: str) -> str:
    """Return a hint with the scheme that an address such as `localhost:8000/v1` lacks; "" for other mistakes."""
    if not _SCHEMELESS_URL.fullmatch(url):
        return ""
    host, _, port = url.partition("/")[0].partition(":")
    if "." not in host and not port:  # perhaps the name of an upstream
        return ""
    is_local = "." not in host or host.replace(".", "").isdigit()
    return f"did you mean {'http' if is_local else 'https'}://{url}?"


def _check_http_url(path: tuple[str, ...], url: str, hint: str) -> Iterator[BadSetting]:
    try:
        parts = urlsplit(url)
        is_usable = parts.scheme in ("http", "https") and bool(parts.hostname) and parts.port != 0
    except ValueError:  # incomplete IPv6 address, port that is not a number
        is_usable = False
    if not is_usable or not url.isprintable() or " " in url:
        yield BadSetting(path, f"{url!r} is not an http or https URL", _scheme_hint(url) or hint)


def _check_upstream_url(path: tuple[str, ...], url: str) -> Iterator[BadSetting]:
    if problems := list(_check_http_url(path, url, _URL_HINT)):
        yield from problems
        return
    parts = urlsplit(url)
    if parts.username is not None or parts.query or parts.fragment:
        yield BadSetting(path, "the URL contains a user, query or fragment", "put keys into `key` or `headers`")


def _check_upstream_headers(path: tuple[str, ...], upstream: Upstream) -> Iterator[BadSetting]:
    if _FORBIDDEN_HEADER_CHARACTER.search(upstream.key):
        yield BadSetting((*path, "key"), _CONTROL_CHARACTER_PROBLEM, "check that it is the right variable")
    for name, value in upstream.headers.items():
        if not _HEADER_NAME.fullmatch(name):
            yield BadSetting((*path, "headers"), f"{name!r} is not a valid header name", "for example: X-Title")
        if _FORBIDDEN_HEADER_CHARACTER.search(value):
            yield BadSetting((*path, "headers", name), _CONTROL_CHARACTER_PROBLEM, "write it on one line")


def _check_client_keys(settings: Settings) -> Iterator[BadSetting]:
    keys = settings.client_keys
    for name, key in keys.items():
        same = next(other for other in keys if keys[other] == key)
        if not _CLIENT_NAME.fullmatch(name):
            yield BadSetting(("keys", name), f"{name!r} cannot be the name of a client", _CLIENT_NAME_HINT)
        if not key:
            yield BadSetting(("keys", name), "the key is empty", _GENERATE_HINT)
        elif same != name and isinstance(settings.keys, dict):
            yield BadSetting(("keys", name), f"has the same key as {same}", "each client needs a key of its own")
    if is_loopback(settings.host):
        return
    if not settings.keys:
        yield BadSetting(
            ("keys",), f"{settings.host!r} is reachable from other machines, so a key is required", _KEY_HINT
        )
    if any(len(key) < MIN_CLIENT_KEY_CHARS for key in keys.values()):
        yield BadSetting(
            ("keys",),
            f"a key has less than {MIN_CLIENT_KEY_CHARS} characters and could be guessed from other machines",
            _KEY_HINT,
        )


def _check_seal_key(settings: Settings) -> Iterator[BadSetting]:
    if 0 < len(settings.seal_key) < MIN_SEAL_KEY_CHARS:
        problem = f"the key has less than {MIN_SEAL_KEY_CHARS} characters and could be guessed"
        yield BadSetting(("seal_key",), problem, _GENERATE_HINT)


def _check_inspector_key(settings: Settings) -> Iterator[BadSetting]:
    """Check that only the operator can open the inspector, which shows the conversations of all clients."""
    if not settings.inspect.enabled:
        return
    key = settings.inspect.key
    if not key and len(settings.client_keys) > 1:
        problem = "a key is required, because each client could read the conversations of the others"
        yield BadSetting(("inspect", "key"), problem, _GENERATE_HINT)
    elif key and not is_loopback(settings.host) and len(key) < MIN_CLIENT_KEY_CHARS:
        problem = f"has less than {MIN_CLIENT_KEY_CHARS} characters and could be guessed from other machines"
        yield BadSetting(("inspect", "key"), problem, _GENERATE_HINT)


def _check_state(settings: Settings) -> Iterator[BadSetting]:
    state = settings.state
    if state.store == "postgresql" and not state.url.startswith(("postgresql://", "postgres://")):
        yield BadSetting(("state", "url"), "is not the URL of a PostgreSQL database", _DATABASE_HINT)
    if state.store == "sqlite" and state.url:  # each replica would have a file of its own
        problem = "is not used, because `store` is sqlite"
        yield BadSetting(("state", "url"), problem, "add `store: postgresql`, or remove it")


def _check_web_search(search: WebSearch) -> Iterator[BadSetting]:
    if _FORBIDDEN_HEADER_CHARACTER.search(search.key):
        yield BadSetting(("web_search", "key"), _CONTROL_CHARACTER_PROBLEM, "check that it is the right variable")
    if search.engine in ("brave", "tavily") and not search.key:
        yield BadSetting(("web_search", "key"), f"{search.engine} needs a key", "write it as ${NAME}, a variable")
    if search.engine == "url" and "{query}" not in search.url:
        yield BadSetting(("web_search", "url"), "has no {query}", "for example: https://search.example/api?q={query}")
    if search.engine == "command":
        yield from _check_search_command(search.command)
    if search.engine == "searxng" or (search.engine != "off" and search.url):
        url = search.url.replace("{query}", "")
        yield from _check_http_url(("web_search", "url"), url, "for example: http://127.0.0.1:8888")


def _check_search_command(command: list[str]) -> Iterator[BadSetting]:
    place, example = ("web_search", "command"), "for example: [ddgr, --json, --num, '8', '{query}']"
    if not command or not any("{query}" in argument for argument in command[1:]):
        yield BadSetting(place, "has no program with an argument {query}", example)
    elif shutil.which(command[0]) is None:
        yield BadSetting(place, f"cannot find the program {command[0]!r}", "install it, or write its path")
