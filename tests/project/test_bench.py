"""Tests of the benchmarks: their streams and requests are valid, and the page of peers is fair and complete."""

from __future__ import annotations

import json
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest

import interlingua as il
from bench.gateway import Run, unjudged_rows
from bench.loopback import Load, Measurement, Process
from bench.peers.contenders import ROWS, Contender, Running, Servers
from bench.peers.features import FEATURES, GATEWAYS, NOTES, SOURCES, TRIED, feature_table
from bench.peers.probes import Reply, check_reply, count_argument_events
from bench.peers.report import Environment, Pace, PacedStreams, Results, Row, replace_features, report
from bench.traffic import (
    EVENT,
    PATHS,
    SESSION,
    STAMP,
    agent_request,
    agent_session,
    first_request,
    native,
    on_wire,
    short,
    small_request,
    structured,
)
from interlingua.wires import get_wire


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
def test_deltas_on_each_wire_have_one_time_stamp(wire: str) -> None:
    stream = on_wire(structured(100), wire)
    deltas = [event for event in stream.split("\n\n") if "delta" in event and STAMP in event]
    assert len(deltas) >= 100
    assert all(event.count(STAMP) == 1 for event in deltas)
    translator = il.Translator(wire, "openai-chat", "standard")
    translator.feed(stream.encode())
    translator.close()
    assert (translator.findings, translator.tally.calls) == ([], 1)


@pytest.mark.parametrize(
    ("events", "reads", "reason"),
    [(380, 380, ""), (350, 350, "350 of 380 events/s"), (380, 300, "other reads per event")],
)
def test_row_that_cannot_be_compared_is_not_judged(events: int, reads: int, reason: str) -> None:
    def measurement(events: int, reads: int) -> Measurement:
        return Measurement(events, 0, 1.0, 1.0, 1.0, 1.0, 0, reads, 100, 0.1, 0.1)

    runs = [Run(name, Load(Path(), Path(), 1), Process(0, 0)) for name in ("nginx", "ours")]
    reasons = unjudged_rows(runs, [[measurement(380, 380)], [measurement(events, reads)]], direct_rate=380.0)
    assert reason in reasons.get("ours", "")
    assert ("ours" in reasons) is bool(reason)


@pytest.mark.parametrize("wire", PATHS)
def test_requests_have_size_and_tools_of_agents(wire: str) -> None:
    body = agent_request(wire, "m", 40_000)
    assert (len(body["tools"]), body["model"]) == (20, "m")
    assert 38_000 < len(json.dumps(body)) < 50_000
    assert il.translate_request(small_request(wire, "m"), wire, "openai-chat")["stream"] is True


@pytest.mark.parametrize("wire", PATHS)
def test_each_request_of_a_session_continues_the_one_before(wire: str) -> None:
    field = get_wire(wire).TRAITS.conversation_field
    requests = agent_session(wire, "m", 40_000)
    conversations = [request[field] for request in requests]
    sizes = [len(json.dumps(request)) for request in requests]
    assert all(later[: len(earlier)] == earlier for earlier, later in pairwise(conversations))
    assert all(SESSION in json.dumps(conversation) for conversation in conversations)
    assert 38_000 < sum(sizes) / len(sizes) < 50_000


@pytest.mark.parametrize("wire", PATHS)
def test_first_requests_have_the_session_in_every_tool(wire: str) -> None:
    assert all(SESSION in json.dumps(tool) for tool in first_request(wire, "m", 40_000)["tools"])


OURS = ("ours, Messages → Kimi's text", "ours, Messages → chat", "ours, chat → chat")
ENVIRONMENT = Environment(0.1, 1.2, (Pace(20, 10), Pace(20, 50)), "4 streams of 1,000 events", 200, 3)


def peers_row(name: str, cost: float, held: bool = True, at_limit: bool = False, reads: float = 1.0) -> Row:
    each = [cost, 2 * cost, 3 * cost]
    streams = PacedStreams(each, each, [reads] * 3, 200, held, at_limit)
    return Row(name, paces={200: streams, 1000: streams}, idle=cost, small=each, large=each, fast=each)


def peers_page(changed: dict[str, Row]) -> str:
    """Return the page of our rows with cost 1 and the others with cost 30, except for these rows."""
    rows = {one.name: peers_row(one.name, 1 if one.name in (*OURS, "nginx") else 30) for one in ROWS}
    return report(Results([*(rows | changed).values()], {"a feature": {"LiteLLM": "yes"}}), ENVIRONMENT)


