"""claude-code-router as `ccr start` runs it, with chat completions upstream; it offers only `/v1/messages`."""

from __future__ import annotations

import json
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

from bench.peers import install
from bench.peers.running import Peer, free_port, run_peer

__all__ = ["ccr"]


@contextmanager
def ccr(models: Mapping[str, str], key: str = "none") -> Iterator[Peer]:
    """Run claude-code-router. It has no setting for the upstream timeout, which is an hour.

    Args:
        models: Model ids, and the base URL of each, including `/v1`.
        key: Key of the upstream.
    """
    node, program = install.ccr()
    port = free_port()
    with tempfile.TemporaryDirectory(prefix="ccr-", ignore_cleanup_errors=True) as folder:
        home = Path(folder)
        config = home / ".claude-code-router" / "config.json"
        config.parent.mkdir()
        config.write_text(json.dumps(_config(models, port, key)), encoding="utf-8")
        env = {"SERVICE_PORT": str(port), "DO_NOT_TRACK": "1", "NODE_ENV": "production"}
        with run_peer([str(node), str(program), "start"], home, port, "/health", env) as process:
            # With `provider,model` the router uses exactly this model; its rules do not choose another.
            yield Peer(
                "claude-code-router", install.CCR, process.pid, port, lambda model: f"{model},{model}", home / "log"
            )


def _config(models: Mapping[str, str], port: int, key: str) -> dict[str, object]:
    providers = [
        {"name": name, "api_base_url": f"{url}/chat/completions", "api_key": key, "models": [name]}
        for name, url in models.items()
    ]
    first = next(iter(models))
    return {
        "HOST": "127.0.0.1",
        "PORT": port,
        "LOG": False,
        "NON_INTERACTIVE_MODE": True,
        "Providers": providers,
        "Router": {"default": f"{first},{first}"},
    }
