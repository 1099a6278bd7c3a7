"""What is known of a client that is run from end to end: what it is installed from, and how it is started."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from msgspec import Struct

from interlingua.agents import Agent, AgentTarget

__all__ = ["DEV", "Client", "Launch", "Task", "of_agent"]

DEV = ""
"""The environment that this runs in: what the project's own tests use is there already."""


class Task(Struct, frozen=True, kw_only=True):
    """What a client has to do, and where."""

    base: str
    """The gateway, without a path: http://127.0.0.1:8484"""
    api: str
    """One of the client's."""
    model: str
    """demo/<dialect>"""
    key: str
    """Without it the gateway answers nobody."""
    prompt: str
    home: str
    """A folder for this run alone, which is also HOME; the launch's files are written there."""
    npm: str
    """The folder whose node_modules has all packages of npm: for programs that import them."""


class Launch(Struct, frozen=True, kw_only=True):
    """How the client is started. Its working directory is an empty folder, where its tool makes the proof."""

    argv: list[str]
    """Programs are found on PATH, what was installed first: `python` is that of the client's `venv`."""
    environment: dict[str, str] = {}
    """All that it gets beside PATH, HOME and the like: nothing of the caller's own."""
    files: dict[str, str] = {}
    """What stands in the home folder: relative names and texts."""


class Client(Struct, frozen=True, kw_only=True):
    name: str
    title: str
    version: str
    apis: tuple[str, ...]
    """Rows of the table: names of wires, or the client's own name for a variety of one."""
    start: Callable[[Task], Launch]
    tool: str = "bash"
    """Its tool that runs a command in a shell, and the param that takes the command."""
    param: str = "command"
    npm: dict[str, str] = {}
    """Packages and their exact versions."""
    python: dict[str, str] = {}
    venv: str = "venv"
    """Clients whose Python packages do not go together have environments of their own."""
    needs_python: tuple[int, int] = (3, 11)
    seconds: float = 120
    """How long one run may take."""


def of_agent(
    agent: Agent, version: str, *, tool: str, param: str = "command", environment: Mapping[str, str] | None = None
) -> Client:
    """A coding agent, pointed at the gateway as `interlingua run` does it."""

    def start(task: Task) -> Launch:
        setup = agent.setup(
            AgentTarget(
                gateway_url=task.base, api=task.api, model=task.model, key=task.key, folder=f"{task.home}/config"
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
        npm={agent.package: version},
    )
