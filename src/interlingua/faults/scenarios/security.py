"""Security and robustness: leaks, SSRF, cross-origin requests, hostile schemas, retry storms: rows 33 to 42."""

from __future__ import annotations

import json
from concurrent.futures import ThreadPoolExecutor
from typing import Any

from interlingua.faults.apis import MESSAGES_PATH, RESPONSES_PATH, tools_field
from interlingua.faults.checker import raw_client
from interlingua.faults.checker.expectations import describe_response, failed, judge_reply, passed
from interlingua.faults.checker.scenario import Scenario, Verdict, not_judged
from interlingua.faults.checker.trial import RequestRefused, Trial, TrialResponse
from interlingua.faults.scenarios.helpers import fault, healthy_upstream, repeat_script, stream_fault
from interlingua.faults.upstream.reply_writers import ReplyWriter
from interlingua.faults.upstream.script import ReceivedRequest, Script, send, send_headers, send_response

__all__ = ["SCENARIOS"]

# ── 35: headers ───────────────────────────────────────────────────────────────────────────────────────────────────────

SECRET = "client-secret-0123456789"
CLIENT_HEADERS = {
    "cookie": f"session={SECRET}",
    "x-stainless-lang": SECRET,
    "x-forwarded-for": SECRET,
    "x-custom": SECRET,
    "referer": f"http://{SECRET}.example/",
}
UPSTREAM_HEADERS = {"set-cookie": "a=b", "openai-organization": "org-secret", "x-internal": "secret"}


def _check_client_headers(trial: Trial) -> Verdict:
    headers = {name.replace("-", "_"): value for name, value in CLIENT_HEADERS.items()}
    if not trial.target.key:
        headers |= {"authorization": f"Bearer {SECRET}", "x_api_key": SECRET}
    response = trial.send(trial.build_request(trial.body(), **headers))
    if not (requests := trial.upstream_requests()):
        raise RequestRefused(describe_response(response))
    leaked = [name for name, value in requests[0]["headers"].items() if SECRET in value]
    return failed(f"the upstream receives the client's {', '.join(leaked)}") if leaked else passed("none is forwarded")


def _check_upstream_headers(trial: Trial) -> Verdict:
    response = trial.send_request()
    if response.status != 200:
        return failed(describe_response(response))
    leaked = [name for name, value in UPSTREAM_HEADERS.items() if value in str(response.headers)]
    return failed(f"the client receives the upstream's {', '.join(leaked)}") if leaked else passed("none is forwarded")


def _respond_with_headers(writer: ReplyWriter) -> Script:
    lines = [f"{name}: {value}" for name, value in UPSTREAM_HEADERS.items()]
    return [send_headers("200 OK", "text/event-stream", *lines), send(writer.hello_stream())]


# ── 36: SSRF ──────────────────────────────────────────────────────────────────────────────────────────────────────────


def _redirect(_: ReplyWriter) -> Script:
    async def step(request: ReceivedRequest) -> None:
        port = request.writer.get_extra_info("sockname")[1]
        location = f"location: http://localhost:{port}/_elsewhere/{request.body.get('model')}"
        await send_response("307 Temporary Redirect", b"", "text/plain", location)(request)

    return [step]


def _contacted_foreign_host(trial: Trial) -> bool:
    return any(request["path"].startswith("/_elsewhere/") for request in trial.upstream_requests())


def _check_redirect_refused(trial: Trial) -> Verdict:
    response = trial.send_request()
    if _contacted_foreign_host(trial):
        return failed("the redirect to another host was followed")
    return (
        passed(describe_response(response))
        if response.status >= 400 or response.error
        else failed(f"the response looks successful: {describe_response(response)}")
    )


def _foreign_image(trial: Trial) -> dict[str, Any]:
    """Return a conversation with the URL of an image on another host."""
    url = f"{trial.foreign_url}/picture.png"
    if trial.api == RESPONSES_PATH:
        parts = [{"type": "input_text", "text": "look"}, {"type": "input_image", "image_url": url}]
        return {"input": [{"role": "user", "content": parts}]}
    image: dict[str, Any] = {"type": "image_url", "image_url": {"url": url}}
    if trial.api == MESSAGES_PATH:
        image = {"type": "image", "source": {"type": "url", "url": url}}
    return {"messages": [{"role": "user", "content": [{"type": "text", "text": "look"}, image]}]}


def _check_only_configured_upstream(trial: Trial) -> Verdict:
    names = ["api_base", "base_url", "url", "upstream"]
    fields = {**_foreign_image(trial), **dict.fromkeys(names, trial.foreign_url)}
    headers = {"x_upstream": trial.foreign_url, "x_forwarded_host": trial.foreign_url}
    response = trial.send(trial.build_request(trial.body(**fields), **headers))
    if _contacted_foreign_host(trial):
        return failed("the gateway sent a request to a URL from the client's request")
    return passed(f"no other host was contacted; {response.status}")


