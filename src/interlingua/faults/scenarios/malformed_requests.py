"""Requests that no SDK would send: rows 21 and 23. The upstream does nothing wrong."""

from __future__ import annotations

import gzip
import json
import socket
from collections.abc import Callable
from typing import Any

from interlingua.faults.apis import MESSAGES_PATH, past_call
from interlingua.faults.checker import raw_client as client
from interlingua.faults.checker.expectations import lives, right, told, well, wrong
from interlingua.faults.checker.scenario import Check, Outcome, Scenario, Verdict
from interlingua.faults.checker.trial import Play, Told
from interlingua.faults.scenarios.helpers import fault, good

__all__ = ["SCENARIOS"]

MIB = 1024 * 1024


# ── 21: odd HTTP ──────────────────────────────────────────────────────────────────────────────────────────────────


def _fine(heard: Told, play: Play) -> Verdict:
    """A reply, or a refusal that says so."""
    verdict = well(heard, play)
    if verdict.outcome is Outcome.RIGHT:
        return verdict
    if 400 <= heard.status < 500 or heard.status in (501, 505):
        return right(f"refused with {heard.status}")
    return verdict


def _http_10(play: Play) -> Verdict:
    data = play.request(play.body()).replace(b" HTTP/1.1\r\n", b" HTTP/1.0\r\n", 1)
    heard = play.send(data)
    if heard.headers.get("transfer-encoding"):
        return wrong("HTTP/1.0 was asked, and the answer is in chunks")
    return _fine(heard, play)


def _pipelined(play: Play) -> Verdict:
    body = play.body(stream=False)
    one, last = play.request(body, connection="keep-alive"), play.request(body)
    with play.begin(one + last) as sock:
        raw, over = client.read(sock, play.target.patience, answers=2)
    answers = raw.count(b"HTTP/1.1 ")
    if not over:
        return wrong(f"no end within {play.target.patience:.0f} s, behind {answers} answers")
    if answers == 2:
        return right("both requests are answered")
    heard = play.heard(client.parsed(raw))
    return right(f"refused with {heard.status}") if heard.status >= 400 else wrong(f"{answers} answers to two requests")


def _expecting(play: Play) -> Verdict:
    body = play.body()
    head = play.request(body, expect="100-continue")[: -len(body)]
    with play.begin(head) as sock:
        sock.settimeout(5)
        try:
            first = sock.recv(1 << 16)
        except TimeoutError:
            return wrong("the client waits for 100 Continue, and nothing comes")
        if not first.startswith(b"HTTP/1.1 100"):
            return _fine(play.heard(client.parsed(first)), play)
        sock.sendall(body)
        raw, _ = client.read(sock, play.target.patience)
    return _fine(play.heard(client.parsed(first + raw)), play)


def _chunked(play: Play) -> Verdict:
    body = play.body()
    length = f"content-length: {len(body)}".encode()
    head = play.request(body).partition(b"\r\n\r\n")[0].replace(length, b"transfer-encoding: chunked")
    half = len(body) // 2
    pieces = b"".join(b"%x\r\n%b\r\n" % (len(piece), piece) for piece in (body[:half], body[half:]))
    return _fine(play.send(head + b"\r\n\r\n" + pieces + b"0\r\n\r\n"), play)


def _packed(play: Play) -> Verdict:
    return _fine(play.send(play.request(gzip.compress(play.body()), content_encoding="gzip")), play)


def _half_closed(play: Play) -> Verdict:
    with play.begin(play.request(play.body())) as sock:
        sock.shutdown(socket.SHUT_WR)
        raw, over = client.read(sock, play.target.patience)
    if not raw and over:
        return right("it counts as gone: a choice, and the client notices")
    return _fine(play.heard(client.parsed(raw)), play)


# ── 23: bodies ────────────────────────────────────────────────────────────────────────────────────────────────────


