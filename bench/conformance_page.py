"""The page that `bench.conformance` writes: a table of faults and gateways, and why each cell says what it says."""

from __future__ import annotations

from collections import Counter
from typing import Any

from interlingua.faults.apis import API_BY_NAME
from interlingua.faults.catalog import FAULT_ROWS

__all__ = ["page"]

SHORT = {api: name for name, api in API_BY_NAME.items()}
LONGEST = 110
HEAD = """\
# What gateways make of faults

```console
$ python -m bench.conformance    # judges all of them, and writes this page; the others are installed once
```

Each gateway stands in front of `interlingua faults serve`, which it asks for chat completions, and `interlingua
faults check` plays its clients, in each API that it has. Each is told to wait at most {timeout:g} s for its upstream;
claude-code-router has no setting for that, and waits an hour. Clients wait {patience:g} s. All else is as each gateway
has it by default. LiteLLM asks for Responses where its client does, and for whole ones. Two cores were shared with
other work. What is judged stays until it is judged again: a gateway may have been judged at another time of its day
than the others, and in parts.

A fault is *right* if a client gets what it needs. The check is generous: an error that clients notice is as good as
another attempt, and where a row is a choice, either is right. *Refused*: the gateway took no such request, so that the
fault was not met. What cannot be judged from outside is not; for ours, tests do. The faults are those that this project
was built against, so that it should do well here: what is wrong of it is what is still to be done.

{versions}

"""


def page(found: list[dict[str, Any]], missing: list[str], timeout: float, patience: float) -> str:
    """Of the gateways that were judged; those that are missing are named."""
    lines = [f"- {one['gateway']} {one['version']}, {one['day']}: {_counts(one)}" for one in found]
    lines += [f"- {title}: **missing**, for it was not judged here" for title in missing]
    return HEAD.format(timeout=timeout, patience=patience, versions="\n".join(lines)) + _table(found)


def _counts(gateway: dict[str, Any]) -> str:
    """Of scenarios in an API each."""
    counts = Counter(result["outcome"] for result in gateway["results"])
    return ", ".join(f"{counts[outcome]} {outcome}" for outcome in ("right", "wrong", "refused", "not judged"))


def _table(found: list[dict[str, Any]]) -> str:
    names = [one["gateway"] for one in found]
    lines = [f"| fault | {' | '.join(names)} |", f"|---|{'---|' * len(names)}"]
    for row in FAULT_ROWS:
        lines.append(f"| **{row.number}. {_cell(row.title)}** |{' |' * len(names)}")
        for scenario in row.scenarios:
            cells = [_judged(one, scenario.name) for one in found]
            short = scenario.name.split("-", 2)[2]
            lines.append(
                f"| {short}: {_cell(scenario.description)} *{_cell(scenario.expected)}* | {' | '.join(cells)} |"
            )
    return "\n".join(lines) + "\n"


def _judged(gateway: dict[str, Any], name: str) -> str:
    """All APIs of one gateway in one cell: those that agree stand together."""
    results = [result for result in gateway["results"] if result["name"] == name]
    groups: dict[str, list[dict[str, str]]] = {}
    for result in results:
        groups.setdefault(result["outcome"], []).append(result)
    told = []
    for outcome, same in groups.items():
        where = "" if len(groups) == 1 else f" ({', '.join(SHORT[one['api']] for one in same)})"
        why = "" if outcome == "not judged" else f": {_why(same[0]['why'])}"
        mark = f"**{outcome}**" if outcome == "wrong" else outcome
        told.append(f"{mark}{where}{why}")
    return "<br>".join(told) or "–"


def _why(text: str) -> str:
    return _cell(text if len(text) <= LONGEST else f"{text[:LONGEST]}…")


def _cell(text: str) -> str:
    """Text that stands in a cell of a table as it is."""
    clean = "".join(char if char.isprintable() else " " for char in text)
    for char in "\\|<>*_`[]":
        clean = clean.replace(char, f"\\{char}")
    return clean
