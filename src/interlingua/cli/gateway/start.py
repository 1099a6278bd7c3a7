"""`interlingua start`: the gateway, in the background."""

from __future__ import annotations

import argparse
from pathlib import Path

from interlingua.cli.common import console as io
from interlingua.cli.common import gateway_options as serve_options
from interlingua.cli.gateway.daemon.instances import DEFAULT_NAME, InstanceStore, add_name_option, instance_name
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
    add_name_option(parser)
    serve_options.add_options(parser)


def run(args: argparse.Namespace) -> None:
    from interlingua.cli.gateway.daemon.launcher import launch
    from interlingua.gateway.processes.server import check_settings

    name = instance_name(args)
    loaded = serve_options.settings_from_args(args)
    check_settings(loaded)  # what is wrong is told here, and not by a log
    instances = InstanceStore()
    with instances.lock(name):
        _check_not_running(instances, name)
        log = Path(loaded.settings.log.file or instances.log_path(name)).absolute()
        instance = launch(instances, name, loaded.settings, log, _serve_arguments(args))
    name_option = "" if name == DEFAULT_NAME else f" --name {name}"
    io.print_stderr(f"interlingua: listening on {instance.address} (process {instance.pid}, in the background)")
    io.print_stderr(f"  its log:  interlingua logs -f{name_option}  ({log})")
    io.print_stderr(f"  stop it:  interlingua stop{name_option}")


def _check_not_running(instances: InstanceStore, name: str) -> None:
    existing = instances.find(name)
    if existing is None:
        return
    name_option = "" if name == DEFAULT_NAME else f" --name {name}"
    if existing.is_running:
        location = existing.address or "and has yet to listen"
        raise BadInput(
            f"it is running already: {location} (process {existing.pid})",
            f"`interlingua stop{name_option}` ends it; another one needs a --name and a --port of its own",
        )
    instances.remove(name)
    io.print_stderr(f"note: the one before, process {existing.pid}, ended without `interlingua stop`")


def _serve_arguments(args: argparse.Namespace) -> list[str]:
    """Those of `serve`. None of them is a secret: keys have no option."""
    options = {"config": args.config, **{name: getattr(args, name) for name in Flags.__struct_fields__}}
    options = {f"--{name.replace('_', '-')}": value for name, value in options.items() if value}
    return [option if option == "--demo" else f"{option}={value}" for option, value in options.items()]
