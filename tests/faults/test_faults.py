"""Tests of the fault server and the checker.

The catalog is complete, every scenario runs, Interlingua passes all checks, and a gateway that only forwards bytes
fails the expected ones.
"""

from __future__ import annotations

import json
import re
import select
import signal
import subprocess
import sys
import threading
import time
import urllib.error
import urllib.request
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest

from bench import conformance
from bench.conformance_page import page
from interlingua.cli import main
from interlingua.faults.apis import APIS, CHAT_PATH, MESSAGES_PATH, RESPONSES_PATH, tools_field
from interlingua.faults.catalog import FAULT_ROWS, NO_FAULT, SCENARIOS, scenarios_in_rows, scripts_for
from interlingua.faults.checker import raw_client
from interlingua.faults.checker.client_view import ClientView, read_into_view
from interlingua.faults.checker.scenario import Scenario, TrialOutcome, scenario_name_in
from interlingua.faults.checker.trial import GatewayTarget
from interlingua.faults.runner import ScenarioResult, run_scenarios
from interlingua.faults.upstream.server import UpstreamServer
from interlingua.gateway.settings.loader import load_settings
from interlingua.gateway.settings.schema import Upstream
from tests.support.gateway_process import run_gateway
from tests.support.paths import TESTS

BY_NAME = {scenario.name: scenario for scenario in SCENARIOS}
SCENARIO_APIS = [(scenario, api) for scenario in SCENARIOS for api in scenario.apis]
SLOW = {18, 19, 24}
"""Rows that take several seconds; they run in one API only."""
QUICK_ROWS = [scenario for scenario in SCENARIOS if scenario.row not in SLOW]
SLOW_ROWS = [scenario for scenario in SCENARIOS if scenario.row in SLOW]


@pytest.fixture(scope="module")
def faults() -> Iterator[UpstreamServer]:
    server = UpstreamServer(script_source=scripts_for)
    yield server
    server.stop()


def base_of(faults: UpstreamServer) -> str:
    return faults.url.removesuffix("/v1")


# ── catalog ───────────────────────────────────────────────────────────────────────────────────────────────────────────


def test_every_row_has_a_scenario() -> None:
    assert [row.number for row in FAULT_ROWS] == list(range(1, 43))
    assert [row.number for row in FAULT_ROWS if not row.scenarios] == []
    assert sum(len(row.scenarios) for row in FAULT_ROWS) == len(SCENARIOS) == len(BY_NAME)


@pytest.mark.parametrize("scenario", SCENARIOS, ids=lambda scenario: scenario.name)
def test_scenario_name_and_descriptions_are_well_formed(scenario: Scenario) -> None:
    assert re.fullmatch(rf"fault-{scenario.row:02}-[a-z0-9]+(-[a-z0-9]+)*", scenario.name)
    assert scenario.description.endswith(".")
    assert scenario.expected.endswith(".")


@pytest.mark.parametrize("model", ["{}", "{}--7f-2", "openai/{}", "faults,{}--a", "x/y/{}--b"])
def test_scenario_name_in_model_id(model: str) -> None:
    assert {scenario_name_in(model.format(name)) for name in BY_NAME} == set(BY_NAME)


def test_other_models_have_no_scenario() -> None:
    assert scenario_name_in("gpt-9") == ""
    assert scenario_name_in("fault-4-x") == ""


def test_every_row_has_a_numbered_test() -> None:
    text = "\n".join(path.read_text(encoding="utf-8") for path in TESTS.rglob("test_*.py"))
    names = re.findall(r"^(?:async )?def test_(\d\d(?:_and_\d\d)*)_", text, re.MULTILINE)
    tested = {int(number) for name in names for number in name.split("_and_")}
    assert {row.number for row in FAULT_ROWS} <= tested


# ── fault server ──────────────────────────────────────────────────────────────────────────────────────────────────────


def raw_response(
    faults: UpstreamServer,
    api: str,
    model: str,
    stream: bool = True,
    seconds: float = 5,
    first_byte_seconds: float = 0,
) -> tuple[bytes, bool]:
    """Return the bytes that arrive within some seconds, and whether the response is complete.

    The seconds begin with the first byte, or when `first_byte_seconds` are over.
    """
    with raw_client.connect(faults.url) as sock:
        sock.sendall(raw_client.build_minimal_request(api, model, stream, **tools_field(api)))
        select.select([sock], [], [], first_byte_seconds)
        return raw_client.read_response(sock, seconds)


