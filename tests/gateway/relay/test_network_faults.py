"""Network faults between gateway and upstreams: TLS, DNS, proxies, clocks (row 33 of the fault table)."""

from __future__ import annotations

import json
import shutil
import socket
import socketserver
import ssl
import subprocess
import threading
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from email.utils import formatdate
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest

from interlingua.errors import BadSetting
from interlingua.gateway.settings.schema import Settings, Upstream
from interlingua.gateway.upstream.connector import check_certificates
from interlingua.translation.upstream_errors import retry_delay
from tests.support import upstream_server as up
from tests.support.gateway_process import GatewayProcess, run_gateway
from tests.support.raw_client import CHAT, MESSAGES, RawResponse, reply_text, request_reply
from tests.support.upstream_server import UpstreamServer

AUTHORITY = """
[ca]
default_ca = one
[one]
new_certs_dir = .
database = index.txt
rand_serial = yes
default_md = sha256
policy = any
copy_extensions = copy
x509_extensions = more
[more]
basicConstraints = critical,CA:TRUE
[any]
commonName = supplied
"""
FAR = "upstream.test"
"""A host name that only the proxy resolves: requests to this machine never use a proxy."""
CERTIFICATES = {
    # subject alternative names, start date, end date
    "good": (f"IP:127.0.0.1,DNS:{FAR}", "20200101000000Z", "20990101000000Z"),
    "expired": ("IP:127.0.0.1", "20200101000000Z", "20200102000000Z"),
    "of the future": ("IP:127.0.0.1", "20980101000000Z", "20990101000000Z"),
    "of another": ("DNS:other.example", "20200101000000Z", "20990101000000Z"),
}
HELLO = {
    "id": "c",
    "choices": [{"index": 0, "message": {"role": "assistant", "content": "Hello"}, "finish_reason": "stop"}],
}


class Hello(BaseHTTPRequestHandler):
    def do_POST(self) -> None:
        self.rfile.read(int(self.headers["content-length"]))
        body = json.dumps(HELLO).encode()
        self.send_response(200)
        self.send_header("content-type", "application/json")
        self.send_header("content-length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_: Any) -> None:
        pass


class Quiet(ThreadingHTTPServer):
    daemon_threads = True

    def handle_error(self, *_: Any) -> None:
        """Ignore errors: clients that do not trust the certificate disconnect."""


@contextmanager
def serving(context: ssl.SSLContext | None) -> Iterator[str]:
    """Run an upstream with this certificate, and return its URL without the scheme."""
    server = Quiet(("127.0.0.1", 0), Hello)
    if context is not None:
        server.socket = context.wrap_socket(server.socket, server_side=True, do_handshake_on_connect=False)
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.05}, daemon=True)
    thread.start()
    try:
        yield f"127.0.0.1:{server.server_port}/v1"
    finally:
        server.shutdown()
        server.server_close()
        thread.join(5)


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Create self-signed certificates and their key."""
    if shutil.which("openssl") is None:
        pytest.skip("openssl is needed to create the certificates")
    path = tmp_path_factory.mktemp("certificates")
    (path / "ca.cnf").write_text(AUTHORITY, encoding="utf-8")

    def openssl(*args: str) -> None:
        subprocess.run(["openssl", *args], cwd=path, check=True, capture_output=True)

    openssl("ecparam", "-name", "prime256v1", "-genkey", "-noout", "-out", "key.pem")
    for name, (whose, since, until) in CERTIFICATES.items():
        (path / "index.txt").write_text("", encoding="utf-8")
        subject = ("-subj", f"/CN={name}", "-addext", f"subjectAltName={whose}")
        openssl("req", "-new", "-key", "key.pem", *subject, "-out", "request.pem")
        dates = ("-startdate", since, "-enddate", until)
        signed = ("-selfsign", "-keyfile", "key.pem", "-in", "request.pem", "-out", f"{name}.pem", "-notext")
        openssl("ca", "-batch", "-config", "ca.cnf", *signed, *dates)
    return path


def context_of(folder: Path, name: str) -> ssl.SSLContext:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(folder / f"{name}.pem", folder / "key.pem")
    return context


CONFIG = """
upstreams:
  unknown: {{url: "https://{good}"}}
  own: {{url: "https://{good}", ca: "{folder}/good.pem"}}
  expired: {{url: "https://{expired}", ca: "{folder}/expired.pem"}}
  future: {{url: "https://{of_the_future}", ca: "{folder}/of the future.pem"}}
  another: {{url: "https://{of_another}", ca: "{folder}/of another.pem"}}
  plain: {{url: "https://{plain}"}}
  tls: {{url: "http://{good}"}}
  nowhere: {{url: "http://model.invalid/v1"}}