def _body(make: str) -> Check:
    """A hostile body is taken or refused, and never a fault of the gateway's own."""

    def check(play: Play) -> Verdict:
        heard = play.send(play.request(_HOSTILE[make](play.body())), 60)
        verdict = well(heard, play)
        if 400 <= heard.status < 500:
            verdict = right(f"refused with {heard.status}")
        elif verdict.outcome is Outcome.WRONG and heard.status >= 500:
            verdict = wrong(f"{told(heard)}: a fault of the client's, told as the server's")
        return lives(verdict, play) if verdict.outcome is Outcome.RIGHT else verdict

    return check


def _added(text: bytes) -> bytes:
    return b', "metadata": {"a": ' + text + b"}}"


_HOSTILE: dict[str, Callable[[bytes], bytes]] = {
    "large": lambda usual: usual[:-1] + _added(b'"' + b"x" * (48 * MIB) + b'"'),
    "deep": lambda usual: usual[:-1] + _added(b"[" * 10_000 + b"]" * 10_000),
    "nan": lambda usual: usual[:-1] + b', "temperature": NaN}',
    "half": lambda usual: usual[:-1] + b', "user": "a\\ud83d b"}',
    "broken": lambda usual: usual[: len(usual) // 2],
    "list": lambda _: b"[1, 2]",
    "latin": lambda usual: usual.replace(b'"hi"', b'"h\xff\xfe"'),
}
BIG = 2**53 + 1


def _past(api: str) -> dict[str, Any]:
    """A conversation in which a tool was called with a number that no double has."""
    if api == MESSAGES_PATH:  # written as a value; elsewhere it is text
        use = {"type": "tool_use", "id": "c1", "name": "get_weather", "input": {"n": BIG}}
        result = {"type": "tool_result", "tool_use_id": "c1", "content": "sun"}
        turns = [{"role": "assistant", "content": [use]}, {"role": "user", "content": [result]}]
        return {"messages": [{"role": "user", "content": "hi"}, *turns]}
    return past_call(api, "c1", json.dumps({"n": BIG}))


def _digits(play: Play) -> Verdict:
    past = _past(play.api)
    heard = play.ask(**past)
    if (verdict := well(heard, play)).outcome is Outcome.WRONG:
        return verdict
    sent = json.dumps(play.seen()[0]["body"])
    return right("its digits are the same") if str(BIG) in sent else wrong("its digits have changed on the way")


CLEAN = "A reply, or a clean 4xx."
TAKEN = "Taken, or refused with 4xx; never a fault of the gateway's own."
SCENARIOS: list[Scenario] = [
    fault(21, "http-10", "The client speaks HTTP/1.0.", f"{CLEAN} No chunks.", good, _http_10),
    fault(
        21,
        "pipelined",
        "Two requests at once on one connection.",
        "Both are answered, in their order.",
        good,
        _pipelined,
    ),
    fault(
        21,
        "expect-continue",
        "The client waits for 100 Continue before its body.",
        "It is told to go on.",
        good,
        _expecting,
    ),
    fault(21, "chunked-request", "The client sends its body in chunks.", CLEAN, good, _chunked),
    fault(21, "gzip-request", "The client packs its body.", CLEAN, good, _packed),
    fault(
        21, "half-closed", "The client closes its half of the connection behind the request.", CLEAN, good, _half_closed
    ),
    fault(23, "large-body", "A body of 48 MiB.", TAKEN, good, _body("large"), alone=True),
    fault(23, "deep-json", "JSON with ten thousand levels.", TAKEN, good, _body("deep"), alone=True),
    fault(23, "nan", "A number that is none: NaN.", TAKEN, good, _body("nan")),
    fault(23, "half-character", "Half of an emoji in a text.", TAKEN, good, _body("half")),
    fault(23, "broken-json", "JSON that breaks off.", "4xx.", good, _body("broken")),
    fault(23, "no-object", "JSON that is no object.", "4xx.", good, _body("list")),
    fault(23, "not-utf-8", "A body that is not UTF-8.", TAKEN, good, _body("latin")),
    fault(
        23,
        "long-integer",
        f"A past call with the number {BIG}, which no double has.",
        "It keeps its digits.",
        good,
        _digits,
    ),
]
