"""Text from clients and upstreams is escaped for terminals, log readers and browsers (row 38 of the fault table)."""

from __future__ import annotations

import json
import re

import pytest

from interlingua.cli import main
from tests.support import upstream_server as up
from tests.support.gateway_process import GatewayProcess, run_gateway
from tests.support.raw_client import CHAT, MESSAGES, build_request, get, request_reply, send_bytes
from tests.support.upstream_server import UpstreamServer

FAKED = "\r\n2026-01-01T00:00:00.000Z 200 ok  faked\n"
EVIL = FAKED + "\x1b[2J\x1b]0;title\x07\x9b31m\u202eevil\u2028<script>1</script>\x00"
CONTROL_CHARACTERS = re.compile("[\x00-\x09\x0b-\x1f\x7f-\x9f\u200e\u200f\u2028-\u202e\u2066-\u2069]")
CONFIG = """
log: {{format: {form}, level: {level}}}
capture: {{dir: captures}}
upstreams: {{test: {{url: "{url}", retries: {{attempts: 1}}}}}}
"""


def send_hostile_text(upstream: UpstreamServer, gateway: GatewayProcess) -> None:
    """Send hostile text in every place: model ids, headers, errors, texts, tool names, invalid stop reasons."""
    spoken = up.ROLE + up.delta(EVIL) + up.event({"error": {"message": EVIL, "type": EVIL, "code": EVIL}})
    odd = up.ROLE + up.delta(tool_calls=[{"index": 0, "id": EVIL, "function": {"name": EVIL, "arguments": EVIL}}])
    upstream.add(EVIL, up.send_headers(), up.send(spoken))
    upstream.add("odd", up.send_headers(), up.send(odd + up.delta(finish=EVIL) + up.DONE))
    upstream.add(
        "refused", up.send_response("418 Teapot", json.dumps({"error": {"message": EVIL, "code": EVIL}}).encode())
    )
    upstream.add("page", up.send_response("500 Oh", EVIL.encode(), "text/html"))
    for wire in (CHAT, MESSAGES):
        for model in (EVIL, "odd", "refused", "page", f"{EVIL * 20}"):
            upstream.add(f"{EVIL * 20}", up.send_response("404 No", EVIL.encode()))
            got = request_reply(gateway, wire, model)
            assert not any(CONTROL_CHARACTERS.search(value) for _, value in got.headers)
    send_bytes(
        gateway, build_request("/v1/messages", b'{"model": "' + EVIL.encode() + b'"}', {"user-agent": "\x1b[2J"})
    )
    send_bytes(gateway, b"GET /\x1b[2J HTTP/1.1\r\nhost: x\r\n\r\n")
    get(gateway, "/v1/%0d%0a%1b%5b2J")


@pytest.mark.one_row_in(3)
@pytest.mark.parametrize("level", ["info", "debug"])
@pytest.mark.parametrize("form", ["text", "json"])
def test_38_log_lines_escape_control_characters(upstream: UpstreamServer, form: str, level: str) -> None:
    with run_gateway(config=CONFIG.format(url=upstream.url, form=form, level=level)) as gateway:
        send_hostile_text(upstream, gateway)
        assert gateway.stop() == 0
        text = gateway.log.read_text(encoding="utf-8")
    assert not CONTROL_CHARACTERS.search(text)
    lines = [line for line in text.split("\n") if "200 ok  faked" in line]
    assert lines
    log_lines = text.split("\n")[1:-1] if form == "json" else text[text.index("\n20") + 1 :].split("\n")[:-1]
    for line in log_lines:
        if form == "json":
            assert json.loads(line)["level"]
        else:
            assert re.match(r"20\d\d-\d\d-\d\dT[\d:.]+Z (?!200 ok  faked)", line), line


def test_38_explained_captures_escape_control_characters(
    upstream: UpstreamServer, capsysbinary: pytest.CaptureFixture[bytes]
) -> None:
    with run_gateway(config=CONFIG.format(url=upstream.url, form="text", level="info")) as gateway:
        send_hostile_text(upstream, gateway)
        assert gateway.stop() == 0
        files = sorted((gateway.folder / "captures").glob("*.jsonl"))
        assert files
        for file in files:
            main(["translate", "--explain", str(file)])
            shown = b"".join(capsysbinary.readouterr()).decode()
            assert shown
            assert not CONTROL_CHARACTERS.search(shown), shown[:500]


def test_38_no_response_is_an_html_page(upstream: UpstreamServer) -> None:
    """The gateway serves no HTML, and a browser must not guess that a response is HTML."""
    upstream.add("<script>", up.send_response("404 No", b"<html><script>alert(1)</script>"))
    with run_gateway(config=CONFIG.format(url=upstream.url, form="text", level="info")) as gateway:
        answers = [get(gateway, path) for path in ("/", "/healthz", "/readyz", "/metrics", "/v1/models", "/<script>")]
        answers += [request_reply(gateway, CHAT, "<script>"), request_reply(gateway, CHAT, "<script>", stream=False)]
    for got in answers:
        assert "html" not in str(got.header("content-type"))
        assert got.header("x-content-type-options") == "nosniff"
        assert got.header("content-security-policy") == "default-src 'none'"