default: own
models:
  unknown: {{upstream: unknown}}
  expired: {{upstream: expired}}
  future: {{upstream: future}}
  another: {{upstream: another}}
  plain: {{upstream: plain}}
  tls: {{upstream: tls}}
  nowhere: {{upstream: nowhere}}
"""


@pytest.fixture(scope="module")
def addresses(folder: Path) -> Iterator[dict[str, str]]:
    with ExitStack() as stack:
        named = {name: stack.enter_context(serving(context_of(folder, name))) for name in CERTIFICATES}
        plain = stack.enter_context(serving(None))
        yield {name.replace(" ", "_"): address for name, address in named.items()} | {"plain": plain}


@pytest.fixture(scope="module")
def gateway(folder: Path, addresses: dict[str, str]) -> Iterator[GatewayProcess]:
    with run_gateway(config=CONFIG.format(folder=folder, **addresses)) as started:
        yield started


def message(got: RawResponse) -> str:
    return str(got.json["error"]["message"])


@pytest.mark.parametrize(
    ("model", "hint", "attempts"),
    [
        ("unknown", "self-signed certificate; if you trust it, set `ca` or SSL_CERT_FILE to its file", 1),
        ("expired", "certificate has expired; check the system clocks", 1),
        ("future", "certificate is not yet valid; check the system clocks", 1),
        ("another", "IP address mismatch, certificate is not valid for '127.0.0.1'.", 1),
        ("plain", "should the URL be http://?", 1),
        ("tls", "", 2),
        ("nowhere", "cannot resolve the host name of http://model.invalid/v1; check the name and the network", 2),
    ],
)
@pytest.mark.parametrize("wire", [CHAT, MESSAGES])
def test_33_tls_and_dns_errors_are_reported_with_a_hint(
    gateway: GatewayProcess, wire: str, model: str, hint: str, attempts: int
) -> None:
    got = request_reply(gateway, wire, model, stream=False)
    assert got.status == 502
    assert got.json["error"]["type"] == ("api_error" if wire == MESSAGES else "server_error")
    assert message(got).startswith(f"{model}: ")
    assert message(got).endswith(hint)
    id = got.header("x-interlingua-id")
    line = next(line for line in gateway.wait_for_log(f"{id}\n").splitlines() if line.endswith(str(id)))
    assert ("2 attempts" in line) == (attempts == 2), "permanent errors are not retried"


@pytest.mark.parametrize("model", ["own-certificate", "own"])
def test_33_own_certificate_is_trusted_with_ca_setting(gateway: GatewayProcess, model: str) -> None:
    assert reply_text(request_reply(gateway, CHAT, model, stream=False), CHAT) == "Hello"


def test_33_fallback_on_adds_statuses_for_failover() -> None:
    config = """
upstreams: {{first: {{url: "{url}"}}}}
models:
  first: {{upstream: first, fallback: [second], fallback_on: [401, 404]}}
  second: {{upstream: first}}
  strict: {{upstream: first, fallback: [second]}}
"""
    upstream = UpstreamServer()
    try:
        upstream.add("second", up.chat_stream("Hello"))
        for model in ("first", "strict"):
            upstream.add(model, up.send_response("404 No", b'{"error": {"message": "no such model"}}'))
        with run_gateway(config=config.format(url=upstream.url)) as gateway:
            assert reply_text(request_reply(gateway, CHAT, "first"), CHAT) == "Hello"
            assert request_reply(gateway, CHAT, "strict").status == 404
            assert upstream.count("first") == 1
    finally:
        upstream.stop()


def test_33_tls_failure_fails_over(addresses: dict[str, str], folder: Path) -> None:
    config = """
