"""Doctor: what it says about scripted engines whose faults are known."""

from __future__ import annotations

import asyncio
import base64
import re
import struct
import zlib
from collections.abc import Callable
from typing import Any

import msgspec
import pytest

from interlingua.dialects.registry import get_dialect
from interlingua.faults.engines import ENGINE_FAULTS, NO_ENGINE_FAULT, EngineKind, ScriptedEngine
from interlingua.gateway.demo.planner import plan_reply
from interlingua.gateway.routing.routes import Routes
from interlingua.gateway.settings.schema import Settings, Upstream
from interlingua.verification.doctor import UpstreamReport, examine
from interlingua.verification.doctor.probe_samples import IMAGE
from interlingua.verification.probing.engine_sender import EngineSender
from interlingua.verification.probing.sender import Json
from interlingua.verification.recording import Arrival, Recording
from interlingua.wires import WIRES

KIMI = get_dialect("kimi_k2")
ALL_CHECKS = {
    *("reachable", "key", "engine", "window", "model", "stream", "tool call, stream", "tool call, whole"),
    *("tools in prompt", "special tokens", "tool_choice", "parallel calls", "thinking replay", "images", "JSON schema"),
    *("structural tags", "API messages", "API responses", "system message"),
}


def engine(fault: str = "none", kind: EngineKind = "vllm", dialect: str = "kimi_k2") -> ScriptedEngine:
    spoken = get_dialect(dialect)
    model = f"demo/{dialect}"
    return ScriptedEngine(
        model, spoken, lambda body: plan_reply(body, spoken), ENGINE_FAULTS.get(fault, NO_ENGINE_FAULT), kind
    )


def report_on(
    sender: Any, model: str = "demo/kimi_k2", *, choose: bool = False, seconds: float = 30, **fields: Any
) -> UpstreamReport:
    routes = Routes(Settings(upstreams={"own": Upstream(url="http://127.0.0.1:1/v1", **fields)}))
    route = routes.upstream_route("own", "" if choose else model)
    route_to = (lambda id: routes.upstream_route("own", id)) if choose else None
    return asyncio.run(examine(sender, route, seconds=seconds, parallel=4, route_to=route_to))


def statuses(report: UpstreamReport) -> dict[str, str]:
    return {check.check: check.status for check in report.checks}


def test_healthy_engine_is_ok_in_every_check() -> None:
    report = report_on(EngineSender(engine()))
    assert statuses(report) == dict.fromkeys(ALL_CHECKS, "ok"), report.checks
    assert 10 <= report.requests <= 25
    assert 0 < report.tokens < 10_000


@pytest.mark.parametrize("wire", WIRES)
def test_upstream_of_every_api_is_examined(wire: str) -> None:
    report = report_on(EngineSender(engine(kind="provider"), wire), api=wire)
    assert report.count("wrong") == report.count("odd") == 0, report.checks
    others = {f"API {other.rpartition('-')[2]}" for other in WIRES if other != wire}
    assert others <= statuses(report).keys()


ROWS = [
    ("parser-missing", "tool call, stream", "odd", "no tool parser", "--tool-call-parser kimi_k2"),
    ("parser-off", "tool call, whole", "odd", "arrives as text", "works with Interlingua"),
    ("parser-of-another-model", "tool call, whole", "wrong", "engine parser", "--tool-call-parser kimi_k2"),
    ("parser-swallows", "tool call, whole", "wrong", "what the model wrote is right", "without a tool parser"),
    ("template-drops-tools", "tools in prompt", "wrong", "tokens with two tools", "chat template"),
    ("template-drops-tools", "tool call, whole", "wrong", "get_weather. Cause: template; the prompt", "chat template"),
    ("template-refuses-system", "system message", "wrong", "refused: 400: ", "agents send one with each"),
    ("truncates-silently", "tool call, whole", "wrong", "end in the middle", "verify"),
    ("model-never-calls", "tool call, whole", "wrong", "Cause: model", "verify"),
    ("model-one-call", "parallel calls", "odd", "one call at a time", "agents work"),
    ("finish-stop", "tool call, whole", "odd", "finish reason", "works with Interlingua"),
    ("stream-cut", "tool call, stream", "wrong", "transport", "verify"),
    ("refuses-forced-calls", "tool_choice", "odd", "only 'auto' and 'none'", "profile"),
    ("parser-first-call-only", "parallel calls", "wrong", "Cause: engine parser", "--tool-call-parser kimi_k2"),
    ("stream-one-index", "parallel calls", "odd", "damaged: missing: get_weather", "update the server"),
    ("truncates-early", "tool call, whole", "wrong", "Cause: transport; ", "use another provider"),
    ("truncates-early", "tool call, stream", "wrong", "after 29 tokens although 768 were", "use another provider"),
    ("stream-duplicates", "tool call, stream", "wrong", "repeats the event before it", "look for a proxy"),
    ("stream-resends", "tool call, stream", "odd", "arrives damaged", "look for a proxy that changes replies"),
    ("whole-not-json", "tool call, whole", "wrong", "Cause: transport", "look for a proxy"),
]
PROVIDER_ROWS = [
    ("parser-first-call-only", "wrong", "Likely cause: engine parser; the server counts 51 tokens", "another provider"),
    ("model-one-call", "odd", "one call at a time", "agents work"),
    ("same-ids", "odd", "2 calls share 1 ids", "report it to the provider"),
]
"""Parallel calls of a provider that shows nothing but its API."""


