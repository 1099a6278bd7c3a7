"""Tests of the benchmarks: their streams and requests are valid, and the page of peers reports missed targets."""

from __future__ import annotations

import json

import pytest

import interlingua as il
from bench.peers.report import Loads, Row, report
from bench.traffic import EVENT, PATHS, agent_request, native, short, small_request, structured


@pytest.mark.parametrize("target", PATHS)
@pytest.mark.parametrize(
    ("stream", "dialect", "found"),
    [
        (native(100), "kimi_k2", ["stop-reason"]),  # the server does not report the call
        (structured(100), "standard", []),
    ],
)
def test_streams_are_translated_without_errors(stream: str, dialect: str, found: list[str], target: str) -> None:
    translator = il.Translator("openai-chat", target, dialect)
    translator.feed(stream.encode())
    translator.close()
    assert ([finding.kind for finding in translator.findings], translator.tally.calls) == (found, 1)
    sizes = sorted(len(event) + 2 for event in stream.split("\n\n"))
    assert sizes[20] == sizes[90] == EVENT


@pytest.mark.parametrize("wire", PATHS)
def test_short_replies_have_no_findings(wire: str) -> None:
    translator = il.Translator(wire, "openai-chat", "standard")
    translator.feed(short(wire).encode())
    translator.close()
    assert (translator.findings, translator.tally.stop is not None) == ([], True)


@pytest.mark.parametrize("wire", PATHS)
def test_requests_have_size_and_tools_of_agents(wire: str) -> None:
    body = agent_request(wire, "m", 40_000)
    assert (len(body["tools"]), body["model"]) == (20, "m")
    assert 38_000 < len(json.dumps(body)) < 50_000
    assert il.translate_request(small_request(wire, "m"), wire, "openai-chat")["stream"] is True


def test_peers_page_reports_missed_targets() -> None:
    names = ["nginx", "ours, Messages → Kimi's text", "ours, Messages → chat", "ours, chat → chat"]
    theirs = ["LiteLLM, Messages → chat", "LiteLLM, chat → chat", "claude-code-router, Messages → chat"]

    def row(name: str, cost: float) -> Row:
        each = [cost, 2 * cost, 3 * cost]
        return Row(name, each, each, cost < 100, cost if name in (names[1], theirs[0]) else None, each, each, each)

    page = report([row(name, 1) for name in names] + [row(name, 20) for name in theirs], Loads("paced", "fast", 9, 3))
    assert "All targets are met." in page
    page = report([row(name, 2) for name in names] + [row(name, 20) for name in theirs], Loads("paced", "fast", 9, 3))
    assert "| CPU per event, chat → chat, against LiteLLM | ≥ 12 × less | 10 × | **missed** |" in page
    assert "Missed: 6 of 11" in page
