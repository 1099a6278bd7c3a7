"""`interlingua config show`: print the effective settings, with secrets redacted."""

from __future__ import annotations

import argparse
import os

import yaml

from interlingua.cli.common import console
from interlingua.cli.config.check import add_file, file_from_args
from interlingua.gateway.routing.routes import find_settings_problems
from interlingua.gateway.settings.loader import raise_settings_errors, read_settings
from interlingua.gateway.settings.redacted_view import redacted_settings

DESCRIPTION = """\
Prints the effective settings as YAML: the file, overridden by the environment,
with defaults for everything else. Secrets are printed as ***: API keys, and
headers and extra fields that look like a key or come from a variable."""
EPILOG = """\
examples:
  interlingua config show
  INTERLINGUA_PORT=9000 interlingua config show ./interlingua.yaml
"""
MAX_LINE_WIDTH = 120


def add_options(parser: argparse.ArgumentParser) -> None:
    add_file(parser)
    parser.add_argument("--json", action="store_true", help="print JSON instead of YAML")


def run(args: argparse.Namespace) -> None:
    loaded = read_settings(file_from_args(args), os.environ)
    for note in loaded.notes:
        console.print_note(note)
    console.print_stderr(f"settings: {console.printable(loaded.source or 'no file')}")
    raise_settings_errors(find_settings_problems(loaded))
    data = redacted_settings(loaded.settings, loaded.variable_secrets)
    if args.json:
        console.write_json(data)
        return
    console.write(yaml.safe_dump(data, sort_keys=False, allow_unicode=True, width=MAX_LINE_WIDTH).encode())