upstreams: {{bad: {{url: "https://{expired}"}}, good: {{url: "https://{good}", ca: "{folder}/good.pem"}}}}
models: {{m: {{upstream: bad, fallback: [n]}}, n: {{upstream: good}}}}
"""
    with run_gateway(config=config.format(folder=folder, **addresses)) as gateway:
        assert reply_text(request_reply(gateway, CHAT, "m", stream=False), CHAT) == "Hello"


def test_33_ssl_cert_file_from_environment_is_trusted(addresses: dict[str, str], folder: Path) -> None:
    url = f"https://{addresses['good']}"
    with run_gateway("--upstream", url, SSL_CERT_FILE=str(folder / "good.pem")) as gateway:
        assert reply_text(request_reply(gateway, CHAT, "m", stream=False), CHAT) == "Hello"


@pytest.mark.parametrize("text", [None, "no certificate"])
def test_33_invalid_ca_file_is_reported_at_start(tmp_path: Path, text: str | None) -> None:
    path = tmp_path / "ca.pem"
    if text is not None:
        path.write_text(text, encoding="utf-8")
    settings = Settings(upstreams={"own": Upstream(url="https://127.0.0.1/v1", ca=str(path))})
    with pytest.raises(BadSetting, match=r"ca\.pem' cannot be read"):
        check_certificates(settings)


# ── proxies ───────────────────────────────────────────────────────────────────────────────────────────────────────────


class Tunnel(socketserver.BaseRequestHandler):
    """Proxy that accepts one CONNECT request, or refuses it."""

    status = "200 Connection established"
    wanted: list[str]

    def handle(self) -> None:
        head = b""
        while not head.endswith(b"\r\n\r\n"):
            head += self.request.recv(1)
        target = head.split()[1].decode()
        type(self).wanted.append(target)
        self.request.sendall(f"HTTP/1.1 {self.status}\r\n\r\n".encode())
        if not self.status.startswith("200"):
            return
        host, port = target.split(":")
        assert host == FAR
        with socket.create_connection(("127.0.0.1", int(port)), 10) as beyond:
            back = threading.Thread(target=_copy, args=(beyond, self.request), daemon=True)
            back.start()
            _copy(self.request, beyond)


def _copy(source: socket.socket, target: socket.socket) -> None:
    try:
        while data := source.recv(1 << 16):
            target.sendall(data)
    except OSError:
        pass


@contextmanager
def tunnel(status: str) -> Iterator[tuple[str, list[str]]]:
    wanted: list[str] = []
    handler = type("Handler", (Tunnel,), {"status": status, "wanted": wanted})
    server = socketserver.ThreadingTCPServer(("127.0.0.1", 0), handler)
    server.daemon_threads = True
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.05}, daemon=True)
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_address[1]}", wanted
    finally:
        server.shutdown()
        server.server_close()
        thread.join(5)


@pytest.mark.parametrize("status", ["200 Connection established", "403 Forbidden"])
def test_33_https_uses_the_proxy(addresses: dict[str, str], folder: Path, status: str) -> None:
    far = addresses["good"].replace("127.0.0.1", FAR)
    url, trusted = f"https://{far}", str(folder / "good.pem")
    with tunnel(status) as (proxy, wanted):
        environment = {"HTTPS_PROXY": proxy, "https_proxy": proxy, "NO_PROXY": "", "no_proxy": ""}
        with run_gateway("--upstream", url, SSL_CERT_FILE=trusted, **environment) as gateway:
            got = request_reply(gateway, CHAT, "m", stream=False)
    assert set(wanted) == {far.removesuffix("/v1")}
    if status.startswith("200"):
        assert reply_text(got, CHAT) == "Hello"
    else:
        assert got.status == 502
        assert message(got).endswith("returned status 403; check HTTPS_PROXY and NO_PROXY")


def test_33_unreachable_proxy_is_an_error() -> None:
    environment = {
        "HTTP_PROXY": "http://127.0.0.1:9",
        "http_proxy": "http://127.0.0.1:9",
        "NO_PROXY": "",
        "no_proxy": "",
    }
    with run_gateway("--upstream", "http://model.example/v1", **environment) as gateway:
        got = request_reply(gateway, CHAT, "m", stream=False)
    assert got.status == 502
    assert "the proxy for http://model.example/v1 cannot be reached" in message(got)


# ── clocks ────────────────────────────────────────────────────────────────────────────────────────────────────────────

NOW = 1_800_000_000.0


@pytest.mark.parametrize(
    ("retry_at", "upstream_clock", "delay"),
    [
        (NOW + 30, None, 30),
        (NOW - 3600, None, 0),
        (NOW + 30, NOW, 30),
        (NOW + 3630, NOW + 3600, 30),  # the clock of the upstream is an hour ahead of ours
        (NOW - 3570, NOW - 3600, 30),
        (NOW, NOW + 60, 0),
    ],
)
def test_33_retry_after_date_is_relative_to_the_upstream_clock(
    retry_at: float, upstream_clock: float | None, delay: float
) -> None:
    headers = {"retry-after": formatdate(retry_at, usegmt=True)}
    if upstream_clock is not None:
        headers["date"] = formatdate(upstream_clock, usegmt=True)
    assert retry_delay(headers, NOW) == delay


@pytest.mark.parametrize("value", ["soon", "", "Mon, 99 Foo 2026", "Mon, 1 Jan 0001 00:00:00 -0000", "-5", "nan"])
def test_33_invalid_retry_after_is_ignored(value: str) -> None:
    assert retry_delay({"retry-after": value}, NOW) in (None, 0)
