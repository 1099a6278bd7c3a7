"""Tests of tracing: each request is a span, child of the client's span and parent of the upstream's span."""

from __future__ import annotations

import sys
from types import ModuleType
from typing import Any

import pytest
from opentelemetry import trace as api
from opentelemetry.sdk.trace import ReadableSpan, TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor, SpanExporter
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter
from opentelemetry.semconv._incubating.attributes import gen_ai_attributes
from opentelemetry.trace import SpanKind, StatusCode

from interlingua.errors import InterlinguaError
from interlingua.events import Finding, Usage
from interlingua.gateway.observability.exchange_record import ExchangeRecord
from interlingua.gateway.observability.tracing import Tracer
from interlingua.gateway.settings.schema import Settings

PARENT = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"


def exchange(**fields: Any) -> ExchangeRecord:
    return ExchangeRecord(
        **{"id": "req_1", "path": "/v1/messages", "wire": "anthropic-messages", "started": 10.0, **fields}
    )


def export_span(record: ExchangeRecord, headers: dict[str, str]) -> tuple[ReadableSpan, dict[str, str]]:
    spans = InMemorySpanExporter()
    provider = TracerProvider()
    provider.add_span_processor(SimpleSpanProcessor(spans))
    trace = Tracer(provider).begin(headers)
    trace.end(record)
    provider.shutdown()
    (span,) = spans.get_finished_spans()
    return span, trace.headers


def test_span_of_successful_request() -> None:
    record = exchange(
        model="sonnet",
        upstream_model="moonshotai/kimi-k2",
        upstream="openrouter",
        upstream_wire="openai-chat",
        dialect="kimi_k2",
        stream=True,
        attempts=1,
        calls=2,
        status=200,
        upstream_status=200,
        first_byte=10.5,
        stop_reason="tool_calls",
        usage=Usage(input=1200, output=340, cached=1000, reasoning=100, cache_written=50),
        findings=[Finding("renamed", ""), Finding("noise", ""), Finding("noise", "")],
    )
    span, headers = export_span(record, {"Traceparent": PARENT, "Tracestate": "vendor=1"})
    assert span.name == "chat moonshotai/kimi-k2"
    assert span.kind is SpanKind.CLIENT
    assert span.status.status_code is StatusCode.UNSET
    assert dict(span.attributes or {}) == {
        "gen_ai.operation.name": "chat",
        "gen_ai.provider.name": "openai",
        "gen_ai.request.model": "moonshotai/kimi-k2",
        "gen_ai.request.stream": True,
        "gen_ai.response.finish_reasons": ("tool_calls",),
        "gen_ai.response.time_to_first_chunk": 0.5,
        "gen_ai.usage.input_tokens": 1200,
        "gen_ai.usage.output_tokens": 340,
        "gen_ai.usage.cache_read.input_tokens": 1000,
        "gen_ai.usage.cache_creation.input_tokens": 50,
        "gen_ai.usage.reasoning.output_tokens": 100,
        "http.response.status_code": 200,
        "interlingua.id": "req_1",
        "interlingua.wire": "anthropic-messages",
        "interlingua.model": "sonnet",
        "interlingua.upstream": "openrouter",
        "interlingua.dialect": "kimi_k2",
        "interlingua.calls": 2,
        "interlingua.attempts": 1,
        "interlingua.findings": ("noise", "renamed"),
    }
    conventions = {value for name, value in vars(gen_ai_attributes).items() if name.startswith("GEN_AI_")}
    assert {name for name in span.attributes or {} if name.startswith("gen_ai.")} <= conventions

    assert span.parent
    assert span.parent.is_remote
    assert f"{span.parent.trace_id:032x}-{span.parent.span_id:016x}" == PARENT[3:-3]
    assert headers == {
        "traceparent": f"00-{PARENT[3:35]}-{span.context.span_id:016x}-01",
        "tracestate": "vendor=1",
    }


@pytest.mark.parametrize(
    ("record", "kind", "message"),
    [
        (exchange(outcome="upstream-failed", upstream_status=429, error="slow\ndown"), "429", r"slow\ndown"),
        (exchange(outcome="upstream-failed", upstream_status=200), "upstream-failed", "upstream-failed"),
        (exchange(outcome="client-left", model="\ud800"), "client-left", "client-left"),
    ],
)
def test_span_of_failed_request(record: ExchangeRecord, kind: str, message: str) -> None:
    span, headers = export_span(record, {"traceparent": "nonsense"})
    assert (span.attributes or {})["error.type"] == kind
    assert (span.status.status_code, span.status.description) == (StatusCode.ERROR, message)
    assert span.parent is None
    assert headers["traceparent"].startswith("00-")
    assert "".join(map(str, (span.attributes or {}).values())).encode()


def test_span_of_anthropic_upstream() -> None:
    span, _ = export_span(exchange(upstream_wire="anthropic-messages"), {})
    assert (span.attributes or {})["gen_ai.provider.name"] == "anthropic"
    assert span.name == "chat"


def test_tracing_is_off_by_default() -> None:
    trace = Tracer.from_settings(Settings()).begin({"traceparent": PARENT})
    trace.end(exchange())
    assert trace.headers == {}


@pytest.mark.parametrize("missing", ["opentelemetry.trace", "opentelemetry.exporter.otlp.proto.http.trace_exporter"])
def test_missing_package_raises(monkeypatch: pytest.MonkeyPatch, missing: str) -> None:
    monkeypatch.setitem(sys.modules, missing, None)
    with pytest.raises(InterlinguaError, match="otel is set, but the package opentelemetry") as error:
        Tracer.from_settings(Settings(otel=True))
    assert error.value.hint == "pip install 'interlingua[otel]'"


def test_existing_tracer_provider_is_used(monkeypatch: pytest.MonkeyPatch) -> None:
    spans = InMemorySpanExporter()
    provider = TracerProvider()
    provider.add_span_processor(SimpleSpanProcessor(spans))
    monkeypatch.setattr(api, "get_tracer_provider", lambda: provider)
    Tracer.from_settings(Settings(otel=True)).begin({}).end(exchange())
    assert len(spans.get_finished_spans()) == 1


def test_new_tracer_provider_exports_by_otlp(monkeypatch: pytest.MonkeyPatch) -> None:
    """Without a provider in the process, spans go to the exporter that OTEL_* configures."""
    spans = InMemorySpanExporter()
    module = ModuleType("trace_exporter")
    module.OTLPSpanExporter = lambda: spans  # type: ignore[attr-defined]  # same name as in the package
    monkeypatch.setitem(sys.modules, "opentelemetry.exporter.otlp.proto.http.trace_exporter", module)
    assert isinstance(spans, SpanExporter)
    tracer = Tracer.from_settings(Settings(otel=True))
    tracer.begin({}).end(exchange(model="m"))
    tracer._provider.shutdown()
    assert [span.name for span in spans.get_finished_spans()] == ["chat m"]
