"""The secrets of the settings, for the redaction of everything that the gateway writes."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any
from urllib.parse import unquote, urlsplit

from interlingua.common.redaction import REDACTED, Redactor, credentials, is_secret_name, printable
from interlingua.gateway.settings.schema import Model, Settings

__all__ = ["REDACTED", "Redactor", "collect_secrets", "credentials", "is_secret_name", "printable"]


def collect_secrets(settings: Settings, variable_secrets: Iterable[str] = ()) -> list[str]:
    """Return all secrets of the settings. `variable_secrets` are `LoadedSettings.variable_secrets`."""
    secrets = [
        *settings.client_keys.values(),
        settings.seal_key,
        settings.inspect.key,
        settings.web_search.key,
        *_url_secrets(settings.state.url),
        *variable_secrets,
    ]
    for upstream in settings.upstreams.values():
        secrets += [upstream.key, *credentials(upstream.headers), *_secrets_by_field_name(upstream.extra)]
    for model in settings.models.values():
        secrets += _secrets_by_field_name(model.extra) if isinstance(model, Model) else ()
    return [value for value in secrets if value]


def _url_secrets(url: str) -> list[str]:
    """Return a URL and the password in it, as it is written and as it is meant."""
    try:
        password = urlsplit(url).password or ""
    except ValueError:  # not a valid URL
        password = ""
    return [url, password, unquote(password)]


def _secrets_by_field_name(value: Any) -> Iterator[str]:
    if isinstance(value, dict):
        yield from (item for name, item in value.items() if isinstance(item, str) and is_secret_name(name))
    for item in value.values() if isinstance(value, dict) else value if isinstance(value, list) else ():
        yield from _secrets_by_field_name(item)
