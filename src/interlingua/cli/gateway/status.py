"""`interlingua status`: show the state of a background gateway, or of the gateway at a URL."""

from __future__ import annotations

import argparse
import time
from datetime import datetime
from typing import Any

from interlingua import __version__
from interlingua.cli.common import console
from interlingua.cli.gateway.daemon.instances import Instance, InstanceStore, add_name_option, instance_name
from interlingua.cli.gateway.daemon.process_identity import is_before_last_boot

DESCRIPTION = """\
Shows whether the gateway that `interlingua start` started is running, since
when, its address and its number of requests. With --url: shows whether another
gateway, such as one in a container, accepts requests."""
EPILOG = """\
exit status:
  0  the gateway is running, or is stopping and waits for open streams;
     with --url: it accepts requests
  3  otherwise
"""
EXIT_RUNNING, EXIT_NOT_RUNNING = 0, 3


def add_options(parser: argparse.ArgumentParser) -> None:
    add_name_option(parser)
    parser.add_argument("--url", metavar="URL", help="check the gateway at this URL, such as http://127.0.0.1:8484")
    parser.add_argument("--json", action="store_true", help="print JSON")


def run(args: argparse.Namespace) -> int:
    return _report_remote(args.url, args.json) if args.url else _report_local(instance_name(args), args.json)


def _report_remote(url: str, as_json: bool) -> int:
    from interlingua.cli.gateway.daemon.health_client import readiness

    answer = readiness(url)
    ready = answer == "ready"
    if as_json:
        console.write_json({"running": ready, "address": url, "answer": answer})
    else:
        console.write(f"{url}: {console.printable(answer)}\n".encode())
    return EXIT_RUNNING if ready else EXIT_NOT_RUNNING


def _report_local(name: str, as_json: bool) -> int:
    instances = InstanceStore()
    instance = instances.find(name)
    running = instance is not None and instance.is_running
    if instance is not None and not running:
        with instances.lock(name):
            if instances.find(name) == instance:  # not replaced by a newer one meanwhile
                instances.remove(name)
    if as_json:
        console.write_json(_instance_facts(instance) if instance is not None else {"name": name, "running": False})
    else:
        others = [other for other in instances.names() if other != name]
        console.write("\n".join([*_status_lines(name, instance), *_other_instances_lines(others), ""]).encode())
    return EXIT_RUNNING if running else EXIT_NOT_RUNNING


def _instance_facts(instance: Instance) -> dict[str, Any]:
    from interlingua.cli.gateway.daemon.health_client import request_counts

    counts = request_counts(instance.address) if instance.is_running and instance.address else None
    return {
        "name": instance.name,
        "running": instance.is_running,
        "stopping": instance.is_running and _is_stopping(instance),
        "pid": instance.pid,
        "since": datetime.fromtimestamp(instance.started_at).astimezone().isoformat(timespec="seconds"),
        "address": instance.address,
        "version": instance.version,
        "workers": instance.workers,
        "log": instance.log,
        "requests": counts.requests if counts else None,
        "open": counts.open if counts else None,
    }


def _is_stopping(instance: Instance) -> bool:
    """Return whether the gateway is stopping: `interlingua stop` was run, or the gateway reports it."""
    from interlingua.cli.gateway.daemon.health_client import readiness

    return instance.stop_requested_at > 0 or (bool(instance.address) and readiness(instance.address) == "stopping")


def _status_lines(name: str, instance: Instance | None) -> list[str]:
    if instance is None:
        return [f"{name}: not running"]
    facts = _instance_facts(instance)
    if not instance.is_running:
        reason = (
            "the machine was restarted"
            if is_before_last_boot(instance.start_id)
            else "it ended without `interlingua stop`"
        )
        return [f"{name}: not running: {reason}", f"  process   {instance.pid}", f"  log       {instance.log}"]
    version_note = (
        "" if instance.version == __version__ else f" (installed: {__version__}; restart the gateway to use it)"
    )
    if facts["requests"] is not None:
        requests = f"{facts['requests']} finished, {facts['open']} open"
    else:
        requests = "unknown (the gateway requires a key, or does not answer)"
    return [
        f"{name}: {'stopping' if facts['stopping'] else 'running'} on {instance.address or 'no address yet'}",
        f"  since     {facts['since']} ({_format_duration(time.time() - instance.started_at)})",
        f"  process   {instance.pid}",
        f"  version   {instance.version}{version_note}",
        f"  requests  {requests}",
        f"  log       {instance.log}",
    ]


def _other_instances_lines(others: list[str]) -> list[str]:
    return [f"other gateways: {', '.join(others)} (select one with --name)"] if others else []


def _format_duration(seconds: float) -> str:
    minutes = int(seconds // 60)
    if minutes >= 48 * 60:
        return f"{minutes // (24 * 60)} days"
    if minutes >= 120:
        return f"{minutes // 60} hours"
    return f"{minutes} minutes" if minutes >= 2 else f"{int(seconds)} seconds"
