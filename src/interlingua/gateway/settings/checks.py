"""Checks of the settings that types cannot express: addresses, headers, keys."""

from __future__ import annotations

import re
import shutil
from ipaddress import ip_address
from urllib.parse import urlsplit

from interlingua.errors import BadSetting
from interlingua.gateway.settings.schema import Settings, Upstream, WebSearch

__all__ = ["check_settings", "is_loopback"]

MIN_CLIENT_KEY_CHARS = 16
"""Minimum length of client keys if the gateway is reachable from other machines."""
MIN_SEAL_KEY_CHARS = 16
"""Minimum length of the key of envelopes, which clients can try to guess without sending requests."""
_GENERATE_HINT = "generate one: python -c 'import secrets; print(secrets.token_urlsafe(32))'"
_KEY_HINT = f"add one to `keys`, or set INTERLINGUA_KEYS; {_GENERATE_HINT}"
_URL_HINT = "for example: https://openrouter.ai/api/v1"
_DATABASE_HINT = "for example: postgresql://user:password@host/database"
_HEADER_NAME = re.compile(r"[!#$%&'*+.^_`|~0-9A-Za-z-]+")
_UPSTREAM_NAME = re.compile(r"[\x21-\xff](?:[\x20-\xff]*[\x21-\xff])?")
_CONTROL_CHARACTER_PROBLEM = "contains a line break or a control character"
_FORBIDDEN_HEADER_CHARACTER = re.compile(r"[\x00-\x08\x0a-\x1f\x7f]")


def check_settings(settings: Settings) -> None:
    """Raise BadSetting for the first setting that is wrong."""
    if not settings.upstreams:
        raise BadSetting(("upstreams",), "no upstream is configured", "add one, or start with --demo")
    for name, upstream in settings.upstreams.items():
        _check_upstream_name(name)
        _check_upstream_url(("upstreams", name, "url"), upstream.url)
        _check_upstream_headers(("upstreams", name), upstream)
    _check_client_keys(settings)
    _check_seal_key(settings)
    _check_state(settings)
    _check_web_search(settings.web_search)


def is_loopback(host: str) -> bool:
    """Return whether the host is reachable only from this machine."""
    name = host.removeprefix("[").removesuffix("]").lower()
    try:
        return ip_address(name).is_loopback
    except ValueError:
        return name == "localhost"


def _check_upstream_name(name: str) -> None:
    """Check that the name can be a header value: a response header names the upstream that replied."""
    if not _UPSTREAM_NAME.fullmatch(name) or not name.isprintable():
        raise BadSetting(("upstreams", name), f"{name!r} cannot be sent in a header", "use letters and digits")


def _check_http_url(path: tuple[str, ...], url: str, hint: str) -> None:
    try:
        parts = urlsplit(url)
        is_usable = parts.scheme in ("http", "https") and bool(parts.hostname) and parts.port != 0
    except ValueError:  # incomplete IPv6 address, port that is not a number
        is_usable = False
    if not is_usable or not url.isprintable() or " " in url:
        raise BadSetting(path, f"{url!r} is not an http or https URL", hint)


def _check_upstream_url(path: tuple[str, ...], url: str) -> None:
    _check_http_url(path, url, _URL_HINT)
    parts = urlsplit(url)
    if parts.username is not None or parts.query or parts.fragment:
        raise BadSetting(path, "the URL contains a user, query or fragment", "put keys into `key` or `headers`")


def _check_upstream_headers(path: tuple[str, ...], upstream: Upstream) -> None:
    if _FORBIDDEN_HEADER_CHARACTER.search(upstream.key):
        raise BadSetting((*path, "key"), _CONTROL_CHARACTER_PROBLEM, "check that it is the right variable")
    for name, value in upstream.headers.items():
        if not _HEADER_NAME.fullmatch(name):
            raise BadSetting((*path, "headers"), f"{name!r} is not a valid header name", "for example: X-Title")
        if _FORBIDDEN_HEADER_CHARACTER.search(value):
            raise BadSetting((*path, "headers", name), _CONTROL_CHARACTER_PROBLEM, "write it on one line")


def _check_client_keys(settings: Settings) -> None:
    if is_loopback(settings.host):
        return
    if not settings.keys:
        raise BadSetting(
            ("keys",), f"{settings.host!r} is reachable from other machines, so a key is required", _KEY_HINT
        )
    if any(len(key) < MIN_CLIENT_KEY_CHARS for key in settings.keys):
        raise BadSetting(
            ("keys",),
            f"a key has less than {MIN_CLIENT_KEY_CHARS} characters and could be guessed from other machines",
            _KEY_HINT,
        )


def _check_seal_key(settings: Settings) -> None:
    if 0 < len(settings.seal_key) < MIN_SEAL_KEY_CHARS:
        problem = f"the key has less than {MIN_SEAL_KEY_CHARS} characters and could be guessed"
        raise BadSetting(("seal_key",), problem, _GENERATE_HINT)


def _check_state(settings: Settings) -> None:
    state = settings.state
    if state.store == "postgresql" and not state.url.startswith(("postgresql://", "postgres://")):
        raise BadSetting(("state", "url"), "is not the URL of a PostgreSQL database", _DATABASE_HINT)


def _check_web_search(search: WebSearch) -> None:
    if _FORBIDDEN_HEADER_CHARACTER.search(search.key):
        raise BadSetting(("web_search", "key"), _CONTROL_CHARACTER_PROBLEM, "check that it is the right variable")
    if search.engine in ("brave", "tavily") and not search.key:
        raise BadSetting(("web_search", "key"), f"{search.engine} needs a key", "write it as ${NAME}, a variable")
    if search.engine == "url" and "{query}" not in search.url:
        raise BadSetting(("web_search", "url"), "has no {query}", "for example: https://search.example/api?q={query}")
    if search.engine == "command":
        _check_search_command(search.command)
    if search.engine == "searxng" or (search.engine != "off" and search.url):
        _check_http_url(("web_search", "url"), search.url.replace("{query}", ""), "for example: http://127.0.0.1:8888")


def _check_search_command(command: list[str]) -> None:
    place, example = ("web_search", "command"), "for example: [ddgr, --json, --num, '8', '{query}']"
    if not command or not any("{query}" in argument for argument in command[1:]):
        raise BadSetting(place, "has no program with an argument {query}", example)
    if shutil.which(command[0]) is None:
        raise BadSetting(place, f"cannot find the program {command[0]!r}", "install it, or write its path")
