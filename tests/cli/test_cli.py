"""Tests of the command line. They use a subprocess where pipes, signals or timing matter."""

from __future__ import annotations

import io
import json
import os
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple

import pytest

import interlingua as il
from interlingua import trace
from interlingua.cli import main
from interlingua.cli.common import two_columns
from interlingua.cli.translate.explain import Explainer
from tests.support.paths import ROOT

STREAM = ROOT / "examples" / "kimi_stream.sse"
KIMI = (
    "<think>Two cities.</think>Looking.<|tool_calls_section_begin|><|tool_call_begin|>functions.weather:0"
    '<|tool_call_argument_begin|>{"city": "São Paulo"}<|tool_call_end|><|tool_calls_section_end|>'
)
DONE = "data: [DONE]\n\n"


class CommandResult(NamedTuple):
    status: int
    out: str
    err: str


class Terminal(io.TextIOWrapper):
    def isatty(self) -> bool:
        return True


Cli = Callable[..., CommandResult]


@pytest.fixture(autouse=True)
def _environment(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("COLUMNS", raising=False)
    monkeypatch.delenv("NO_COLOR", raising=False)


@pytest.fixture
def cli(monkeypatch: pytest.MonkeyPatch) -> Cli:
    """Return a function that runs a command in this process.

    `kind` is the class of the standard streams; `missing` names a stream that is closed.
    """

    def run(
        *argv: str | Path,
        stdin: str | bytes = b"",
        kind: type[io.TextIOWrapper] = io.TextIOWrapper,
        missing: str = "",
    ) -> CommandResult:
        data = stdin.encode() if isinstance(stdin, str) else stdin
        streams = [kind(io.BytesIO(raw), encoding="utf-8") for raw in (data, b"", b"")]
        for name, stream in zip(("stdin", "stdout", "stderr"), streams, strict=True):
            monkeypatch.setattr(sys, name, stream if name != missing else None)
        try:
            status = main([str(arg) for arg in argv])
        except SystemExit as end:
            status = int(end.code or 0)
        out, err = (stream.buffer.getvalue().decode() for stream in streams[1:])  # type: ignore[attr-defined]
        return CommandResult(status, out, err)

    return run


def chunk(delta: dict[str, Any], finish: str | None = None, **more: Any) -> str:
    envelope = {"id": "c", "object": "chat.completion.chunk", "created": 1, "model": "kimi-k2"}
    body = {**envelope, "choices": [{"index": 0, "delta": delta, "finish_reason": finish}], **more}
    return f"data: {json.dumps(body)}\n\n"


def frames(out: str) -> list[dict[str, Any]]:
    return [json.loads(line[6:]) for line in out.splitlines() if line.startswith("data: {")]


# ── options and errors ────────────────────────────────────────────────────────────────────────────────────────────────


def test_version(cli: Cli) -> None:
    assert cli("--version") == (0, f"interlingua {il.__version__}\n", "")


def test_help_goes_to_stderr_without_a_command(cli: Cli) -> None:
    result = cli()
    assert (result.status, result.out) == (2, "")
    assert "examples:" in result.err


@pytest.mark.parametrize("command", ["parse", "render", "translate", "dialects"])
def test_every_command_has_help_with_examples(cli: Cli, command: str) -> None:
    result = cli(command, "--help")
    assert (result.status, result.err) == (0, "")
    assert f"interlingua {command}" in result.out.partition("examples:")[2]
    assert command in cli("--help").out


BAD_TOOLS = {
    "not JSON": ("[", "truncated"),
    "empty": ("", "is empty"),
    "not a list": ('{"tools": []}', "Expected `array`, got `object`"),
    "not objects": ('["bash"]', "$[0]"),
    "no name": ('[{"type": "function", "function": {}}]', "without a name"),
}


@pytest.mark.parametrize(("text", "expected"), BAD_TOOLS.values(), ids=BAD_TOOLS)
@pytest.mark.parametrize("command", [("parse", "--dialect=kimi_k2"), ("translate",)], ids=" ".join)
def test_bad_tools_file(cli: Cli, tmp_path: Path, command: tuple[str, ...], text: str, expected: str) -> None:
    tools = tmp_path / "tools.json"
    tools.write_text(text)
    result = cli(*command, "--tools", tools, stdin="hello")
    assert (result.status, result.out) == (1, "")
    assert_error(result, expected, str(tools))


ERRORS: dict[str, tuple[list[str], str, int, str]] = {
    "unknown command": (["pars"], "", 2, "'pars'"),
    "unknown option": (["parse", "--dialct", "x"], "", 2, "--dialct"),
    "no dialect": (["parse"], "hello", 2, "the dialect is not specified"),
    "no dialect to render": (["render"], "{}", 2, "the dialect is not specified"),
    "unknown dialect": (["parse", "--dialect", "kimi-k2"], "", 2, "did you mean 'kimi_k2'?"),
    "unknown dialect to render": (["render", "--dialect", "kimi_2"], "", 2, "did you mean 'kimi_k2'?"),
    "unknown dialect to translate": (["translate", "--dialect", "kimik2"], "", 2, "did you mean 'kimi_k2'?"),
    "unknown wire": (["translate", "--to", "openai-chta"], "", 2, "did you mean 'openai-chat'?"),
    "unknown delivery": (["translate", "--delivery", "later"], "", 2, "'later'"),
    "unknown handling of arguments": (["translate", "--arguments", "guess"], "", 2, "'guess'"),
    "explain and trace": (["translate", "--explain", "--trace"], "", 2, "not allowed with"),
    "quiet and json": (["translate", "--quiet", "--json"], "", 2, "not allowed with"),
    "no such file": (["parse", "--dialect", "kimi_k2", "no/such/file"], "", 1, "no/such/file: no such file"),
    "no such tools": (["translate", "--tools", "no/such/file"], "", 1, "no/such/file: no such file"),
    "a directory": (["translate", "/"], "", 1, "has no captures"),
    "no JSON": (["render", "--dialect", "kimi_k2"], "<think>", 1, "malformed"),
    "no input": (["render", "--dialect", "kimi_k2"], " \n", 1, "is empty"),
    "no UTF-8": (["render", "--dialect", "kimi_k2"], '{"text": "\udcff"}', 1, "utf-8"),
    "too deeply nested": (["render", "--dialect", "kimi_k2"], '{"x": ' + "[" * 100_000, 1, "too deep"),
    "a list": (["render", "--dialect", "kimi_k2"], "[]", 1, "Expected `object`, got `array`"),
    "no parts": (["render", "--dialect", "kimi_k2"], "{}", 1, "no parts, text, reasoning or calls"),
    "unknown kind": (["render", "--dialect", "kimi_k2"], '{"parts": [{"kind": "x"}]}', 1, "`$.parts[0].kind`"),
    "missing field": (
        ["render", "--dialect", "kimi_k2"],
        '{"parts": [{"kind": "call"}]}',
        1,
        "`id` - at `$.parts[0]`",
    ),
    "not renderable": (["render", "--dialect", "standard"], '{"reasoning": "x"}', 1, "cannot express thinking"),
    "truncated body": (["translate"], '{"choices": [', 1, "truncated"),
    "two bodies": (["translate"], "{}\n{}", 1, "trailing characters"),
    "an empty stream": (["translate"], "", 1, "ended without a reply"),
}


@pytest.mark.parametrize(("argv", "stdin", "status", "expected"), ERRORS.values(), ids=ERRORS)
def test_every_error_comes_with_a_hint(cli: Cli, argv: list[str], stdin: str, status: int, expected: str) -> None:
    result = cli(*argv, stdin=stdin.encode("utf-8", "surrogateescape"))
    assert result.status == status
    assert_error(result, expected)


def assert_error(result: CommandResult, *expected: str) -> None:
    error, hint = result.err.splitlines()
    assert error.startswith("error: ")
    assert hint.startswith("hint: ")
    assert all(words in result.err for words in expected), result.err


def test_file_without_read_permission(cli: Cli, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: Any) -> Any:
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr("builtins.open", refuse)
    assert_error(cli("translate", "secret.sse"), "cannot read secret.sse: permission denied")


def test_read_error_after_opening_the_file(cli: Cli) -> None:
    assert_error(cli("translate", "/proc/self/mem"), "cannot read /proc/self/mem: ")


def test_prompt_for_input_on_a_terminal(cli: Cli) -> None:
    result = cli("parse", "--dialect", "kimi_k2", stdin="hello", kind=Terminal)
    assert result.err == "reading the model's text from the terminal; press Ctrl-D to finish\n"
    assert json.loads(result.out)["text"] == "hello"


@pytest.mark.parametrize(
    ("missing", "status", "expected"),
    [
        ("stdin", 1, "error: standard input is closed"),
        ("stdout", 1, "error: standard output is closed"),
        ("stderr", 0, ""),
    ],
)
def test_closed_standard_streams(cli: Cli, missing: str, status: int, expected: str) -> None:
    result = cli("parse", "--dialect", "kimi_k2", stdin="a<|im_end|>", missing=missing)
    assert result.status == status
    assert result.err.startswith(expected)
    assert result.out.count("\n") == (missing == "stderr")


def test_full_disk(cli: Cli, monkeypatch: pytest.MonkeyPatch) -> None:
    def write(_: bytes) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("interlingua.cli.common.console.write", write)
    result = cli("dialects")
    assert result.status == 1
    assert_error(result, "No space left on device")


# ── parse and render ──────────────────────────────────────────────────────────────────────────────────────────────────


def test_parse_prints_the_reply(cli: Cli) -> None:
    call = {"id": "functions.weather:0", "name": "weather", "arguments": '{"city": "São Paulo"}', "complete": True}
    result = cli("parse", "--dialect", "kimi_k2", stdin=KIMI)
    assert (result.status, result.err, result.out.count("\n")) == (0, "", 1)
    assert json.loads(result.out) == {
        "text": "Looking.",
        "reasoning": "Two cities.",
        "calls": [call],
        "parts": [
            {"kind": "reasoning", "text": "Two cities."},
            {"kind": "text", "text": "Looking."},
            {"kind": "call", **call},
        ],
        "stop_reason": "tool_calls",
        "findings": [],
    }


def test_parse_is_indented_on_a_terminal(cli: Cli) -> None:
    result = cli("parse", "--model", "kimi-k2", "-", stdin=KIMI, kind=Terminal)
    assert result.out.startswith('{\n  "text": "Looking.",\n')
    assert json.loads(result.out) == json.loads(cli("parse", "--dialect", "kimi_k2", stdin=KIMI).out)


def test_parse_with_prefill_and_tools(cli: Cli, tmp_path: Path) -> None:
    tools = tmp_path / "tools.json"
    tools.write_text('[{"name": "bash"}]')
    result = cli(
        "parse", "--dialect=kimi_k2", "--prefill=<think>", "--tools", tools, stdin=KIMI.removeprefix("<think>")
    )
    assert json.loads(result.out)["reasoning"] == "Two cities."
    assert result.err.startswith("finding (warning): unknown-tool")


@pytest.mark.parametrize(
    ("choice", "problem"),
    [("bsh", "'bsh', which is not in the file"), ('{"type": "tool"}', "not a tool choice"), ("{", "--tool-choice")],
)
def test_wrong_tool_choice(cli: Cli, tmp_path: Path, choice: str, problem: str) -> None:
    tools = tmp_path / "tools.json"
    tools.write_text('[{"name": "bash"}]')
    result = cli("parse", "--dialect=kimi_k2", "--tools", tools, "--tool-choice", choice, stdin="Hello.")
    assert result.status == 1
    assert problem in result.err
    assert "hint:" in result.err


def test_tool_choice_makes_json_a_call(cli: Cli, tmp_path: Path) -> None:
    tools, reply = tmp_path / "tools.json", '{"command": "ls"}'
    tools.write_text('[{"name": "bash", "parameters": {"properties": {"command": {"type": "string"}}}}]')
    for choice, names in (("bash", ["bash"]), ("required", []), ("auto", [])):
        result = cli("parse", "--dialect=kimi_k2", "--tools", tools, "--tool-choice", choice, stdin=reply)
        assert [call["name"] for call in json.loads(result.out)["calls"]] == names
    body = {"choices": [{"index": 0, "message": {"role": "assistant", "content": reply}, "finish_reason": "stop"}]}
    result = cli("translate", "--dialect=kimi_k2", "--tools", tools, "--tool-choice", "bash", stdin=json.dumps(body))
    message = json.loads(result.out)["choices"][0]["message"]
    assert [call["function"] for call in message["tool_calls"]] == [{"name": "bash", "arguments": reply}]


def test_parse_escapes_control_characters(cli: Cli) -> None:
    text = "\x1b]0;gotcha\x07 \x9b2J \u202e é 漢 👩\u200d💻"
    for kind in (io.TextIOWrapper, Terminal):
        result = cli("parse", "--dialect", "standard", stdin=text, kind=kind)
        assert json.loads(result.out)["text"] == text
        assert result.out.replace("\n", "").isprintable()
        assert "é 漢" in result.out


def test_parse_events_prints_one_line_per_event(cli: Cli) -> None:
    result = cli("parse", "--dialect", "kimi_k2", "--events", stdin=KIMI + "<|im_end|>")
    events = [json.loads(line) for line in result.out.splitlines()]
    kinds = "ReasoningDelta TextDelta CallStart ArgsDelta CallEnd Finding Stop"
    assert list(dict.fromkeys(event["event"] for event in events)) == kinds.split()
    assert {"event": "TextDelta", "text": "Looking."} in events
    assert result.err.startswith("finding: noise at character ")


@pytest.mark.parametrize(
    ("option", "expected_stderr"),
    [
        ([], "finding: noise at character 11: <|im_end|> is not part of the reply: dropped\n"),
        (["--quiet"], ""),
        (
            ["--json"],
            '{"kind":"noise","message":"<|im_end|> is not part of the reply: dropped","place":"character 11",'
            '"severity":"info"}\n',
        ),
    ],
)
def test_findings_are_printed_to_stderr(cli: Cli, option: list[str], expected_stderr: str) -> None:
    result = cli("parse", "--dialect", "kimi_k2", *option, stdin="a<|im_end|>")
    assert (result.status, result.err) == (0, expected_stderr)
    assert len(json.loads(result.out)["findings"]) == 1


@pytest.mark.parametrize(
    ("raw", "text", "place"),
    [
        (b"a\xff\xfeb", "a\ufffd\ufffdb", "2 bytes are not valid UTF-8 and decoded as U+FFFD"),
        ("é".encode()[:1], "\ufffd", "1 byte is not valid UTF-8 and decoded as U+FFFD"),
    ],
)
def test_invalid_utf_8_is_replaced_and_reported(cli: Cli, raw: bytes, text: str, place: str) -> None:
    result = cli("parse", "--dialect", "standard", stdin=raw)
    assert json.loads(result.out)["text"] == text
    assert place in result.err


def test_utf_8_is_decoded_across_chunks(cli: Cli, monkeypatch: pytest.MonkeyPatch) -> None:
    whole = cli("parse", "--dialect", "kimi_k2", stdin=KIMI + "é漢👩")
    monkeypatch.setattr("interlingua.cli.common.console.READ_CHUNK_BYTES", 1)
    assert cli("parse", "--dialect", "kimi_k2", stdin=KIMI + "é漢👩") == whole


def test_render_is_the_inverse_of_parse(cli: Cli, tmp_path: Path) -> None:
    reply = tmp_path / "reply.json"
    for text in (KIMI, "no calls\r\n", KIMI.replace("Looking.", "")):
        reply.write_text(cli("parse", "--dialect", "kimi_k2", stdin=text).out)
        assert cli("render", "--dialect", "kimi_k2", reply) == (0, text, "")


def test_render_without_parts(cli: Cli) -> None:
    reply = json.loads(cli("parse", "--dialect", "kimi_k2", stdin=KIMI).out)
    del reply["parts"]
    assert cli("render", "--dialect", "kimi_k2", stdin=json.dumps(reply)).out == KIMI


# ── request ───────────────────────────────────────────────────────────────────────────────────────────────────────────

REQUEST_BODY = {
    "model": "kimi",
    "max_tokens": 9,
    "top_k": 3,
    "messages": [
        {"role": "user", "content": "hi"},
        {"role": "assistant", "content": [{"type": "tool_use", "id": "x", "name": "ls", "input": {}}]},
    ],
}
TO_CHAT = ("request", "--from", "anthropic-messages", "--to", "openai-chat")


def test_request(cli: Cli) -> None:
    result = cli(*TO_CHAT, "--model", "kimi-k2.5", "--upstream", "moonshot", stdin=json.dumps(REQUEST_BODY))
    body = json.loads(result.out)
    assert result.status == 0
    assert (body["model"], body["max_completion_tokens"]) == ("kimi-k2.5", 9)
    assert [message["role"] for message in body["messages"]] == ["user", "assistant", "tool"]
    assert body["messages"][1]["tool_calls"][0]["id"] == body["messages"][2]["tool_call_id"] == "functions.ls:0"
    assert "finding (warning): no-result" in result.err
    assert "top_k" in result.err


def test_request_errors(cli: Cli) -> None:
    assert_error(cli(*TO_CHAT, "--strict", stdin=json.dumps(REQUEST_BODY)), "messages[1]")
    assert_error(cli(*TO_CHAT, "--upstream", "moonshoot", stdin="{}"), "'moonshot'")
    assert_error(cli("request", stdin='{"model": "m", "messages": 5}'), "messages: should be a list")


# ── dialects ──────────────────────────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize("width", [40, 80, 200])
def test_dialects_fit_the_terminal(cli: Cli, monkeypatch: pytest.MonkeyPatch, width: int) -> None:
    monkeypatch.setenv("COLUMNS", str(width))
    result = cli("dialects")
    assert all(len(line) <= width for line in result.out.splitlines())
    assert all(word in result.out for dialect in il.dialects() for word in (dialect.name, *dialect.models))


def test_dialects_as_json(cli: Cli) -> None:
    known = json.loads(cli("dialects", "--json").out)
    assert [entry["name"] for entry in known] == [dialect.name for dialect in il.dialects()]
    assert set(known[0]) == {"name", "models", "summary", "shape"}


# ── translate ─────────────────────────────────────────────────────────────────────────────────────────────────────────


def test_translate_converts_native_calls_to_tool_calls(cli: Cli) -> None:
    result = cli("translate", STREAM)
    assert result.status == 0
    assert (
        result.err == "finding: stop-reason at event 37: the upstream stopped with 'stop': corrected to 'tool_calls'\n"
    )
    assert result.out.endswith(DONE)
    assert "<|tool" not in result.out
    choices = [choice for frame in frames(result.out) for choice in frame["choices"]]
    entries = [entry for choice in choices for entry in choice["delta"].get("tool_calls", ())]
    assert [(entry["id"], entry["function"]["name"]) for entry in entries if "id" in entry] == [
        ("functions.task:45", "task"),
        ("functions.task:46", "task"),
    ]
    args = ["".join(e["function"]["arguments"] for e in entries if e["index"] == index) for index in (0, 1)]
    assert [json.loads(text)["agent"] for text in args] == ["coder", "writer"]
    assert [choice["finish_reason"] for choice in choices if choice["finish_reason"]] == ["tool_calls"]


def test_translate_options(cli: Cli) -> None:
    stream = chunk({"role": "assistant", "reasoning": "hm"}) + chunk({"content": "x"}) + chunk({}, "stop") + DONE
    options = [
        "--from=openai-chat",
        "--to=openai-chat",
        "--dialect=kimi_k2",
        "--model=x",
        "--delivery=whole",
        "--quiet",
    ]
    kept = frames(cli("translate", *options, stdin=stream).out)
    dropped = frames(cli("translate", *options, "--reasoning=drop", stdin=stream).out)
    assert [frame["choices"][0]["delta"].get("reasoning") for frame in (kept[0], dropped[0])] == ["hm", None]


@pytest.mark.parametrize("piece", [1, 1000])
def test_translate_whole_reply(cli: Cli, monkeypatch: pytest.MonkeyPatch, piece: int) -> None:
    monkeypatch.setattr("interlingua.cli.common.console.READ_CHUNK_BYTES", piece)
    body = {"model": "kimi-k2", "choices": [{"index": 0, "message": {"content": KIMI}, "finish_reason": "stop"}]}
    result = cli("translate", stdin=b"\xef\xbb\xbf\n " + json.dumps(body).encode())
    assert result.status == 0
    choice = json.loads(result.out)["choices"][0]
    assert choice["finish_reason"] == "tool_calls"
    assert choice["message"]["tool_calls"][0]["function"]["name"] == "weather"


FAILURE = '{"error": {"message": "overloaded \\u001b[2J", "code": 503}}'


@pytest.mark.parametrize(
    "stdin",
    [f"data: {FAILURE}\n\n", chunk({"role": "assistant", "content": "x"}) + f"data: {FAILURE}\n\n", FAILURE],
    ids=["stream", "stream after text", "whole"],
)
def test_failed_reply_is_translated_and_reported(cli: Cli, stdin: str) -> None:
    result = cli("translate", stdin=stdin)
    assert result.status == 1
    assert "overloaded" in result.out
    assert_error(result, "the reply failed: overloaded \\u001b[2J")


def test_error_body_with_a_string(cli: Cli) -> None:
    assert_error(cli("translate", stdin='{"error": "no"}'), "the reply failed: no")


# ── explain ───────────────────────────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize("width", [40, 80, 100, 140])
def test_explain_fits_the_terminal(cli: Cli, monkeypatch: pytest.MonkeyPatch, width: int) -> None:
    monkeypatch.setenv("COLUMNS", str(width))
    result = cli("translate", "--explain", STREAM)
    assert (result.status, result.err) == (0, "")
    assert all(len(line) <= width for line in result.out.splitlines())
    assert ("│" in result.out) == (width >= 100)
    for words in ("buffered", "marker <|tool_call_begin|>", "call opened: task", "unchanged", "! finding stop-reason"):
        assert words in result.out
    assert result.out.endswith("39 chunks in, 28 frames out: 2 calls, 1 finding\n" if width > 40 else "finding\n")


def test_explain_is_coloured_on_a_terminal_only(cli: Cli, monkeypatch: pytest.MonkeyPatch) -> None:
    plain = cli("translate", "--explain", STREAM).out
    assert "\x1b" in cli("translate", "--explain", STREAM, kind=Terminal).out
    monkeypatch.setenv("NO_COLOR", "1")
    assert cli("translate", "--explain", STREAM, kind=Terminal).out == plain


DEEP: Any = "x"
for _ in range(30):
    DEEP = {"k": [DEEP]}

BASH = {"name": "bash", "arguments": "{}"}
STEPS: dict[str, tuple[str, list[str]]] = {
    "text": (chunk({"role": "assistant", "content": "hi"}), ['{"content":"hi"}', "= unchanged", "dialect: kimi_k2"]),
    "buffered": (chunk({"content": "a <|tool_"}), ['→ {"content":"a "}', 'buffered: "<|tool_" (may become a marker)']),
    "blank": (chunk({"content": "<think>"}) + chunk({"content": " "}), ['buffered: " " (whitespace']),
    "no marker": (
        chunk({"content": "a<|tool_"}) + chunk({"content": "box"}),
        ['"<|tool_" is not a marker after all', '→ {"content":"<|tool_box"}'],
    ),
    "split marker": (chunk({"content": "a<thi"}) + chunk({"content": "nk>"}), ["marker <think>"]),
    "no role": (chunk({"content": "x"}), ["= a role, then unchanged"]),
    "header": (chunk({"content": "<|tool_call_begin|>functions.l"}), ['"functions.l" (may become a call)']),
    "repeated role": (
        chunk({"role": "assistant", "content": "x"}) + chunk({"role": "assistant", "content": "y"}),
        ["≈ the same, without role"],
    ),
    "structured call": (
        chunk({"role": "assistant", "tool_calls": [{"index": 0, "id": "a", "type": "function", "function": BASH}]}),
        ["call opened: bash, id a", "call closed"],
    ),
    "refusal": (chunk({"refusal": "no", "content": "<think>x"}), ["refusal forwarded", "start of the reply"]),
    "usage": (chunk({"content": "<think>x"}, usage={"prompt_tokens": 1}), ["usage: 1 tokens in, 0 out"]),
    "truncated call": (
        chunk({"content": KIMI.partition("ão")[0]}) + chunk({}, "length"),
        ["call ended incomplete", "→ [DONE]", "end of the client's stream"],
    ),
    "marker as data": (chunk({"content": KIMI.replace("São", "<think>")}), ['"arguments":"{\\"city\\": \\"<think>']),
    "failed": (f"data: {FAILURE}\n\n", ["! failed: overloaded \\u001b[2J", "= unchanged"]),
    "not JSON": ("data: \x1b[2J\n\n", ["\\u001b[2J", "! error bad-json"]),
    "no object": ("data: [1]\n\n", ["1  [1]"]),
    "escapes": (chunk({"content": "\x1b[2J\x9b\u202e"}), ['{"content":"\\u001b[2J\\u009b\\u202e"}']),
    "long": (chunk({"role": "assistant", "content": "a" * 500}), ["a" * 39 + "…" + "a" * 20]),
    "wide": (chunk({"role": "assistant", "content": "漢字" * 20}), ["漢字" * 8]),
    "two choices": (
        'data: {"model":"x","choices":[{"index":0,"delta":{"content":"a"}},{"index":1,"delta":"odd"},7]}\n\n',
        ['{"choices":[{"content":"a"},{"index":1,"delta":"odd"},7]}'],
    ),
    "no choices": ('data: {"type":"ping","x":null}\n\n', ['{"type":"ping"}']),
    "deep": (chunk({"role": "assistant", "content": "x", "deep": DEEP}), ['"…"']),
    "end of stream": (chunk({"role": "assistant"}), ["(end of stream)"]),
}


@pytest.mark.parametrize(("stream", "expected"), STEPS.values(), ids=STEPS)
def test_explain_shows_reasons(cli: Cli, monkeypatch: pytest.MonkeyPatch, stream: str, expected: list[str]) -> None:
    monkeypatch.setenv("COLUMNS", "99")  # stacked layout, in which fewer lines are wrapped
    result = cli("translate", "--explain", stdin=stream)
    joined = result.out.replace("\n          ", "")
    assert all(words in joined for words in expected), result.out
    assert result.out.replace("\n", "").isprintable()


@pytest.mark.parametrize(
    ("sent", "why"), [("", "nothing to send"), ("data: {}\n\n", "rewritten for the client")], ids=["silent", "sent"]
)
def test_explain_step_without_events(sent: str, why: str) -> None:
    explainer = Explainer()
    explainer.observe(trace.MessageReceived(1, 'data: {"x":1}\n\n'))
    explainer.observe(trace.FramesSent(1, sent))
    (row,) = (explained.row for explained in explainer.take_rows())
    assert row.right[-1].text == why


def test_explain_message_over_the_size_limit() -> None:
    explainer = Explainer()
    limits = il.Limits(event=100)
    translator = il.Translator(options=il.Options(limits=limits), observer=explainer.observe)
    translator.feed(b"data: " + b"x" * 80)
    translator.feed(b"x" * 80)
    (row,) = (explained.row for explained in explainer.take_rows())
    assert row.left[0].text == "(an event over the size limit)"
    assert row.right[-1].text == "failed: the upstream sent an event of more than 100 bytes or 8,192 lines"


def test_columns_are_aligned_for_wide_and_combining_characters() -> None:
    layout = two_columns.ColumnLayout(100)
    for text in ("a", "漢字" * 40, "e\u0301" * 60, "a b, " * 60, ""):
        row = layout.format_row(
            two_columns.ColumnRow("1", [two_columns.ColumnLine(text)], [two_columns.ColumnLine(text, prefix="→")])
        )
        assert {two_columns.display_width(line.partition("│")[0]) for line in row.splitlines()} == {44}


def test_explain_and_translate_send_the_same_frames() -> None:
    explainer = Explainer()
    translator = il.Translator(observer=explainer.observe)
    sent = translator.feed(STREAM.read_bytes()) + translator.close()
    rows = explainer.take_rows()
    assert [explained.row.number for explained in rows if explained.row.number] == [str(n) for n in range(1, 40)]
    assert sent == il.Translator().feed(STREAM.read_bytes())


# ── trace ─────────────────────────────────────────────────────────────────────────────────────────────────────────────


def test_trace_prints_json_lines(cli: Cli) -> None:
    result = cli("translate", "--trace", STREAM)
    assert (result.status, result.err) == (0, "")
    events = trace.decode_trace(result.out.encode())
    assert "".join(event.data for event in events if isinstance(event, trace.MessageReceived)) == STREAM.read_text()
    sent = "".join(event.data for event in events if isinstance(event, trace.FramesSent))
    assert sent == cli("translate", STREAM).out


def test_trace_of_a_whole_reply(cli: Cli) -> None:
    body = {"choices": [{"index": 0, "message": {"role": "assistant", "content": "hi"}, "finish_reason": "stop"}]}
    result = cli("translate", "--trace", stdin=json.dumps(body))
    received, *_, sent = trace.decode_trace(result.out.encode())
    assert isinstance(received, trace.MessageReceived)
    assert isinstance(sent, trace.FramesSent)
    assert (received.whole, json.loads(received.data)) == (True, body)
    assert (sent.whole, json.loads(sent.data)) == (True, body)


def test_trace_escapes_control_characters(cli: Cli) -> None:
    result = cli("translate", "--trace", stdin=chunk({"content": "x"}).replace('"x"', '"\x9b\u202e"') + DONE)
    assert result.out.replace("\n", "").isprintable()
    assert trace.decode_trace(result.out.encode())


# ── subprocesses ──────────────────────────────────────────────────────────────────────────────────────────────────────


@contextmanager
def started(*argv: str) -> Iterator[subprocess.Popen[bytes]]:
    command = [sys.executable, "-m", "interlingua", *argv]
    pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "stderr": subprocess.PIPE}
    with subprocess.Popen(command, **pipes) as process:  # type: ignore[call-overload]
        try:
            yield process
        finally:
            process.kill()


