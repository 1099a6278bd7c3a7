"""What must not get out, in or elsewhere, and what must not run away: rows 33 to 42."""

from __future__ import annotations

import json
from concurrent.futures import ThreadPoolExecutor
from typing import Any

from interlingua.faults.apis import MESSAGES_PATH, RESPONSES_PATH, offered
from interlingua.faults.checker import raw_client as client
from interlingua.faults.checker.expectations import right, told, well, wrong
from interlingua.faults.checker.scenario import Scenario, Verdict, outside
from interlingua.faults.checker.trial import Play, Refused, Told
from interlingua.faults.scenarios.helpers import always, fault, good, stream_fault
from interlingua.faults.upstream.reply_writers import Voice
from interlingua.faults.upstream.script import Asked, Script, answer, head, send

__all__ = ["SCENARIOS"]

# ── 35: headers ───────────────────────────────────────────────────────────────────────────────────────────────────

SECRET = "client-secret-0123456789"
CHATTY = {
    "cookie": f"session={SECRET}",
    "x-stainless-lang": SECRET,
    "x-forwarded-for": SECRET,
    "x-custom": SECRET,
    "referer": f"http://{SECRET}.example/",
}
SPOKEN = {"set-cookie": "a=b", "openai-organization": "org-secret", "x-internal": "secret"}


def _out(play: Play) -> Verdict:
    headers = {name.replace("-", "_"): value for name, value in CHATTY.items()}
    if not play.target.key:
        headers |= {"authorization": f"Bearer {SECRET}", "x_api_key": SECRET}
    heard = play.send(play.request(play.body(), **headers))
    if not (seen := play.seen()):
        raise Refused(told(heard))
    leaked = [name for name, value in seen[0]["headers"].items() if SECRET in value]
    return wrong(f"the upstream is told the client's {', '.join(leaked)}") if leaked else right("none goes on")


def _back(play: Play) -> Verdict:
    heard = play.ask()
    if heard.status != 200:
        return wrong(told(heard))
    leaked = [name for name, value in SPOKEN.items() if value in str(heard.headers)]
    return wrong(f"the client is told the upstream's {', '.join(leaked)}") if leaked else right("none comes back")


def _spoken(say: Voice) -> Script:
    lines = [f"{name}: {value}" for name, value in SPOKEN.items()]
    return [head("200 OK", "text/event-stream", *lines), send(say.hello())]


# ── 36: elsewhere ─────────────────────────────────────────────────────────────────────────────────────────────────


def _redirect(_: Voice) -> Script:
    async def step(asked: Asked) -> None:
        port = asked.writer.get_extra_info("sockname")[1]
        where = f"location: http://localhost:{port}/_elsewhere/{asked.body.get('model')}"
        await answer("307 Temporary Redirect", b"", "text/plain", where)(asked)

    return [step]


def _was_elsewhere(play: Play) -> bool:
    return any(one["path"].startswith("/_elsewhere/") for one in play.seen())


def _stays(play: Play) -> Verdict:
    heard = play.ask()
    if _was_elsewhere(play):
        return wrong("the redirect to another host was followed")
    return right(told(heard)) if heard.status >= 400 or heard.error else wrong(f"it looks well: {told(heard)}")


def _picture(play: Play) -> dict[str, Any]:
    """A conversation with a picture that is elsewhere."""
    url = f"{play.elsewhere}/picture.png"
    if play.api == RESPONSES_PATH:
        parts = [{"type": "input_text", "text": "look"}, {"type": "input_image", "image_url": url}]
        return {"input": [{"role": "user", "content": parts}]}
    image: dict[str, Any] = {"type": "image_url", "image_url": {"url": url}}
    if play.api == MESSAGES_PATH:
        image = {"type": "image", "source": {"type": "url", "url": url}}
    return {"messages": [{"role": "user", "content": [{"type": "text", "text": "look"}, image]}]}


