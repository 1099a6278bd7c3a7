"""Codex: an additional provider, defined in arguments that name the environment variable with the key.

Codex knows some models by name. For any other model it prints a warning, and offers no `apply_patch`. So the model is
described in a catalogue, which replaces Codex's own for this run. Names that Codex knows keep its own description.
"""

from __future__ import annotations

import json
import re
from typing import Any

from interlingua.agents.base import KEY_VARIABLE, Agent, AgentSetup, AgentTarget

__all__ = ["AGENT"]

CATALOG_FILE = "models.json"
KNOWN_MODEL = re.compile(r"gpt-\d")
"""Beginning of the names that Codex knows. The model behind such a name may be any other."""
MAX_TOOL_OUTPUT_TOKENS = 10_000
"""Length at which Codex truncates the output of a tool."""
INSTRUCTIONS = """\
You are a coding agent in the Codex CLI. You and the user share one workspace: read, run and change what is in it to do
what the user asks, and keep going until it is done.

- Look before you change: read the relevant files and the instructions in AGENTS.md first. Search with `rg` if it is
  there.
- Change files with `apply_patch`. Keep changes small, in the style of the code around them, and limited to the task.
  Do not undo changes that are not yours, and do not commit unless the user asks for it.
  A patch has this form; a line that stays begins with a space:
  *** Begin Patch
  *** Update File: src/main.py
  @@ def main():
   name = "x"
  -print(name)
  +print(name.upper())
  *** Add File: notes.txt
  +first line
  *** End Patch
- Check your work: run the tests or the program, and fix what fails.
- Before a group of commands, tell the user in one short sentence what you are about to do.
- At the end, say what you changed, where, and what you could not check. Be brief and factual.
"""
"""Instructions for models without their own: the catalogue requires them."""


def setup(target: AgentTarget) -> AgentSetup:
    provider = {
        "name": "Interlingua",
        "base_url": target.api_base_url,
        "wire_api": "responses",
        "env_key": KEY_VARIABLE,
    }
    config: dict[str, str | int] = {
        "model": target.model,
        "model_provider": "il",
        "model_context_window": target.context_tokens,
    }
    files: dict[str, str] = {}
    if target.folder and not KNOWN_MODEL.match(target.model):
        config["model_catalog_json"] = f"{target.folder}/{CATALOG_FILE}"
        files[CATALOG_FILE] = json.dumps({"models": [_model_description(target)]}, indent=2)
    config |= {f"model_providers.il.{name}": text for name, text in provider.items()}
    return AgentSetup(
        argv=[
            "codex",
            *(argument for name, text in config.items() for argument in ("-c", f"{name}={json.dumps(text)}")),
        ],
        environment={KEY_VARIABLE: target.key},
        unset_variables=("OPENAI_API_KEY", "OPENAI_BASE_URL", "CODEX_API_KEY"),
        files=files,
        one_shot_argv=("exec", "--skip-git-repo-check", "--dangerously-bypass-approvals-and-sandbox"),
    )


def _model_description(target: AgentTarget) -> dict[str, Any]:
    """Return the entry of the catalogue. Codex fails to start if a required field is missing or unknown."""
    return {
        "slug": target.model,
        "display_name": target.model,
        "description": "served by Interlingua",
        "supported_reasoning_levels": [],
        "shell_type": "shell_command",
        "visibility": "list",
        "supported_in_api": True,
        "priority": 1,
        "availability_nux": None,
        "upgrade": None,
        "base_instructions": INSTRUCTIONS,
        "supports_reasoning_summaries": True,
        "default_reasoning_summary": "auto",
        "support_verbosity": False,
        "default_verbosity": None,
        "apply_patch_tool_type": "freeform",
        "truncation_policy": {"mode": "tokens", "limit": MAX_TOOL_OUTPUT_TOKENS},
        "supports_parallel_tool_calls": True,
        "context_window": target.context_tokens,
        "max_context_window": target.context_tokens,
        "effective_context_window_percent": 95,
        "experimental_supported_tools": [],
        "input_modalities": ["text", "image"],
    }


AGENT = Agent(
    name="codex",
    title="Codex",
    command="codex",
    package="@openai/codex",
    apis=("openai-responses",),
    setup=setup,
)