def test_peers_page_reports_missed_targets() -> None:
    page = peers_page({})
    assert "All targets are met." in page
    page = peers_page({name: peers_row(name, 4) for name in OURS})
    assert "| CPU per event, chat → chat, against LiteLLM, 1,000 events/s | ≥ 12 × less | 7.5 × | **missed** |" in page
    assert "Missed: 11 of 13; undecided: 0." in page


@pytest.mark.parametrize(
    ("name", "row", "expected"),
    [
        ("ours, chat → chat", {"held": False}, "30 ×: ours did not hold the pace | undecided |"),
        ("ours, chat → chat", {"reads": 0.5}, "30 ×: ours grouped more events | undecided |"),
        ("LiteLLM, chat → chat", {"held": False}, "30 ×: the peer did not hold the pace | undecided |"),
        (
            "LiteLLM, chat → chat",
            {"held": False, "at_limit": True},
            "30 × (the peer at its limit, 200 events/s) | met |",
        ),
    ],
)
def test_peers_page_compares_only_rows_at_same_pace(name: str, row: dict[str, Any], expected: str) -> None:
    page = peers_page({name: peers_row(name, 1 if name in OURS else 30, **row)})
    assert f"| CPU per event, chat → chat, against LiteLLM, 200 events/s | ≥ 8 × less | {expected}" in page


def test_peers_page_shows_failed_peer_with_reason() -> None:
    name = "LiteLLM, chat → chat"
    page = peers_page({name: Row(name, failure="HTTP 500")})
    assert f"| {name} | failed: HTTP 500 |" in page
    assert (
        f"| CPU per request of 40 KB, chat → chat, against LiteLLM | ≥ 25 × less | {name} failed | undecided |" in page
    )
    assert "Missed: 0 of 13; undecided: 4." in page


def test_features_of_peers_page_are_replaced() -> None:
    page = replace_features(peers_page({}), feature_table({"a feature": {"LiteLLM": "no: HTTP 404"}}))
    assert "All targets are met." in page
    assert "| a feature | did not run | no: HTTP 404 <sup>t</sup> |" in page
    assert replace_features(page, feature_table({"a feature": {"LiteLLM": "yes"}})) == peers_page({})


def test_failed_start_of_peer_is_a_failure_of_its_rows() -> None:
    servers = Servers({"nginx": "an earlier reason"})
    servers.fail_server("LiteLLM", RuntimeError("no\n  port"))
    assert servers.failures == {
        "nginx": "an earlier reason",
        "LiteLLM, Messages → chat": "no port",
        "LiteLLM, chat → chat": "no port",
    }
    assert "ours, chat → chat" in [one.name for one in servers.rows()]


def test_failed_measurement_does_not_end_comparison() -> None:
    servers = Servers({})
    servers.running = {one.server: Running(Process(0, 0), str) for one in ROWS}

    def run(one: Contender, server: Running) -> Run:
        if one is ROWS[0]:
            raise RuntimeError(f"port {server.process.port} is closed")
        raise ProcessLookupError(3, "No such process")

    assert servers.measure(ROWS[:2], run, 1.0) == {}
    assert servers.failures == {ROWS[0].name: "port 0 is closed", ROWS[1].name: "its process has ended"}


def test_every_feature_has_a_known_source() -> None:
    facts = [fact for row in FEATURES.values() for fact in row.values()] + list(NOTES.values())
    assert [fact for fact in facts if not fact.sources or set(fact.sources) - set(SOURCES)] == []
    assert [title for title, row in FEATURES.items() if set(row) - set(GATEWAYS) or "ours" not in row] == []
    assert {title for title, _ in NOTES} <= set(TRIED)


@pytest.mark.parametrize("wire", PATHS)
@pytest.mark.parametrize(
    ("stream", "dialect", "expected"),
    [(structured(20), "standard", ""), (native(20), "kimi_k2", ""), (native(20), "standard", "the call is text")],
)
def test_reply_of_gateway_is_right_if_its_call_is_a_call(stream: str, dialect: str, expected: str, wire: str) -> None:
    translator = il.Translator("openai-chat", wire, dialect)
    reply = Reply(200, translator.feed(stream.encode()) + translator.close())
    assert check_reply(reply, wire) == expected
    if not expected:
        assert count_argument_events(reply, wire) >= 10


def test_reply_in_other_api_is_wrong() -> None:
    assert check_reply(Reply(200, structured(20).encode()), "anthropic-messages") == "not a complete reply"
    assert check_reply(Reply(404, b"nothing here"), "openai-chat") == "HTTP 404 nothing here"