def client_view_of(faults: UpstreamServer, api: str, model: str, stream: bool = True) -> ClientView:
    response = raw_client.parse_response(raw_response(faults, api, model, stream)[0])
    return read_into_view(ClientView(response.status, dict(response.headers), response.body), api)


@pytest.mark.parametrize("api", APIS)
@pytest.mark.parametrize("stream", [True, False])
def test_server_replies_in_every_api_without_a_fault(faults: UpstreamServer, api: str, stream: bool) -> None:
    view = client_view_of(faults, api, NO_FAULT.name, stream)
    assert (view.status, view.text, view.ended, view.error, view.violations) == (200, "Hello", True, "", [])


@pytest.mark.parametrize("api", APIS)
@pytest.mark.parametrize("stream", [True, False])
def test_server_sends_calls_in_every_api(faults: UpstreamServer, api: str, stream: bool) -> None:
    view = client_view_of(faults, api, f"fault-{'15-stream-for-whole' if stream else '14-whole-for-stream'}", stream)
    assert (view.text, view.calls, view.violations) == ("Let me see.", [("get_weather", '{"city": "Paris"}')], [])


@pytest.mark.one_row_in(4)
@pytest.mark.parametrize(
    ("scenario", "api"), SCENARIO_APIS, ids=[f"{scenario.name}-{api}" for scenario, api in SCENARIO_APIS]
)
def test_every_scenario_runs(faults: UpstreamServer, scenario: Scenario, api: str) -> None:
    waits = scenario.row in {2, 3, 20}
    silent = {"fault-02-no-headers", "fault-20-leaves-before-headers"}
    silent |= {name for name in BY_NAME if name.startswith("fault-01-reset")}
    is_silent = scenario.name in silent
    model = f"{scenario.name}--{APIS.index(api)}"
    data, over = raw_response(
        faults, api, model, seconds=0.3 if waits else 20, first_byte_seconds=0 if is_silent else 20
    )
    assert bool(data) != is_silent
    assert over != waits
    assert b"unknown model" not in data


def test_fault_that_an_api_does_not_have_is_refused(faults: UpstreamServer) -> None:
    data, _ = raw_response(faults, MESSAGES_PATH, "fault-06-done-inside-call")
    assert b"400 Bad Request" in data
    assert b"is available for chat/completions only" in data
    assert b"404 Not Found" in raw_response(faults, CHAT_PATH, "gpt-9")[0]


def test_requests_are_counted_per_run(faults: UpstreamServer) -> None:
    for run in ("a", "b"):
        model = f"fault-01-reset-once--{run}"
        assert raw_response(faults, CHAT_PATH, model)[0] == b""
        assert client_view_of(faults, CHAT_PATH, model).text == "Hello"
        assert faults.count(model) == 2


HEAD = b"HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n"


@pytest.mark.parametrize(
    "broken",
    [
        HEAD + b"5\r\nHello\r\n",
        HEAD + b"5\r\nHello\r\n0",
        HEAD + b"5\r\nHe",
        HEAD + b"5",
        HEAD,
        b"HTTP/1.1 200 OK\r\ncontent-length: 6\r\n\r\nHello",
        b"HTTP/1.1 200 OK\r\n",
        b"",
    ],
)
def test_truncated_response_is_detected(broken: bytes) -> None:
    with pytest.raises(AssertionError, match="truncated"):
        raw_client.parse_complete(broken)
    assert raw_client.parse_complete(HEAD + b"5\r\nHello\r\n0\r\n\r\n").body == b"Hello"


# ── Interlingua ───────────────────────────────────────────────────────────────────────────────────────────────────────

CONFIG = """
upstreams:
  faults:
    url: {url}
    api: {api}
    key: sk-upstream-0123456789abcdef
    timeouts: {{connect: 2, first_event: 4, idle: 4, total: 30}}
    retries: {{backoff: 0.05}}
keepalive: 0.5
limits: {{send: 5}}
"""


