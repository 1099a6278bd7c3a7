"""Option for the key with which a command sends requests to a gateway."""

from __future__ import annotations

import argparse
import os

from interlingua.errors import UsageError

__all__ = ["add_client_key", "client_key_from_args"]


def add_client_key(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--key-env", metavar="NAME", help="environment variable that holds the gateway's client key")


def client_key_from_args(args: argparse.Namespace) -> str:
    """Return the key that --key-env selects, or "". Raises UsageError if the variable is not set."""
    key = os.environ.get(args.key_env, "") if args.key_env else ""
    if args.key_env and not key:
        raise UsageError(
            f"the environment variable {args.key_env} is not set", "set it to the key that clients of the gateway use"
        )
    return key
