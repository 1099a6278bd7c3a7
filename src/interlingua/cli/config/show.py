"""`interlingua config show`: print the effective settings, with secrets redacted."""

from __future__ import annotations

import argparse
import os

import yaml

from interlingua.cli.common import console
from interlingua.cli.config.check import add_file as add_options
from interlingua.gateway.settings.loader import load_settings
from interlingua.gateway.settings.redacted_view import redacted_settings

__all__ = ["DESCRIPTION", "EPILOG", "add_options", "run"]

DESCRIPTION = """\
Prints the effective settings as YAML: the file, overridden by the environment,
with defaults for everything else. Secrets are printed as ***: API keys, and
headers and extra fields that look like a key or get their value from a variable."""
EPILOG = """\
examples:
  interlingua config show
  INTERLINGUA_PORT=9000 interlingua config show ./interlingua.yaml
"""
MAX_LINE_WIDTH = 120


def run(args: argparse.Namespace) -> None:
    loaded = load_settings(args.file, os.environ)
    for note in loaded.notes:
        console.print_stderr(f"note: {console.printable(note)}")
    console.print_stderr(f"settings: {console.printable(loaded.source or 'no file')}")
    data = redacted_settings(loaded.settings, loaded.variable_secrets)
    console.write(yaml.safe_dump(data, sort_keys=False, allow_unicode=True, width=MAX_LINE_WIDTH).encode())
