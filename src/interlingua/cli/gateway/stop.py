"""`interlingua stop`: stop a background gateway."""

from __future__ import annotations

import argparse
import signal
import time
from pathlib import Path

from msgspec import structs

from interlingua.cli.common import console
from interlingua.cli.gateway.daemon.instances import Instance, InstanceStore, add_name_option, instance_name
from interlingua.cli.gateway.daemon.log_reader import LogPosition, parse_notes
from interlingua.cli.gateway.daemon.process_identity import send_signal
from interlingua.errors import BadInput

DESCRIPTION = """\
The gateway refuses new requests and waits for open streams to finish, for at
most the number of seconds that `drain` in its settings allows. To stop it
immediately, press Ctrl-C and run `interlingua stop` again."""
EPILOG = """\
exit status:
  0  the gateway has stopped, or was not running
  1  it does not stop
"""
STOP_MARGIN_SECONDS = 15.0
"""Extra time after `drain`, in which the gateway ends the remaining streams with an error and closes its files."""
PROGRESS_INTERVAL_SECONDS = 5.0
"""Time between two progress messages."""


def add_options(parser: argparse.ArgumentParser) -> None:
    add_name_option(parser)


def run(args: argparse.Namespace) -> None:
    name = instance_name(args)
    instances = InstanceStore()
    with instances.lock(name):
        instance = instances.find(name)
        if instance is None:
            console.print_stderr(f"interlingua: {name!r} is not running")
            return
        started, already_stopping = time.monotonic(), instance.stop_requested_at > 0
        log_position = LogPosition(Path(instance.log), instance.log_bytes_at_stop if already_stopping else None)
        if not send_signal(instance.pid, instance.start_id, signal.SIGTERM):
            instances.remove(name)
            console.print_stderr(f"interlingua: {name!r} is not running: process {instance.pid} had already ended")
            return
        if not already_stopping:
            instances.save(
                structs.replace(instance, stop_requested_at=time.time(), log_bytes_at_stop=log_position.offset)
            )
        _wait_for_exit(instance, log_position, started)
        instances.remove(name)
        console.print_stderr(
            f"interlingua: stopped after {time.monotonic() - started:.1f} s{_outcome_note(log_position)}"
        )


def _wait_for_exit(instance: Instance, log_position: LogPosition, started: float) -> None:
    next_report, drain = started + 0.5, instance.drain  # a reload may have changed it; the log has the current value
    while instance.is_running:
        now = time.monotonic()
        if now - started > drain + STOP_MARGIN_SECONDS:
            raise BadInput(
                f"process {instance.pid} is still running {now - started:.0f} s after SIGTERM",
                f"end it with `kill -9 {instance.pid}`; its log is {instance.log}",
            )
        if now > next_report:
            stop_notes = parse_notes(log_position.read_after(), "stopping")
            drain = max([drain, *(float(note["seconds"]) for note in stop_notes)])
            open_requests = sum(int(note["open"]) for note in stop_notes)
            awaited = (
                f"{open_requests} open request{'s' if open_requests > 1 else ''}"
                if open_requests
                else "the process to end"
            )
            console.print_stderr(f"waiting for {awaited}: {now - started:.0f} s of at most {drain:.0f} s")
            next_report = now + PROGRESS_INTERVAL_SECONDS
        time.sleep(0.05)


def _outcome_note(log_position: LogPosition) -> str:
    """Return how the open requests ended, according to the log; "" if none were open."""
    data = log_position.read_after()
    open_requests = sum(int(note["open"]) for note in parse_notes(data, "stopping"))
    end_notes = parse_notes(data, "stopped")
    cut_requests = sum(int(note["cut"]) for note in end_notes)
    if not open_requests:
        return ""
    if not end_notes:
        return f"; stopped immediately: of {open_requests} open requests, the unfinished ones were cut off"
    return (
        f"; {cut_requests} of {open_requests} open requests were cut off"
        if cut_requests
        else f"; all {open_requests} open requests finished"
    )
