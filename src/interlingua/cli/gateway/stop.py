"""`interlingua stop`: the end of a gateway in the background."""

from __future__ import annotations

import argparse
import signal
import time
from pathlib import Path

from msgspec import structs

from interlingua.cli.common import console as io
from interlingua.cli.gateway.daemon.instances import Instance, Instances, add_name, named
from interlingua.cli.gateway.daemon.log_reader import Mark, notes
from interlingua.cli.gateway.daemon.process_identity import send
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
MARGIN = 15.0
"""Seconds behind `drain`, in which streams are told that they are cut, and files are closed."""
OFTEN = 5.0
"""Seconds between two words about what is waited for."""


def add_options(parser: argparse.ArgumentParser) -> None:
    add_name(parser)


def run(args: argparse.Namespace) -> None:
    name = named(args)
    instances = Instances()
    with instances.locked(name):
        instance = instances.find(name)
        if instance is None:
            io.tell(f"interlingua: {name!r} is not running")
            return
        began, again = time.monotonic(), instance.told_to_stop > 0
        mark = Mark(Path(instance.log), instance.log_then if again else None)
        if not send(instance.pid, instance.began, signal.SIGTERM):
            instances.forget(name)
            io.tell(f"interlingua: {name!r} is not running: process {instance.pid} ended before")
            return
        if not again:
            instances.save(structs.replace(instance, told_to_stop=time.time(), log_then=mark.at))
        _wait(instance, mark, began)
        instances.forget(name)
        io.tell(f"interlingua: stopped after {time.monotonic() - began:.1f} s{_what_became(mark)}")


def _wait(instance: Instance, mark: Mark, began: float) -> None:
    tell, drain = began + 0.5, instance.drain  # which may have been set anew since
    while instance.runs:
        now = time.monotonic()
        if now - began > drain + MARGIN:
            raise BadInput(
                f"process {instance.pid} runs on {now - began:.0f} s after it was told to stop",
                f"end it at once with `kill -9 {instance.pid}`; its log is {instance.log}",
            )
        if now > tell:
            told = notes(mark.behind(), "stopping")
            drain = max([drain, *(float(note["seconds"]) for note in told)])
            number = sum(int(note["open"]) for note in told)
            what = f"{number} request{'s' if number > 1 else ''} that had begun" if number else "it to end"
            io.tell(f"waiting for {what}: {now - began:.0f} s of at most {drain:.0f}")
            tell = now + OFTEN
        time.sleep(0.05)


def _what_became(mark: Mark) -> str:
    """As far as its log says it."""
    data = mark.behind()
    begun = sum(int(note["open"]) for note in notes(data, "stopping"))
    ends = notes(data, "stopped")
    cut = sum(int(note["cut"]) for note in ends)
    if not begun:
        return ""
    if not ends:
        return f"; it went at once: of {begun} under way, those that were left were cut"
    return f"; {cut} of {begun} requests under way had to be cut" if cut else f"; all {begun} under way finished"