def _asks_only_its_own(play: Play) -> Verdict:
    names = ["api_base", "base_url", "url", "upstream"]
    more = {**_picture(play), **dict.fromkeys(names, play.elsewhere)}
    headers = {"x_upstream": play.elsewhere, "x_forwarded_host": play.elsewhere}
    heard = play.send(play.request(play.body(**more), **headers))
    if _was_elsewhere(play):
        return wrong("it asked at an address that came in the request")
    return right(f"nobody else was asked; {heard.status}")


# ── 37 to 39 ──────────────────────────────────────────────────────────────────────────────────────────────────────


def _blabs(say: Voice) -> Script:
    return [answer("401 Unauthorized", say.refusal(f"the key {say.key} is not known", "authentication_error"))]


def _keeps(play: Play) -> Verdict:
    heard = play.ask()
    headers = play.seen()[0]["headers"]
    key = headers.get("authorization", "").removeprefix("Bearer ") or headers.get("x-api-key", "")
    if not key:
        raise Refused("the gateway shows no key to its upstream: give it one")
    return wrong("the client is told the upstream's key") if key.encode() in heard.body else right(told(heard))


FOREIGN = "https://evil.example"
EVIL = "a\x1b]0;owned\x07\x1b[2J\r\nset-cookie: x=1\r\n\r\n<script>alert(1)</script>"


def _escapes(play: Play) -> Verdict:
    heard = play.ask()
    if "set-cookie" in heard.headers:
        return wrong("what the upstream said has become a header")
    if "html" in heard.headers.get("content-type", ""):
        return wrong("what the upstream said goes out as a page")
    if b"\x1b" in heard.body:
        return wrong("escapes for terminals go out as they came")
    return right("it stays text in JSON") if heard.error and not heard.odd else wrong(told(heard))


def _from_a_page(play: Play, **headers: str) -> Verdict:
    data = play.request(play.body(), **headers)
    heard = play.send(data)
    if allowed := _allowed(heard):
        return wrong(f"such a page may read the answer: access-control-allow-origin: {allowed}")
    if play.seen():
        return wrong("the upstream was asked, for a page of somebody else's")
    return right(f"refused with {heard.status}")


def _preflight(play: Play) -> Verdict:
    headers = {"origin": FOREIGN, "access-control-request-method": "POST"}
    data = client.request(play.path, None, {**play.headers(), **headers}, "OPTIONS")
    heard = play.send(data)
    if allowed := _allowed(heard):
        return wrong(f"such a page may: access-control-allow-origin: {allowed}")
    return right(f"it may not: {heard.status}")


def _allowed(heard: Told) -> str:
    allowed = heard.headers.get("access-control-allow-origin", "")
    return allowed if allowed in ("*", FOREIGN) else ""


# ── 40, 41 ────────────────────────────────────────────────────────────────────────────────────────────────────────

EVIL_SCHEMA = {"type": "object", "properties": {"city": {"type": "string", "pattern": "^(a+)+$"}}}
VICTIM = "a" * 60 + "!"
STORM = 40


def _evil_schema(play: Play) -> Verdict:
    heard = play.ask(offer=False, **offered(play.api, schema=EVIL_SCHEMA))
    if heard.waiting:
        return wrong(f"no answer within {heard.took:.0f} s")
    if heard.took > 5:
        return wrong(f"it took {heard.took:.1f} s")
    verdict = well(heard, play, None, [("get_weather", {"city": VICTIM})])
    return verdict if not heard.error else right(told(heard))


def _deep_schema(play: Play) -> Verdict:
    schema: dict[str, Any] = {"type": "string"}
    for _ in range(200):
        schema = {"type": "object", "properties": {"a": schema}, "required": ["a"]}
    heard = play.send(play.request(play.body(offer=False, **offered(play.api, schema=schema))))
    if 400 <= heard.status < 500:
        return right(f"refused with {heard.status}")
    return well(heard, play)


def _storm(play: Play) -> Verdict:
    data = play.request(play.body())
    with ThreadPoolExecutor(8) as pool:
        heard = list(pool.map(lambda _: play.send(data), range(STORM)))
    if any(one.waiting for one in heard):
        return wrong("some requests were never answered")
    asked = len(play.seen())
    if not asked:
        raise Refused(told(heard[0]))
    said = f"{asked} requests to the upstream for {STORM} of clients"
    return right(said) if asked <= STORM * 3 // 2 else wrong(f"{said}: who is down is asked the more")


