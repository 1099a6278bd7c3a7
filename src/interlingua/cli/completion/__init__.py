"""`interlingua completion`: print the script that completes commands and options in a shell."""

from __future__ import annotations

import argparse
from importlib.resources import files

from interlingua.cli.common import console

DESCRIPTION = """\
Prints a script that completes the commands, options and values of `interlingua`
with the Tab key. Load it when your shell starts."""
EPILOG = """\
examples:
  bash  echo 'eval "$(interlingua completion bash)"' >> ~/.bashrc
  zsh   interlingua completion zsh > "${fpath[1]}/_interlingua"
  fish  interlingua completion fish > ~/.config/fish/completions/interlingua.fish
"""
SCRIPT_NAMES = {"bash": "interlingua.bash", "zsh": "interlingua.zsh", "fish": "interlingua.fish"}
"""Script of each shell. `make docs` generates them."""


def add_options(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("shell", metavar="SHELL", choices=tuple(SCRIPT_NAMES), help=", ".join(SCRIPT_NAMES))


def run(args: argparse.Namespace) -> None:
    console.write(files(__package__).joinpath(SCRIPT_NAMES[args.shell]).read_bytes())
