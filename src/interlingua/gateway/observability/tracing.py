"""OpenTelemetry tracing: one span per request, with the semantic conventions for generative AI, if `otel` is set.

The span is a child of the client's span and the parent of the upstream's span: the gateway reads the `traceparent`
header of the client and sends its own to the upstream.
"""

from __future__ import annotations

import threading
from collections.abc import Mapping
from importlib import import_module
from typing import Any

from interlingua.core.wire_traits import DEFAULT_WIRE
from interlingua.errors import UsageError
from interlingua.gateway.observability.exchange_record import ExchangeRecord
from interlingua.gateway.settings.redaction import printable
from interlingua.gateway.settings.schema import Settings
from interlingua.wires import get_wire

__all__ = ["NO_TRACE", "RequestTrace", "Tracer", "check_tracing"]

API_MODULE, SDK_MODULE, EXPORT_MODULE = (
    "opentelemetry.trace",
    "opentelemetry.sdk.trace",
    "opentelemetry.sdk.trace.export",
)
OTLP_MODULE = "opentelemetry.exporter.otlp.proto.http.trace_exporter"
_RECORD_ATTRIBUTES = ("id", "client", "wire", "model", "upstream", "dialect", "calls", "attempts")


class Tracer:
    """Creates the span of each request. Without a provider, nothing is traced.

    The type of the provider is `Any`, because the OpenTelemetry package is optional.
    """

    def __init__(self, provider: Any = None) -> None:
        self._provider = provider

    @staticmethod
    def from_settings(settings: Settings) -> Tracer:
        """Return the tracer for the settings. Raise UsageError if `otel` is set but its packages are not installed."""
        return Tracer(_tracer_provider() if settings.otel else None)

    def begin(self, headers: Mapping[str, str]) -> RequestTrace:
        """Start the trace of a request with these headers."""
        if not self._provider:
            return NO_TRACE
        trace = RequestTrace()
        api = import_module("opentelemetry.trace")
        w3c = import_module("opentelemetry.trace.propagation.tracecontext").TraceContextTextMapPropagator()
        parent = w3c.extract({name.lower(): value for name, value in headers.items()})
        trace.span = self._provider.get_tracer("interlingua").start_span("chat", parent, api.SpanKind.CLIENT)
        w3c.inject(trace.headers, api.set_span_in_context(trace.span))
        return trace

    def close(self, seconds: float = 5) -> None:
        """Send the buffered spans. The time is limited, because the collector may be unreachable."""
        if shutdown := getattr(self._provider, "shutdown", None):
            thread = threading.Thread(target=shutdown, name="spans", daemon=True)
            thread.start()
            thread.join(seconds)


class RequestTrace:
    """Trace of one request. `headers` propagate the trace context to the upstream."""

    __slots__ = ("headers", "span")

    def __init__(self) -> None:
        self.headers: dict[str, str] = {}
        self.span: Any = None

    def end(self, exchange: ExchangeRecord) -> None:
        if self.span:
            attributes = {name: value for name, value in _span_attributes(exchange).items() if value not in (None, "")}
            self.span.set_attributes(
                {name: printable(v) if isinstance(v, str) else v for name, v in attributes.items()}
            )
            self.span.update_name(f"chat {printable(exchange.upstream_model or exchange.model)}".strip())
            if exchange.outcome != "ok":
                code = import_module("opentelemetry.trace").StatusCode.ERROR
                self.span.set_status(code, printable(exchange.error or exchange.outcome))
            self.span.end()


NO_TRACE = RequestTrace()
"""The trace of all requests that are not traced."""


def _span_attributes(exchange: ExchangeRecord) -> dict[str, Any]:
    usage, status = exchange.usage, exchange.upstream_status
    usage = usage if usage and not usage.estimated else None
    error_type = (str(status) if status >= 400 else exchange.outcome) if exchange.outcome != "ok" else None
    return {
        "gen_ai.operation.name": "chat",
        "gen_ai.provider.name": get_wire(exchange.upstream_wire or DEFAULT_WIRE).HTTP_API.provider,
        "gen_ai.request.model": exchange.upstream_model or exchange.model,
        "gen_ai.request.stream": exchange.stream,
        "gen_ai.response.finish_reasons": [exchange.stop_reason] if exchange.stop_reason else None,
        "gen_ai.response.time_to_first_chunk": exchange.first_byte and exchange.first_byte - exchange.started,
        "gen_ai.usage.input_tokens": usage and usage.input,
        "gen_ai.usage.output_tokens": usage and usage.output,
        "gen_ai.usage.cache_read.input_tokens": usage and usage.cached,
        "gen_ai.usage.cache_creation.input_tokens": usage and usage.cache_written,
        "gen_ai.usage.reasoning.output_tokens": usage and usage.reasoning,
        "error.type": error_type,
        "http.response.status_code": exchange.status or None,
        **{f"interlingua.{name}": getattr(exchange, name) for name in _RECORD_ATTRIBUTES},
        "interlingua.findings": sorted({finding.kind for finding in exchange.findings}) or None,
    }


def check_tracing(settings: Settings) -> None:
    """Raise UsageError if `otel` is set but its packages are not installed."""
    if settings.otel:
        for name in (API_MODULE, SDK_MODULE, EXPORT_MODULE, OTLP_MODULE):
            _require_module(name)


def _require_module(name: str) -> Any:
    try:
        return import_module(name)
    except ImportError as error:
        raise UsageError(
            f"otel is set, but the package {error.name} is not installed", "pip install 'interlingua[otel]'"
        ) from None


def _tracer_provider() -> Any:
    """Return the tracer provider of this process, or a new one that exports by OTLP as the OTEL_* variables
    configure."""
    api = _require_module(API_MODULE)
    if not isinstance(existing := api.get_tracer_provider(), api.ProxyTracerProvider):
        return existing
    provider = _require_module(SDK_MODULE).TracerProvider()
    provider.add_span_processor(
        _require_module(EXPORT_MODULE).BatchSpanProcessor(_require_module(OTLP_MODULE).OTLPSpanExporter())
    )
    return provider
