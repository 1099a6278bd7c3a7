"""The OpenHands SDK."""

from __future__ import annotations

from e2e.client import Client
from e2e.script import launch_script, pins

__all__ = ["CLIENT"]

PINS = pins("openhands")
QUIET = {
    "LITELLM_LOCAL_MODEL_COST_MAP": "True",  # otherwise litellm downloads prices when it is imported
    "OPENHANDS_SUPPRESS_BANNER": "1",
}
CLIENT = Client(
    name="openhands",
    title="OpenHands SDK",
    version=PINS["openhands-sdk"],
    apis=("openai-chat", "anthropic-messages", "openai-responses"),
    start=launch_script("python", "openhands_loop.py", QUIET),
    tool="terminal",
    python=PINS,
    venv="openhands",
    needs_python=(3, 12),
    seconds=240,  # its import takes ten seconds, more while other clients run
)