# ── 37 to 39: keys, escapes, web pages ────────────────────────────────────────────────────────────────────────────────


def _leak_key_in_error(writer: ReplyWriter) -> Script:
    return [
        send_response(
            "401 Unauthorized", writer.error_body(f"the key {writer.upstream_key} is not known", "authentication_error")
        )
    ]


def _check_key_hidden(trial: Trial) -> Verdict:
    response = trial.send_request()
    headers = trial.upstream_requests()[0]["headers"]
    key = headers.get("authorization", "").removeprefix("Bearer ") or headers.get("x-api-key", "")
    if not key:
        raise RequestRefused("the gateway sends no key to its upstream: configure one")
    return (
        failed("the client receives the upstream's key")
        if key.encode() in response.body
        else passed(describe_response(response))
    )


FOREIGN_ORIGIN = "https://evil.example"
HOSTILE_MESSAGE = "a\x1b]0;owned\x07\x1b[2J\r\nset-cookie: x=1\r\n\r\n<script>alert(1)</script>"


def _check_escapes(trial: Trial) -> Verdict:
    response = trial.send_request()
    if "set-cookie" in response.headers:
        return failed("the upstream's message has become a header")
    if "html" in response.headers.get("content-type", ""):
        return failed("the upstream's message is sent as HTML")
    if b"\x1b" in response.body:
        return failed("terminal escapes are forwarded unescaped")
    return (
        passed("the message stays text in JSON")
        if response.error and not response.violations
        else failed(describe_response(response))
    )


def _check_cross_origin(trial: Trial, **headers: str) -> Verdict:
    data = trial.build_request(trial.body(), **headers)
    response = trial.send(data)
    if allowed := _allowed_origin(response):
        return failed(f"the page can read the response: access-control-allow-origin: {allowed}")
    if trial.upstream_requests():
        return failed("the gateway sent the page's request to the upstream")
    return passed(f"refused with {response.status}")


def _check_preflight(trial: Trial) -> Verdict:
    headers = {"origin": FOREIGN_ORIGIN, "access-control-request-method": "POST"}
    data = raw_client.build_request(trial.path, None, {**trial.headers(), **headers}, "OPTIONS")
    response = trial.send(data)
    if allowed := _allowed_origin(response):
        return failed(f"the page is allowed: access-control-allow-origin: {allowed}")
    return passed(f"not allowed: {response.status}")


def _allowed_origin(response: TrialResponse) -> str:
    allowed = response.headers.get("access-control-allow-origin", "")
    return allowed if allowed in ("*", FOREIGN_ORIGIN) else ""


# ── 40, 41: schemas, retry storms ─────────────────────────────────────────────────────────────────────────────────────

HOSTILE_SCHEMA = {"type": "object", "properties": {"city": {"type": "string", "pattern": "^(a+)+$"}}}
BACKTRACKING_INPUT = "a" * 60 + "!"
STORM_REQUESTS = 40


def _check_hostile_schema(trial: Trial) -> Verdict:
    response = trial.send_request(offer=False, **tools_field(trial.api, schema=HOSTILE_SCHEMA))
    if response.timed_out:
        return failed(f"no response within {response.elapsed:.0f} s")
    if response.elapsed > 5:
        return failed(f"it took {response.elapsed:.1f} s")
    verdict = judge_reply(response, trial, None, [("get_weather", {"city": BACKTRACKING_INPUT})])
    return verdict if not response.error else passed(describe_response(response))


def _check_deep_schema(trial: Trial) -> Verdict:
    schema: dict[str, Any] = {"type": "string"}
    for _ in range(200):
        schema = {"type": "object", "properties": {"a": schema}, "required": ["a"]}
    response = trial.send(trial.build_request(trial.body(offer=False, **tools_field(trial.api, schema=schema))))
    if 400 <= response.status < 500:
        return passed(f"refused with {response.status}")
    return judge_reply(response, trial)


def _check_retry_storm(trial: Trial) -> Verdict:
    data = trial.build_request(trial.body())
    with ThreadPoolExecutor(8) as pool:
        responses = list(pool.map(lambda _: trial.send(data), range(STORM_REQUESTS)))
    if any(response.timed_out for response in responses):
        return failed("some requests got no response")
    upstream_count = len(trial.upstream_requests())
    if not upstream_count:
        raise RequestRefused(describe_response(responses[0]))
    summary = f"{upstream_count} requests to the upstream for {STORM_REQUESTS} requests of clients"
    return (
        passed(summary)
        if upstream_count <= STORM_REQUESTS * 3 // 2
        else failed(f"{summary}: retries multiply the load")
    )


