"""`interlingua status`: how a gateway in the background is, or one that is somewhere else."""

from __future__ import annotations

import argparse
import time
from datetime import datetime
from typing import Any

from interlingua import __version__
from interlingua.cli.common import console as io
from interlingua.cli.gateway.daemon.instances import Instance, Instances, add_name, named
from interlingua.cli.gateway.daemon.process_identity import before_the_last_boot

NAME = "status"
HELP = "how the gateway in the background is"
DESCRIPTION = """\
Whether a gateway that `interlingua start` has started is running, since when,
where it listens and what it has done. With --url: whether one takes requests
that was started in another way, as in a container."""
EPILOG = """\
exit status:
  0  it is running, or stopping: streams may finish; with --url: it takes requests
  3  it is not
"""
RUNNING, NOT_RUNNING = 0, 3


def add_options(parser: argparse.ArgumentParser) -> None:
    add_name(parser)
    parser.add_argument("--url", metavar="URL", help="ask this gateway, such as http://127.0.0.1:8484")
    parser.add_argument("--json", action="store_true", help="the same as JSON")


def run(args: argparse.Namespace) -> int:
    return _elsewhere(args.url, args.json) if args.url else _here(named(args), args.json)


def _elsewhere(url: str, as_json: bool) -> int:
    from interlingua.cli.gateway.daemon.health_client import asked_for_readiness

    answer = asked_for_readiness(url)
    ready = answer == "ready"
    if as_json:
        io.write_json({"running": ready, "address": url, "answer": answer})
    else:
        io.write(f"{url}: {io.printable(answer)}\n".encode())
    return RUNNING if ready else NOT_RUNNING


def _here(name: str, as_json: bool) -> int:
    instances = Instances()
    instance = instances.find(name)
    runs = instance is not None and instance.runs
    if instance is not None and not runs:
        with instances.locked(name):
            if instances.find(name) == instance:  # and no newer one
                instances.forget(name)
    if as_json:
        io.write_json(_facts(instance) if instance is not None else {"name": name, "running": False})
    else:
        others = [one for one in instances.names() if one != name]
        io.write("\n".join([*_told(name, instance), *_told_of(others), ""]).encode())
    return RUNNING if runs else NOT_RUNNING


def _facts(instance: Instance) -> dict[str, Any]:
    from interlingua.cli.gateway.daemon.health_client import counts

    done = counts(instance.address, instance.workers) if instance.runs and instance.address else None
    return {
        "name": instance.name,
        "running": instance.runs,
        "stopping": instance.runs and _is_stopping(instance),
        "pid": instance.pid,
        "since": datetime.fromtimestamp(instance.since).astimezone().isoformat(timespec="seconds"),
        "address": instance.address,
        "version": instance.version,
        "workers": instance.workers,
        "log": instance.log,
        "requests": done.requests if done else None,
        "open": done.open if done else None,
    }


def _is_stopping(instance: Instance) -> bool:
    """Whether it only finishes what has begun: `interlingua stop` was told to it, or it says so itself."""
    from interlingua.cli.gateway.daemon.health_client import asked_for_readiness

    return instance.told_to_stop > 0 or (bool(instance.address) and asked_for_readiness(instance.address) == "stopping")


def _told(name: str, instance: Instance | None) -> list[str]:
    if instance is None:
        return [f"{name}: not running"]
    facts = _facts(instance)
    if not instance.runs:
        why = (
            "the machine was started again"
            if before_the_last_boot(instance.began)
            else "it ended without `interlingua stop`"
        )
        return [f"{name}: not running: {why}", f"  process   {instance.pid}", f"  log       {instance.log}"]
    newer = "" if instance.version == __version__ else f"; this is {__version__}, which it has after a restart"
    if facts["requests"] is not None:
        done = f"{facts['requests']}, and {facts['open']} under way"
    else:
        done = "not told: clients need a key, or it does not answer"
    return [
        f"{name}: {'stopping' if facts['stopping'] else 'running'} on {instance.address or 'no address yet'}",
        f"  since     {facts['since']} ({_long(time.time() - instance.since)})",
        f"  process   {instance.pid}",
        f"  version   {instance.version}{newer}",
        f"  requests  {done}",
        f"  log       {instance.log}",
    ]


def _told_of(others: list[str]) -> list[str]:
    return [f"others: {', '.join(others)} (--name)"] if others else []


def _long(seconds: float) -> str:
    minutes = int(seconds // 60)
    if minutes >= 48 * 60:
        return f"{minutes // (24 * 60)} days"
    if minutes >= 120:
        return f"{minutes // 60} hours"
    return f"{minutes} minutes" if minutes >= 2 else f"{int(seconds)} seconds"