def results_of(target: GatewayTarget, scenarios: list[Scenario], *apis: str) -> dict[tuple[str, str], ScenarioResult]:
    return {(result.scenario.name, result.api): result for result in run_scenarios(target, scenarios, apis)}


def failures(results: dict[tuple[str, str], ScenarioResult]) -> list[str]:
    return [
        f"{name} ({api}): {result.verdict.outcome.value}: {result.verdict.reason}"
        for (name, api), result in results.items()
        if result.verdict.outcome not in (TrialOutcome.PASSED, TrialOutcome.NOT_JUDGED)
    ]


@pytest.mark.parametrize(
    ("api", "rows"),
    [
        pytest.param(MESSAGES_PATH, QUICK_ROWS, id="messages"),
        pytest.param(MESSAGES_PATH, SLOW_ROWS, id="messages-slow", marks=pytest.mark.slow),
        pytest.param(CHAT_PATH, QUICK_ROWS, id="chat", marks=pytest.mark.slow),
        pytest.param(RESPONSES_PATH, QUICK_ROWS, id="responses", marks=pytest.mark.slow),
    ],
)
def test_interlingua_passes_all_scenarios(faults: UpstreamServer, api: str, rows: list[Scenario]) -> None:
    with run_gateway(config=CONFIG.format(url=faults.url, api="openai-chat")) as gateway:
        results = results_of(GatewayTarget(gateway.base, base_of(faults), timeout=25), rows, api)
    assert len(results) == len(rows)
    assert failures(results) == []
    unjudged = {name for (name, _), result in results.items() if result.verdict.outcome is TrialOutcome.NOT_JUDGED}
    unjudgeable = {"fault-33-network", "fault-34-stopped", "fault-37-keys-in-logs", "fault-42-full-disk"}
    assert unjudged == unjudgeable & {scenario.name for scenario in rows}


@pytest.mark.slow
@pytest.mark.parametrize(("wire", "api"), [("anthropic-messages", CHAT_PATH), ("openai-responses", MESSAGES_PATH)])
def test_interlingua_with_other_upstream_apis(faults: UpstreamServer, wire: str, api: str) -> None:
    upstream = {"anthropic-messages": MESSAGES_PATH, "openai-responses": RESPONSES_PATH}[wire]
    rows = [scenario for scenario in QUICK_ROWS if upstream in scenario.apis]
    with run_gateway(config=CONFIG.format(url=faults.url, api=wire)) as gateway:
        results = results_of(GatewayTarget(gateway.base, base_of(faults), timeout=25), rows, api)
        other = results_of(GatewayTarget(gateway.base, base_of(faults)), [BY_NAME["fault-06-done-inside-call"]], api)
    assert failures(results) == []
    (result,) = other.values()
    assert (result.verdict.outcome, "does not have this fault" in result.verdict.reason) == (TrialOutcome.REFUSED, True)


# ── passthrough gateway ───────────────────────────────────────────────────────────────────────────────────────────────


class PassthroughHandler(BaseHTTPRequestHandler):
    """Minimal gateway that forwards bytes in both directions and closes the connection on errors."""

    upstream = ""

    def do_POST(self) -> None:
        body = self.rfile.read(int(self.headers.get("content-length", 0)))
        headers = {name: value for name, value in self.headers.items() if name.lower() not in ("host", "connection")}
        request = urllib.request.Request(self.upstream + self.path, body, headers)
        try:
            self._answer(urllib.request.urlopen(request, timeout=60))
        except urllib.error.HTTPError as error:
            self._answer(error)
        except OSError:
            pass

    def _answer(self, response: Any) -> None:
        self.send_response_only(response.status or 502)
        for name, value in response.headers.items():
            if name.lower() not in ("connection", "transfer-encoding", "content-length"):
                self.send_header(name, value)
        self.end_headers()
        try:
            while piece := response.read1(65536):
                self.wfile.write(piece)
        except (OSError, ValueError):
            pass

    def log_message(self, *_: object) -> None:
        """Do not log requests."""


