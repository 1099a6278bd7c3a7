"""Tests of `interlingua cassettes`."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import pytest

from interlingua.cassettes.cassette_files import load_cassette
from interlingua.cli import main
from tests.support.paths import ROOT

EXAMPLE = ROOT / "examples" / "tested_agent" / "cassettes"
Output = pytest.CaptureFixture[str]


def run(*args: str) -> int:
    return main(["cassettes", *args])


def test_show_prints_requests_and_replies(capsys: Output) -> None:
    assert run("show", str(EXAMPLE)) == 0
    assert capsys.readouterr().out == (
        "test_weather_agent/test_agent_reports_the_weather.yaml\n"
        "  1. openai-chat demo/kimi_k2, 1 message, 1 tool\n"
        "     > What is the weather in Paris and in Oslo?\n"
        "     < (thinking) I will call get_weather and get_weather.\n"
        '     < get_weather({"city":"Paris"})\n'
        '     < get_weather({"city":"Oslo"})\n'
        "     from upstream (openai-chat, demo/kimi_k2, kimi_k2): 647 bytes in 1 piece, 0.3 s\n"
        "  2. openai-chat demo/kimi_k2, 3 messages, 1 tool\n"
        "     > [result: sunny, 21 °C] [result: rain, 9 °C]\n"
        "     < (thinking) No call is needed.\n"
        "     < Done. “sunny, 21 °C” “rain, 9 °C”\n"
        "     from upstream (openai-chat, demo/kimi_k2, kimi_k2): 376 bytes in 1 piece, 0.1 s\n"
    )


def test_check_finds_and_updates_a_changed_meaning(tmp_path: Path, capsys: Output) -> None:
    folder = shutil.copytree(EXAMPLE, tmp_path / "cassettes")
    (path,) = folder.rglob("*.yaml")
    original = path.read_text()
    assert run("check", str(folder)) == 0
    path.write_text(original.replace("text: Done. “sunny, 21 °C”", "text: Done. “rainy”"))
    assert run("check", str(folder)) == 1
    output = capsys.readouterr()
    assert "exchange 2: text: " in output.out
    assert "1 file: 1 with differences; --update accepts what the replies mean now" in output.err
    assert run("check", str(folder), "--update") == 0
    assert path.read_text() == original


def test_check_reports_what_cannot_be_replayed(tmp_path: Path, capsys: Output) -> None:
    (path,) = EXAMPLE.rglob("*.yaml")
    broken = tmp_path / "broken.yaml"
    broken.write_text(path.read_text().replace("dialect: kimi_k2", "dialect: unknown"))
    assert run("check", str(broken)) == 1
    assert "exchange 1: it cannot be replayed: no dialect is called 'unknown'" in capsys.readouterr().out
    assert run("check", str(broken), "--update") == 1
    assert "1 file: 0 updated, 1 with problems that an update cannot solve" in capsys.readouterr().err


def test_missing_cassette_is_an_error(tmp_path: Path, capsys: Output) -> None:
    for command in ("show", "check"):
        assert run(command, str(tmp_path / "missing")) == 1
        assert "error: no cassette at" in capsys.readouterr().err
    assert run() == 2


def capture(path: Path, **summary: Any) -> Path:
    """Write a capture of one exchange."""
    request = {"model": "m", "messages": [{"role": "user", "content": "hi"}]}
    stream = 'data: {"choices": [{"index": 0, "delta": {"content": "Hello"}, "finish_reason": "stop"}]}\n\n'
    exchange = {"wire": "openai-chat", "outcome": "ok", "upstream": "local", "upstream_wire": "openai-chat"}
    lines: list[dict[str, Any]] = [
        {
            "kind": "request",
            "at": 0.0,
            "id": "req_1f",
            "time": "2026-01-01T00:00:00+00:00",
            "path": "/v1/chat/completions",
            "wire": "openai-chat",
            "headers": {},
            "text": json.dumps(request),
        },
        {"kind": "asked", "at": 0.5, "url": "http://127.0.0.1", "headers": {}, "text": "{}"},
        {"kind": "received", "at": 0.75, "text": stream},
        {"kind": "end", "at": 1.0, "exchange": {**exchange, "upstream_status": 200, **summary}},
    ]
    path.write_text("".join(json.dumps(line) + "\n" for line in lines if line))
    return path


def test_captures_become_cassettes(tmp_path: Path, capsys: Output) -> None:
    first, second = capture(tmp_path / "a.jsonl"), capture(tmp_path / "b.jsonl")
    second.write_text(second.read_text().replace('"kind": "received"', '"kind": "sent"'))
    assert run("import", str(first), str(second), "--to", str(tmp_path / "cassettes")) == 0
    output = capsys.readouterr()
    assert output.err.count("left out") == 1
    assert "1 of 2 captures imported" in output.err
    (recording,) = load_cassette(tmp_path / "cassettes").recordings
    reply = recording.exchange.reply
    assert (recording.exchange.meaning.text, reply.id, reply.created) == ("Hello", "1f", 1767225600)
    assert [piece.seconds for piece in reply.pieces] == [0.25]
    assert Path(output.out.strip()).exists()
    assert run("import", str(second), "--to", str(tmp_path / "none")) == 1
    assert run("import", str(tmp_path / "missing"), "--to", str(tmp_path / "none")) == 1
