"""LiteLLM's proxy as its documentation starts it, in front of chat completions; it also answers `/v1/messages`."""

from __future__ import annotations

import json
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

from bench.peers import install
from bench.peers.running import Peer, free_port, running

__all__ = ["litellm"]

SETTINGS = {
    "telemetry": False,
    # Messages would otherwise be asked for as Responses, which few upstreams have.
    "use_chat_completions_url_for_anthropic_messages": True,
}
QUIET = {
    "LITELLM_LOCAL_MODEL_COST_MAP": "True",  # its prices come with it, not from the network
    "LITELLM_MODE": "PRODUCTION",  # no .env of the folder that it is started in
    "LITELLM_LOG": "ERROR",
    # No key, as our gateway asks for none on loopback: else its checking would be measured, too.
    "LITELLM_DANGEROUSLY_PERMIT_WEAK_OR_UNSET_MASTER_KEY": "true",
    "DISABLE_ADMIN_UI": "True",
    "DO_NOT_TRACK": "1",
}


@contextmanager
def litellm(models: Mapping[str, str], key: str = "none", timeout: float | None = None) -> Iterator[Peer]:
    """Models are names that clients ask for, and the base URL, `/v1` included, where each is served under its name.

    The key is the upstream's; the timeout, in seconds, counts for whatever it waits for.
    """
    program = install.litellm()
    port = free_port()
    with tempfile.TemporaryDirectory(prefix="litellm-", ignore_cleanup_errors=True) as folder:
        home = Path(folder)
        config = home / "config.json"  # JSON is YAML
        config.write_text(json.dumps(_config(models, key, timeout)), encoding="utf-8")
        args = [
            str(program),
            "--config",
            str(config),
            "--host",
            "127.0.0.1",
            "--port",
            str(port),
            "--telemetry",
            "False",
        ]
        with running(args, home, port, "/health/liveliness", QUIET) as process:
            yield Peer("LiteLLM", install.LITELLM, process.pid, port, lambda model: model, home / "log")


def _config(models: Mapping[str, str], key: str, timeout: float | None) -> dict[str, object]:
    waits = {} if timeout is None else {"timeout": timeout, "stream_timeout": timeout}
    served = [
        {
            "model_name": name,
            "litellm_params": {"model": f"openai/{name}", "api_base": url, "api_key": key, **waits},
        }
        for name, url in models.items()
    ]
    return {"model_list": served, "litellm_settings": SETTINGS}
