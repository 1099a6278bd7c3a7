"""Clients that are slow or disconnect: rows 19, 20 and 24. The upstream has no fault."""

from __future__ import annotations

import socket
import time

from interlingua.faults.checker import raw_client
from interlingua.faults.checker.expectations import failed, passed
from interlingua.faults.checker.scenario import Scenario, ScenarioCheck, Verdict
from interlingua.faults.checker.trial import RequestRefused, Trial
from interlingua.faults.scenarios.helpers import STALL_SECONDS, fault, healthy_upstream, repeat_script, stream_fault
from interlingua.faults.upstream.reply_writers import ReplyWriter
from interlingua.faults.upstream.script import Script, send, send_headers, send_pieces, wait

__all__ = ["SCENARIOS"]

MIB = 1024 * 1024
MAX_LEAVE_SECONDS = 0.1
"""Maximum time until the gateway closes the upstream connection after the client has disconnected."""


# ── 19: slow reading ──────────────────────────────────────────────────────────────────────────────────────────────────


def _large_stream(writer: ReplyWriter) -> Script:
    beginning = writer.begin() + writer.text("y")
    chunk = writer.text("y" * 16_000)
    return [send_headers(), send(beginning), send_pieces([chunk] * (128 * MIB // len(chunk))), send(writer.end())]


def _check_back_pressure(trial: Trial) -> Verdict:
    with trial.open_connection(trial.build_request(trial.body())) as sock:
        if not sock.recv(1024) or not (requests := trial.wait_until(bool, 5)):
            raise RequestRefused("the gateway sent no stream")
        sent = -1
        deadline = time.monotonic() + trial.target.timeout
        while sent != requests[0]["sent"] and time.monotonic() < deadline:
            sent = requests[0]["sent"]
            time.sleep(1)
            requests = trial.upstream_requests()
    buffered_mib = sent / MIB
    if sent == requests[0]["sent"] and buffered_mib < 48:
        return passed(f"back-pressure stops the upstream after {buffered_mib:.0f} MiB, mostly in buffers of the system")
    return failed(f"no back-pressure: the gateway buffered {buffered_mib:.0f} MiB that the client does not read")


# ── 20: disconnecting ─────────────────────────────────────────────────────────────────────────────────────────────────


def _check_client_leaving(stream: bool, awaited: bytes = b"") -> ScenarioCheck:
    """Return a check that takes the best of three attempts, because the machine may be busy."""

    def check(trial: Trial) -> Verdict:
        delays: list[float] = []
        for attempt in range(3):
            retrial = Trial(trial.target, trial.api, trial.name, f"{trial.run_id}-{attempt}")
            delays.append(_seconds_until_left(retrial, stream, awaited))
            if delays[-1] <= MAX_LEAVE_SECONDS:
                return passed(f"the upstream connection was closed after {delays[-1] * 1000:.0f} ms")
        best = min(delays)
        return failed(
            "the upstream connection was never closed"
            if best > 5
            else f"the upstream connection was closed after {best * 1000:.0f} ms"
        )

    return check


def _seconds_until_left(trial: Trial, stream: bool, awaited: bytes) -> float:
    """Return the seconds between the client's disconnect and the gateway's; 99 if the gateway stays connected."""
    sock = trial.open_connection(trial.build_request(trial.body(stream)))
    with sock:
        if not trial.wait_until(bool, 5):
            raise RequestRefused("the gateway sent no request to the upstream")
        data = b""
        while awaited and awaited not in data:
            if not (piece := sock.recv(1 << 16)):
                raise RequestRefused("the gateway sent no stream")
            data += piece
        time.sleep(0.1)
        sock.shutdown(socket.SHUT_RDWR)
    left_at = time.monotonic()
    final_requests = trial.wait_until(lambda requests: bool(requests[0]["left"] is not None), 5)
    if final_requests[0]["left"] is None:
        return 99
    return float(time.monotonic() - final_requests[0]["left"] - left_at)


# ── 24: slow sending ──────────────────────────────────────────────────────────────────────────────────────────────────


def _check_dripping(trial: Trial, initial: bytes, remainder: bytes) -> Verdict:
    """Send one byte at a time until the gateway closes the connection or responds."""
    started = time.monotonic()
    with trial.open_connection(initial) as sock:
        sock.settimeout(0.5)
        for index in range(len(remainder)):
            elapsed = time.monotonic() - started
            if elapsed > trial.target.timeout:
                break
            try:
                sock.sendall(remainder[index : index + 1])
                raw = sock.recv(1 << 16)
            except TimeoutError:
                continue
            except OSError:  # reset
                raw = b""
            status = raw_client.parse_response(raw).status
            return passed(f"closed after {elapsed:.0f} s" + (f" with {status}" if status else ""))
    return failed(f"the gateway still waits after {trial.target.timeout:.0f} s")


def _check_slow_headers(trial: Trial) -> Verdict:
    data = trial.build_request(trial.body(), x_filler="x" * 2000)
    return _check_dripping(trial, data[:40], data[40:])


def _check_slow_body(trial: Trial) -> Verdict:
    head, separator, body = trial.build_request(b" " * 2000 + trial.body()).partition(b"\r\n\r\n")
    return _check_dripping(trial, head + separator, body)


def _text_then_stall(writer: ReplyWriter) -> Script:
    return [send_headers(), send(writer.begin() + writer.text("Hello")), wait(STALL_SECONDS)]


def _partial_reply(_: ReplyWriter) -> Script:
    return [send_headers(type="application/json"), send(b'{"id": "x", "choices": ['), wait(STALL_SECONDS)]


EXPECT_PROMPT_LEAVE = "The gateway closes the upstream connection within 100 ms."
SCENARIOS: list[Scenario] = [
    stream_fault(
        19,
        "slow-client",
        "The upstream sends 128 MiB as fast as it can, and the client does not read.",
        "Back-pressure: the gateway stops reading from the upstream, and its memory stays bounded.",
        repeat_script(_large_stream),
        _check_back_pressure,
        alone=True,
    ),
    fault(
        20,
        "leaves-before-headers",
        "The client disconnects before the upstream responds.",
        EXPECT_PROMPT_LEAVE,
        repeat_script(lambda _: [wait(STALL_SECONDS)]),
        _check_client_leaving(stream=True),
        alone=True,
    ),
    stream_fault(
        20,
        "leaves-before-first-word",
        "The client disconnects between the headers and the first event with content.",
        EXPECT_PROMPT_LEAVE,
        repeat_script(lambda writer: [send_headers(), send(writer.begin()), wait(STALL_SECONDS)]),
        _check_client_leaving(stream=True),
        alone=True,
    ),
    stream_fault(
        20,
        "leaves-midstream",
        "The client disconnects in the middle of a stream.",
        EXPECT_PROMPT_LEAVE,
        repeat_script(_text_then_stall),
        _check_client_leaving(stream=True, awaited=b"Hello"),
        alone=True,
    ),
    fault(
        20,
        "leaves-whole-reply",
        "The client disconnects while the upstream sends a whole reply.",
        EXPECT_PROMPT_LEAVE,
        repeat_script(_partial_reply),
        _check_client_leaving(stream=False),
        alone=True,
    ),
    fault(
        24,
        "slow-headers",
        "The client sends its headers one byte at a time.",
        "The gateway closes the connection in time.",
        healthy_upstream,
        _check_slow_headers,
    ),
    fault(
        24,
        "slow-body",
        "The client sends its body one byte at a time.",
        "The gateway closes the connection in time.",
        healthy_upstream,
        _check_slow_body,
    ),
]
