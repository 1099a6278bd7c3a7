"""Summary, waterfall, numbers, “what if” and exports of captured exchanges."""

from __future__ import annotations

import json
import os
import subprocess
import threading
import tomllib
from base64 import b64encode
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path
from typing import Any
from urllib.parse import unquote

import msgspec
import pytest

from interlingua.captures.capture_format import CapturedExchange, ClientRequestLine, EndLine, UpstreamRequestLine
from interlingua.captures.capture_replay import replay_reply
from interlingua.core.findings import FINDING_KINDS
from interlingua.errors import BadInput, InterlinguaError
from interlingua.inspection.exchange_summary import ExchangeSummary, client_name, summarize
from interlingua.inspection.exports import bug_report, curl_command, fixture_row
from interlingua.inspection.finding_help import finding_help
from interlingua.inspection.numbers import count_exchanges
from interlingua.inspection.search import contains_text
from interlingua.inspection.waterfall import build_waterfall
from interlingua.inspection.what_if import Changes, compare_changes, plan_known_replay
from tests.support.captured_exchanges import DONE, capture_exchange, chat_chunk, chat_stream, failed_attempt
from tests.support.harness import Case, check_whole, tool

TOOLS = [tool("ls", ["path"])]
BODY: dict[str, Any] = {
    "model": "kimi",
    "stream": True,
    "tools": TOOLS,
    "messages": [{"role": "user", "content": "Look at it's <b>"}],
}
KIMI_CALL = (
    "<|tool_calls_section_begin|><|tool_call_begin|>functions.ls:0<|tool_call_argument_begin|>"
    '{"path": "/etc"}<|tool_call_end|><|tool_calls_section_end|>'
)
REPLY = chat_stream(["<think>Hm.</think>", "Look. ", KIMI_CALL], usage={"prompt_tokens": 100, "completion_tokens": 40})


def without_end(captured: CapturedExchange) -> CapturedExchange:
    return CapturedExchange([line for line in captured.lines if not isinstance(line, EndLine)])


# ── summary ───────────────────────────────────────────────────────────────────────────────────────────────────────────


def test_summary_of_a_finished_exchange() -> None:
    captured = capture_exchange(BODY, REPLY, headers={"user-agent": "claude-cli/2.1 (external)"}, client="key-1")
    summary = summarize(captured.lines).summary
    assert (summary.client, summary.key, summary.model, summary.upstream_model) == (
        "Claude Code", "key-1", "kimi", "kimi-k2",
    )  # fmt: skip
    assert (summary.status, summary.outcome, summary.calls, summary.stop_reason) == (200, "ok", 1, "tool_calls")
    assert summary.tokens == {"input": 100, "output": 40, "cached": 0, "reasoning": 0}
    assert summary.findings == {"stop-reason": 1}
    assert summary.title == "Look at it's <b>"
    assert summary.time == pytest.approx(1772600767.0)


def test_summary_of_an_exchange_in_progress() -> None:
    summary = summarize(without_end(capture_exchange(BODY, REPLY[:2])).lines).summary
    assert (summary.outcome, summary.seconds, summary.upstream, summary.first_byte) == ("open", None, "local", 0.3)
    assert summary.bytes_in == len(b"".join(REPLY[:2]))


@pytest.mark.parametrize("lines", [[], [EndLine(at=0, exchange={"calls": "many", "tokens": 5, "findings": None})]])
def test_summary_of_an_odd_capture(lines: list[Any]) -> None:
    assert summarize(lines, "name").summary.id == "name"


@pytest.mark.parametrize(
    ("agent", "name"),
    [
        ("codex_exec/0.166.0 (Debian)", "Codex"),
        ("OpenAI/Python 3.49.0", "OpenAI SDK"),
        ("mine/1", "mine"),
        ("", ""),
    ],
)
def test_client_name(agent: str, name: str) -> None:
    assert client_name(agent) == name


# ── waterfall ─────────────────────────────────────────────────────────────────────────────────────────────────────────


