"""Soak test: good, leaving and hostile clients and upstreams at one gateway, for minutes, in all APIs and dialects.

python -m bench.soak                  15 minutes
python -m bench.soak --minutes 2      shorter
python -m bench.soak --clients 4      fewer clients at the same time; default: 8

Prints a line every 15 seconds: replies, replies judged wrong, memory, open files, requests in progress, and the longest
waits of two bystanders: a client that asks for /healthz all the time, and one that sends chats of 100 KB. The exit
status is 1 if a reply was wrong, if memory or open files did not return to what they were, or if a bystander waited too
long.
"""

from __future__ import annotations

import argparse
import gzip
import http.client
import json
import multiprocessing
import os
import random
import socket
import statistics
import subprocess
import sys
import tempfile
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from functools import cache
from multiprocessing.synchronize import Event
from pathlib import Path
from typing import Any

import interlingua as il
from bench.loopback import Process
from bench.peers.running import free_port
from interlingua.faults.apis import APIS, tools_field
from interlingua.faults.catalog import SCENARIOS, scripts_for
from interlingua.faults.checker import raw_client
from interlingua.faults.checker.scenario import TrialOutcome
from interlingua.faults.checker.trial import GatewayTarget, Trial
from interlingua.faults.runner import run_scenarios
from interlingua.faults.upstream.chat_chunks import DONE, ROLE, call_delta, delta
from interlingua.faults.upstream.script import ReceivedRequest, Script, send, send_headers, send_pieces
from interlingua.faults.upstream.server import UpstreamServer

KEY = "sk-upstream-0123456789abcdef"
UPSTREAM_TIMEOUT_SECONDS = 3.0
CLIENT_TIMEOUT_SECONDS = 40.0
MAX_HEALTH_WAIT_SECONDS = 0.1
MAX_CHAT_WAIT_SECONDS = 1.0
"""Longest waits of the bystanders that are accepted, on a quiet machine."""
CHAT_BYTES = 100_000
MAX_MEMORY_GROWTH = 1.5
"""Accepted memory at the end, as a multiple of the memory after the first tenth of the time."""
MAX_MORE_FILES = 20
REPORT_SECONDS = 15.0
SETTLE_SECONDS = 10.0
"""Seconds without requests before the last measurement."""
CALL_PREFIX, FLOOD_PREFIX = "soak-call-", "soak-flood-"
TOOL = "write_file"
SCHEMA = {
    "type": "object",
    "properties": {"path": {"type": "string"}, "text": {"type": "string"}, "lines": {"type": "integer"}},
}
CONFIG = """
upstreams:
  faults:
    url: {url}
    key: {key}
    timeouts: {{first_event: {timeout}, idle: {timeout}}}
log: {{level: error}}
overrides: {overrides}
"""
MIB = 1024 * 1024


# ── upstream ──────────────────────────────────────────────────────────────────────────────────────────────────────────


def call_arguments(seed: int) -> dict[str, Any]:
    """Return the arguments of the call that the upstream makes for a model with this seed."""
    rng = random.Random(seed)
    words = [
        "Hello",
        "Grüße",
        "你好",
        "🙂",
        "\n",
        "\t",
        "x = [1, 2]",
        '"quoted"',
        "\\",
        "<b>",
        "a < b && c > d",
        "`code`",
    ]
    text = " ".join(rng.choice(words) for _ in range(rng.randint(1, 200)))
    return {"path": f"notes/{seed}.txt", "text": text, "lines": rng.randint(0, 10_000)}


@cache
def dialect_names() -> list[str]:
    """Return the dialects that can express such a call."""
    names = []
    for dialect in il.list_dialects():
        with suppress(il.InterlinguaError):
            render_call(dialect.name, 0)
            names.append(dialect.name)
    return names


def render_call(dialect: str, seed: int) -> str:
    call = il.Call(id="functions.write_file:0", name=TOOL, arguments=json.dumps(call_arguments(seed)))
    return il.render(il.Reply(parts=[call]), dialect)


