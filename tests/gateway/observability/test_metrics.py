"""Tests of the metrics: correct values in valid Prometheus text format."""

from __future__ import annotations

import re
from typing import Any, NamedTuple

import msgspec
import pytest

from interlingua.events import Finding, Usage
from interlingua.gateway.observability.exchange_record import ExchangeRecord, FailedAttempt
from interlingua.gateway.observability.gateway_status import LimitUse, RetryBudgetStatus
from interlingua.gateway.observability.metrics import MAX_MODEL_LABELS, Metrics, ModelLabels, reset_gauges
from interlingua.gateway.shared_memory.series import SeriesMemory, SeriesRegion
from tests.support.gateway_status import IDLE, circuit_status, worker_status


class Family(NamedTuple):
    kind: str
    samples: dict[tuple[str, tuple[tuple[str, str], ...]], float]


LABEL = re.compile(r'([a-zA-Z_][a-zA-Z0-9_]*)="((?:[^"\\\n]|\\["\\n])*)"(?:,|$)')
SUFFIXES = {"counter": {""}, "gauge": {""}, "histogram": {"_bucket", "_sum", "_count"}}


def parse_metrics(text: str) -> dict[str, Family]:
    """Strict parser: help, type and samples of each metric in order, no duplicate sample, no malformed line."""
    assert text.endswith("\n")
    families: dict[str, Family] = {}
    help_name = name = ""
    for line in text[:-1].split("\n"):
        if line.startswith("# HELP "):
            _, _, help_name, help_text = line.split(" ", 3)
            assert help_text
        elif line.startswith("# TYPE "):
            _, _, name, kind = line.split(" ")
            assert re.fullmatch(r"[a-z_:][a-z0-9_:]*", name)
            assert name == help_name
            assert name not in families
            families[name] = Family(kind, {})
        else:
            match = re.fullmatch(r"(\w+)(?:\{(.*)\})? (\S+)", line)
            assert match, line
            full, inner, number = match.groups()
            assert full.startswith(name)
            assert full.removeprefix(name) in SUFFIXES[families[name].kind], line
            labels = LABEL.findall(inner or "")
            assert "".join(m.group() for m in LABEL.finditer(inner or "")) == (inner or ""), line
            key = (full.removeprefix(name), tuple(labels))
            assert key not in families[name].samples, line
            families[name].samples[key] = float(number)
    return families


def exchange(**fields: Any) -> ExchangeRecord:
    return ExchangeRecord(
        **{"id": "req_1", "path": "/v1/messages", "wire": "anthropic-messages", "started": 10.0, **fields}
    )


GOOD = exchange(
    client="alice",
    model="anything-a-client-likes",
    upstream_model="and-so-here",
    upstream="openrouter",
    dialect="kimi_k2",
    attempts=3,
    upstream_status=200,
    status=200,
    first_byte=10.25,
    ended=14.0,
    calls=2,
    reads=7,
    usage=Usage(input=1200, output=340),
    findings=[Finding("noise", "a"), Finding("renamed", "b"), Finding("noise", "c")],
)


def test_metrics_of_a_request() -> None:
    metrics = Metrics()
    for _ in range(2):
        metrics.end(GOOD)
    text = metrics.render(IDLE).decode()
    samples_by_name = {name: family.samples for name, family in parse_metrics(text).items()}
    route = (("wire", "anthropic-messages"), ("upstream", "openrouter"), ("status", "200"), ("outcome", "ok"))
    assert samples_by_name["interlingua_requests_total"] == {("", route): 2}
    assert metrics.finished_requests == 2
    assert samples_by_name["interlingua_reads_total"] == {("", ()): 14}
    assert samples_by_name["interlingua_retries_total"] == {("", ()): 4}
    assert samples_by_name["interlingua_calls_total"] == {("", (("dialect", "kimi_k2"),)): 4}
    assert samples_by_name["interlingua_findings_total"] == {
        ("", (("kind", "noise"), ("severity", "info"))): 4,
        ("", (("kind", "renamed"), ("severity", "info"))): 2,
    }
    assert samples_by_name["interlingua_tokens_total"] == {
        ("", (("direction", "input"),)): 2400,
        ("", (("direction", "output"),)): 680,
    }
    assert samples_by_name["interlingua_upstream_errors_total"] == {}
    labels = (("client", "alice"), ("upstream", "openrouter"), ("model", "and-so-here"))
    assert samples_by_name["interlingua_model_requests_total"] == {("", (*labels, ("outcome", "ok"))): 2}
    assert samples_by_name["interlingua_model_tokens_total"] == {
        ("", (*labels, ("direction", "input"))): 2400,
        ("", (*labels, ("direction", "output"))): 680,
    }
    assert "anything-a-client-likes" not in text