def waterfall(captured: CapturedExchange) -> list[tuple[str, float, float, str]]:
    events = replay_reply(captured, plan_known_replay(captured)).events
    return [
        (one.kind, round(one.start, 3), round(one.end, 3), one.label)
        for one in build_waterfall(captured, events).segments
    ]


def test_waterfall_of_thinking_text_and_call() -> None:
    reads = chat_stream(["<think>Hm.</think>", "Look. ", KIMI_CALL[:100], KIMI_CALL[100:]])
    assert waterfall(capture_exchange(BODY, reads, start=0.1, first_byte=0.5, pace=0.1)) == [
        ("prepare", 0.0, 0.1, "local"),
        ("connect", 0.1, 0.12, "local"),
        ("wait", 0.12, 0.5, "local"),
        ("other", 0.5, 0.6, ""),
        ("thinking", 0.6, 0.7, ""),
        ("text", 0.7, 0.8, ""),
        ("call", 0.8, 0.9, "ls"),
        ("other", 0.9, 1.1, ""),
    ]


def test_waterfall_shows_retries_fallbacks_and_gaps() -> None:
    before = failed_attempt("first", 529, 0.1) + failed_attempt("second", 500, 1.0)
    captured = capture_exchange(BODY, REPLY, before=before, start=2.0, first_byte=2.5, pace=0.1)
    lines = [msgspec.structs.replace(line, at=line.at + 5) if line.at > 2.75 else line for line in captured.lines]
    segments = waterfall(CapturedExchange(lines))
    assert ("failed", 0.15, 0.3, "first: 529") in segments
    assert ("backoff", 0.3, 1.0, "second") in segments
    assert ("failed", 1.05, 1.2, "second: 500") in segments
    assert ("backoff", 1.2, 2.0, "local") in segments
    assert any(kind == "gap" and end - start == pytest.approx(5.1, abs=0.11) for kind, start, end, _ in segments)


def test_waterfall_has_the_time_in_which_a_call_is_held_back() -> None:
    """Some dialects send a call only when it is complete; in this time the model neither thinks nor writes text."""
    call = ["<tool_call>", "ls\n", "<arg_key>path</arg_key>", "<arg_value>.", "</arg_value>", "</tool_call>"]
    reads = chat_stream(["<think>", "Hm.", "</think>", *call])
    segments = waterfall(capture_exchange(BODY, reads, dialect="glm45", start=0.1, first_byte=0.5, pace=0.1))
    assert segments[3:] == [
        ("other", 0.5, 0.6, ""),
        ("thinking", 0.6, 0.8, ""),
        ("other", 0.8, 0.9, ""),
        ("call", 0.9, 1.5, "ls"),
        ("other", 1.5, 1.6, ""),
    ]


def test_waterfall_of_a_marker_that_is_no_call() -> None:
    reads = chat_stream(["Write ", "<tool_call>", " and then", " the call."])
    kinds = [kind for kind, *_ in waterfall(capture_exchange(BODY, reads, dialect="hermes"))]
    assert kinds == ["prepare", "connect", "wait", "other", "text", "other"]


@pytest.mark.parametrize("lines", [3, 4])
def test_waterfall_of_an_exchange_that_waits(lines: int) -> None:
    """Nothing has arrived, with or without the status: the attempt has not failed."""
    captured = capture_exchange(BODY, REPLY, start=0.1, first_byte=0.5)
    waiting = CapturedExchange(captured.lines[: lines - 1])
    assert "failed" not in [one.kind for one in build_waterfall(waiting, []).segments]


def test_waterfall_of_a_capture_without_upstream() -> None:
    captured = capture_exchange(BODY, REPLY)
    assert build_waterfall(CapturedExchange(captured.lines[:1]), []).segments == []
    assert build_waterfall(CapturedExchange([]), []).segments == []


# ── numbers ───────────────────────────────────────────────────────────────────────────────────────────────────────────