@pytest.mark.parametrize(
    ("fault", "check", "status", "message", "fix"), ROWS, ids=[f"{row[0]}: {row[1]}" for row in ROWS]
)
def test_fault_is_found_and_its_fix_is_named(fault: str, check: str, status: str, message: str, fix: str) -> None:
    report = report_on(EngineSender(engine(fault)))
    found = next(result for result in report.checks if result.check == check)
    assert found.status == status, found
    assert message in found.message
    assert fix in found.fix


@pytest.mark.parametrize(("fault", "status", "message", "fix"), PROVIDER_ROWS, ids=[row[0] for row in PROVIDER_ROWS])
def test_lost_parallel_calls_of_a_provider_are_attributed(fault: str, status: str, message: str, fix: str) -> None:
    report = report_on(EngineSender(engine(fault, kind="provider")))
    found = next(result for result in report.checks if result.check == "parallel calls")
    assert found.status == status, found
    assert message in found.message
    assert fix in found.fix


@pytest.mark.parametrize(
    ("fault", "skipped"),
    [
        ("stream-duplicates", ["parallel calls", "API messages", "API responses"]),
        ("stream-resends", ["parallel calls"]),
        ("whole-not-json", ["tool_choice", "special tokens", "JSON schema"]),
    ],
)
def test_consequences_in_streams_or_whole_replies_are_not_repeated(fault: str, skipped: list[str]) -> None:
    report = report_on(EngineSender(engine(fault)))
    (failed,) = [check for check in report.checks if check.status in ("odd", "wrong")]
    assert failed.check.startswith("tool call, ")
    found = statuses(report)
    assert {found[name] for name in skipped} == {"skipped"}


@pytest.mark.parametrize("fault", ["stream-resends", "no-ids", "finish-stop"])
def test_parser_is_not_blamed_for_a_damaged_delivery(fault: str) -> None:
    report = report_on(EngineSender(engine(fault)))
    assert not [check for check in report.checks if "--tool-call-parser" in check.fix]


@pytest.mark.parametrize("fault", ["parser-missing", "template-drops-tools"])
def test_consequences_are_not_repeated(fault: str) -> None:
    report = report_on(EngineSender(engine(fault)))
    assert {statuses(report)[name] for name in ("tool_choice", "parallel calls", "API messages")} == {"skipped"}


@pytest.mark.parametrize("dialect", ["kimi_k2", "qwen3_coder", "hermes", "glm45"])
def test_special_tokens_matter_most_without_a_parser(dialect: str) -> None:
    """Interlingua reads the calls from the text then. Some dialects have markers that are ordinary text."""
    report = report_on(EngineSender(engine("parser-missing", dialect=dialect)), f"demo/{dialect}", dialect=dialect)
    assert statuses(report)["special tokens"] == "ok"


class NoSpecialTokens(EngineSender):
    """Server that removes special tokens from every text, also if it is asked not to."""

    async def send(self, body: Json, *, stream: bool, wire: str | None = None) -> Recording:
        recording = await super().send(body, stream=stream, wire=wire)
        text = recording.body
        for token in KIMI.tokens:
            text = text.replace(token.encode(), b"")
        return msgspec.structs.replace(recording, body=text, arrivals=(Arrival(len(text), 0.01),))


