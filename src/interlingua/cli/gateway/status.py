"""`interlingua status`: how a gateway in the background is, or one that is somewhere else."""

from __future__ import annotations

import argparse
import time
from datetime import datetime
from typing import Any

from interlingua import __version__
from interlingua.cli.common import console as io
from interlingua.cli.gateway.daemon.instances import Instance, InstanceStore, add_name_option, instance_name
from interlingua.cli.gateway.daemon.process_identity import is_before_last_boot

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
EXIT_RUNNING, EXIT_NOT_RUNNING = 0, 3


def add_options(parser: argparse.ArgumentParser) -> None:
    add_name_option(parser)
    parser.add_argument("--url", metavar="URL", help="ask this gateway, such as http://127.0.0.1:8484")
    parser.add_argument("--json", action="store_true", help="the same as JSON")


def run(args: argparse.Namespace) -> int:
    return _report_remote(args.url, args.json) if args.url else _report_local(instance_name(args), args.json)


def _report_remote(url: str, as_json: bool) -> int:
    from interlingua.cli.gateway.daemon.health_client import readiness

    answer = readiness(url)
    ready = answer == "ready"
    if as_json:
        io.write_json({"running": ready, "address": url, "answer": answer})
    else:
        io.write(f"{url}: {io.printable(answer)}\n".encode())
    return EXIT_RUNNING if ready else EXIT_NOT_RUNNING


def _report_local(name: str, as_json: bool) -> int:
    instances = InstanceStore()
    instance = instances.find(name)
    running = instance is not None and instance.is_running
    if instance is not None and not running:
        with instances.lock(name):
            if instances.find(name) == instance:  # and no newer one
                instances.remove(name)
    if as_json:
        io.write_json(_instance_facts(instance) if instance is not None else {"name": name, "running": False})
    else:
        others = [other for other in instances.names() if other != name]
        io.write("\n".join([*_status_lines(name, instance), *_other_instances_lines(others), ""]).encode())
    return EXIT_RUNNING if running else EXIT_NOT_RUNNING


def _instance_facts(instance: Instance) -> dict[str, Any]:
    from interlingua.cli.gateway.daemon.health_client import request_counts

    counts = request_counts(instance.address, instance.workers) if instance.is_running and instance.address else None
    return {
        "name": instance.name,
        "running": instance.is_running,
        "stopping": instance.is_running and _is_stopping(instance),
        "pid": instance.pid,
        "since": datetime.fromtimestamp(instance.since).astimezone().isoformat(timespec="seconds"),
        "address": instance.address,
        "version": instance.version,
        "workers": instance.workers,
        "log": instance.log,
        "requests": counts.requests if counts else None,
        "open": counts.open if counts else None,
    }


def _is_stopping(instance: Instance) -> bool:
    """Whether it only finishes what has begun: `interlingua stop` was told to it, or it says so itself."""
    from interlingua.cli.gateway.daemon.health_client import readiness

    return instance.told_to_stop > 0 or (bool(instance.address) and readiness(instance.address) == "stopping")


def _status_lines(name: str, instance: Instance | None) -> list[str]:
    if instance is None:
        return [f"{name}: not running"]
    facts = _instance_facts(instance)
    if not instance.is_running:
        reason = (
            "the machine was started again"
            if is_before_last_boot(instance.began)
            else "it ended without `interlingua stop`"
        )
        return [f"{name}: not running: {reason}", f"  process   {instance.pid}", f"  log       {instance.log}"]
    version_note = "" if instance.version == __version__ else f"; this is {__version__}, which it has after a restart"
    if facts["requests"] is not None:
        requests = f"{facts['requests']}, and {facts['open']} under way"
    else:
        requests = "not told: clients need a key, or it does not answer"
    return [
        f"{name}: {'stopping' if facts['stopping'] else 'running'} on {instance.address or 'no address yet'}",
        f"  since     {facts['since']} ({_format_duration(time.time() - instance.since)})",
        f"  process   {instance.pid}",
        f"  version   {instance.version}{version_note}",
        f"  requests  {requests}",
        f"  log       {instance.log}",
    ]


def _other_instances_lines(others: list[str]) -> list[str]:
    return [f"others: {', '.join(others)} (--name)"] if others else []


def _format_duration(seconds: float) -> str:
    minutes = int(seconds // 60)
    if minutes >= 48 * 60:
        return f"{minutes // (24 * 60)} days"
    if minutes >= 120:
        return f"{minutes // 60} hours"
    return f"{minutes} minutes" if minutes >= 2 else f"{int(seconds)} seconds"