def test_numbers() -> None:
    rows = [
        ExchangeSummary(id="a", time=1000.0, model="m", upstream="u", outcome="ok", stream=True, seconds=3.0,
                        first_byte=1.0, tokens={"input": 10, "output": 100, "cached": 4}, calls=2,
                        findings={"noise": 2}),
        ExchangeSummary(id="b", time=1004.0, model="m", upstream="u", outcome="upstream-failed", first_byte=None),
        ExchangeSummary(id="c", time=1030.0, model="n", upstream="v", outcome="ok", first_byte=3.0,
                        findings={"noise": 1, "cut-short": 1}),
        ExchangeSummary(id="d", time=1031.0, outcome="open"),
    ]  # fmt: skip
    numbers = count_exchanges(rows)
    assert (numbers.exchanges, numbers.bucket_seconds) == (3, 1)
    assert [(point.value, point.id) for point in numbers.first_byte] == [(1.0, "a"), (3.0, "c")]
    assert [point.value for point in numbers.tokens_per_second] == [50.0]
    assert [(one.name, sum(one.counts)) for one in numbers.requests] == [("m", 2), ("n", 1)]
    assert [(one.name, sum(one.counts)) for one in numbers.errors] == [("u", 1)]
    assert [(one.name, one.total, one.by_model) for one in numbers.findings] == [
        ("noise", 3, {"m": 2, "n": 1}),
        ("cut-short", 1, {"n": 1}),
    ]
    assert (numbers.input_tokens, numbers.output_tokens, numbers.cached_tokens) == (10, 100, 4)
    assert (numbers.first_byte_median, numbers.first_byte_p95) == (3.0, 3.0)


def test_numbers_of_nothing() -> None:
    assert count_exchanges([]).exchanges == 0


def test_many_models_are_summed_up_as_other() -> None:
    rows = [ExchangeSummary(id=str(n), time=float(n), model=f"m{n % 12}", outcome="ok") for n in range(120)]
    series = count_exchanges(rows).requests
    assert [one.name for one in series][-1] == "other"
    assert len(series) == 9
    assert sum(sum(one.counts) for one in series) == 120


# ── what if ───────────────────────────────────────────────────────────────────────────────────────────────────────────


def test_what_if_with_another_dialect() -> None:
    result = compare_changes(capture_exchange(BODY, REPLY), Changes(dialect="standard"))
    assert [part.kind for part in result.recorded.parts] == ["reasoning", "text", "call"]
    assert result.unchanged.parts == result.recorded.parts
    assert [part.kind for part in result.changed.parts] == ["text"]
    assert "<|tool_call_begin|>" in result.changed.parts[0].text
    assert (result.unchanged.stop_reason, result.changed.stop_reason) == ("tool_calls", "stop")


@pytest.mark.parametrize("target", ["anthropic-messages", "openai-responses"])
def test_what_if_with_another_api(target: str) -> None:
    result = compare_changes(capture_exchange(BODY, REPLY), Changes(target=target))
    assert result.changed.wire == target
    assert [(part.kind, part.text) for part in result.changed.parts] == [
        (part.kind, part.text) for part in result.unchanged.parts
    ]


@pytest.mark.parametrize(
    ("changes", "kinds"),
    [
        (Changes(reasoning="drop"), ["text", "call"]),
        (Changes(reasoning="as_content"), ["text", "call"]),
        (Changes(delivery="whole"), ["reasoning", "text", "call"]),
        (Changes(tools="none"), ["reasoning", "text"]),
        (Changes(dialect="detect", tools="unknown"), ["reasoning", "text", "call"]),
        (Changes(prefill="<think>"), ["reasoning", "text", "call"]),
    ],
)
def test_what_if_with_other_options(changes: Changes, kinds: list[str]) -> None:
    result = compare_changes(capture_exchange(BODY, REPLY), changes)
    assert [part.kind for part in result.changed.parts] == kinds


@pytest.mark.parametrize("changes", [Changes(dialect="nobody"), Changes(target="nothing")])
def test_what_if_with_unknown_names_is_an_error(changes: Changes) -> None:
    with pytest.raises(InterlinguaError):
        compare_changes(capture_exchange(BODY, REPLY), changes)


