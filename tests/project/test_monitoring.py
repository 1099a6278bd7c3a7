"""Tests of deploy/monitoring with a real Prometheus: it scrapes a gateway, and every expression returns data."""

from __future__ import annotations

import importlib.util
import json
import re
import shutil
import socket
import subprocess
import sys
import time
import urllib.error
import urllib.parse
import urllib.request
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from functools import partial
from pathlib import Path
from typing import Any

import pytest
import yaml

import interlingua as il
from interlingua.gateway.observability.metrics import Metrics
from tests.support.gateway_process import GatewayProcess, run_gateway
from tests.support.gateway_status import IDLE
from tests.support.paths import ROOT
from tests.support.upstream_server import UpstreamServer, send_response

MONITORING = ROOT / "deploy" / "monitoring"
DASHBOARD: dict[str, Any] = json.loads((MONITORING / "grafana.json").read_text("utf-8"))
ALERTS = yaml.safe_load((MONITORING / "alerts.yaml").read_text("utf-8"))["groups"][0]["rules"]
EXPRESSIONS = {
    f"{panel['title']} {target['refId']}": target["expr"]
    for panel in DASHBOARD["panels"]
    for target in panel.get("targets", [])
}
HISTOGRAM_SUFFIXES = ("_bucket", "_count", "_sum")
needs_prometheus = pytest.mark.skipif(
    not (shutil.which("prometheus") and shutil.which("promtool")),
    reason="prometheus is not installed: apt-get install prometheus",
)
CONFIG = """
upstreams:
  good: {{url: "{url}", retries: {{attempts: 1}}}}
  dead:
    url: http://127.0.0.1:9/v1
    retries: {{attempts: 2, backoff: 0.01, budget: 1}}
    rest: {{after: 20, seconds: 600}}
default: good
models:
  kimi-k2: {{upstream: good}}
  hidden: {{upstream: dead, model: kimi-k2, fallback: [kimi-k2]}}
keys: {{alice: key-of-alice, bob: key-of-bob, prometheus: key-of-prometheus}}
client_limits: {{requests_per_minute: 12}}
"""


def metric_names() -> set[str]:
    return set(re.findall(r"^# TYPE (\S+)", Metrics().render(IDLE).decode(), re.M))


def names_in(expression: str) -> set[str]:
    names = set(re.findall(r"\binterlingua_\w+", expression))
    return {re.sub(f"({'|'.join(HISTOGRAM_SUFFIXES)})$", "", name) for name in names}


# ── without Prometheus ────────────────────────────────────────────────────────────────────────────────────────────────


