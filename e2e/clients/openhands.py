"""The OpenHands SDK."""

from __future__ import annotations

from e2e.client import Client
from e2e.script import by_script, pins

__all__ = ["CLIENT"]

PINS = pins("openhands")
QUIET = {
    "LITELLM_LOCAL_MODEL_COST_MAP": "True",  # else litellm asks the network for prices as it is imported
    "OPENHANDS_SUPPRESS_BANNER": "1",
}
CLIENT = Client(
    name="openhands",
    title="OpenHands SDK",
    version=PINS["openhands-sdk"],
    apis=("openai-chat", "anthropic-messages", "openai-responses"),
    start=by_script("python", "openhands_loop.py", QUIET),
    tool="terminal",
    python=PINS,
    venv="openhands",
    needs_python=(3, 12),
    seconds=240,  # importing it takes ten, and more beside others
)
