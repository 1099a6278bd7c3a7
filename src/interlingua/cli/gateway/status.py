"""`interlingua status`: show the state of a background gateway, or of the gateway at a URL."""

from __future__ import annotations

import argparse
import time
from datetime import datetime
from typing import Any

import msgspec

from interlingua import __version__
from interlingua.cli.common import console
from interlingua.cli.common.client_key import add_client_key, client_key_from_args
from interlingua.cli.gateway.daemon.instances import Instance, InstanceStore, add_name_option, instance_name
from interlingua.cli.gateway.daemon.process_identity import is_before_last_boot
from interlingua.gateway.observability.gateway_status import CircuitStatus, FailingModelStatus, GatewayStatus

DESCRIPTION = """\
Shows whether the gateway that `interlingua start` started is running, since
when, and its address; and, over all workers: their state, requests, memory,
failing upstreams with the reason (also if a fallback answers), open circuit
breakers and retry budgets that are not full. With --url: the same for another
gateway, such as one in a container. A gateway with `keys` reports its state
only to clients with a key, see --key-env."""
EPILOG = """\
exit status:
  0  the gateway is running, or is stopping and waits for open streams;
     with --url: it accepts requests
  3  otherwise
"""
EXIT_RUNNING, EXIT_NOT_RUNNING = 0, 3
MIB = 1024 * 1024
MAX_FAILING_LINES = 10
"""Number of failing models that are listed."""


def add_options(parser: argparse.ArgumentParser) -> None:
    add_name_option(parser)
    parser.add_argument("--url", metavar="URL", help="check the gateway at this URL, such as http://127.0.0.1:8484")
    add_client_key(parser)
    parser.add_argument("--json", action="store_true", help="print JSON")


def run(args: argparse.Namespace) -> int:
    key = client_key_from_args(args)
    if args.url:
        return _report_remote(args.url, key, args.json)
    return _report_local(instance_name(args), key, args.json)


def _report_remote(url: str, key: str, as_json: bool) -> int:
    from interlingua.cli.gateway.daemon.health_client import fetch_status, readiness

    answer = readiness(url)
    ready = answer == "ready"
    status = fetch_status(url, key) if ready else None
    if as_json:
        facts = {"running": ready, "address": url, "answer": answer}
        console.write_json({**facts, **_gateway_facts(status)})
    else:
        lines = gateway_lines(status) if status is not None else []
        console.write_lines([f"{url}: {console.printable(answer)}", *lines])
    return EXIT_RUNNING if ready else EXIT_NOT_RUNNING


def _report_local(name: str, key: str, as_json: bool) -> int:
    instances = InstanceStore()
    instance = instances.find(name)
    running = instance is not None and instance.is_running
    if instance is not None and not running:
        with instances.lock(name):
            if instances.find(name) == instance:  # not replaced by a newer one meanwhile
                instances.remove(name)
    status = _fetch_status(instance, key) if instance is not None and running else None
    if as_json:
        facts = _instance_facts(instance, status) if instance is not None else {"name": name, "running": False}
        console.write_json(facts)
    else:
        others = [other for other in instances.names() if other != name]
        console.write_lines([*_status_lines(name, instance, status), *_other_instances_lines(others)])
    return EXIT_RUNNING if running else EXIT_NOT_RUNNING


def _fetch_status(instance: Instance, key: str) -> GatewayStatus | str:
    """Return the status, or the reason why there is none."""
    from interlingua.cli.gateway.daemon.health_client import fetch_status

    return fetch_status(instance.address, key) if instance.address else "the gateway has no address yet"


def _gateway_facts(status: GatewayStatus | str | None) -> dict[str, Any]:
    """Return the fields of the JSON output about all workers."""
    if isinstance(status, str):
        return {"gateway": None, "gateway_unknown": status}
    return {"gateway": msgspec.to_builtins(status)}


def _instance_facts(instance: Instance, status: GatewayStatus | str | None) -> dict[str, Any]:
    known = status if isinstance(status, GatewayStatus) else None
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
        "requests": known.finished_requests if known else None,
        "open": known.requests.used if known else None,
        **_gateway_facts(status),
    }


