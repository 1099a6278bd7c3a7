"""Description of a client for end-to-end tests: its packages and how to start it."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from msgspec import Struct

from interlingua.agents import Agent, AgentTarget
from interlingua.agents.base import DEFAULT_CONTEXT_TOKENS

__all__ = ["DEV", "Client", "Launch", "Task", "agent_client"]

DEV = ""
"""Name of the environment that runs this code, which already has the packages of the project's own tests."""


class Task(Struct, frozen=True, kw_only=True):
    """Task of a client: the prompt, the gateway and the folders."""

    base: str
    """URL of the gateway, without a path: http://127.0.0.1:8484"""
    api: str
    """One of the client's APIs."""
    model: str
    """demo/<dialect>"""
    key: str
    """Key that the gateway requires."""
    prompt: str
    home: str
    """Folder for this run only, also used as HOME; the files of the launch are written there."""
    npm: str
    """Folder whose node_modules has all npm packages, for programs that import them."""
    context_tokens: int = DEFAULT_CONTEXT_TOKENS
    """Context window that the agent is configured with."""


class Launch(Struct, frozen=True, kw_only=True):
    """Command to start the client. Its working directory is an empty folder, where its tool writes the proof."""

    argv: list[str]
    """Programs are searched on PATH, installed ones first: `python` is the one of the client's `venv`."""
    environment: dict[str, str] = {}
    """Variables in addition to PATH, HOME and similar ones. Nothing is inherited from the caller."""
    files: dict[str, str] = {}
    """Files in the home folder: relative names and texts."""


class Client(Struct, frozen=True, kw_only=True):
    name: str
    title: str
    version: str
    apis: tuple[str, ...]
    """Rows of the table: names of wires, or the client's own name for a variant of a wire."""
    start: Callable[[Task], Launch]
    tool: str = "bash"
    """Name of the client's shell tool. `param` is the parameter for the command."""
    param: str = "command"
    image_tool: str = ""
    """Name of the client's tool that reads images, and its parameter, as in `Read file_path`. "": it has none."""
    npm: dict[str, str] = {}
    """Packages and their exact versions."""
    python: dict[str, str] = {}
    venv: str = "venv"
    """Clients whose Python packages conflict have separate environments."""
    needs_python: tuple[int, int] = (3, 11)
    seconds: float = 120
    """Timeout of one run."""


def agent_client(
    agent: Agent,
    version: str,
    *,
    tool: str,
    param: str = "command",
    image_tool: str = "",
    environment: Mapping[str, str] | None = None,
) -> Client:
    """Return a coding agent as a client, configured like `interlingua run` does it.

    Args:
        agent: The agent.
        version: Version to install.
        tool: Name of its shell tool.
        param: Parameter of the tool for the command.
        image_tool: Its tool that reads images, with the parameter for the path.
        environment: Additional variables.
    """

    def start(task: Task) -> Launch:
        setup = agent.setup(
            AgentTarget(
                gateway_url=task.base,
                api=task.api,
                model=task.model,
                key=task.key,
                folder=f"{task.home}/config",
                context_tokens=task.context_tokens,
            )
        )
        return Launch(
            argv=[*setup.argv, *setup.override_argv, *setup.one_shot_argv, task.prompt],
            environment={**setup.environment, **(environment or {})},
            files={f"config/{name}": text for name, text in setup.files.items()},
        )

    return Client(
        name=agent.name,
        title=agent.title,
        version=version,
        apis=agent.apis,
        start=start,
        tool=tool,
        param=param,
        image_tool=image_tool,
        npm={agent.package: version},
    )
