"""Results of the runs as Markdown: a row for each client and API, a column for each dialect."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import date

from e2e import plain_server
from e2e.run import Outcome

__all__ = ["page", "table"]

GREEN, RED = "✅", "❌"


def table(outcomes: Iterable[Outcome]) -> str:
    """Return the table, with one cell per run. Durations are left out, because they depend on the machine."""
    rows: dict[tuple[str, str, str], dict[str, str]] = {}
    for one in outcomes:
        client = one.spec.client
        row = rows.setdefault((client.title, client.version, f"`{one.spec.api}`"), {})
        row[_column(one.spec.model)] = RED if one.why else GREEN
    models = list(dict.fromkeys(model for row in rows.values() for model in row))
    head = ["client", "version", "API", *models]
    body = [[*names, *(row.get(model, "") for model in models)] for names, row in rows.items()]
    return "\n".join(f"| {' | '.join(line)} |" for line in (head, ["---"] * len(head), *body))


def _column(model: str) -> str:
    return "plain vLLM" if model == plain_server.MODEL else f"`{model.removeprefix('demo/')}`"


def page(outcomes: Iterable[Outcome], whole: int, day: date, seconds: float) -> str:
    """Return the page of the documentation: the table, and a sentence for each red cell.

    Args:
        outcomes: Results of the runs.
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
turn joins them. The program must also exit with status 0. Claude Code and Codex read an image first. "Plain vLLM" is a
server that answers like vLLM without options: no tool parser, no vision, a context of 40,960 tokens.
[Agents](reference/agents.md) has the settings of each agent, and each SDK has [a page](clients).

{table(every)}
"""
    red = [one for one in every if one.why]
    if red:
        text += "\n## Failed runs\n\n" + "\n".join(f"- {_name(one)}: {_escape_line(one.why)}" for one in red) + "\n"
    return text


def _name(outcome: Outcome) -> str:
    spec = outcome.spec
    return f"{spec.client.title} {spec.client.version}, `{spec.api}`, `{spec.model}`"


def _escape_line(text: str) -> str:
    return " ".join(text.replace("|", "\\|").split())