@contextmanager
def passthrough_gateway(faults: UpstreamServer) -> Iterator[str]:
    class Server(ThreadingHTTPServer):
        daemon_threads = True

    handler = type("Handler", (PassthroughHandler,), {"upstream": base_of(faults)})
    server = Server(("127.0.0.1", 0), handler)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    yield f"http://127.0.0.1:{server.server_port}"
    server.shutdown()
    server.server_close()


MUST_BE_WRONG = [
    "fault-02-silence",
    "fault-03-stall-in-call",
    "fault-03-stall-in-text",
    "fault-04-reset-in-text",
    "fault-04-reset-inside-call",
    "fault-05-end-in-text",
    "fault-05-end-inside-call",
    "fault-05-no-done",
    "fault-06-done-behind-call",
    "fault-06-done-inside-call",
    "fault-06-done-without-finish",
    "fault-07-finish-twice",
    "fault-10-502-page",
    "fault-10-500-huge",
    "fault-13-bad-event",
    "fault-13-bad-event-inside-call",
    "fault-14-whole-for-stream",
    "fault-15-stream-for-whole",
    "fault-16-envelope",
    "fault-17-invalid-bytes",
    "fault-17-surrogate-halves",
    "fault-25-prefixed-name",
    "fault-25-same-ids",
    "fault-26-all-again",
    "fault-26-cumulative",
    "fault-26-one-index",
    "fault-26-unindexed",
    "fault-27-told-twice-kimi-k2",
    "fault-32-no-usage",
    "fault-35-client-headers",
    "fault-35-upstream-headers",
    "fault-37-key-repeated",
    "fault-39-foreign-host",
    "fault-39-foreign-origin",
]
MUST_BE_RIGHT = [
    "fault-07-usage-behind-finish",
    "fault-09-error-in-text",
    "fault-10-400-json",
    "fault-11-429-long",
    "fault-12-crlf",
    "fault-12-several-lines",
    "fault-17-split-characters",
    "fault-26-interleaved",
    "fault-28-quoted-markup-qwen2-5",
    "fault-36-named-address",
    "fault-41-storm",
]


@pytest.fixture(scope="module")
def passthrough_results(faults: UpstreamServer) -> dict[str, ScenarioResult]:
    scenarios = [BY_NAME[name] for name in (*MUST_BE_WRONG, *MUST_BE_RIGHT)]
    with passthrough_gateway(faults) as gateway:
        target = GatewayTarget(gateway, base_of(faults), key="sk-shown-0123456789", timeout=2)
        return {result.scenario.name: result for result in run_scenarios(target, scenarios, [CHAT_PATH], jobs=8)}


@pytest.mark.parametrize("name", MUST_BE_WRONG)
def test_checker_detects_wrong_behaviour(passthrough_results: dict[str, ScenarioResult], name: str) -> None:
    assert passthrough_results[name].verdict.outcome is TrialOutcome.FAILED, passthrough_results[name].verdict.reason


@pytest.mark.parametrize("name", MUST_BE_RIGHT)
def test_checker_accepts_right_behaviour(passthrough_results: dict[str, ScenarioResult], name: str) -> None:
    assert passthrough_results[name].verdict.outcome is TrialOutcome.PASSED, passthrough_results[name].verdict.reason


# ── commands ──────────────────────────────────────────────────────────────────────────────────────────────────────────


def test_list_command(capsysbinary: pytest.CaptureFixture[bytes]) -> None:
    assert main(["faults", "list"]) == 0
    output = capsysbinary.readouterr().out.decode()
    assert all(f"\n    {name}\n" in output for name in BY_NAME)
    assert main(["faults", "list", "--json"]) == 0
    listed = json.loads(capsysbinary.readouterr().out)
    assert [entry["name"] for entry in listed] == [scenario.name for scenario in SCENARIOS]
    assert {entry["row"] for entry in listed} == set(range(1, 43))


