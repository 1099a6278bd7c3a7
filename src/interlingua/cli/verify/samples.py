"""`interlingua verify samples`: print the built-in requests as JSON lines."""

from __future__ import annotations

import argparse

from interlingua.cli.common import console

DESCRIPTION = """\
Prints the built-in requests as JSON lines, each with the expected reply. Change
them, add your own, and pass the file to `interlingua verify --samples`."""
EPILOG = """\
examples:
  interlingua verify samples > samples.jsonl
  interlingua verify samples --only code,non-ascii \\
      | interlingua verify --samples - --base-url URL --model NAME
"""


def add_options(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--only", metavar="NAMES", help="categories or ids of samples, separated by commas")


def run(args: argparse.Namespace) -> None:
    from interlingua.cli.verify.sample_selection import select_samples
    from interlingua.verification.samples.builtin import builtin_samples
    from interlingua.verification.samples.sample_files import write_samples

    console.write(write_samples(select_samples(builtin_samples(), args.only, None)).encode())
