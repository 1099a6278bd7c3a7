"""`interlingua stop`: the end of a gateway in the background."""

from __future__ import annotations

import argparse
import signal
import time
from pathlib import Path

from msgspec import structs

from interlingua.cli.common import console as io
from interlingua.cli.gateway.daemon.instances import Instance, InstanceStore, add_name_option, instance_name
from interlingua.cli.gateway.daemon.log_reader import LogPosition, parse_notes
from interlingua.cli.gateway.daemon.process_identity import send_signal
from interlingua.errors import BadInput

NAME = "stop"
HELP = "ends the gateway in the background, once its streams are over"
DESCRIPTION = """\
The gateway takes no new requests, and streams may finish for as long as `drain`
in its settings says. Told again meanwhile (Ctrl-C, then `interlingua stop`) it
goes at once."""
EPILOG = """\
exit status: 0 if it has ended, or none was running; 1 if it does not end
"""
STOP_MARGIN_SECONDS = 15.0
"""Seconds behind `drain`, in which streams are told that they are cut, and files are closed."""
PROGRESS_INTERVAL_SECONDS = 5.0
"""Seconds between two words about what is waited for."""


def add_options(parser: argparse.ArgumentParser) -> None:
    add_name_option(parser)


def run(args: argparse.Namespace) -> None:
    name = instance_name(args)
    instances = InstanceStore()
    with instances.lock(name):
        instance = instances.find(name)
        if instance is None:
            io.print_stderr(f"interlingua: {name!r} is not running")
            return
        started, already_stopping = time.monotonic(), instance.told_to_stop > 0
        log_position = LogPosition(Path(instance.log), instance.log_then if already_stopping else None)
        if not send_signal(instance.pid, instance.began, signal.SIGTERM):
            instances.remove(name)
            io.print_stderr(f"interlingua: {name!r} is not running: process {instance.pid} ended before")
            return
        if not already_stopping:
            instances.save(structs.replace(instance, told_to_stop=time.time(), log_then=log_position.offset))
        _wait_for_exit(instance, log_position, started)
        instances.remove(name)
        io.print_stderr(f"interlingua: stopped after {time.monotonic() - started:.1f} s{_outcome_note(log_position)}")


def _wait_for_exit(instance: Instance, log_position: LogPosition, started: float) -> None:
    next_report, drain = started + 0.5, instance.drain  # which may have been set anew since
    while instance.is_running:
        now = time.monotonic()
        if now - started > drain + STOP_MARGIN_SECONDS:
            raise BadInput(
                f"process {instance.pid} runs on {now - started:.0f} s after it was told to stop",
                f"end it at once with `kill -9 {instance.pid}`; its log is {instance.log}",
            )
        if now > next_report:
            stop_notes = parse_notes(log_position.read_after(), "stopping")
            drain = max([drain, *(float(note["seconds"]) for note in stop_notes)])
            open_requests = sum(int(note["open"]) for note in stop_notes)
            awaited = (
                f"{open_requests} request{'s' if open_requests > 1 else ''} that had begun"
                if open_requests
                else "it to end"
            )
            io.print_stderr(f"waiting for {awaited}: {now - started:.0f} s of at most {drain:.0f}")
            next_report = now + PROGRESS_INTERVAL_SECONDS
        time.sleep(0.05)


def _outcome_note(log_position: LogPosition) -> str:
    """As far as its log says it."""
    data = log_position.read_after()
    open_requests = sum(int(note["open"]) for note in parse_notes(data, "stopping"))
    end_notes = parse_notes(data, "stopped")
    cut_requests = sum(int(note["cut"]) for note in end_notes)
    if not open_requests:
        return ""
    if not end_notes:
        return f"; it went at once: of {open_requests} under way, those that were left were cut"
    return (
        f"; {cut_requests} of {open_requests} requests under way had to be cut"
        if cut_requests
        else f"; all {open_requests} under way finished"
    )
