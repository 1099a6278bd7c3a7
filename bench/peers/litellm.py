"""LiteLLM's proxy, started as its documentation says, with chat completions upstream, for clients of three APIs."""

from __future__ import annotations

import json
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

from bench.peers import install
from bench.peers.running import Peer, free_port, run_peer

__all__ = ["litellm"]

SETTINGS = {
    "telemetry": False,
    # Otherwise LiteLLM translates Messages to Responses, which few upstreams offer.
    "use_chat_completions_url_for_anthropic_messages": True,
}
QUIET = {
    "LITELLM_LOCAL_MODEL_COST_MAP": "True",  # use the included prices, do not download them
    "LITELLM_MODE": "PRODUCTION",  # do not read .env in the working directory
    "LITELLM_LOG": "ERROR",
    # No key, because our gateway needs none on loopback: otherwise the check of the key would be measured too.
    "LITELLM_DANGEROUSLY_PERMIT_WEAK_OR_UNSET_MASTER_KEY": "true",
    "DISABLE_ADMIN_UI": "True",
    "DO_NOT_TRACK": "1",
}


@contextmanager
def litellm(models: Mapping[str, str], key: str = "none", timeout: float | None = None) -> Iterator[Peer]:
    """Run LiteLLM's proxy.

    Args:
        models: Model ids, and the base URL of each, including `/v1`.
        key: Key of the upstream.
        timeout: Timeout in seconds for requests and for streams; None: LiteLLM's default.
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
        with run_peer(args, home, port, "/health/liveliness", QUIET) as process:
            yield Peer("LiteLLM", install.LITELLM, process.pid, port, lambda model: model, home / "log")


def _config(models: Mapping[str, str], key: str, timeout: float | None) -> dict[str, object]:
    timeouts = {} if timeout is None else {"timeout": timeout, "stream_timeout": timeout}
    served = [
        {
            "model_name": name,
            "litellm_params": {
                "model": f"openai/{name}",
                "api_base": url,
                "api_key": key,
                # Otherwise LiteLLM forwards Responses as they are.
                "use_chat_completions_api": True,
                **timeouts,
            },
        }
        for name, url in models.items()
    ]
    return {"model_list": served, "litellm_settings": SETTINGS}