def test_special_tokens_that_are_removed_are_reported() -> None:
    report = report_on(NoSpecialTokens(engine("parser-missing")))
    assert statuses(report)["special tokens"] == "odd"


@pytest.mark.parametrize(("parser", "is_named"), [("kimi_k2", True), ("qwen25", False), ("hermes", False), ("", False)])
def test_wrong_parser_of_sglang_is_named(parser: str, is_named: bool) -> None:
    """SGLang names its parser. Some parsers have several names."""
    sender = OtherParser(engine(kind="sglang", dialect="hermes"), parser)
    report = report_on(sender, "demo/hermes", dialect="hermes")
    found = [(result.check, result.status, result.fix) for result in report.checks if result.status != "ok"]
    expected = ("tool parser", "odd", "for this model use --tool-call-parser hermes")
    assert found == ([expected] if is_named else [])


@pytest.mark.parametrize(
    ("fault", "message"), [("whole-not-json", "the reply is not JSON"), ("refuses-tools", "not known: 422: no tools")]
)
def test_reason_for_unknown_prompt_tokens_is_named(fault: str, message: str) -> None:
    class RefusesTools(EngineSender):
        async def send(self, body: Json, *, stream: bool, wire: str | None = None) -> Recording:
            if fault == "refuses-tools" and body.get("tools"):
                error = b'{"error": {"message": "no tools"}}'
                return Recording(wire=wire or "openai-chat", stream=stream, status=422, body=error)
            return await super().send(body, stream=stream, wire=wire)

    report = report_on(RefusesTools(engine(fault, kind="provider")))
    found = next(result for result in report.checks if result.check == "tools in prompt")
    assert (found.status, found.message) == ("skipped", message)


def test_parser_is_not_blamed_for_a_wrong_finish_reason() -> None:
    report = report_on(EngineSender(engine("finish-stop", kind="provider")))
    skipped = [check.message for check in report.checks if check.check == "parallel calls"]
    assert skipped == ["not judged, because calls are right only with Interlingua; see above"]


def test_only_model_of_a_server_is_chosen() -> None:
    report = report_on(EngineSender(engine()), choose=True)
    assert report.model == "demo/kimi_k2"
    assert report.count("wrong") == 0


def test_small_window_is_odd() -> None:
    report = report_on(SmallWindow(engine()))
    found = next(result for result in report.checks if result.check == "window")
    assert (found.status, "--max-model-len" in found.fix) == ("odd", True)


class OtherParser(EngineSender):
    """Sender to an SGLang that names this parser."""

    def __init__(self, engine: ScriptedEngine, parser: str) -> None:
        super().__init__(engine)
        self._parser = parser

    async def call_server(self, path: str, body: dict[str, Any] | None = None) -> dict[str, Any] | None:
        answer = await super().call_server(path, body)
        return answer | {"tool_call_parser": self._parser} if answer and "tool_call_parser" in answer else answer


class CollectedEvents(EngineSender):
    """Sender to which all events of a stream arrive together, after some time."""

    seconds = 0.0

    async def send(self, body: dict[str, Any], *, stream: bool, wire: str | None = None) -> Recording:
        recording = await super().send(body, stream=stream, wire=wire)
        arrivals = (Arrival(len(recording.body), self.seconds),)
        return msgspec.structs.replace(recording, arrivals=arrivals, seconds=self.seconds)


@pytest.mark.parametrize(("seconds", "status"), [(0.05, "ok"), (2.0, "odd")])
def test_collected_events_are_odd_unless_the_server_is_fast(seconds: float, status: str) -> None:
    sender = CollectedEvents(engine())
    sender.seconds = seconds
    assert statuses(report_on(sender))["stream"] == status


class ChangedStreams(EngineSender):
    """Sender that changes the bytes of all streams."""

    def __init__(self, engine: ScriptedEngine, change: Callable[[bytes], bytes]) -> None:
        super().__init__(engine)
        self._change = change

    async def send(self, body: dict[str, Any], *, stream: bool, wire: str | None = None) -> Recording:
        recording = await super().send(body, stream=stream, wire=wire)
        text = self._change(recording.body) if stream else recording.body
        return msgspec.structs.replace(recording, body=text, arrivals=(Arrival(len(text), 0.01),))


