"""Throughput of two workers compared with one: a part of `bench.gateway`.

The clients and the upstream need CPU time, too. On a machine with two cores they take it from the workers, so that two
workers cannot serve quite twice as much as one. The output has both: what was served on this machine, with the most
that is possible there, and the ratio that follows from the CPU time of a worker per event, for a machine with enough
cores. The number of cores that the workers used shows whether other processes took the CPU: then the first is too low.
"""

from __future__ import annotations

import json
import os
import socket
import statistics
import time
import urllib.request
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, ExitStack, contextmanager
from dataclasses import dataclass, replace

from bench.loopback import CORES, UNDER_TEST, Load, Measurement, Process

__all__ = ["WorkerLoad", "report_workers"]

MIN_RATIO = 1.8
"""Target for the ratio that follows from the CPU time of a worker."""
CONNECTION_NUMBERS = (8, 16, 64, 256)
"""Numbers of connections for which the distribution over the workers is shown."""
START_SECONDS = 30.0


@dataclass(frozen=True)
class WorkerLoad:
    """A load, and what is counted: events or responses."""

    name: str
    unit: str
    load: Load
    count: Callable[[Measurement], int]


@dataclass(frozen=True)
class Arrangement:
    """A gateway, and where its workers run."""

    name: str
    server: Process


@dataclass(frozen=True)
class Result:
    """Medians over all rounds."""

    per_second: float
    cores: float
    """CPU time of the workers per second. Less than their number if other processes took the CPU."""
    worker_micros: float
    """CPU time of the workers for each event or response."""
    load_micros: float
    """CPU time of the clients and the upstream."""


def report_workers(
    start: Callable[[int], AbstractContextManager[Process]],
    model: Process,
    loads: list[WorkerLoad],
    seconds: float,
    rounds: int,
) -> None:
    """Measure and print throughput with one worker and with two, and how connections are distributed.

    Args:
        start: Starts a gateway with this number of workers.
        model: The upstream.
        loads: The loads to measure.
        seconds: The length of a measurement.
        rounds: The number of measurements of each load, of which the median is printed.
    """
    arrangements = [
        ("one worker, on a core of its own", [[UNDER_TEST]]),
        ("two workers, on a core each", [[core] for core in CORES[:2]]),
        ("two workers, on any core", [CORES, CORES]),
    ]
    with ExitStack() as stack:
        stack.enter_context(_pinned(model.pid, CORES))
        gateways = [Arrangement(name, stack.enter_context(_run_workers(start, cores))) for name, cores in arrangements]
        for load in loads:
            _report_load(load, gateways, model, seconds, rounds)
        _report_connections(gateways[-1].server)


@contextmanager
def _run_workers(start: Callable[[int], AbstractContextManager[Process]], cores: list[list[int]]) -> Iterator[Process]:
    """Run a gateway with a worker on each of these sets of cores."""
    with start(len(cores)) as server:
        _wait_until_ready(server)
        for process, its_cores in zip(server.children() or [server.pid], cores, strict=True):
            _pin(process, its_cores)
        yield server


@contextmanager
def _pinned(process: int, cores: list[int]) -> Iterator[None]:
    before = list(os.sched_getaffinity(process))
    _pin(process, cores)
    try:
        yield
    finally:
        _pin(process, before)


def _pin(process: int, cores: list[int]) -> None:
    """Let all threads of a process run on these cores."""
    for thread in os.listdir(f"/proc/{process}/task"):
        os.sched_setaffinity(int(thread), cores)


def _report_load(
    load: WorkerLoad, arrangements: list[Arrangement], model: Process, seconds: float, rounds: int
) -> None:
    measured: list[list[Measurement]] = [[] for _ in arrangements]
    clients = replace(load.load, cores=CORES)
    for _ in range(rounds):
        for mine, arrangement in zip(measured, arrangements, strict=True):
            arrangement.server.wait_until_idle()
            mine.append(clients.run_against(arrangement.server, seconds, model=model))
    one, *several = [_result(each, load.count) for each in measured]
    print(f"\n{load.unit}/s at full load: {load.name}, {clients.clients} clients, on {len(CORES)} cores")
    _print_row(arrangements[0].name, one, "")
    for arrangement, result in zip(arrangements[1:], several, strict=True):
        possible = min(2.0, len(CORES) * one.worker_micros / (result.worker_micros + result.load_micros))
        ratio = result.per_second / one.per_second
        _print_row(arrangement.name, result, f"{ratio:.2f} × (possible here: {possible:.2f})")
    capacity = 2 * one.worker_micros / several[0].worker_micros
    verdict = "met" if capacity >= MIN_RATIO else "MISSED"
    print(f"  two workers with enough cores, from the CPU time per {load.unit[:-1]}: {capacity:.2f} ×; ", end="")
    print(f"target: at least {MIN_RATIO:g} ×  {verdict}", flush=True)


def _result(measurements: list[Measurement], count: Callable[[Measurement], int]) -> Result:
    return Result(
        per_second=statistics.median(count(one) / one.seconds for one in measurements),
        cores=statistics.median(one.cpu / one.seconds for one in measurements),
        worker_micros=statistics.median(one.cpu / max(1, count(one)) * 1e6 for one in measurements),
        load_micros=statistics.median(one.load_cpu / max(1, count(one)) * 1e6 for one in measurements),
    )


def _print_row(name: str, result: Result, ratio: str) -> None:
    costs = f"{result.worker_micros:7.1f} µs each + {result.load_micros:5.1f} µs of clients and upstream"
    print(f"  {name:<34}{result.per_second:>9,.0f} {costs}, {result.cores:.2f} cores  {ratio}".rstrip(), flush=True)


# ── distribution of connections ───────────────────────────────────────────────────────────────────────────────────────


def _report_connections(server: Process) -> None:
    """Print how the kernel distributes connections over the workers."""
    print("\nconnections per worker (the kernel chooses by a hash of the addresses)")
    for number in CONNECTION_NUMBERS:
        with ExitStack() as stack:
            for _ in range(number):
                stack.enter_context(socket.create_connection(("127.0.0.1", server.port)))
            time.sleep(0.2)
            shares = " + ".join(str(worker["connections"]) for worker in _status(server)["workers"])
            print(f"  {number:>4} connections: {shares} (one of them asks for these numbers)", flush=True)


def _wait_until_ready(server: Process) -> None:
    until = time.monotonic() + START_SECONDS
    while not all(worker["state"] == "ready" for worker in _status(server)["workers"]):
        if time.monotonic() > until:
            raise RuntimeError("the workers do not start")
        time.sleep(0.05)


def _status(server: Process) -> dict[str, list[dict[str, object]]]:
    with urllib.request.urlopen(f"http://127.0.0.1:{server.port}/status", timeout=5) as response:
        status: dict[str, list[dict[str, object]]] = json.load(response)
    return status