def test_dialect_of_the_settings_that_is_unknown_here_is_chosen_by_the_model() -> None:
    captured = capture_exchange(BODY, REPLY)
    (asked,) = captured.lines_of(UpstreamRequestLine)
    assert asked.route is not None
    route = msgspec.structs.replace(asked.route, dialect="mine")
    lines = [msgspec.structs.replace(line, route=route) if line is asked else line for line in captured.lines]
    assert plan_known_replay(CapturedExchange(lines)).dialect == "auto"


# ── exports ───────────────────────────────────────────────────────────────────────────────────────────────────────────


HOSTILE_HEADER = "it's $(touch owned) `touch owned` ***\"; touch owned; \\ $HOME \\"


@pytest.fixture
def request_log() -> Iterator[tuple[str, list[tuple[str, dict[str, str], bytes]]]]:
    """URL of a server, and the requests that it has received: path, headers and body."""
    requests: list[tuple[str, dict[str, str], bytes]] = []

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            body = self.rfile.read(int(self.headers["content-length"]))
            requests.append((self.path, {name.lower(): value for name, value in self.headers.items()}, body))
            self.send_response(200)
            self.end_headers()

        def log_message(self, *_: object) -> None: ...

    server = HTTPServer(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=server.serve_forever, args=(0.02,))
    thread.start()
    yield f"http://127.0.0.1:{server.server_port}", requests
    server.shutdown()
    thread.join()
    server.server_close()


def with_request(data: bytes, headers: dict[str, str], path: str = "/v1/chat/completions") -> CapturedExchange:
    """Return a capture of a request with these bytes."""
    captured = capture_exchange(BODY, REPLY)
    request = msgspec.structs.replace(
        captured.lines_of(ClientRequestLine)[0], path=path, headers=headers, text="", base64=b64encode(data).decode()
    )
    return CapturedExchange([request, *captured.lines[1:]])


@pytest.mark.parametrize("shell", ["sh", "bash"])
@pytest.mark.parametrize(
    "data",
    [
        b"@secret.txt",
        b"it's 'quoted' \\' $HOME `touch owned` $(touch owned) !! \xc3\xa9\n\r\n\"x\" ***\n",
        json.dumps({"text": "'" * 200_000}).encode(),
        b"",
    ],
    ids=["file-name", "quotes", "long", "empty"],
)
def test_curl_command_sends_the_request_from_a_shell(
    shell: str,
    data: bytes,
    request_log: tuple[str, list[tuple[str, dict[str, str], bytes]]],
    tmp_path: Path,
) -> None:
    base_url, requests = request_log
    (tmp_path / "secret.txt").write_text("content of a file")
    headers = {
        "Authorization": "***",
        "Host": "localhost:1",
        "x-odd": HOSTILE_HEADER,
        "x-empty": "",
        "@secret.txt": "",
        "x-split": "a\r\nx-injected: b",
    }
    path = "/v1/a'b$(touch owned)[1-3]{a,b}?api-key=***&x='$HOME'"
    command = curl_command(with_request(data, headers, path), base_url)
    done = subprocess.run(
        [shell], input=command, text=True, cwd=tmp_path, env={**os.environ, "API_KEY": "k'e$y"}, timeout=30, check=False
    )
    assert done.returncode == 0
    ((sent_path, sent_headers, body),) = requests
    assert body == data
    assert unquote(sent_path) == path.replace("***", "k'e$y")
    assert sent_headers["authorization"] == "Bearer k'e$y"
    assert sent_headers["x-odd"] == HOSTILE_HEADER.replace("***", "k'e$y")
    assert sent_headers["x-empty"] == ""
    assert sent_headers["host"] == base_url.removeprefix("http://")
    assert not {"x-injected", "x-split", "content of a file"} & set(sent_headers)
    assert [file.name for file in tmp_path.iterdir()] == ["secret.txt"]