NOT_VISIBLE_REASON = "Visible only in logs, files or processes of the gateway; the tests of Interlingua check these."
SCENARIOS: list[Scenario] = [
    fault(
        33,
        "network",
        "The upstream's host name is unknown, its certificate is invalid, or a proxy is in between.",
        "An error that names the reason; proxies and certificates of the system are used.",
        healthy_upstream,
        not_judged("The upstream's address is in the gateway's settings, which a client cannot change."),
    ),
    fault(
        34,
        "stopped",
        "A worker crashes, or the gateway is stopped in the middle of streams.",
        "Other workers continue; streams finish or end with an error.",
        healthy_upstream,
        not_judged("A client cannot end the gateway's processes; the tests of Interlingua do."),
    ),
    fault(
        35,
        "client-headers",
        "The client sends cookies, its own key and other headers.",
        "The gateway forwards none of them.",
        healthy_upstream,
        _check_client_headers,
    ),
    stream_fault(
        35,
        "upstream-headers",
        "The upstream sends a cookie, its organization's id and other headers.",
        "The gateway forwards none of them.",
        repeat_script(_respond_with_headers),
        _check_upstream_headers,
    ),
    fault(
        36,
        "redirect",
        "The upstream redirects to another host.",
        "An error. The redirect is not followed, because key and prompt would be sent there.",
        repeat_script(_redirect),
        _check_redirect_refused,
    ),
    fault(
        36,
        "named-address",
        "The request contains other URLs: as upstream, in headers, as an image.",
        "The gateway contacts only the configured upstream.",
        healthy_upstream,
        _check_only_configured_upstream,
    ),
    fault(
        37,
        "key-repeated",
        "The upstream repeats the gateway's key in its error.",
        "The client receives the error without the key.",
        repeat_script(_leak_key_in_error),
        _check_key_hidden,
    ),
    fault(
        37,
        "keys-in-logs",
        "Keys occur in requests, errors and settings.",
        "No key in a log, in process arguments, or in a file that other users can read.",
        healthy_upstream,
        not_judged(NOT_VISIBLE_REASON),
    ),
    fault(
        38,
        "escapes",
        "An error message contains terminal escapes, line breaks and a script.",
        "It stays text in JSON: no header, no HTML, no escape.",
        repeat_script(
            lambda writer: [
                send_response("400 Bad Request", writer.error_body(HOSTILE_MESSAGE, "invalid_request_error"))
            ]
        ),
        _check_escapes,
    ),
    fault(
        39,
        "foreign-host",
        "A web page reaches the gateway under another host name (DNS rebinding).",
        "The gateway refuses it and sends nothing to the upstream.",
        healthy_upstream,
        lambda trial: _check_cross_origin(trial, host="evil.example"),
    ),
    fault(
        39,
        "foreign-origin",
        "A web page of another origin sends a request.",
        "The gateway refuses it and sends nothing to the upstream.",
        healthy_upstream,
        lambda trial: _check_cross_origin(trial, origin=FOREIGN_ORIGIN, sec_fetch_site="cross-site"),
    ),
    fault(
        39,
        "preflight",
        "A web page of another origin sends a CORS preflight request.",
        "The origin is not allowed.",
        healthy_upstream,
        _check_preflight,
    ),
    fault(
        40,
        "evil-pattern",
        "A tool's schema has a pattern with catastrophic backtracking, and the model's arguments trigger it.",
        "A response in time.",
        repeat_script(
            lambda writer: writer.reply_script("", ("get_weather", json.dumps({"city": BACKTRACKING_INPUT})))
        ),
        _check_hostile_schema,
        alone=True,
    ),
    fault(
        40,
        "deep-schema",
        "A tool's schema is nested two hundred levels deep.",
        "Accepted, or refused with 4xx.",
        healthy_upstream,
        _check_deep_schema,
        alone=True,
    ),
    fault(
        41,
        "storm",
        f"The upstream answers every request with 503, and {STORM_REQUESTS} requests arrive at once.",
        "Few retries: the gateway does not multiply the load on an upstream that is down.",
        repeat_script(
            lambda writer: [send_response("503 Service Unavailable", writer.error_body("down", "overloaded_error"))]
        ),
        _check_retry_storm,
        alone=True,
    ),
    fault(
        42,
        "full-disk",
        "The disk is full, or slow.",
        "Log lines and captures are dropped and counted; no stream waits for the disk.",
        healthy_upstream,
        not_judged(NOT_VISIBLE_REASON),
    ),
]
