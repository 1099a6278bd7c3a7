"""`interlingua start`: start the gateway in the background."""

from __future__ import annotations

import argparse
from pathlib import Path

from interlingua.cli.common import console, gateway_options
from interlingua.cli.common.terminal import progress
from interlingua.cli.gateway.daemon.instances import DEFAULT_NAME, InstanceStore, add_name_option, instance_name
from interlingua.errors import BadInput

DESCRIPTION = """\
Starts `interlingua serve` in the background and returns when the gateway
listens. The gateway keeps running until `interlingua stop`. It inherits the
current directory and the environment. API keys come from the environment or the
settings file, never from the command line.

The state and the log are kept in $XDG_STATE_HOME/interlingua (default:
~/.local/state/interlingua). The log has at most three files of 10 MB."""
EPILOG = """\
examples:
  interlingua start --demo
  interlingua start --upstream http://localhost:8000/v1 --port 9000 --name local
  interlingua status; interlingua logs -f; interlingua stop

exit status:
  1  the gateway is already running, or fails to start (then its log is printed)
"""


def add_options(parser: argparse.ArgumentParser) -> None:
    add_name_option(parser)
    gateway_options.add_options(parser)


def run(args: argparse.Namespace) -> None:
    from interlingua.cli.gateway.daemon.launcher import launch
    from interlingua.gateway.processes.server import check_settings

    name = instance_name(args)
    loaded = gateway_options.settings_from_args(args)
    check_settings(loaded)  # reports invalid settings here instead of in the log
    instances = InstanceStore()
    with instances.lock(name):
        _check_not_running(instances, name)
        log = Path(loaded.settings.log.file or instances.log_path(name)).absolute()
        with progress("starting the gateway"):
            instance = launch(instances, name, loaded.settings, log, gateway_options.command_line(args))
    name_option = "" if name == DEFAULT_NAME else f" --name {name}"
    console.print_stderr(f"interlingua: listening on {instance.address} (process {instance.pid}, in the background)")
    inspector = {"inspector": f"{instance.address}/inspector/"} if loaded.settings.inspect.enabled else {}
    facts = {
        **inspector,
        "log": f"interlingua logs -f{name_option}  ({log})",
        "stop": f"interlingua stop{name_option}",
    }
    width = max(map(len, facts)) + 1
    for fact, text in facts.items():
        console.print_stderr(f"  {fact + ':':{width}}  {text}")


def _check_not_running(instances: InstanceStore, name: str) -> None:
    existing = instances.find(name)
    if existing is None:
        return
    name_option = "" if name == DEFAULT_NAME else f" --name {name}"
    if existing.is_running:
        location = existing.address or "not listening yet"
        raise BadInput(
            f"the gateway {name!r} is already running: {location} (process {existing.pid})",
            f"stop it with `interlingua stop{name_option}`; a second gateway needs another --name and another --port",
        )
    instances.remove(name)
    console.print_note(f"the previous gateway (process {existing.pid}) ended without `interlingua stop`")
