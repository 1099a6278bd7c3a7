"""Text of a new settings file: what the user has chosen, with comments about that and about what can be added."""

from __future__ import annotations

import json
import re
from dataclasses import dataclass

__all__ = ["NewSettings", "client_variable", "settings_text"]

HEADER = """\
# Settings of the Interlingua gateway, written by `interlingua config init`.
# `interlingua config check` checks this file, and `interlingua serve` reads it.
# `interlingua config schema` prints all settings.
"""
UPSTREAMS = """
# Model servers and providers that requests go to, each under a name of your
# choice. ${NAME} is a variable of the environment, or of the file .env next to
# this one.
upstreams:
"""
DEFAULT = """
# Upstream of all model ids that are not in `models`.
default: {name}
"""
MODELS = """
# Names under which clients request models.
models:
  {alias}:
    upstream: {upstream}
    model: {model}
    # Other entries, tried in order if this model fails before its first output:
    # fallback: [other]

# The models that Claude Code means by its model names.
tiers:
  opus: {alias}
  sonnet: {alias}
  haiku: {alias}
"""
NO_MODELS = """
# Names under which clients request models, and fallbacks:
# models:
#   kimi:
#     upstream: {upstream}
#     model: moonshotai/kimi-k2.5
#     fallback: [other]

# The models that Claude Code means by its model names:
# tiers: {{opus: kimi, sonnet: kimi, haiku: kimi}}
"""
KEYS = """
# Keys of clients, each under a name that log and metrics show.
keys:
"""
NO_KEYS = """
# Keys of clients, each under a name that log and metrics show. Without keys,
# the gateway listens on loopback only.
# keys:
#   alice: ${ALICE_KEY}
"""
ADDRESS = """
# Address and port that the gateway listens on.
"""
FURTHER = """
# Record each exchange in a file, with all bytes but without keys:
# capture: {dir: captures}

# Limits for each client:
# client_limits: {streams: 10, tokens_per_minute: 500000}
"""
DEFAULT_HOST, DEFAULT_PORT = "127.0.0.1", "8484"
_PLAIN_SCALAR = re.compile(r"[A-Za-z][\w./-]*(?::[\w./-]+)*|\d{1,3}(?:\.\d{1,3}){3}|[1-9]\d*")
"""Texts that need no quotes in YAML."""
_YAML_WORDS = frozenset({"true", "false", "yes", "no", "on", "off", "null", "y", "n"})


@dataclass(frozen=True)
class NewSettings:
    """Choices of the user."""

    name: str
    """Name of the upstream."""
    url: str
    api: str = ""
    """API of the upstream; "" for the default."""
    key_variable: str = ""
    """Variable that has the key of the upstream; "" if it needs none."""
    model: str = ""
    """Model id at the upstream; "" if clients send the ids of the upstream."""
    clients: tuple[str, ...] = ()
    """Names of clients that get a key."""
    host: str = ""
    port: str = ""


def settings_text(chosen: NewSettings) -> str:
    """Return the settings file."""
    name = _scalar(chosen.name)
    parts = [HEADER, UPSTREAMS, f"  {name}:\n    url: {_scalar(chosen.url)}\n"]
    if chosen.api:
        parts.append(f"    api: {_scalar(chosen.api)}\n")
    if chosen.key_variable:
        parts.append(f"    key: ${{{chosen.key_variable}}}\n")
    parts.append(DEFAULT.format(name=name))
    if chosen.model:
        alias = _scalar(chosen.model.rpartition("/")[2] or chosen.model)
        parts.append(MODELS.format(alias=alias, upstream=name, model=_scalar(chosen.model)))
    else:
        parts.append(NO_MODELS.format(upstream=name))
    client_lines = [f"  {_scalar(client)}: ${{{client_variable(client)}}}\n" for client in chosen.clients]
    parts += [KEYS, *client_lines] if client_lines else [NO_KEYS]
    parts += [
        ADDRESS,
        _address_line("host", chosen.host, DEFAULT_HOST),
        _address_line("port", chosen.port, DEFAULT_PORT),
    ]
    return "".join([*parts, FURTHER])


def client_variable(name: str) -> str:
    """Return the variable that has the key of a client."""
    return re.sub(r"\W", "_", name, flags=re.ASCII).upper() + "_KEY"


def _address_line(field: str, value: str, default: str) -> str:
    return f"{field}: {_scalar(value)}\n" if value else f"# {field}: {default}\n"


def _scalar(text: str) -> str:
    """Return the text as a YAML scalar, in quotes if it needs them."""
    is_plain = _PLAIN_SCALAR.fullmatch(text) and text.lower() not in _YAML_WORDS
    return text if is_plain else json.dumps(text, ensure_ascii=False)