def call_script(dialect: str, seed: int) -> Script:
    """Return a stream of the call as native text, cut at random places."""
    rng, pieces = random.Random(seed), []
    try:
        rest = render_call(dialect, seed)
    except il.InterlinguaError:  # the notation cannot carry this text: a structured call instead
        chunk = call_delta(0, "call_1", name=TOOL, arguments=json.dumps(call_arguments(seed)))
        return [send_headers(), send(ROLE + chunk + delta(finish="tool_calls") + DONE)]
    while rest:
        size = rng.randint(1, 40)
        pieces.append(delta(rest[:size]))
        rest = rest[size:]
    stream = [ROLE, *pieces, delta(finish="stop"), DONE]
    if rng.random() < 0.5:
        return [send_headers(), send(b"".join(stream))]
    return [send_headers(), send_pieces(stream, 0.001)]


FLOODS: dict[str, Callable[[], list[bytes]]] = {
    "large-event": lambda: [delta("Hello, world. <tool_call> " * (4 * MIB // 26))],
    "tiny-deltas": lambda: [delta("a") * 20_000],
    "comments": lambda: [b":\n\n" * 200_000],
    "no-choice": lambda: [b'data: {"choices": []}\n\n' * 50_000],
    "calls": lambda: [call_delta(index, f"c{index}", name=TOOL, arguments="{}") for index in range(2_000)],
    "values": lambda: [b'data: {"choices": [' + b"[]," * 1_000_000 + b"0]}\n\n"],
    "long-id": lambda: [b'data: {"id": "' + b"x" * MIB + b'", "choices": [{"delta": {"content": "a"}}]}\n\n'] * 20,
}


def soak_scripts(request: ReceivedRequest) -> list[Script]:
    model = str(request.body.get("model"))
    if model.startswith(CALL_PREFIX):
        dialect, _, seed = model.removeprefix(CALL_PREFIX).rpartition("-")
        return [call_script(dialect, int(seed))]
    if model.startswith(FLOOD_PREFIX):
        return [[send_headers(), send(ROLE), *map(send, FLOODS[model.removeprefix(FLOOD_PREFIX)]()), send(DONE)]]
    return scripts_for(request)


def run_upstream(port: int, over: Event) -> None:
    server = UpstreamServer(port, soak_scripts)
    over.wait()
    server.stop()


# ── clients ───────────────────────────────────────────────────────────────────────────────────────────────────────────


@dataclass
class Results:
    counts: Counter[str] = field(default_factory=Counter)
    wrong: list[str] = field(default_factory=list)
    lock: threading.Lock = field(default_factory=threading.Lock)

    def add(self, kind: str, problem: str = "") -> None:
        with self.lock:
            self.counts[kind] += 1
            if problem:
                self.wrong.append(f"{kind}: {problem}")


class Clients:
    """Threads that send requests of all kinds until the time is over."""

    def __init__(self, target: GatewayTarget, results: Results, count: int, seed: int) -> None:
        self._target = target
        self._results = results
        self._over = threading.Event()
        self._threads = [threading.Thread(target=self._run, args=(random.Random(seed + n),)) for n in range(count)]

    def start(self) -> None:
        for thread in self._threads:
            thread.start()

    def stop(self) -> None:
        self._over.set()
        for thread in self._threads:
            thread.join(2 * CLIENT_TIMEOUT_SECONDS)

    def _run(self, rng: random.Random) -> None:
        actions = [self._receive_call] * 20 + [self._run_fault] * 8 + [self._leave] * 6 + [self._receive_flood] * 2
        actions += [self._send_large_body, self._send_bomb, self._send_junk]
        while not self._over.is_set():
            action = rng.choice(actions)
            try:
                action(rng)
            except Exception as error:  # noqa: BLE001 - any failure of a client is a result
                self._results.add(action.__name__.strip("_"), f"{type(error).__name__}: {error}"[:300])

    def _receive_call(self, rng: random.Random) -> None:
        dialect, seed, api, stream = (
            rng.choice(dialect_names()),
            rng.randrange(10**6),
            rng.choice(APIS),
            rng.random() < 0.8,
        )
        trial = Trial(self._target, api, f"{CALL_PREFIX}{dialect}-{seed}", "")
        body = {**json.loads(trial.body(stream)), "model": trial.name, **tools_field(api, TOOL, SCHEMA)}
        view = trial.send(trial.build_request(json.dumps(body).encode()))
        got = [(name, json.loads(arguments)) for name, arguments in view.calls]
        problem = ""
        if got != [(TOOL, call_arguments(seed))] or not view.ended or view.violations or view.truncated:
            problem = f"{trial.name} {api} stream={stream}: {view.status} {view.error} {view.violations} {got}"[:600]
        self._results.add("call", problem)

    def _run_fault(self, rng: random.Random) -> None:
        scenario, api = rng.choice([scenario for scenario in SCENARIOS if not scenario.alone]), rng.choice(APIS)
        for result in run_scenarios(self._target, [scenario], [api], jobs=1):
            wrong = result.verdict.outcome is TrialOutcome.FAILED
            self._results.add("fault", f"{scenario.name} {api}: {result.verdict.reason}" if wrong else "")

    def _leave(self, rng: random.Random) -> None:
        trial = Trial(
            self._target, rng.choice(APIS), f"{CALL_PREFIX}{rng.choice(dialect_names())}-{rng.randrange(10**6)}", ""
        )
        body = {**json.loads(trial.body()), "model": trial.name}
        data = trial.build_request(json.dumps(body).encode())
        with trial.open_connection(data[: rng.choice([len(data), len(data) - 5, 20])]) as sock:
            sock.settimeout(rng.random() * 0.2)
            with suppress(OSError):
                sock.recv(rng.choice([1, 100, 10_000]))
        self._results.add("leave")

    def _receive_flood(self, rng: random.Random) -> None:
        trial = Trial(self._target, rng.choice(APIS), FLOOD_PREFIX + rng.choice([*FLOODS]), "")
        body = {**json.loads(trial.body(rng.random() < 0.8)), "model": trial.name}
        view = trial.send(trial.build_request(json.dumps(body).encode()))
        self._results.add(
            "flood", f"{trial.name} {trial.api}: no response" if view.timed_out or not view.status else ""
        )

    def _send_large_body(self, rng: random.Random) -> None:
        unit = rng.choice([b"[],", b"0,", b'{"role":"user","content":"Hello"},', b'"' + b"x" * 10_000 + b'",'])
        body = (
            b'{"model": "x", "max_tokens": 9, "messages": ['
            + unit * (rng.choice([1, 4, 16]) * MIB // len(unit))
            + b"0]}"
        )
        self._send_refused(rng, body)

    def _send_bomb(self, rng: random.Random) -> None:
        self._send_refused(rng, gzip.compress(b" " * rng.choice([1, 40]) * MIB), content_encoding="gzip")

    def _send_refused(self, rng: random.Random, body: bytes, **headers: str) -> None:
        trial = Trial(self._target, rng.choice(APIS), "x", "")
        view = trial.send(trial.build_request(body, **headers))
        problem = "" if 400 <= view.status < 600 else f"{body[:60]!r}: status {view.status} {view.error}"
        self._results.add("refused", problem)

    def _send_junk(self, rng: random.Random) -> None:
        data = rng.choice(
            [b"\x16\x03\x01\x02\x00\x01", b"GET / HTTP/9.9\r\n\r\n", b"POST /v1/messages HTTP/1.1\r\n", b"\0" * 9000]
        )
        with raw_client.connect(self._target.gateway, CLIENT_TIMEOUT_SECONDS) as sock, suppress(OSError):
            sock.sendall(data)
            sock.shutdown(socket.SHUT_WR)
            sock.recv(1000)
        self._results.add("junk")


def ask_for_health(connection: http.client.HTTPConnection) -> None:
    connection.request("GET", "/healthz")
    connection.getresponse().read()


def send_chat(connection: http.client.HTTPConnection) -> None:
    messages = [{"role": "user", "content": "Hello. " * 100}] * (CHAT_BYTES // 730)
    body = {"model": f"{CALL_PREFIX}hermes-1", "stream": True, "messages": messages}
    connection.request("POST", "/v1/chat/completions", json.dumps(body), {"content-type": "application/json"})
    connection.getresponse().read()


def measure_waits(
    address: str,
    send: Callable[[http.client.HTTPConnection], None],
    pause: float,
    over: Event,
    queue: multiprocessing.Queue[list[float]],
) -> None:
    """Send a request again and again until the time is over; put the waits of each interval into the queue."""
    while not over.is_set():
        waits, until = [], time.monotonic() + REPORT_SECONDS
        connection = http.client.HTTPConnection(address, timeout=CLIENT_TIMEOUT_SECONDS)
        while time.monotonic() < until and not over.is_set():
            started = time.monotonic()
            try:
                send(connection)
            except (OSError, http.client.HTTPException):
                connection.close()
            waits.append(time.monotonic() - started)
            time.sleep(pause)
        connection.close()
        queue.put(waits)


# ── gateway ───────────────────────────────────────────────────────────────────────────────────────────────────────────


@contextmanager
def run_gateway(upstream_port: int) -> Iterator[Process]:
    port = free_port()
    overrides = {f"{CALL_PREFIX}{name}-*": name for name in dialect_names()}
    with tempfile.TemporaryDirectory(prefix="interlingua-") as folder:
        config = Path(folder) / "interlingua.yaml"
        url = f"http://127.0.0.1:{upstream_port}/v1"
        config.write_text(
            CONFIG.format(url=url, key=KEY, timeout=UPSTREAM_TIMEOUT_SECONDS, overrides=json.dumps(overrides))
        )
        command = [sys.executable, "-m", "interlingua", "serve", "--config", str(config), "--port", str(port)]
        environment = {**os.environ, "XDG_STATE_HOME": folder}
        with (Path(folder) / "log").open("wb") as log:
            process = subprocess.Popen(command, stdout=log, stderr=log, env=environment)
            try:
                wait_until_listening(port)
                yield Process(process.pid, port)
            finally:
                process.terminate()
                process.wait(60)


def wait_until_listening(port: int) -> None:
    until = time.monotonic() + 30
    while True:
        try:
            socket.create_connection(("127.0.0.1", port), 5).close()
            return
        except OSError:
            if time.monotonic() > until:
                raise
            time.sleep(0.05)


@dataclass(frozen=True)
class Sample:
    memory: int
    files: int
    requests: int

    def __str__(self) -> str:
        return f"{self.memory / MIB:7.1f} MiB {self.files:5} files {self.requests:4} requests"


def take_sample(gateway: Process) -> Sample:
    connection = http.client.HTTPConnection("127.0.0.1", gateway.port, timeout=CLIENT_TIMEOUT_SECONDS)
    connection.request("GET", "/metrics")
    lines = connection.getresponse().read().decode().splitlines()
    connection.close()
    requests = next(float(line.split()[-1]) for line in lines if line.startswith("interlingua_streams_open"))
    return Sample(gateway.memory(), len(os.listdir(f"/proc/{gateway.pid}/fd")), int(requests))


# ── the run ───────────────────────────────────────────────────────────────────────────────────────────────────────────


def soak(minutes: float, client_count: int, seed: int) -> bool:
    context = multiprocessing.get_context("spawn")
    over, health_queue, chat_queue = context.Event(), context.Queue(), context.Queue()
    upstream_port = free_port()
    upstream = context.Process(target=run_upstream, args=(upstream_port, over), daemon=True)
    upstream.start()
    wait_until_listening(upstream_port)
    with run_gateway(upstream_port) as gateway:
        base = f"http://127.0.0.1:{gateway.port}"
        target = GatewayTarget(base, f"http://127.0.0.1:{upstream_port}", timeout=CLIENT_TIMEOUT_SECONDS)
        bystanders_over, address = context.Event(), f"127.0.0.1:{gateway.port}"
        bystanders = [
            context.Process(target=measure_waits, args=(address, send, pause, bystanders_over, queue), daemon=True)
            for send, pause, queue in ((ask_for_health, 0.005, health_queue), (send_chat, 0.2, chat_queue))
        ]
        for bystander in bystanders:
            bystander.start()
        results = Results()
        clients = Clients(target, results, client_count, seed)
        clients.start()
        try:
            waits, samples = report(gateway, results, health_queue, chat_queue, 60 * minutes)
        finally:
            clients.stop()
        time.sleep(SETTLE_SECONDS)
        last = take_sample(gateway)
        bystanders_over.set()
        over.set()
        for bystander in bystanders:
            bystander.join(30)
    upstream.join(30)
    return print_summary(results, waits, samples, last)


@dataclass
class Waits:
    """Waits of the bystanders, in seconds."""

    health: list[float] = field(default_factory=list)
    chat: list[float] = field(default_factory=list)


def report(
    gateway: Process,
    results: Results,
    health_queue: multiprocessing.Queue[list[float]],
    chat_queue: multiprocessing.Queue[list[float]],
    seconds: float,
) -> tuple[Waits, list[Sample]]:
    """Print a line for each interval. Return the waits of the bystanders, and the samples."""
    waits = Waits()
    samples: list[Sample] = []
    started = time.monotonic()
    while (elapsed := time.monotonic() - started) < seconds:
        health_waits = health_queue.get(timeout=REPORT_SECONDS + 2 * CLIENT_TIMEOUT_SECONDS)
        chat_waits = chat_queue.get(timeout=REPORT_SECONDS + 2 * CLIENT_TIMEOUT_SECONDS)
        waits.health += health_waits
        waits.chat += chat_waits
        samples.append(take_sample(gateway))
        print(
            f"{elapsed:5.0f} s {results.counts.total():7} replies {len(results.wrong):3} wrong {samples[-1]}"
            f"  health {max(health_waits) * 1000:4.0f} ms, chat {max(chat_waits) * 1000:5.0f} ms",
            file=sys.stderr,
        )
    return waits, samples


def print_summary(results: Results, waits: Waits, samples: list[Sample], last: Sample) -> bool:
    first = samples[len(samples) // 10]
    growth = last.memory / first.memory
    print("replies  " + ", ".join(f"{count} {kind}" for kind, count in sorted(results.counts.items())))
    print(f"wrong    {len(results.wrong)}")
    for problem in results.wrong[:20]:
        print(f"         {problem}")
    print(f"memory   {first.memory / MIB:.1f} MiB, at the end {last.memory / MIB:.1f} MiB: {growth:.2f} times")
    print(f"files    {first.files}, at the end {last.files}; requests in progress at the end: {last.requests}")
    for name, seconds in (("health", waits.health), ("chat", waits.chat)):
        quantiles = statistics.quantiles(seconds, n=1000)
        print(
            f"{name:8} {len(seconds)} waits of a bystander: median {statistics.median(seconds) * 1000:.1f} ms,"
            f" 99.9 % {quantiles[-1] * 1000:.0f} ms, longest {max(seconds) * 1000:.0f} ms"
        )
    return (
        not results.wrong
        and growth <= MAX_MEMORY_GROWTH
        and last.files <= first.files + MAX_MORE_FILES
        and last.requests == 0
        and max(waits.health) <= MAX_HEALTH_WAIT_SECONDS
        and max(waits.chat) <= MAX_CHAT_WAIT_SECONDS
    )


def main() -> int:
    parser = argparse.ArgumentParser(
        prog="python -m bench.soak", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--minutes", type=float, default=15, metavar="M", help="duration; default: 15")
    parser.add_argument("--clients", type=int, default=8, metavar="N", help="clients at the same time; default: 8")
    parser.add_argument("--seed", type=int, default=0, metavar="S", help="seed of the random choices; default: 0")
    args = parser.parse_args()
    return 0 if soak(args.minutes, args.clients, args.seed) else 1


if __name__ == "__main__":
    sys.exit(main())