def _is_stopping(instance: Instance) -> bool:
    """Return whether the gateway is stopping: `interlingua stop` was run, or the gateway reports it."""
    from interlingua.cli.gateway.daemon.health_client import readiness

    return instance.stop_requested_at > 0 or (bool(instance.address) and readiness(instance.address) == "stopping")


def _status_lines(name: str, instance: Instance | None, status: GatewayStatus | str | None) -> list[str]:
    if instance is None:
        return [f"{name}: not running"]
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
    facts = _instance_facts(instance, status)
    return [
        f"{name}: {'stopping' if facts['stopping'] else 'running'} on {instance.address or 'no address yet'}",
        f"  since     {facts['since']} ({_format_duration(time.time() - instance.started_at)})",
        f"  process   {instance.pid}",
        f"  version   {instance.version}{version_note}",
        *(gateway_lines(status) if status is not None else []),
        f"  log       {instance.log}",
    ]


def gateway_lines(status: GatewayStatus | str) -> list[str]:
    """Return the lines about all workers, or the one with the reason why the gateway does not report them."""
    if isinstance(status, str):
        return [f"  requests  unknown: {status}"]
    circuits = [_circuit_text(circuit) for circuit in status.open_circuits]
    if status.more_open_circuits:
        circuits.append(f"and {status.more_open_circuits} more")
    budgets = [
        f"{budget.upstream}: {budget.retries:g} of {budget.capacity:g} left"
        for budget in status.retry_budgets
        if budget.retries < budget.capacity
    ]
    failing = [_failing_text(model) for model in status.failing_models[:MAX_FAILING_LINES]]
    if more := len(status.failing_models[MAX_FAILING_LINES:]):
        failing.append(f"and {more} more, see --json")
    memory = status.memory_bytes
    return [
        f"  workers   {_workers_text(status)}",
        f"  requests  {status.finished_requests} finished, {status.requests.used} open (limit {status.requests.limit})",
        f"  clients   {_count(status.connections.used, 'connection')} (limit {status.connections.limit})",
        f"  memory    {memory.used / MIB:.1f} MiB of {memory.limit / MIB:g} MiB",
        *_named_lines("failing", failing),
        *_named_lines("circuits", circuits),
        *_named_lines("retries", budgets),
    ]


def _named_lines(name: str, texts: list[str]) -> list[str]:
    """Return one line for each text, the first one with the name."""
    return [f"  {'' if number else name:<10}{console.printable(text)}" for number, text in enumerate(texts)]


def _failing_text(failing: FailingModelStatus) -> str:
    attempts = _count(failing.attempts, "failed attempt")
    period = f" in {_format_duration(failing.seconds)}" if failing.attempts > 1 else ""
    last = f"the last {_format_duration(failing.last_seconds)} ago"
    return f"{failing.model} at {failing.upstream}: {attempts}{period}, {last}: {failing.reason}"


def _workers_text(status: GatewayStatus) -> str:
    """Return the number of workers in each state, and which ones are not ready."""
    restarts = sum(worker.restarts for worker in status.workers)
    ready = sum(worker.state == "ready" for worker in status.workers)
    others = [f"worker {worker.worker} {worker.state}" for worker in status.workers if worker.state != "ready"]
    count = f"{ready} of {len(status.workers)} ready"
    return ", ".join([count, *others, *([f"{restarts} restarted"] if restarts else [])])


def _circuit_text(circuit: CircuitStatus) -> str:
    scope = "all clients" if circuit.all_clients else _count(circuit.clients, "client")
    probe = f"next probe in {circuit.seconds:.1f} s" if circuit.seconds else "the next request is the probe"
    return f"{circuit.model} at {circuit.upstream}: open for {scope}, {circuit.failures} failures; {probe}"


def _other_instances_lines(others: list[str]) -> list[str]:
    return [f"other gateways: {', '.join(others)} (select one with --name)"] if others else []


def _format_duration(seconds: float) -> str:
    minutes = int(seconds // 60)
    if minutes >= 48 * 60:
        return f"{minutes // (24 * 60)} days"
    if minutes >= 120:
        return f"{minutes // 60} hours"
    return f"{minutes} minutes" if minutes >= 2 else _count(int(seconds), "second")


def _count(number: int, noun: str) -> str:
    return f"{number} {noun}{'' if number == 1 else 's'}"
