"""Command-line options that override gateway settings, shared by `serve`, `start` and `run`."""

from __future__ import annotations

import argparse
import os
from collections.abc import Mapping

from interlingua.core.wire_traits import DEFAULT_WIRE
from interlingua.gateway.settings.loader import LoadedSettings, read_settings
from interlingua.gateway.settings.overrides import Flags
from interlingua.wires import WIRES

__all__ = [
    "add_cassette_options",
    "add_observability_options",
    "add_options",
    "add_upstream_options",
    "command_line",
    "settings_from_args",
]

SWITCHES = ("demo", "inspect")
"""Options without a value."""


def add_options(parser: argparse.ArgumentParser) -> None:
    """Add all options. Values stay strings: the settings loader validates them, as it does for files."""
    add_upstream_options(parser)
    add = parser.add_argument
    add("--host", help="address to listen on; default: 127.0.0.1")
    add("--port", help="port to listen on; default: 8484; 0: any free port")
    add("--workers", metavar="N", help="number of worker processes that share the port; default: 1")
    add_cassette_options(parser)
    add_observability_options(parser)


def add_upstream_options(parser: argparse.ArgumentParser) -> None:
    """Add the options that choose the upstream."""
    add = parser.add_argument
    add(
        "--config",
        metavar="FILE",
        help="settings file; default: ./interlingua.yaml, then ~/.config/interlingua/interlingua.yaml",
    )
    add(
        "--upstream",
        metavar="URL",
        help="upstream for all models, such as http://localhost:8000/v1; without --config, no file is read",
    )
    add(
        "--upstream-api",
        metavar="API",
        help=f"API of the upstream: {', '.join(WIRES)}; default: {DEFAULT_WIRE}",
    )
    add(
        "--upstream-profile",
        metavar="NAME",
        help="profile of the upstream: vllm, llama.cpp, …; default: auto (chosen by its URL)",
    )
    add("--upstream-key-env", metavar="NAME", help="environment variable that holds the upstream's API key")
    add(
        "--dialect",
        metavar="NAME",
        help="dialect in which its models write calls; default: auto (chosen by the model id)",
    )
    add(
        "--demo",
        action="store_const",
        const="true",
        help="add the built-in models demo/<dialect>, which need no key and no network",
    )


def add_cassette_options(parser: argparse.ArgumentParser) -> None:
    """Add the options for recorded exchanges."""
    add = parser.add_argument
    add("--record", metavar="DIR", help="record each exchange in a cassette: a folder, or a .yaml file")
    add("--replay", metavar="DIR", help="answer from a cassette; needs no upstream, no key and no network")
    add("--hybrid", metavar="DIR", help="answer from a cassette, and record what is missing in it")


def add_observability_options(parser: argparse.ArgumentParser) -> None:
    """Add the options for captures and the log."""
    add = parser.add_argument
    add("--capture", metavar="DIR", help="record each request and its reply in a file in this directory")
    add(
        "--inspect",
        action="store_const",
        const="true",
        help="show all exchanges on a web page, /inspector of the gateway",
    )
    add("--log-format", metavar="FORMAT", help="log format: text (default) or json")
    add("--log-level", metavar="LEVEL", help="log level: error, info (default) or debug")


def settings_from_args(
    args: argparse.Namespace, environment: Mapping[str, str] | None = None, **overrides: str
) -> LoadedSettings:
    """Read the settings from the file, the environment, these options and `overrides`; the latter win.

    What cannot be read is in `problems`; `check_settings` raises it, together with all other mistakes.
    """
    flags = {name: getattr(args, name, None) or "" for name in Flags.__struct_fields__}
    return read_settings(
        args.config, os.environ if environment is None else environment, Flags(**{**flags, **overrides})
    )


def command_line(args: argparse.Namespace) -> list[str]:
    """Return the options as arguments of another command. None of them is a secret, because no option takes a key."""
    values = {"config": args.config, **{name: getattr(args, name) for name in Flags.__struct_fields__}}
    options = {name: (f"--{name.replace('_', '-')}", value) for name, value in values.items() if value}
    return [option if name in SWITCHES else f"{option}={value}" for name, (option, value) in options.items()]