@pytest.mark.parametrize(
    ("args", "status", "problem"),
    [
        (["check", "127.0.0.1:8484"], 2, "is not an http or https URL"),
        (["check", "http://127.0.0.1:9", "--only", "four"], 2, "is not a list of fault numbers"),
        (["check", "http://127.0.0.1:9", "--only", "43"], 2, "there is no fault 43"),
        (["check", "http://127.0.0.1:9", "--patience", "0"], 2, "must be greater than 0"),
        (["check", "http://127.0.0.1:9", "--key-env", "NO_SUCH_VARIABLE"], 2, "is not set"),
        (["check", "http://127.0.0.1:9"], 1, "cannot connect to http://127.0.0.1:9"),
        (["check", "http://127.0.0.1:9", "--api", "soap"], 2, "--api: 'soap' is unknown"),
        (["serve", "--port", "99999"], 2, "99999 is not a valid port"),
    ],
)
def test_command_errors(capsys: pytest.CaptureFixture[str], args: list[str], status: int, problem: str) -> None:
    assert main(["faults", *args]) == status
    error, hint = capsys.readouterr().err.splitlines()
    assert problem in error
    assert hint.startswith("hint: ")


def test_serve_with_port_in_use(faults: UpstreamServer, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["faults", "serve", "--port", str(faults.port)]) == 1
    assert f"cannot listen on port {faults.port}" in capsys.readouterr().err


def test_check_command_prints_results(faults: UpstreamServer, capsysbinary: pytest.CaptureFixture[bytes]) -> None:
    with passthrough_gateway(faults) as gateway:
        args = ["faults", "check", f"{gateway}/v1", "--faults", base_of(faults), "--api", "chat"]
        assert main([*args, "--only", "28"]) == 0
        output = capsysbinary.readouterr()
        assert b"right      fault-28-quoted-markup-qwen2-5 (chat)" in output.out
        assert output.err.decode().strip() == "1 right"
        assert main([*args, "--only", "26", "--json"]) == 1
        output = capsysbinary.readouterr()
        lines = {entry["name"]: entry for entry in map(json.loads, output.out.splitlines())}
        assert lines["fault-26-one-index"]["outcome"] == "wrong"
        assert lines["fault-26-one-index"]["why"]
        assert b"error: the gateway handles some faults incorrectly" in output.err


def test_check_of_gateway_with_another_upstream(
    faults: UpstreamServer, upstream: UpstreamServer, capsys: pytest.CaptureFixture[str]
) -> None:
    with passthrough_gateway(upstream) as gateway:  # its upstream is not the fault server
        assert main(["faults", "check", gateway, "--faults", base_of(faults)]) == 1
    out, err = capsys.readouterr()
    error, hint = err.splitlines()
    assert out == ""
    reason = "404, and nothing was sent to the upstream: unknown model"
    assert error == f"error: the gateway fails even fault-00-none: {reason}"
    assert "fault server" in hint
    assert "--model-prefix" in hint


@pytest.mark.slow
def test_gateway_that_is_still_waiting_is_not_judged(faults: UpstreamServer) -> None:
    config = f"upstreams: {{faults: {{url: '{faults.url}'}}}}\nkeepalive: 0.5\n"
    with run_gateway(config=config) as gateway:
        results = results_of(GatewayTarget(gateway.base, base_of(faults), timeout=3), scenarios_in_rows([3]), *APIS)
    for result in results.values():
        assert result.verdict.outcome is TrialOutcome.NOT_JUDGED, result
        assert "still waiting after 3 s" in result.verdict.reason


def test_api_that_the_gateway_does_not_have(faults: UpstreamServer) -> None:
    with passthrough_gateway(faults) as gateway:
        target = GatewayTarget(f"{gateway}/elsewhere", base_of(faults))
        (result,) = results_of(target, [BY_NAME["fault-12-crlf"]], CHAT_PATH).values()
    assert result.verdict.outcome is TrialOutcome.PASSED  # it forwards every path
    with run_gateway(config=CONFIG.format(url=faults.url, api="openai-chat")) as ours:
        (result,) = results_of(
            GatewayTarget(f"{ours.base}/elsewhere", base_of(faults)), [BY_NAME["fault-12-crlf"]], CHAT_PATH
        ).values()
    assert (result.verdict.outcome, "404" in result.verdict.reason) == (TrialOutcome.REFUSED, True)


