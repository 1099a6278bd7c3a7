"""agentic-api, sglang-router and smg: each forwards requests to the same API of its upstream, and converts nothing.

For Responses, agentic-api also stores replies and runs tools; see `bench.peers.features`.
"""

from __future__ import annotations

import tempfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

from bench.peers import install
from bench.peers.running import Peer, free_port, run_peer

__all__ = ["agentic_api", "sglang_router", "smg"]


@contextmanager
def agentic_api(url: str) -> Iterator[Peer]:
    """Run agentic-api in front of the upstream with this URL, without `/v1`."""
    program = install.agentic_api()
    port = free_port()
    args = [
        *(str(program), "--llm-api-base", url, "--skip-llm-ready-check"),
        *("--gateway-host", "127.0.0.1", "--gateway-port", str(port)),
    ]
    with (
        tempfile.TemporaryDirectory(prefix="agentic-api-", ignore_cleanup_errors=True) as folder,
        run_peer(args, Path(folder), port, "/health", {"RUST_LOG": "warn"}) as process,
    ):
        yield Peer("agentic-api", install.AGENTIC_API, process.pid, port, _same, Path(folder) / "log")


@contextmanager
def sglang_router(url: str) -> Iterator[Peer]:
    """Run sglang-router in front of the upstream with this URL, without `/v1`. It does not look at the model."""
    with _run_router("sglang-router", install.SGLANG_ROUTER, install.sglang_router(), [url]) as peer:
        yield peer


@contextmanager
def smg(models: Mapping[str, str]) -> Iterator[Peer]:
    """Run smg.

    Args:
        models: Model ids, and the base URL of each, including `/v1`. smg asks each URL for its model id.
    """
    urls = [url.removesuffix("/v1") for url in models.values()]
    with _run_router("smg", install.SMG, install.smg(), urls) as peer:
        yield peer


@contextmanager
def _run_router(name: str, version: str, program: Path, urls: list[str]) -> Iterator[Peer]:
    port = free_port()
    args = [
        *(str(program), "launch", "--worker-urls", *urls, "--worker-startup-check-interval", "1"),
        *("--host", "127.0.0.1", "--port", str(port), "--log-level", "warn"),
        *("--prometheus-host", "127.0.0.1", "--prometheus-port", str(free_port())),
        *("--tool-call-parser", "kimik2"),  # for the attempt with Kimi's text
    ]
    with (
        tempfile.TemporaryDirectory(prefix=f"{name}-", ignore_cleanup_errors=True) as folder,
        run_peer(args, Path(folder), port, "/health", {}) as process,
    ):
        yield Peer(name, version, process.pid, port, _same, Path(folder) / "log")


def _same(model: str) -> str:
    return model