def test_histogram_buckets_are_cumulative() -> None:
    metrics = Metrics()
    for seconds in (0.01, 0.25, 0.26, 5.0, 1000.0):
        metrics.end(exchange(upstream="u", first_byte=10.0 + seconds, ended=10.0 + seconds))
    for name in ("first_byte", "request"):
        family = parse_metrics(metrics.render(IDLE).decode())[f"interlingua_{name}_seconds"]
        assert family.kind == "histogram"
        buckets = [(dict(labels)["le"], n) for (suffix, labels), n in family.samples.items() if suffix == "_bucket"]
        assert [n for _, n in buckets] == sorted(n for _, n in buckets)
        assert dict(buckets)["0.25"] == 2  # the bound is inclusive
        assert dict(buckets)["0.5"] == 3
        assert buckets[-1] == ("+Inf", 5.0)
        labels = (("upstream", "u"),)
        assert family.samples["_count", labels] == 5
        assert family.samples["_sum", labels] == pytest.approx(1005.52)


def test_failed_attempts_are_counted_also_if_a_fallback_answered() -> None:
    metrics = Metrics()
    dead = FailedAttempt(upstream="one", model="kimi", kind="unreachable", reason="Connection refused")
    metrics.end(exchange(upstream="two", outcome="ok", failed_attempts=[dead, dead]))
    family = parse_metrics(metrics.render(IDLE).decode())["interlingua_upstream_errors_total"]
    assert family.samples == {("", (("upstream", "one"), ("model", "kimi"), ("kind", "unreachable"))): 2}


def test_number_of_models_is_bounded_without_those_of_the_settings() -> None:
    metrics = Metrics(model_labels=ModelLabels(lambda: {"kimi"}, lambda text: text.replace("sk-1", "***")))
    failures = [
        FailedAttempt(upstream="one", model=model, kind=kind, reason="")
        for model, kind in [("made-up", "404"), *((f"sk-1-{n}", "503") for n in range(300)), ("kimi", "404")]
    ]
    metrics.end(exchange(failed_attempts=failures))
    family = parse_metrics(metrics.render(IDLE).decode())["interlingua_upstream_errors_total"]
    counts = {(dict(labels)["model"], dict(labels)["kind"]): n for (_, labels), n in family.samples.items()}
    assert len(counts) == MAX_MODEL_LABELS + 3
    assert (counts["other", "404"], counts["other", "503"], counts["kimi", "404"]) == (1, 300 - MAX_MODEL_LABELS, 1)
    assert counts["***-0", "503"] == 1


def test_number_of_series_by_client_and_model_is_bounded() -> None:
    """A thousand clients, and models that nobody has heard of."""
    metrics = Metrics(model_labels=ModelLabels(lambda: {f"m{number}" for number in range(10)}))
    for number in range(3000):
        record = exchange(client=f"c{number % 1000}", upstream="u", upstream_model=f"m{number}", upstream_status=404)
        metrics.end(msgspec.structs.replace(record, usage=Usage(input=1, output=1)))
    families = parse_metrics(metrics.render(IDLE).decode())
    requests, tokens = (families[f"interlingua_model_{name}_total"].samples for name in ("requests", "tokens"))
    assert len(requests) <= 2001
    assert len(tokens) <= 2001
    assert (sum(requests.values()), sum(tokens.values())) == (3000, 6000)
    assert {dict(labels)["model"] for _, labels in requests} == {*(f"m{number}" for number in range(10)), "other"}