def test_serve_command_logs_each_request(tmp_path: Path) -> None:
    out, err = tmp_path / "out", tmp_path / "err"
    with out.open("wb") as stdout, err.open("wb") as stderr:
        command = [sys.executable, "-m", "interlingua", "faults", "serve", "--port", "0"]
        process = subprocess.Popen(command, stdout=stdout, stderr=stderr)
    try:
        banner = wait_for_text(lambda: err.read_text(), "Or test an agent")
        url = re.search(r"fault scenarios at (http://\S+)/v1", banner)
        assert url
        assert banner_settings(banner, tmp_path).timeouts.idle < GatewayTarget("", "").timeout
        with raw_client.connect(url[1]) as sock:
            sock.sendall(raw_client.build_minimal_request(MESSAGES_PATH, "fault-05-end-in-text"))
            assert b"Let me" in raw_client.read_response(sock, 10)[0]
        output = json.loads(wait_for_text(lambda: out.read_text(), "\n"))
        assert (output["model"], output["path"], output["client_left"]) == (
            "fault-05-end-in-text",
            "/v1/messages",
            False,
        )
        process.send_signal(signal.SIGINT)
        assert process.wait(20) == 130
    finally:
        process.kill()
        process.wait(10)


def banner_settings(banner: str, folder: Path) -> Upstream:
    """Return the upstream settings that the startup message recommends for Interlingua."""
    match = re.search(r"echo '(.*)' > (\S+)\n  interlingua serve --config \2\n", banner, re.DOTALL)
    assert match, banner
    file = folder / match[2]
    file.write_text(match[1])
    (upstream,) = load_settings(file, {}).settings.upstreams.values()
    return upstream


def wait_for_text(text: Callable[[], str], word: str) -> str:
    end = time.monotonic() + 30
    while word not in (output := text()):
        assert time.monotonic() < end, output
        time.sleep(0.05)
    return output


# ── conformance page ──────────────────────────────────────────────────────────────────────────────────────────────────


def test_page_lists_the_results_of_each_gateway() -> None:
    outcomes = {MESSAGES_PATH: ("right", "the client receives the reply"), CHAT_PATH: ("wrong", "text 'a|b' <i>\x1b")}
    rows = [
        {"name": scenario.name, "api": api, "outcome": outcome, "why": why}
        for scenario in SCENARIOS
        for api, (outcome, why) in outcomes.items()
    ]
    output = page([{"gateway": "Some", "version": "1.2", "day": "2026-11-15", "results": rows}], ["Other"], 3, 25)
    cell = r"right (messages): the client receives the reply<br>**wrong** (chat): text 'a\|b' \<i\>  |"
    assert output.count(cell) == len(SCENARIOS)
    assert f"- Some 1.2, 2026-11-15: {len(SCENARIOS)} right, {len(SCENARIOS)} wrong, 0 refused, 0 not judged" in output
    assert "- Other: **missing**, because there are no results" in output


def test_page_names_gateways_without_results(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    def judge(name: str) -> dict[str, Any]:
        if name == "litellm":
            raise RuntimeError("it does not start")
        return {"gateway": conformance.GATEWAYS[name].title, "version": "1", "day": "2026-11-15", "results": []}

    monkeypatch.setattr(conformance, "FOUND", tmp_path / "found")
    monkeypatch.setattr(conformance, "PAGE", tmp_path / "page.md")
    monkeypatch.setattr(conformance, "judge", judge)
    with pytest.raises(RuntimeError):
        conformance.main([])
    output = (tmp_path / "page.md").read_text()
    assert "- Interlingua 1, " in output
    assert "- LiteLLM: **missing**" in output
    assert conformance.main(["ccr"]) == 1
    assert "error: no results of LiteLLM\n" in capsys.readouterr().err
    monkeypatch.setattr(conformance, "judge", lambda name: {**judge("ours"), "gateway": name})
    assert conformance.main(["litellm"]) == 0
    assert "**missing**" not in (tmp_path / "page.md").read_text()


def test_page_contains_all_scenarios() -> None:
    output = (TESTS.parent / "docs" / "conformance.md").read_text(encoding="utf-8")
    assert [row.number for row in FAULT_ROWS if f"| **{row.number}. " not in output] == []
    assert [scenario.name for scenario in SCENARIOS if f"| {scenario.name.split('-', 2)[2]}: " not in output] == []
