"""Results of the runs as Markdown: a table of clients and models, and one of scenarios."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import date

from e2e.plain_servers import SERVERS
from e2e.run import Outcome, RunSpec

__all__ = ["describe_statuses", "page", "scenario_table", "table"]

GREEN, RED = "✅", "❌"


def table(outcomes: Iterable[Outcome]) -> str:
    """Return the table of the usual task: a row for each client and API, a column for each model."""
    rows: dict[tuple[str, str, str], dict[str, str]] = {}
    for one in outcomes:
        client = one.spec.client
        if not one.spec.scenario.name:
            row = rows.setdefault((client.title, client.version, f"`{one.spec.api}`"), {})
            row[_model(one.spec)] = _sign(one)
    models = list(dict.fromkeys(model for row in rows.values() for model in row))
    body = [[*names, *(row.get(model, "") for model in models)] for names, row in rows.items()]
    return _markdown(["client", "version", "API", *models], body)


def scenario_table(outcomes: Iterable[Outcome]) -> str:
    """Return the table of the scenarios, with one row per run."""
    body = [
        [spec.scenario.title, spec.client.title, f"`{spec.api}`", _model(spec), _sign(one), _errors(one)]
        for one in outcomes
        if (spec := one.spec).scenario.name
    ]
    return _markdown(["scenario", "client", "API", "model", "", "other statuses than 200"], body)


def _markdown(head: list[str], body: list[list[str]]) -> str:
    """Return a table; "" if it has no rows. Durations are left out, because they depend on the machine."""
    lines = (head, ["---"] * len(head), *body)
    return "\n".join(f"| {' | '.join(line)} |" for line in lines) if body else ""


def _sign(outcome: Outcome) -> str:
    return RED if outcome.why else GREEN


def _errors(outcome: Outcome) -> str:
    count, error = outcome.other_statuses, outcome.spec.scenario.expected_error
    return f"{count} of {outcome.exchanges}: “{error}”" if count else f"0 of {outcome.exchanges}"


def _model(spec: RunSpec) -> str:
    return SERVERS[spec.server].title if spec.server else f"`{spec.model.removeprefix('demo/')}`"


def page(outcomes: Iterable[Outcome], refusals: int, whole: int, day: date, seconds: float) -> str:
    """Return the page of the documentation: the tables, and a sentence for each red cell.

    Args:
        outcomes: Results of the runs.
        refusals: Number of requests that were refused and belong to no run.
        whole: Number of runs in a complete test.
        day: Day of the test.
        seconds: Duration of the test.
    """
    every = list(outcomes)
    minutes = seconds / 60
    green = sum(not one.why for one in every)
    which = "all" if len(every) == whole else f"only {len(every)} of {whole} were run, and they"
    text = f"""\
# End-to-end tests of clients

Written by `python -m e2e --write` on {day.isoformat()}. {green} of {len(every)} runs are
green; {which} took {minutes:.0f} minutes.

Each cell is a run of the real program against the gateway with its demo model, in a new home directory. A run is green
only if the program's own tool has written a proof file: two calls in one reply write its halves, and a call in the next
turn joins them. The program must also exit with status 0. Claude Code and Codex read an image first. The plain servers
answer like vLLM, llama.cpp and Ollama without options: no vision, a context of 40,960 tokens; vLLM has no tool parser,
llama.cpp accepts system messages only at the beginning, and Ollama refuses settings of thinking for a model without it.
The gateway has its default settings. [Agents](reference/agents.md) has the settings of each agent, and each SDK has
[a page](clients).

{describe_statuses(every, refusals)}

{table(every)}
"""
    if scenarios := scenario_table(every):
        text += f"""
## Scenarios

Further tasks, each with a check of its own of what the requests contained.

{scenarios}
"""
    red = [one for one in every if one.why]
    if red:
        text += "\n## Failed runs\n\n" + "\n".join(f"- {_name(one)}: {_escape_line(one.why)}" for one in red) + "\n"
    return text


def describe_statuses(outcomes: Iterable[Outcome], refusals: int) -> str:
    """Return how many requests were made and how they were answered. The second argument is that of `page`."""
    every = list(outcomes)
    exchanges, aborted = sum(one.exchanges for one in every), sum(one.aborted for one in every)
    expected = sum(one.other_statuses for one in every if not one.why)
    unexplained = refusals + sum(one.other_statuses for one in every if one.why)
    return (
        f"Requests to models: {exchanges:,}. Answered with another status than 200: {expected + unexplained},\n"
        f"of which the scenarios explain {expected}; unexplained: {unexplained}. Aborted by the client: {aborted}."
    )


def _name(outcome: Outcome) -> str:
    spec = outcome.spec
    scenario = f", {spec.scenario.title}" if spec.scenario.name else ""
    return f"{spec.client.title} {spec.client.version}, `{spec.api}`, `{spec.model}`{scenario}"


def _escape_line(text: str) -> str:
    return " ".join(text.replace("|", "\\|").split())