SLOW: dict[str, tuple[list[str], str, bytes]] = {
    "parse": (["parse", "--dialect=kimi_k2", "--events"], "hello ", b'{"event":"TextDelta","text":"hello "}\n'),
    "translate": (["translate"], ": ping\n\n", b": ping\n"),
    "explain": (["translate", "--explain"], ": ping\n\n", b"from the upstream"),
}


@pytest.mark.parametrize(("argv", "first", "out"), SLOW.values(), ids=SLOW)
def test_output_is_flushed_while_input_is_open(argv: list[str], first: str, out: bytes) -> None:
    with started(*argv) as process:
        assert process.stdin
        assert process.stdout
        process.stdin.write(first.encode())
        process.stdin.flush()
        assert out in process.stdout.readline()  # the input is still open
        if argv[-1] == "--explain":
            assert b": ping" in process.stdout.readline() + process.stdout.readline()


def test_ctrl_c_exits_without_traceback() -> None:
    with started("translate") as process:
        assert process.stdin
        assert process.stdout
        assert process.stderr
        process.stdin.write(b": ping\n\n")
        process.stdin.flush()
        process.stdout.readline()
        process.send_signal(signal.SIGINT)
        assert process.wait(60) == 130
        assert process.stderr.read() == b""


@pytest.mark.parametrize(
    ("argv", "statuses"),
    [
        (["translate"], {141}),
        (["--help"], {141, 0}),
    ],  # with unbuffered output, argparse swallows the error
    ids=["translate", "help"],
)
def test_closed_pipe_exits_without_traceback(argv: list[str], statuses: set[int]) -> None:
    with started(*argv) as process:
        assert process.stdin
        assert process.stdout
        assert process.stderr
        process.stdout.close()
        process.stdin.write(STREAM.read_bytes() if argv == ["translate"] else b"")
        process.stdin.close()
        assert process.wait(60) in statuses
        assert process.stderr.read() == b""


@pytest.mark.skipif(not os.path.exists("/dev/full"), reason="there is no /dev/full")
def test_full_device_is_an_error() -> None:
    with open("/dev/full", "wb") as full:
        command = [sys.executable, "-m", "interlingua", "dialects"]
        result = subprocess.run(command, stdout=full, stderr=subprocess.PIPE, text=True)
    assert result.returncode == 1
    assert_error(CommandResult(1, "", result.stderr), "cannot write the output: No space left on device")


def test_demo_script_runs() -> None:
    result = subprocess.run([sys.executable, ROOT / "examples" / "demo.py"], capture_output=True, text=True)
    assert (result.returncode, result.stderr) == (0, "")
    assert '"finish_reason": "tool_calls"' in result.stdout
    assert "│ · marker <|tool_calls_section_begin|>" in result.stdout


def test_cli_import_does_not_load_aiohttp() -> None:
    """Importing aiohttp takes twice as long as the rest of the command line. Only the gateway needs it."""
    look = "import sys, interlingua.cli; sys.exit('aiohttp' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", look]).returncode == 0
