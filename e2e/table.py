"""What came of the runs, as Markdown: a row for each client and API, a column for each dialect."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import date

from e2e.run import Outcome

__all__ = ["page", "table"]

GREEN, RED = "✅", "❌"


def table(outcomes: Iterable[Outcome]) -> str:
    """One cell for each outcome. How long it took is told elsewhere: that is not the client's alone."""
    rows: dict[tuple[str, str, str], dict[str, str]] = {}
    for one in outcomes:
        client = one.errand.client
        row = rows.setdefault((client.title, client.version, f"`{one.errand.api}`"), {})
        row[f"`{one.errand.model.removeprefix('demo/')}`"] = RED if one.why else GREEN
    models = list(dict.fromkeys(model for row in rows.values() for model in row))
    head = ["client", "version", "API", *models]
    body = [[*names, *(row.get(model, "") for model in models)] for names, row in rows.items()]
    return "\n".join(f"| {' | '.join(line)} |" for line in (head, ["---"] * len(head), *body))


def page(outcomes: Iterable[Outcome], whole: int, day: date, seconds: float) -> str:
    """The table as a page of the documentation, with a sentence for each red cell. There are so many runs in whole."""
    every = list(outcomes)
    minutes = seconds / 60
    green = sum(not one.why for one in every)
    which = "all" if len(every) == whole else f"only {len(every)} of {whole} were made, and they"
    text = f"""\
# Clients, run from end to end

Written by `python -m e2e --write` on {day.isoformat()}. {green} of {len(every)} runs are
green; {which} took {minutes:.0f} minutes.

Each cell is a run of the real program against the gateway with its demo model, in a fresh home. It counts only if the
program's own tool has made a proof: two calls in one reply write its halves, and a call in the next turn puts them
together; and only if the program ends well. [Agents](reference/agents.md) says how each agent is set up, and each SDK
has [a page](clients).

{table(every)}
"""
    red = [one for one in every if one.why]
    if red:
        text += "\n## What is red, and why\n\n" + "\n".join(f"- {_name(one)}: {_plain(one.why)}" for one in red) + "\n"
    return text


def _name(outcome: Outcome) -> str:
    errand = outcome.errand
    return f"{errand.client.title} {errand.client.version}, `{errand.api}`, `{errand.model}`"


def _plain(text: str) -> str:
    return " ".join(text.replace("|", "\\|").split())
