"""`interlingua start`: the gateway, in the background."""

from __future__ import annotations

import argparse
from pathlib import Path

from interlingua.cli.common import console as io
from interlingua.cli.common import gateway_options as serve_options
from interlingua.cli.gateway.daemon.instances import DEFAULT, Instances, add_name, named
from interlingua.errors import BadInput
from interlingua.gateway.settings.overrides import Flags

NAME = "start"
HELP = "the gateway in the background, until `interlingua stop`"
DESCRIPTION = """\
Starts what `interlingua serve` runs, without a terminal, and returns once it
listens. It goes on in this folder and with this environment: keys come from
there, or from the settings file, and stand on no command line.

What is known of it is kept in $XDG_STATE_HOME/interlingua, else in
~/.local/state/interlingua, and so is its log, in at most three files of 10 MB."""
EPILOG = """\
examples:
  interlingua start --demo
  interlingua start --upstream http://localhost:8000/v1 --port 9000 --name local
  interlingua status; interlingua logs -f; interlingua stop

exit status: 1 if it is running already, or does not start; its log is shown then
"""


def add_options(parser: argparse.ArgumentParser) -> None:
    add_name(parser)
    serve_options.add_options(parser)


def run(args: argparse.Namespace) -> None:
    from interlingua.cli.gateway.daemon.launcher import launched
    from interlingua.gateway.processes.server import check

    name = named(args)
    loaded = serve_options.loaded(args)
    check(loaded)  # what is wrong is told here, and not by a log
    instances = Instances()
    with instances.locked(name):
        _check_that_none_runs(instances, name)
        log = Path(loaded.settings.log.file or instances.log_of(name)).absolute()
        instance = launched(instances, name, loaded.settings, log, _arguments(args))
    again = "" if name == DEFAULT else f" --name {name}"
    io.tell(f"interlingua: listening on {instance.address} (process {instance.pid}, in the background)")
    io.tell(f"  its log:  interlingua logs -f{again}  ({log})")
    io.tell(f"  stop it:  interlingua stop{again}")


def _check_that_none_runs(instances: Instances, name: str) -> None:
    found = instances.find(name)
    if found is None:
        return
    again = "" if name == DEFAULT else f" --name {name}"
    if found.runs:
        where = found.address or "and has yet to listen"
        raise BadInput(
            f"it is running already: {where} (process {found.pid})",
            f"`interlingua stop{again}` ends it; another one needs a --name and a --port of its own",
        )
    instances.forget(name)
    io.tell(f"note: the one before, process {found.pid}, ended without `interlingua stop`")


def _arguments(args: argparse.Namespace) -> list[str]:
    """Those of `serve`. None of them is a secret: keys have no option."""
    given = {"config": args.config, **{name: getattr(args, name) for name in Flags.__struct_fields__}}
    given = {f"--{name.replace('_', '-')}": value for name, value in given.items() if value}
    return [option if option == "--demo" else f"{option}={value}" for option, value in given.items()]
