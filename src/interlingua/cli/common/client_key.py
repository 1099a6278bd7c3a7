"""Option for the key with which a command sends requests to a gateway."""

from __future__ import annotations

import argparse
import os
from pathlib import Path

from interlingua.errors import UsageError

__all__ = ["add_client_key", "client_key_from_args"]


def add_client_key(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--key-env", metavar="NAME", help="variable, of the environment or .env, that holds the gateway's client key"
    )


def client_key_from_args(args: argparse.Namespace) -> str:
    """Return the key that --key-env selects, from the environment or from ./.env as in the settings; "" without it.

    Raises:
        UsageError: The variable is not set.
    """
    if not args.key_env:
        return ""
    from interlingua.gateway.settings.variables import Variables  # slow to import, and rarely needed
    from interlingua.gateway.settings.yaml_values import UndefinedVariable

    try:
        return Variables(os.environ, [Path()]).value(args.key_env)
    except UndefinedVariable as error:
        raise UsageError(f"--key-env: {error}", error.hint) from None
