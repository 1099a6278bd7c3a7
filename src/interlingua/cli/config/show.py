"""`interlingua config show`: all settings as they are in the end, without secrets."""

from __future__ import annotations

import argparse
import os

import yaml

from interlingua.cli.common import console as io
from interlingua.cli.config.check import add_options
from interlingua.gateway.settings.loader import load_settings
from interlingua.gateway.settings.redacted_view import redacted_settings

__all__ = ["DESCRIPTION", "EPILOG", "HELP", "add_options", "run"]

NAME = "show"
HELP = "all settings as they are in the end, without secrets"
DESCRIPTION = """\
Writes all settings as YAML: what the file says, over it the environment, and
the defaults of all the rest. Keys are ***, and headers and further fields that
look like them or have a variable in them."""
EPILOG = """\
examples:
  interlingua config show
  INTERLINGUA_PORT=9000 interlingua config show ./interlingua.yaml
"""
MAX_LINE_WIDTH = 120


def run(args: argparse.Namespace) -> None:
    loaded = load_settings(args.file, os.environ)
    for note in loaded.notes:
        io.print_stderr(f"note: {io.printable(note)}")
    io.print_stderr(f"settings: {io.printable(loaded.source or 'no file')}")
    data = redacted_settings(loaded.settings, loaded.variable_secrets)
    io.write(yaml.safe_dump(data, sort_keys=False, allow_unicode=True, width=MAX_LINE_WIDTH).encode())
