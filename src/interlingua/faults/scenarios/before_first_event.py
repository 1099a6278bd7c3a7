"""Before the first word, when another attempt may still go right: rows 1, 2, 8, 10 and 11."""

from __future__ import annotations

import gzip

from interlingua.faults.checker.expectations import (
    either,
    failing,
    on_hearing,
    refused,
    refuses,
    right,
    told,
    well,
    wrong,
)
from interlingua.faults.checker.scenario import Outcome, Playing, Scenario, Verdict
from interlingua.faults.checker.trial import Play, Told
from interlingua.faults.scenarios.helpers import LONG, always, fault, once, stream_fault
from interlingua.faults.upstream.reply_writers import Voice
from interlingua.faults.upstream.script import Script, answer, each, head, reset, streamed, wait

__all__ = ["SCENARIOS"]

JSON = "application/json"
TOO_LONG = "This model's maximum context length is 8192 tokens. However, your messages resulted in 9000 tokens."
PAGE = b"<!doctype html><html><head><title>502 Bad Gateway</title><style>p {}</style></head><body>nginx</body></html>"


def _patient(heard: Told, play: Play) -> Verdict:
    """While it waits, the client hears that somebody is there; or it is told that nobody is."""
    if not heard.waiting:
        return failing(heard, play)
    alive = heard.body.strip()
    return right("the client is kept waiting, and is told so") if alive else wrong(f"no byte within {heard.took:.0f} s")


def _too_long(heard: Told, play: Play) -> Verdict:
    """As agents know it: Claude Code looks for words, Codex for a code."""
    verdict = failing(heard, play)
    if verdict.outcome is Outcome.WRONG:
        return verdict
    if heard.status not in (200, 400, 413):
        return wrong(f"{told(heard)}: clients will ask again")
    known = "prompt is too long" in heard.error.lower() or heard.error_code == "context_length_exceeded"
    known |= "maximum context length" in heard.error
    return (
        right(f"{heard.status}, and agents can tell why") if known else wrong(f"{told(heard)}: agents cannot tell why")
    )


def _later(heard: Told, play: Play) -> Verdict:
    verdict = failing(heard, play)
    if verdict.outcome is Outcome.WRONG or heard.status != 429:
        return verdict if verdict.outcome is Outcome.WRONG else wrong(f"{told(heard)}; not 429")
    after = heard.headers.get("retry-after", "")
    return right(f"429 with retry-after {after}") if after else wrong("429, but retry-after is lost")


def _status(status: str, body: bytes, type: str = JSON, *headers: str) -> Playing:
    return always(lambda _: [answer(status, body, type, *headers)])


def _says(status: str, message: str, kind: str, code: str | None = None) -> Playing:
    return always(lambda say: [answer(status, say.refusal(message, kind, code))])


def _busy(say: Voice, after: str) -> Script:
    body = say.refusal("slow down", "rate_limit_error")
    return [answer("429 Too Many Requests", body, JSON, f"retry-after: {after}")]


def _packed(say: Voice) -> Script:
    body = gzip.compress(say.refusal("It broke", "server_error"))
    return [answer("500 Oh", body, JSON, "content-encoding: gzip")]


def _huge(_: Voice) -> Script:
    return [head("500 Oh", "text/plain", length=10_000_000), each([b"It broke. " * 10_000] * 100)]


def _brief(heard: Told, play: Play) -> Verdict:
    if len(heard.body) > 100_000:
        return wrong(f"the client gets {len(heard.body):,} bytes of it")
    return refused(*SERVER)(heard, play)


SERVER = (500, 502, 503, 504, 529)
ONCE = "The client gets the reply, for nothing had been said; or an error on which it asks again itself."
SCENARIOS: list[Scenario] = [
    fault(
        1,
        "reset-once",
        "The first connection is reset before any header; the next one is answered.",
        ONCE,
        once(lambda _: [reset()]),
        either(well, failing),
    ),
    fault(
        1,
        "reset-ever",
        "Every connection is reset before any header.",
        "A few attempts, then 5xx in the client's words.",
        always(lambda _: [reset()]),
        refuses(*SERVER),
    ),
    fault(
        1,
        "reset-ever-whole",
        "Every connection is reset before any header, and the client wants no stream.",
        "A few attempts, then 5xx in the client's words.",
        always(lambda _: [reset()]),
        refuses(*SERVER, stream=False),
    ),
    fault(
        2,
        "silence",
        "Headers with status 200, and then nothing.",
        "The client hears that it is waited for, or gets an error in time.",
        always(lambda _: [head(), wait(LONG)]),
        on_hearing(_patient),
    ),
    fault(
        2,
        "no-headers",
        "The request is read, and nothing ever comes.",
        "The client hears that it is waited for, or gets an error in time.",
        always(lambda _: [wait(LONG)]),
        on_hearing(_patient),
    ),
    stream_fault(
        8,
        "error-first",
        "Status 200, and the first event is an error: 503, overloaded.",
        "An error of that kind, as a status or an event, and no reply that looks well.",
        always(lambda say: streamed(say.error("Provider is down", "overloaded_error", 503))),
        refuses(*SERVER, word="Provider is down"),
    ),
    stream_fault(
        8,
        "error-first-once",
        "As before, but whoever asks again gets a reply.",
        ONCE,
        once(lambda say: streamed(say.error("Provider is down", "overloaded_error", 503))),
        either(well, failing),
    ),
    fault(
        10,
        "400-json",
        "400 with a message.",
        "400 with the message, and it is not asked again.",
        _says("400 Bad Request", "temperature must be below 2", "invalid_request_error"),
        refuses(400, word="temperature must be below 2", asked=1),
    ),
    fault(
        10,
        "401-json",
        "401: the gateway's key is wrong.",
        "An error that says so, and it is not asked again.",
        _says("401 Unauthorized", "Incorrect API key provided", "authentication_error"),
        refuses(401, 403, 500, 502, word="Incorrect API key", asked=1),
    ),
    fault(
        10,
        "502-page",
        "502 with a page of HTML.",
        "5xx with a message in the client's words, not the page.",
        _status("502 Bad Gateway", PAGE, "text/html"),
        refuses(*SERVER),
    ),
    fault(
        10,
        "503-empty",
        "503 with no body.",
        "5xx with a message in the client's words.",
        _status("503 Service Unavailable", b"", "text/plain"),
        refuses(*SERVER),
    ),
    fault(
        10,
        "500-gzip",
        "500 with a message, packed though nobody asked.",
        "5xx with the message.",
        always(_packed),
        refuses(*SERVER, word="It broke"),
    ),
    fault(
        10,
        "500-huge",
        "500 with ten megabytes of text.",
        "5xx with a short message.",
        always(_huge),
        on_hearing(_brief),
        alone=True,
    ),
    fault(
        10,
        "400-too-long",
        "400: the prompt is longer than the model's context.",
        "400 in the words by which agents know that they must shorten it.",
        _says("400 Bad Request", TOO_LONG, "invalid_request_error", "context_length_exceeded"),
        on_hearing(_too_long),
    ),
    fault(
        11,
        "429-then-well",
        "429 with a retry-after of one second; then a reply.",
        "The wait is made here, or the client is told of it.",
        once(lambda say: _busy(say, "1")),
        either(well, _later),
    ),
    fault(
        11,
        "429-long",
        "429 with a retry-after of ten minutes.",
        "429 with the header, at once.",
        always(lambda say: _busy(say, "600")),
        on_hearing(_later),
    ),
]