def test_curl_command_for_a_body_that_is_not_text() -> None:
    for data in (b"\xff\xfe", b"a\0b"):
        with pytest.raises(BadInput, match="is not text"):
            curl_command(with_request(data, {}), "http://127.0.0.1:1")


def test_curl_command_to_the_upstream() -> None:
    command = curl_command(capture_exchange(BODY, REPLY), "", to_upstream=True)
    assert "http://localhost:8000/v1/chat/completions" in command
    assert '"kimi-k2"' in command


def test_fixture_row_passes_the_checks_of_fixtures() -> None:
    row = fixture_row(capture_exchange(BODY, REPLY), "a call after thinking")
    assert row.file == "kimi_k2.toml"
    (case,) = tomllib.loads(row.text)["case"]
    assert case["text"] == "<think>Hm.</think>Look. " + KIMI_CALL
    assert case["tools"] == {"ls": ["path"]}
    check_whole(msgspec.convert({"dialect": "kimi_k2", **case}, Case))


def test_fixture_row_with_schemas_and_odd_characters() -> None:
    tools = [tool("it", {"a b": "integer", "c": {"type": "string", "default": None}})]
    text = 'Say "hi" \\ \x7f\t é 🚀' + KIMI_CALL.replace("ls", "it")
    row = fixture_row(capture_exchange({**BODY, "tools": tools}, chat_stream([text])), "odd")
    (case,) = tomllib.loads(row.text)["case"]
    assert case["text"] == text
    assert case["tools"]["it"] == {"a b": {"type": "integer"}, "c": {"type": "string"}}


def test_fixture_row_of_structured_calls_is_an_error() -> None:
    call = {"index": 0, "id": "c", "type": "function", "function": {"name": "ls", "arguments": "{}"}}
    reads = [chat_chunk({"tool_calls": [call]}), chat_chunk({}, "tool_calls"), DONE]
    with pytest.raises(BadInput, match="structured calls"):
        fixture_row(capture_exchange(BODY, reads), "x")


def test_bug_report() -> None:
    report = bug_report(capture_exchange(BODY, REPLY), {"interlingua": "1.2.3", "Python": "3.11"})
    assert "- interlingua: 1.2.3" in report
    assert "**stop-reason**" in report
    assert "<|tool_calls_section_begin|>" in report
    assert "interlingua translate --explain capture.jsonl" in report


def test_bug_report_cannot_be_broken_out_of() -> None:
    report = bug_report(capture_exchange(BODY, chat_stream(["```\n# Owned\n````"])), {})
    assert "`````text" in report


def test_bug_report_of_a_long_reply_is_short() -> None:
    report = bug_report(capture_exchange(BODY, chat_stream(["word "] * 1000)), {})
    assert "messages are left out" in report
    assert len(report) < 20_000


# ── help for findings ─────────────────────────────────────────────────────────────────────────────────────────────────


def test_each_kind_of_finding_is_explained() -> None:
    explanations = finding_help()
    assert explanations.keys() == FINDING_KINDS.keys()
    assert explanations["repaired-arguments"].setting.startswith("arguments: exact")
    assert all(one.irregularity and one.correction for one in explanations.values())
    assert explanations["cut-short"].severity == "error"
    assert "max_tokens" in explanations["cut-short"].advice
    assert explanations["stop-reason"].severity == "info"


# ── search ────────────────────────────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize(
    ("text", "is_found"),
    [
        ("look at it's <B>", True),
        ("a quoted", True),
        ('a "quoted" naïve', True),
        ("second\nline", True),
        ("functions.ls:0", True),
        ("nowhere", False),
    ],
)
def test_text_is_found_however_it_was_cut(text: str, is_found: bool) -> None:
    reply = 'Say a "quoted" naïve word.\nA second\nline. ' + KIMI_CALL
    reads = chat_stream([reply[at : at + 3] for at in range(0, len(reply), 3)])
    assert contains_text(capture_exchange(BODY, reads), text.replace("a quoted", 'a "quoted')) is is_found
