"""`interlingua reload`: let a background gateway read its settings again."""

from __future__ import annotations

import argparse
import signal
import time
from pathlib import Path
from typing import Any

from interlingua.cli.common import console
from interlingua.cli.common.terminal import progress
from interlingua.cli.gateway.daemon.instances import Instance, InstanceStore, add_name_option, instance_name
from interlingua.cli.gateway.daemon.log_reader import LogPosition, parse_notes
from interlingua.cli.gateway.daemon.process_identity import send_signal
from interlingua.errors import BadInput

DESCRIPTION = """\
The gateway that `interlingua start` started reads its settings file again. New
requests use the new settings, open streams keep the old ones, and no connection
is lost. If the new settings are invalid, the old ones stay in use."""
EPILOG = """\
examples:
  interlingua config check && interlingua reload

exit status: 1 if the gateway is not running or its new settings are invalid
"""
RELOADED, NOT_RELOADED = "reloaded", "cannot reload the settings; the old ones stay in use"
"""Messages of the gateway's log."""
RELOAD_TIMEOUT_SECONDS = 10.0


def add_options(parser: argparse.ArgumentParser) -> None:
    add_name_option(parser)


def run(args: argparse.Namespace) -> None:
    name = instance_name(args)
    instances = InstanceStore()
    with instances.lock(name):
        instance = instances.find(name)
        log_position = LogPosition(Path(instance.log)) if instance is not None else None
        is_sent = instance is not None and send_signal(instance.pid, instance.start_id, signal.SIGHUP)
        if instance is None or log_position is None or not is_sent:
            raise BadInput(f"the gateway {name!r} is not running", "`interlingua start` starts it")
        with progress("waiting for the gateway"):
            notes = _wait_for_notes(instance, log_position)
    restart_only = sorted({str(note["only_after_a_restart"]) for note in notes if "only_after_a_restart" in note})
    for names in restart_only:
        console.print_stderr(f"interlingua: note: these settings need a restart: {names}")
    console.print_stderr("interlingua: reloaded")


def _wait_for_notes(instance: Instance, log_position: LogPosition) -> list[dict[str, Any]]:
    """Return what each worker has logged about the reload.

    Raises:
        BadInput: The new settings are invalid, or the log does not report the reload.
    """
    deadline = time.monotonic() + RELOAD_TIMEOUT_SECONDS
    while time.monotonic() < deadline:
        data = log_position.read_after()
        for failure in parse_notes(data, NOT_RELOADED):
            raise BadInput(f"the old settings stay in use: {failure.get('error', '')}", str(failure.get("hint", "")))
        notes = parse_notes(data, RELOADED)
        if len(notes) >= instance.workers:
            return notes
        time.sleep(0.05)
    raise BadInput(
        f"the gateway has not reported the reload after {RELOAD_TIMEOUT_SECONDS:.0f} s",
        f"see its log {instance.log}; with `log.level: error` it reports only failures",
    )