def test_dashboard_is_generated() -> None:
    spec = importlib.util.spec_from_file_location("dashboard", MONITORING / "dashboard.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules["dashboard"] = module
    spec.loader.exec_module(module)
    assert module.dashboard_text() == (MONITORING / "grafana.json").read_text("utf-8")


def test_dashboard_shows_every_metric_and_no_other() -> None:
    assert set().union(*map(names_in, EXPRESSIONS.values())) == metric_names()


def test_panels_do_not_overlap() -> None:
    cells = [
        (x, y)
        for panel in DASHBOARD["panels"]
        for x in range(panel["gridPos"]["x"], panel["gridPos"]["x"] + panel["gridPos"]["w"])
        for y in range(panel["gridPos"]["y"], panel["gridPos"]["y"] + panel["gridPos"]["h"])
    ]
    assert len(cells) == len(set(cells))
    assert max(x for x, _ in cells) == 23
    ids = [panel["id"] for panel in DASHBOARD["panels"]]
    assert len(ids) == len(set(ids))


def test_alerts_name_metrics_of_the_gateway() -> None:
    for alert in ALERTS:
        assert names_in(alert["expr"]) <= metric_names(), alert["alert"]
        assert set(alert["annotations"]) == {"summary", "description"}


# ── with Prometheus ───────────────────────────────────────────────────────────────────────────────────────────────────


COMMANDS = ("check rules alerts.yaml", "check config prometheus.yaml", "test rules alerts_test.yaml")


@needs_prometheus
@pytest.mark.parametrize("command", COMMANDS)
def test_promtool_accepts_the_files(command: str) -> None:
    ran = subprocess.run(["promtool", *command.split()], cwd=MONITORING, capture_output=True, text=True)
    assert ran.returncode == 0, ran.stdout + ran.stderr


class Prometheus:
    def __init__(self, port: int) -> None:
        self.base = f"http://127.0.0.1:{port}"

    def get(self, path: str, **query: str) -> Any:
        url = f"{self.base}/api/v1/{path}?{urllib.parse.urlencode(query)}"
        with urllib.request.urlopen(url, timeout=10) as response:
            return json.loads(response.read())["data"]

    def query(self, expression: str) -> list[Any]:
        selected = expression.replace("$__rate_interval", "30s").replace("$job", ".+").replace("$instance", ".+")
        result: list[Any] = self.get("query", query=selected)["result"]
        return result

    def wait(self, condition: Callable[[], object], what: str, seconds: float = 60) -> None:
        until = time.monotonic() + seconds
        while True:
            try:
                if condition():
                    return
            except OSError:
                pass
            assert time.monotonic() < until, what
            time.sleep(0.2)


@contextmanager
def scraping(gateway: GatewayProcess, folder: Path) -> Iterator[Prometheus]:
    """Run Prometheus with the files of deploy/, which scrapes this gateway each second."""
    config = yaml.safe_load((MONITORING / "prometheus.yaml").read_text("utf-8"))
    (job,) = config["scrape_configs"]
    (folder / "key").write_text("key-of-prometheus")
    job |= {"scrape_interval": "1s", "authorization": {"credentials_file": str(folder / "key")}}
    job["static_configs"] = [{"targets": [gateway.base.removeprefix("http://")]}]
    config["global"] = {"evaluation_interval": "1s"}
    (folder / "prometheus.yaml").write_text(yaml.safe_dump(config))
    shutil.copy(MONITORING / "alerts.yaml", folder)
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    with (folder / "log").open("wb") as log:
        process = subprocess.Popen(
            [
                "prometheus",
                f"--config.file={folder / 'prometheus.yaml'}",
                f"--storage.tsdb.path={folder / 'data'}",
                f"--web.listen-address=127.0.0.1:{port}",
            ],
            stdout=log,
            stderr=log,
        )
    try:
        prometheus = Prometheus(port)
        prometheus.wait(lambda: prometheus.get("status/buildinfo"), "Prometheus does not start")
        yield prometheus
    finally:
        process.terminate()
        process.wait(20)


def send_request(gateway: GatewayProcess, key: str) -> None:
    tools = [{"type": "function", "function": {"name": "get_weather"}}]
    body = {"model": "hidden", "messages": [{"role": "user", "content": "hi"}], "tools": tools}
    headers = {"content-type": "application/json", "authorization": f"Bearer {key}"}
    request = urllib.request.Request(f"{gateway.base}/v1/chat/completions", json.dumps(body).encode(), headers)
    with suppress(urllib.error.HTTPError), urllib.request.urlopen(request, timeout=20) as response:
        response.read()


@pytest.mark.slow
@needs_prometheus
def test_every_expression_returns_data(upstream: UpstreamServer, tmp_path: Path) -> None:
    """The gateway has a dead upstream behind a fallback, two clients, calls in text, and requests over a limit."""
    message = {"role": "assistant", "content": il.dialect_for("kimi-k2").sample}
    usage = {"prompt_tokens": 10, "completion_tokens": 5, "total_tokens": 15}
    reply = {"id": "c", "choices": [{"index": 0, "message": message, "finish_reason": "stop"}], "usage": usage}
    upstream.add("kimi-k2", send_response("200 OK", json.dumps(reply).encode()))
    with run_gateway(config=CONFIG.format(url=upstream.url)) as gateway, scraping(gateway, tmp_path) as prometheus:
        prometheus.wait(lambda: prometheus.query('up{job="interlingua"} == 1'), "the gateway is not scraped")
        for batch in range(2):  # a rate needs two values; the second batch exceeds the limit of the clients
            for key in ("key-of-alice", "key-of-bob") * 7:
                send_request(gateway, key)
            total = 14 * (batch + 1)
            has_new_scrape = partial(prometheus.query, f"sum(interlingua_requests_total) >= {total}")
            prometheus.wait(has_new_scrape, "no new scrape")
        for name, expression in EXPRESSIONS.items():
            prometheus.wait(partial(prometheus.query, expression), f"no data: {name}: {expression}", 20)
        groups = prometheus.get("rules")["groups"]
        health = {rule["name"]: rule["health"] for group in groups for rule in group["rules"]}
        assert health == dict.fromkeys((alert["alert"] for alert in ALERTS), "ok")
        by_client = prometheus.query('sum by (client) (interlingua_model_requests_total{outcome="ok"})')
        assert {result["metric"]["client"] for result in by_client} == {"alice", "bob"}
        hidden = prometheus.query('interlingua_upstream_errors_total{upstream="dead",model="kimi-k2"}')
        assert {result["metric"]["kind"] for result in hidden} == {"unreachable", "circuit-open"}
