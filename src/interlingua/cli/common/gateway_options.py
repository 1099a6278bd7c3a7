"""The options that set something of a gateway: the same as in a settings file, for a start in one line."""

from __future__ import annotations

import argparse
import os
from collections.abc import Mapping

from interlingua.gateway.settings.loader import LoadedSettings, load_settings
from interlingua.gateway.settings.overrides import Flags

__all__ = ["add_observability_options", "add_options", "add_upstream_options", "settings_from_args"]


def add_options(parser: argparse.ArgumentParser) -> None:
    """All of them. They stay texts: what they must be is known to the settings, which tell it alike for files."""
    add_upstream_options(parser)
    add = parser.add_argument
    add("--host", help="where to listen; default: 127.0.0.1")
    add("--port", help="default: 8484; 0: any that is free")
    add("--workers", metavar="N", help="how many processes share the port; default: 1")
    add_observability_options(parser)


def add_upstream_options(parser: argparse.ArgumentParser) -> None:
    """Who is asked."""
    add = parser.add_argument
    add("--config", metavar="FILE", help="the settings; else ./interlingua.yaml, else the one in ~/.config/interlingua")
    add("--upstream", metavar="URL", help="one upstream for all models, instead of a file: http://localhost:8000/v1")
    add("--upstream-api", metavar="API", help="openai-chat (default), anthropic-messages or openai-responses")
    add("--upstream-profile", metavar="NAME", help="what it is like: vllm, llama.cpp, …; default: auto, by its URL")
    add("--upstream-key-env", metavar="NAME", help="the variable with the upstream's key")
    add("--dialect", metavar="NAME", help="how its models write calls; default: auto, by the model's id")
    add("--demo", action="store_const", const="true", help="adds the models demo/<dialect>, with no key and no network")


def add_observability_options(parser: argparse.ArgumentParser) -> None:
    """What is kept and told of what goes by."""
    add = parser.add_argument
    add("--capture", metavar="DIR", help="write each exchange into this directory")
    add("--log-format", metavar="FORMAT", help="text (default) or json")
    add("--log-level", metavar="LEVEL", help="error, info (default) or debug")


def settings_from_args(
    args: argparse.Namespace, environment: Mapping[str, str] | None = None, **overrides: str
) -> LoadedSettings:
    """The settings that these options, the environment and the file make together, and flags that nobody typed."""
    flags = {name: getattr(args, name, None) or "" for name in Flags.__struct_fields__}
    return load_settings(
        args.config, os.environ if environment is None else environment, Flags(**{**flags, **overrides})
    )
