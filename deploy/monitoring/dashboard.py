"""Grafana dashboard of the gateway: `python deploy/monitoring/dashboard.py` writes grafana.json.

Panels are data. Each has a title, queries for Prometheus with a legend, and a unit.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

__all__ = ["ROWS", "dashboard", "dashboard_text"]

OUTPUT = Path(__file__).with_name("grafana.json")
COLUMNS, PANEL_HEIGHT = 24, 8
DATASOURCE = {"type": "prometheus", "uid": "${datasource}"}
SELECTED = 'job=~"$job",instance=~"$instance"'
"""Labels of the targets that the user of the dashboard has selected."""
RATE = "[$__rate_interval]"


@dataclass(frozen=True)
class Query:
    expression: str
    legend: str = ""


@dataclass(frozen=True)
class Panel:
    title: str
    queries: tuple[Query, ...]
    unit: str = "short"
    description: str = ""
    is_stacked: bool = False


def rate(metric: str, *labels: str, more: str = "") -> str:
    """Return the rate of a counter per second, summed over all other labels."""
    selector = f"{SELECTED},{more}" if more else SELECTED
    by = f" by ({', '.join(labels)})" if labels else ""
    return f"sum{by} (rate(interlingua_{metric}{{{selector}}}{RATE}))"


def quantile(number: float, metric: str) -> str:
    buckets = f"sum by (le, upstream) (rate(interlingua_{metric}_bucket{{{SELECTED}}}{RATE}))"
    return f"histogram_quantile({number}, {buckets})"


def gauge(metric: str, *labels: str, function: str = "sum") -> str:
    by = f" by ({', '.join(labels)})" if labels else ""
    return f"{function}{by} (interlingua_{metric}{{{SELECTED}}})"


FAILED = 'outcome=~"upstream-failed|cut-off|broken"'
ROWS: dict[str, tuple[Panel, ...]] = {
    "Traffic": (
        Panel("Requests", (Query(rate("requests_total", "outcome"), "{{outcome}}"),), "reqps", is_stacked=True),
        Panel(
            "Share of requests that fail",
            (Query(f"({rate('requests_total', more=FAILED)} or vector(0)) / {rate('requests_total')}", "failed"),),
            "percentunit",
            "Failures that clients see: no fallback has answered.",
        ),
        Panel(
            "In progress",
            (Query(gauge("streams_open"), "requests"), Query(gauge("connections_open"), "connections of clients")),
        ),
    ),
    "Latency": (
        Panel(
            "Time to the first output",
            tuple(Query(quantile(n, "first_byte_seconds"), f"{{{{upstream}}}} p{n * 100:.0f}") for n in (0.5, 0.95)),
            "s",
        ),
        Panel(
            "Time to the end of the reply",
            tuple(Query(quantile(n, "request_seconds"), f"{{{{upstream}}}} p{n * 100:.0f}") for n in (0.5, 0.95)),
            "s",
        ),
        Panel("Chunks of streams", (Query(rate("reads_total"), "chunks"),), "cps"),
    ),
    "Upstreams": (
        Panel(
            "Failed attempts",
            (Query(rate("upstream_errors_total", "upstream", "model", "kind"), "{{upstream}} {{model}}: {{kind}}"),),
            "cps",
            "Also those after which a retry or a fallback answered.",
        ),
        Panel(
            "Retries",
            (
                Query(rate("retries_total"), "retries per second"),
                Query(gauge("retry_budget", "upstream", function="min"), "{{upstream}}: retries left"),
            ),
        ),
        Panel(
            "Circuit breakers",
            (
                Query(gauge("circuit_open", "upstream", "model", function="max"), "{{upstream}} {{model}} is open"),
                Query(rate("rests_total", "upstream"), "{{upstream}}: openings per second"),
            ),
        ),
    ),
    "Use": (
        Panel(
            "Tokens by client",
            (Query(rate("model_tokens_total", "client", "direction"), "{{client}} {{direction}}"),),
            "cps",
            "The name of the client's key, see `keys`.",
            is_stacked=True,
        ),
        Panel(
            "Tokens by model",
            (Query(rate("model_tokens_total", "upstream", "model"), "{{upstream}} {{model}}"),),
            "cps",
            is_stacked=True,
        ),
        Panel("Requests by client", (Query(rate("model_requests_total", "client"), "{{client}}"),), "reqps"),
        Panel("Tokens", (Query(rate("tokens_total", "direction"), "{{direction}}"),), "cps"),
        Panel(
            "Requests over a limit of their client",
            (Query(rate("rate_limited_total", "limit"), "{{limit}}"),),
            "reqps",
            "See `client_limits`.",
        ),
        Panel("Requests by model", (Query(rate("model_requests_total", "model"), "{{model}}"),), "reqps"),
    ),
    "Tool calls": (
        Panel("Calls", (Query(rate("calls_total", "dialect"), "{{dialect}}"),), "cps"),
        Panel(
            "Corrections",
            (Query(rate("findings_total", "kind", "severity"), "{{kind}} ({{severity}})"),),
            "cps",
            "Findings by kind: what upstreams and models got wrong, and what was done about it.",
        ),
        Panel("Text held back by parsers", (Query(gauge("held_back_bytes"), "bytes"),), "bytes"),
    ),
    "Gateway": (
        Panel("Memory of requests in progress", (Query(gauge("memory_bytes"), "memory"),), "bytes"),
        Panel(
            "Workers",
            (
                Query(gauge("workers", "state"), "{{state}}"),
                Query(gauge("worker_restarts_total"), "restarts since the start"),
            ),
        ),
        Panel(
            "Lost records",
            (
                Query(gauge("log_lines_lost_total"), "log lines"),
                Query(gauge("captures_lost_total"), "captures"),
            ),
            description="Since the start of the gateway.",
        ),
    ),
}


def dashboard() -> dict[str, Any]:
    panels: list[dict[str, Any]] = []
    top = 0
    for title, row in ROWS.items():
        panels.append({"type": "row", "title": title, "collapsed": False, "gridPos": _position(top, 0, COLUMNS, 1)})
        top += 1
        width = COLUMNS // min(len(row), 3)
        for number, panel in enumerate(row):
            line, column = divmod(number, 3)
            panels.append(_panel(panel, _position(top + line * PANEL_HEIGHT, column * width, width, PANEL_HEIGHT)))
        top += -(-len(row) // 3) * PANEL_HEIGHT
    return {
        "title": "Interlingua",
        "uid": "interlingua",
        "tags": ["llm", "gateway"],
        "schemaVersion": 39,
        "editable": True,
        "refresh": "30s",
        "time": {"from": "now-6h", "to": "now"},
        "templating": {"list": [_datasource_variable(), _label_variable("job"), _label_variable("instance")]},
        "panels": [{"id": number, **panel} for number, panel in enumerate(panels, 1)],
    }


def _position(top: int, left: int, width: int, height: int) -> dict[str, int]:
    return {"x": left, "y": top, "w": width, "h": height}


def _panel(panel: Panel, position: dict[str, int]) -> dict[str, Any]:
    stacking = {"mode": "normal" if panel.is_stacked else "none"}
    custom = {"stacking": stacking, "fillOpacity": 20 if panel.is_stacked else 5, "showPoints": "never"}
    return {
        "type": "timeseries",
        "title": panel.title,
        "description": panel.description,
        "datasource": DATASOURCE,
        "gridPos": position,
        "fieldConfig": {"defaults": {"unit": panel.unit, "min": 0, "custom": custom}, "overrides": []},
        "options": {"legend": {"displayMode": "list", "placement": "bottom"}, "tooltip": {"mode": "multi"}},
        "targets": [
            {"refId": chr(ord("A") + number), "datasource": DATASOURCE, "expr": query.expression}
            | {"legendFormat": query.legend}
            for number, query in enumerate(panel.queries)
        ],
    }


def _datasource_variable() -> dict[str, Any]:
    return {"name": "datasource", "label": "Prometheus", "type": "datasource", "query": "prometheus"}


def _label_variable(label: str) -> dict[str, Any]:
    selector = "" if label == "job" else '{job=~"$job"}'
    query = f"label_values(interlingua_streams_open{selector}, {label})"
    return {
        "name": label,
        "type": "query",
        "datasource": DATASOURCE,
        "query": {"query": query, "refId": label},
        "refresh": 2,
        "includeAll": True,
        "multi": True,
        "allValue": ".+",
        "current": {"text": "All", "value": "$__all"},
    }


def dashboard_text() -> str:
    return json.dumps(dashboard(), indent=1, ensure_ascii=False) + "\n"


if __name__ == "__main__":
    OUTPUT.write_text(dashboard_text(), encoding="utf-8")
