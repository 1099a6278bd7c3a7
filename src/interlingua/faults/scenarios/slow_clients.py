"""Clients that are slow, or leave: rows 19, 20 and 24. The upstream does nothing wrong."""

from __future__ import annotations

import socket
import time

from interlingua.faults.checker import raw_client as client
from interlingua.faults.checker.expectations import right, wrong
from interlingua.faults.checker.scenario import Check, Scenario, Verdict
from interlingua.faults.checker.trial import Play, Refused
from interlingua.faults.scenarios.helpers import LONG, always, fault, good, stream_fault
from interlingua.faults.upstream.reply_writers import Voice
from interlingua.faults.upstream.script import Script, each, head, send, wait

__all__ = ["SCENARIOS"]

MIB = 1024 * 1024
SOON = 0.1
"""How soon an upstream must be left, in seconds."""


# ── 19: it reads slowly ───────────────────────────────────────────────────────────────────────────────────────────


def _much(say: Voice) -> Script:
    piece = say.begin() + say.text("y")
    more = say.text("y" * 16_000)
    return [head(), send(piece), each([more] * (128 * MIB // len(more))), send(say.end())]


def _slowly(play: Play) -> Verdict:
    with play.begin(play.request(play.body())) as sock:
        if not sock.recv(1024) or not (seen := play.until(bool, 5)):
            raise Refused("there was no stream to read slowly")
        sent = -1
        until = time.monotonic() + play.target.patience
        while sent != seen[0]["sent"] and time.monotonic() < until:
            sent = seen[0]["sent"]
            time.sleep(1)
            seen = play.seen()
    held = sent / MIB
    if sent == seen[0]["sent"] and held < 48:
        return right(f"the upstream is held back behind {held:.0f} MiB, which are the system's buffers mostly")
    return wrong(f"nobody reads, and the upstream could send {held:.0f} MiB: they are in its memory")


# ── 20: it leaves ─────────────────────────────────────────────────────────────────────────────────────────────────


def _leaving(stream: bool, hears: bytes = b"") -> Check:
    """The best of three, so that a busy machine is no fault of the gateway."""

    def check(play: Play) -> Verdict:
        after: list[float] = []
        for attempt in range(3):
            again = Play(play.target, play.api, play.name, f"{play.run}-{attempt}")
            after.append(_left(again, stream, hears))
            if after[-1] <= SOON:
                return right(f"the upstream was left after {after[-1] * 1000:.0f} ms")
        best = min(after)
        return wrong("the upstream was never left" if best > 5 else f"the upstream was left after {best * 1000:.0f} ms")

    return check


def _left(play: Play, stream: bool, hears: bytes) -> float:
    """How long after its client the gateway left, in seconds."""
    sock = play.begin(play.request(play.body(stream)))
    with sock:
        if not play.until(bool, 5):
            raise Refused("the upstream was never asked")
        data = b""
        while hears and hears not in data:
            if not (piece := sock.recv(1 << 16)):
                raise Refused("there was no stream to leave")
            data += piece
        time.sleep(0.1)
        sock.shutdown(socket.SHUT_RDWR)
    now = time.monotonic()
    seen = play.until(lambda all: bool(all[0]["left"] is not None), 5)
    if seen[0]["left"] is None:
        return 99
    return float(time.monotonic() - seen[0]["left"] - now)


# ── 24: it drips ──────────────────────────────────────────────────────────────────────────────────────────────────


def _dripping(play: Play, first: bytes, rest: bytes) -> Verdict:
    """Sends a byte now and then, until the gateway has had enough."""
    began = time.monotonic()
    with play.begin(first) as sock:
        sock.settimeout(0.5)
        for at in range(len(rest)):
            took = time.monotonic() - began
            if took > play.target.patience:
                break
            try:
                sock.sendall(rest[at : at + 1])
                raw = sock.recv(1 << 16)
            except TimeoutError:
                continue
            except OSError:  # reset
                raw = b""
            status = client.parsed(raw).status
            return right(f"ended after {took:.0f} s" + (f" with {status}" if status else ""))
    return wrong(f"it still waits after {play.target.patience:.0f} s")


def _slow_headers(play: Play) -> Verdict:
    data = play.request(play.body(), x_filler="x" * 2000)
    return _dripping(play, data[:40], data[40:])


def _slow_body(play: Play) -> Verdict:
    head, found, body = play.request(b" " * 2000 + play.body()).partition(b"\r\n\r\n")
    return _dripping(play, head + found, body)


def _first_words(say: Voice) -> Script:
    return [head(), send(say.begin() + say.text("Hello")), wait(LONG)]


def _half_a_reply(_: Voice) -> Script:
    return [head(type="application/json"), send(b'{"id": "x", "choices": ['), wait(LONG)]


LEFT = "The request to the upstream ends within 100 ms."
SCENARIOS: list[Scenario] = [
    stream_fault(
        19,
        "slow-client",
        "The upstream sends 128 MiB as fast as it can, and the client does not read.",
        "The upstream is held back; what waits does not fill the memory.",
        always(_much),
        _slowly,
        alone=True,
    ),
    fault(
        20,
        "leaves-before-headers",
        "The client leaves before the upstream has answered at all.",
        LEFT,
        always(lambda _: [wait(LONG)]),
        _leaving(stream=True),
        alone=True,
    ),
    stream_fault(
        20,
        "leaves-before-first-word",
        "The client leaves between the headers and the first word.",
        LEFT,
        always(lambda say: [head(), send(say.begin()), wait(LONG)]),
        _leaving(stream=True),
        alone=True,
    ),
    stream_fault(
        20,
        "leaves-midstream",
        "The client leaves in the middle of a stream.",
        LEFT,
        always(_first_words),
        _leaving(stream=True, hears=b"Hello"),
        alone=True,
    ),
    fault(
        20,
        "leaves-whole-reply",
        "The client leaves while a whole reply is being written.",
        LEFT,
        always(_half_a_reply),
        _leaving(stream=False),
        alone=True,
    ),
    fault(
        24,
        "slow-headers",
        "The client sends its headers a byte at a time.",
        "The connection is ended in time.",
        good,
        _slow_headers,
    ),
    fault(
        24,
        "slow-body",
        "The client sends its body a byte at a time.",
        "The connection is ended in time.",
        good,
        _slow_body,
    ),
]