def test_metrics_of_the_status() -> None:
    workers = [worker_status("ready", restarts=2), worker_status("ready"), worker_status("starting", restarts=1)]
    status = msgspec.structs.replace(
        IDLE,
        workers=workers,
        requests=LimitUse(3, 100),
        connections=LimitUse(5, 100),
        memory_bytes=LimitUse(4096, 1 << 20),
        open_circuits=[circuit_status("one", "k2"), circuit_status("one", "unlisted")],
        more_open_circuits=7,
        retry_budgets=[RetryBudgetStatus(upstream="one", retries=2.5, capacity=10)],
    )
    families = parse_metrics(Metrics().render(status, [("one", "k2"), ("one", "glm")]).decode())
    assert families["interlingua_streams_open"] == Family("gauge", {("", ()): 3})
    assert families["interlingua_connections_open"] == Family("gauge", {("", ()): 5})
    assert families["interlingua_memory_bytes"] == Family("gauge", {("", ()): 4096})
    assert families["interlingua_worker_restarts_total"] == Family("counter", {("", ()): 3})
    assert families["interlingua_retry_budget"] == Family("gauge", {("", (("upstream", "one"),)): 2.5})
    assert by_labels(families["interlingua_workers"]) == {
        ("starting",): 1,
        ("ready",): 2,
        ("not responding",): 0,
        ("stopping",): 0,
    }
    assert by_labels(families["interlingua_circuit_open"]) == {
        ("one", "k2"): 1,
        ("one", "glm"): 0,
        ("one", "unlisted"): 1,
        ("other", "other"): 7,
    }


def by_labels(family: Family) -> dict[tuple[str, ...], float]:
    return {tuple(dict(labels).values()): number for (_, labels), number in family.samples.items()}


def test_number_of_circuit_series_is_bounded() -> None:
    status = msgspec.structs.replace(
        IDLE, open_circuits=[circuit_status("one", f"m{number}") for number in range(100)], more_open_circuits=1
    )
    known_models = [("one", f"known-{number}") for number in range(2000)]
    families = parse_metrics(Metrics().render(status, known_models).decode())
    assert len(families["interlingua_circuit_open"].samples) == 500


def test_callback_metrics() -> None:
    metrics = Metrics(None, lambda: 17, lambda: 3, lambda: 2)
    for _ in range(2):
        metrics.publish_callbacks()
    families = parse_metrics(metrics.render(IDLE).decode())
    assert families["interlingua_held_back_bytes"] == Family("gauge", {("", ()): 17})
    assert families["interlingua_log_lines_lost_total"] == Family("counter", {("", ()): 3})
    assert families["interlingua_captures_lost_total"] == Family("counter", {("", ()): 2})


def test_label_values_are_escaped() -> None:
    metrics = Metrics()
    metrics.end(exchange(upstream='a"b\\c\nd\ud800', calls=1, dialect="x"))
    assert 'upstream="a\\"b\\\\c\\nd?"' in metrics.render(IDLE).decode()
    parse_metrics(metrics.render(IDLE).decode())


def test_number_of_series_is_bounded() -> None:
    metrics = Metrics()
    for number in range(2000):
        metrics.end(exchange(upstream=f"u{number}", ended=11.0))
    families = parse_metrics(metrics.render(IDLE).decode())
    assert len(families["interlingua_requests_total"].samples) == 501
    assert sum(families["interlingua_requests_total"].samples.values()) == 2000
    assert families["interlingua_request_seconds"].samples["_count", (("upstream", "other"),)] == 1500