HIDDEN = "It shows in its logs, its files or its processes; for ours, the tests look there."
SCENARIOS: list[Scenario] = [
    fault(
        33,
        "network",
        "The upstream's name is unknown, its certificate wrong, or a proxy stands between.",
        "An error that says which; proxies and certificates of the system are honoured.",
        good,
        outside("The upstream's address stands in the gateway's settings, which a client cannot change."),
    ),
    fault(
        34,
        "stopped",
        "A worker dies, or the gateway is told to stop in the middle of streams.",
        "Others go on; streams finish, or end with an error.",
        good,
        outside("A client cannot end the gateway's processes; for ours, the tests do."),
    ),
    fault(
        35,
        "client-headers",
        "The client sends cookies, a key of its own and other headers.",
        "None of them reaches the upstream.",
        good,
        _out,
    ),
    stream_fault(
        35,
        "upstream-headers",
        "The upstream sends a cookie, its organization's id and other headers.",
        "None of them reaches the client.",
        always(_spoken),
        _back,
    ),
    fault(
        36,
        "redirect",
        "The upstream redirects to another host.",
        "It is not followed, for key and prompt would go there; an error.",
        always(_redirect),
        _stays,
    ),
    fault(
        36,
        "named-address",
        "The request names other addresses: as upstream, in headers, as a picture.",
        "Nobody is asked but the upstream of the settings.",
        good,
        _asks_only_its_own,
    ),
    fault(
        37,
        "key-repeated",
        "The upstream repeats the gateway's key in its error.",
        "The client gets the error without the key.",
        always(_blabs),
        _keeps,
    ),
    fault(
        37,
        "keys-in-logs",
        "Keys pass through requests, errors and settings.",
        "None stands in a log, an argument of a process, or a file that others can read.",
        good,
        outside(HIDDEN),
    ),
    fault(
        38,
        "escapes",
        "An error's message holds escapes for terminals, line ends and a script.",
        "It stays text in JSON: no header, no page, no escape.",
        always(lambda say: [answer("400 Bad Request", say.refusal(EVIL, "invalid_request_error"))]),
        _escapes,
    ),
    fault(
        39,
        "foreign-host",
        "A page reaches the gateway under a name of its own (DNS rebinding).",
        "It is refused, and the upstream is not asked.",
        good,
        lambda play: _from_a_page(play, host="evil.example"),
    ),
    fault(
        39,
        "foreign-origin",
        "A page of another origin sends a request.",
        "It is refused, and the upstream is not asked.",
        good,
        lambda play: _from_a_page(play, origin=FOREIGN, sec_fetch_site="cross-site"),
    ),
    fault(
        39,
        "preflight",
        "A page of another origin asks whether it may.",
        "It may not.",
        good,
        _preflight,
    ),
    fault(
        40,
        "evil-pattern",
        "A tool's schema has a pattern that takes for ever, and the model's arguments meet it.",
        "An answer in time.",
        always(lambda say: say.reply("", ("get_weather", json.dumps({"city": VICTIM})))),
        _evil_schema,
        alone=True,
    ),
    fault(
        40,
        "deep-schema",
        "A tool's schema has two hundred levels.",
        "Taken, or refused with 4xx.",
        good,
        _deep_schema,
        alone=True,
    ),
    fault(
        41,
        "storm",
        f"The upstream answers nothing but 503, and {STORM} requests come at once.",
        "Few of them are asked again: who is down is not asked the more.",
        always(lambda say: [answer("503 Service Unavailable", say.refusal("down", "overloaded_error"))]),
        _storm,
        alone=True,
    ),
    fault(
        42,
        "full-disk",
        "The disk is full, or slow.",
        "Logs and captures are dropped and counted; no stream waits for them.",
        good,
        outside(HIDDEN),
    ),
]
