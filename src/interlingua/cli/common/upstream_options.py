"""Options that select the upstream and the model of `doctor` and `verify`."""

from __future__ import annotations

import argparse

from interlingua.core.wire_traits import DEFAULT_WIRE
from interlingua.wires import WIRES

__all__ = ["add_target_options"]


def add_target_options(parser: argparse.ArgumentParser) -> None:
    """Add the options. They have the names that the settings loader expects of flags."""
    add = parser.add_argument_group("upstream").add_argument
    add(
        "--base-url",
        "--upstream",
        dest="upstream",
        metavar="URL",
        help="URL of the API, such as http://localhost:8000/v1",
    )
    add("--model", metavar="NAME", help="model id at the upstream, or with --config a model of the settings")
    add("--key-env", "--upstream-key-env", dest="upstream_key_env", metavar="NAME",
        help="environment variable that holds the upstream's API key")  # fmt: skip
    add("--api", "--upstream-api", dest="upstream_api", metavar="API",
        help=f"API of the upstream: {', '.join(WIRES)}; default: {DEFAULT_WIRE}")  # fmt: skip
    add("--upstream-profile", metavar="NAME", help="profile of the upstream: vllm, llama.cpp, …; default: auto")
    add("--dialect", metavar="NAME", help="dialect in which the model writes calls; default: by the model id")
    add("--config", metavar="FILE", help="settings file with upstreams; not read if --base-url is given")