@pytest.mark.parametrize(
    ("change", "status", "message"),
    [
        (lambda text: re.sub(rb"data: (\{.*\})", rb'data: {"data": \1}', text), "odd", "wrapped in another object"),
        (lambda text: text.replace(b'"finish_reason": "stop"', b'"finish_reason": null'), "odd", "no finish reason"),
        (lambda text: text[: text.rfind(b"data: ", 0, len(text) // 2)], "wrong", "ends without a finish reason"),
    ],
    ids=["wrapped", "without finish reason", "cut"],
)
def test_stream_that_interlingua_repairs_is_odd(change: Callable[[bytes], bytes], status: str, message: str) -> None:
    report = report_on(ChangedStreams(engine(kind="provider"), change))
    found = next(result for result in report.checks if result.check == "stream")
    assert (found.status, message in found.message) == (status, True), found


class LateFirstReply(CollectedEvents):
    """Sender whose first stream comes late, as that of a server that has just started."""

    async def send(self, body: dict[str, Any], *, stream: bool, wire: str | None = None) -> Recording:
        recording = await super().send(body, stream=stream, wire=wire)
        self.seconds = 0.01
        return recording


def test_late_first_reply_is_not_taken_for_collected_events() -> None:
    sender = LateFirstReply(engine())
    sender.seconds = 2.0
    assert statuses(report_on(sender))["stream"] == "ok"


class SmallWindow(EngineSender):
    async def list_models(self) -> Recording:
        body = b'{"data": [{"id": "demo/kimi_k2", "owned_by": "vllm", "max_model_len": 4096}]}'
        return Recording(wire="openai-chat", stream=False, status=200, body=body)


class BrokenServer:
    """Server that answers the request for its models so, and nothing else. It is a `Sender`."""

    def __init__(self, listing: Recording, delay: float = 0.0) -> None:
        self._listing = listing
        self._delay = delay

    async def list_models(self) -> Recording:
        await asyncio.sleep(self._delay)
        return self._listing

    async def send(self, body: Json, *, stream: bool, wire: str | None = None) -> Recording:
        raise AssertionError(f"no request makes sense here: {body}, {stream}, {wire}")

    async def call_server(self, path: str, body: Json | None = None) -> Json | None:  # noqa: ARG002
        return None


@pytest.mark.parametrize(
    ("listing", "check", "message", "fix"),
    [
        ({"error": "cannot connect", "is_unreachable": True}, "reachable", "cannot connect", "check the URL"),
        ({"error": "no complete reply within 20 s"}, "reachable", "no complete reply", "the log of the server"),
        ({"status": 401, "error": "Incorrect API key"}, "key", "needs a key (401): Incorrect API key", "--key-env"),
        ({"status": 400, "error": "API key not valid"}, "key", "API key not valid", "set `key`"),
        ({"status": 200, "body": b'{"data": [{"id": "kimi-k2"}]}'}, "model", "no model", "did you mean kimi-k2?"),
    ],
)
def test_server_that_cannot_be_used(listing: dict[str, Any], check: str, message: str, fix: str) -> None:
    report = report_on(BrokenServer(Recording(wire="openai-chat", stream=False, **listing)), "kimi_k2")
    last = report.checks[-1]
    assert (last.check, last.status) == (check, "wrong")
    assert message in last.message
    assert fix in last.fix


WEB_PAGE = b"<!doctype html><title>Welcome</title><script>x()</script><p>It works!"


@pytest.mark.parametrize(
    ("listing", "message", "fix"),
    [
        ({"status": 200, "body": WEB_PAGE, "content_type": "text/html"}, "(text/html): Welcome It works!", "/v1"),
        ({"status": 200, "body": b""}, "the reply is empty", "check the URL"),
        ({"status": 200, "body": b"[]"}, "not a JSON object (no content type): []", "check the URL"),
        ({"status": 200, "body": b'{"data": "x"}'}, "not a list of models", "check the URL"),
        ({"status": 503, "error": "loading the model"}, "status 503: loading the model", "try again later"),
        ({"status": 302, "error": "the server redirects to https://x/"}, "redirects to https://x/", ""),
    ],
)
def test_server_without_a_model_list(listing: dict[str, Any], message: str, fix: str) -> None:
    """The URL may be wrong: nothing is said about the key, and without a model, nothing is checked."""
    server = BrokenServer(Recording(wire="openai-chat", stream=False, **listing))
    report = report_on(server, "", choose=True)
    assert statuses(report) == {"key": "skipped", "model list": "odd", "model": "odd"} | dict.fromkeys(
        ["reachable", "engine"], "ok"
    )
    found = next(check for check in report.checks if check.check == "model list")
    assert message in found.message
    assert fix in found.fix


def test_server_that_has_no_model_list_is_usual() -> None:
    server = BrokenServer(Recording(wire="openai-chat", stream=False, status=404, error="Not Found"))
    report = report_on(server, "", choose=True)
    assert "model list" not in statuses(report)
    assert report.checks[-1].fix == "add --model, or check the URL; for most servers it ends in /v1"


class AnswerSender(EngineSender):
    """Sender that answers every request of some APIs so."""

    def __init__(self, answer: Recording, *wires: str) -> None:
        super().__init__(engine())
        self._answer = answer
        self._wires = wires

    async def send(self, body: Json, *, stream: bool, wire: str | None = None) -> Recording:
        if (wire or "openai-chat") in self._wires:
            return msgspec.structs.replace(self._answer, stream=stream)
        return await super().send(body, stream=stream, wire=wire)


NOT_FOUND = Recording(wire="openai-chat", stream=False, status=404, error="Not Found")
PAGE = Recording(wire="openai-chat", stream=False, status=200, body=WEB_PAGE, content_type="text/html")
UNPAID = Recording(wire="openai-chat", stream=False, status=402, error="Insufficient credits")


@pytest.mark.parametrize(
    ("answer", "message", "fix"),
    [
        (NOT_FOUND, "404: Not Found", "--api, --model, and the URL"),
        (PAGE, "not a JSON object (text/html): Welcome It works!", "/v1"),
        (UNPAID, "402: Insufficient credits", "the account"),
    ],
)
def test_failure_of_a_simple_request_is_reported_once(answer: Recording, message: str, fix: str) -> None:
    """Nothing is known about tools, images or other features then, although such requests have an answer, too."""
    report = report_on(AnswerSender(answer, *WIRES))
    (failed,) = [check for check in report.checks if check.status != "ok" and check.status != "skipped"]
    assert (failed.check, failed.status) == ("stream", "wrong")
    assert message in failed.message
    assert fix in failed.fix
    behind = report.checks[report.checks.index(failed) + 1 :]
    assert {check.message for check in behind} == {"not judged, because a simple request fails; see above"}


def test_api_that_works_is_named_if_the_chosen_one_does_not() -> None:
    report = report_on(AnswerSender(NOT_FOUND, "openai-chat", "openai-responses"))
    assert next(check.fix for check in report.checks if check.check == "stream").startswith("use --api anthropic-mess")
    assert statuses(report)["API messages"] == "ok"


class RateLimitedServer(EngineSender):
    """Server that allows one request at a time."""

    running = 0

    async def send(self, body: Json, *, stream: bool, wire: str | None = None) -> Recording:
        if self.running:
            return Recording(wire="openai-chat", stream=stream, status=429, error="slow down", retry_after=0.1)
        self.running += 1
        await asyncio.sleep(0.01)
        self.running -= 1
        return await super().send(body, stream=stream, wire=wire)


def test_limit_on_parallel_requests_is_obeyed() -> None:
    report = report_on(RateLimitedServer(engine()))
    assert report.count("wrong") == report.count("odd") == 0, report.checks


def test_server_that_limits_all_requests_is_named() -> None:
    limit = Recording(wire="openai-chat", stream=False, status=429, error="Rate limit reached", retry_after=60)
    report = report_on(AnswerSender(limit, *WIRES), seconds=0.5)
    failed = next(check for check in report.checks if check.status == "wrong")
    assert (failed.check, "status 429" in failed.message, "--parallel 1" in failed.fix) == ("stream", True, True)


class WeakChoice(EngineSender):
    """Server whose model calls the named tool without its arguments."""

    async def send(self, body: Json, *, stream: bool, wire: str | None = None) -> Recording:
        recording = await super().send(body, stream=stream, wire=wire)
        if not isinstance(body.get("tool_choice"), dict):
            return recording
        function = {"name": "get_time", "arguments": "{}"}
        message = {"role": "assistant", "tool_calls": [{"id": "a", "type": "function", "function": function}]}
        reply = {"choices": [{"index": 0, "message": message, "finish_reason": "tool_calls"}]}
        return msgspec.structs.replace(recording, body=msgspec.json.encode(reply), content_type="application/json")


def test_choice_with_wrong_arguments_is_not_called_ignored() -> None:
    found = next(check for check in report_on(WeakChoice(engine())).checks if check.check == "tool_choice")
    assert found.status == "odd"
    assert found.message.startswith("named: arguments of get_time")


class ImageServer(EngineSender):
    """Server that answers requests with an image with this text."""

    def __init__(self, text: str, finish_reason: str = "stop", prefix: bytes = b"") -> None:
        super().__init__(engine())
        choice = {"index": 0, "message": {"content": text}, "finish_reason": finish_reason}
        self._body = prefix + msgspec.json.encode({"choices": [choice]})

    async def send(self, body: Json, *, stream: bool, wire: str | None = None) -> Recording:
        recording = await super().send(body, stream=stream, wire=wire)
        if b"image_url" not in msgspec.json.encode(body):
            return recording
        return msgspec.structs.replace(recording, status=200, body=self._body, content_type="application/json")


@pytest.mark.parametrize(
    ("server", "status", "message"),
    [
        (EngineSender(engine()), "ok", "not accepted"),
        (ImageServer("Red."), "ok", "the model sees them"),
        (ImageServer("红色"), "ok", "the model sees them"),
        (ImageServer("I see text only."), "odd", "accepted, but the model does not name the colour of a red image"),
        (ImageServer("", "length"), "skipped", "the reply is too long to be judged"),
        (ImageServer("Red.", prefix=b"<html>"), "skipped", "the reply is not JSON"),
    ],
)
def test_images_are_seen_by_the_model(server: EngineSender, status: str, message: str) -> None:
    found = next(check for check in report_on(server).checks if check.check == "images")
    assert (found.status, message in found.message) == (status, True), found
    assert ("`vision: false`" in found.fix) == (status == "odd")


def test_server_that_hangs_takes_no_longer_than_the_limit() -> None:
    hanging = BrokenServer(Recording(wire="openai-chat", stream=False), delay=30)
    report = report_on(hanging, seconds=0.2)
    assert [(check.check, check.status) for check in report.checks] == [("reachable", "wrong")]
    assert report.seconds < 10


class SlowModel(EngineSender):
    async def send(self, body: Json, *, stream: bool, wire: str | None = None) -> Recording:
        if body.get("tools"):
            await asyncio.sleep(60)
        return await super().send(body, stream=stream, wire=wire)


def test_checks_that_take_too_long_are_skipped() -> None:
    report = report_on(SlowModel(engine()), seconds=3)
    found = statuses(report)
    assert found["stream"] == "ok"
    assert found["tool call"] == "skipped"


class SilentModel(EngineSender):
    async def send(self, body: Json, *, stream: bool, wire: str | None = None) -> Recording:
        await asyncio.sleep(60)
        return await super().send(body, stream=stream, wire=wire)


def test_model_that_never_answers_is_wrong() -> None:
    report = report_on(SilentModel(engine()), seconds=0.5)
    found = next(check for check in report.checks if check.check == "stream")
    assert (found.status, "--timeout" in found.fix) == ("wrong", True)
    assert report.count("skipped") > 5


def test_image_is_a_valid_png() -> None:
    parts = IMAGE.request["messages"][0]["content"]
    data = base64.b64decode(parts[1]["image_url"]["url"].partition(",")[2])
    assert data.startswith(b"\x89PNG\r\n\x1a\n")
    length, kind = struct.unpack(">I4s", data[8:16])
    assert (length, kind) == (13, b"IHDR")
    start = data.index(b"IDAT") + 4
    (size,) = struct.unpack(">I", data[start - 8 : start - 4])
    assert len(zlib.decompress(data[start : start + size])) == 32 * (1 + 3 * 32)