def workers(number: int, size: int | None = None) -> list[SeriesMemory]:
    regions = [SeriesRegion(size) if size else SeriesRegion() for _ in range(number)]
    return [SeriesMemory(regions, index) for index in range(number)]


def test_every_worker_renders_the_sum_of_all_workers() -> None:
    one, two, three = (Metrics(memory, lambda: 5, lambda: 1, lambda: 2) for memory in workers(3))
    for metrics, upstream in ((one, "a"), (two, "a"), (two, "b")):
        metrics.end(exchange(upstream=upstream, reads=3, first_byte=10.5, ended=11.0, attempts=2))
    for metrics in (one, two, three):
        metrics.publish_callbacks()
    families = parse_metrics(one.render(IDLE).decode())
    assert two.render(IDLE) == one.render(IDLE) == three.render(IDLE)
    requests = {
        dict(labels)["upstream"]: n for (_, labels), n in families["interlingua_requests_total"].samples.items()
    }
    assert requests == {"a": 2, "b": 1}
    assert families["interlingua_reads_total"].samples == {("", ()): 9}
    assert [metrics.finished_requests for metrics in (one, two, three)] == [3, 3, 3]
    assert families["interlingua_held_back_bytes"].samples == {("", ()): 15}
    assert families["interlingua_log_lines_lost_total"].samples == {("", ()): 3}
    seconds = families["interlingua_request_seconds"].samples
    assert seconds["_count", (("upstream", "a"),)] == 2
    assert seconds["_sum", (("upstream", "a"),)] == 2.0
    assert seconds["_bucket", (("upstream", "a"), ("le", "1.0"))] == 2


def test_replacement_continues_the_counters_of_its_predecessor() -> None:
    memory, other = workers(2)
    dead = Metrics(memory, lambda: 5, lambda: 3, lambda: 2)
    dead.end(GOOD)
    dead.publish_callbacks()
    reset_gauges(memory.regions[0])
    families = parse_metrics(Metrics(other).render(IDLE).decode())
    assert families["interlingua_held_back_bytes"].samples == {("", ()): 0}
    replacement = Metrics(memory, lambda: 0, lambda: 1, lambda: 0)
    replacement.end(GOOD)
    replacement.publish_callbacks()
    families = parse_metrics(replacement.render(IDLE).decode())
    assert sum(families["interlingua_requests_total"].samples.values()) == 2
    assert families["interlingua_request_seconds"].samples["_count", (("upstream", "openrouter"),)] == 2
    assert families["interlingua_request_seconds"].samples["_sum", (("upstream", "openrouter"),)] == 8.0
    assert families["interlingua_log_lines_lost_total"].samples == {("", ()): 4}
    assert families["interlingua_captures_lost_total"].samples == {("", ()): 2}


def test_number_of_series_is_bounded_over_all_workers() -> None:
    memories = workers(3)
    for index, memory in enumerate(memories):
        metrics = Metrics(memory)
        for number in range(600):
            metrics.end(exchange(upstream=f"u{index}-{number}", ended=11.0))
    families = parse_metrics(Metrics(memories[0]).render(IDLE).decode())
    assert len(families["interlingua_requests_total"].samples) == 501
    assert sum(families["interlingua_requests_total"].samples.values()) == 1800
    assert families["interlingua_request_seconds"].samples["_count", (("upstream", "other"),)] == 1300


def test_series_that_do_not_fit_are_counted_as_other() -> None:
    memory = workers(1, size=16 * 1024)[0]
    metrics = Metrics(memory)
    for number in range(400):
        metrics.end(exchange(upstream=f"u{number}", ended=11.0, calls=1, dialect="late"))
    families = parse_metrics(metrics.render(IDLE).decode())
    assert len(families["interlingua_requests_total"].samples) < 100
    for name in ("requests_total", "calls_total"):
        assert sum(families[f"interlingua_{name}"].samples.values()) == 400
    counts = [n for (suffix, _), n in families["interlingua_request_seconds"].samples.items() if suffix == "_count"]
    assert sum(counts) == 400
