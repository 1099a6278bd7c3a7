"""Markdown page of `bench.conformance`: a table of faults and gateways, with the reason for each result."""

from __future__ import annotations

from collections import Counter
from typing import Any

from interlingua.faults.apis import API_BY_NAME
from interlingua.faults.catalog import FAULT_ROWS

__all__ = ["page"]

API_NAMES = {api: name for name, api in API_BY_NAME.items()}
MAX_REASON_CHARS = 110
HEAD = """\
# Conformance: faults of upstreams and clients

```console
$ python -m bench.conformance    # tests all gateways and writes this page; installs the other gateways once
```

The upstream of each gateway is `interlingua faults serve`, with chat completions. `interlingua faults check` is the
client, in each API that the gateway offers. The upstream timeout of each gateway is set to {timeout:g} s;
claude-code-router has no such setting and waits an hour. Clients wait {patience:g} s. All other settings have their
defaults, except that LiteLLM is set to convert Messages and Responses to chat completions. Two cores were shared with
other work. Results are kept until the next test of the same gateway: gateways may have been tested at different times
of their day, and in parts.

A result is *right* if the client gets what it needs. The check is generous: an error that clients notice counts as much
as a retry, and if a row allows several behaviours, each of them is right. *Refused*: the gateway did not accept the
request, so the fault did not occur. *Not judged*: the result cannot be judged from outside; for Interlingua, unit tests
check it. This project was built against these faults, so it should do well here: its wrong results are open tasks.

{versions}

"""


def page(found: list[dict[str, Any]], missing: list[str], timeout: float, patience: float) -> str:
    """Return the page.

    Args:
        found: Results of the tested gateways.
        missing: Titles of gateways without results.
        timeout: Upstream timeout of the gateways in seconds.
        patience: Timeout of the client in seconds.
    """
    lines = [f"- {one['gateway']} {one['version']}, {one['day']}: {_counts(one)}" for one in found]
    lines += [f"- {title}: **missing**, because there are no results" for title in missing]
    return HEAD.format(timeout=timeout, patience=patience, versions="\n".join(lines)) + _table(found)


def _counts(gateway: dict[str, Any]) -> str:
    """Count the outcomes; each scenario counts once per API."""
    counts = Counter(result["outcome"] for result in gateway["results"])
    return ", ".join(f"{counts[outcome]} {outcome}" for outcome in ("right", "wrong", "refused", "not judged"))


def _table(found: list[dict[str, Any]]) -> str:
    names = [one["gateway"] for one in found]
    lines = [f"| fault | {' | '.join(names)} |", f"|---|{'---|' * len(names)}"]
    for row in FAULT_ROWS:
        lines.append(f"| **{row.number}. {_cell(row.title)}** |{' |' * len(names)}")
        for scenario in row.scenarios:
            cells = [_gateway_cell(one, scenario.name) for one in found]
            short = scenario.name.split("-", 2)[2]
            lines.append(
                f"| {short}: {_cell(scenario.description)} *{_cell(scenario.expected)}* | {' | '.join(cells)} |"
            )
    return "\n".join(lines) + "\n"


def _gateway_cell(gateway: dict[str, Any], name: str) -> str:
    """Return the cell of one gateway, with its APIs grouped by outcome."""
    results = [result for result in gateway["results"] if result["name"] == name]
    groups: dict[str, list[dict[str, str]]] = {}
    for result in results:
        groups.setdefault(result["outcome"], []).append(result)
    lines = []
    for outcome, same in groups.items():
        where = "" if len(groups) == 1 else f" ({', '.join(API_NAMES[one['api']] for one in same)})"
        why = "" if outcome == "not judged" else f": {_why(same[0]['why'])}"
        mark = f"**{outcome}**" if outcome == "wrong" else outcome
        lines.append(f"{mark}{where}{why}")
    return "<br>".join(lines) or "–"


def _why(text: str) -> str:
    return _cell(text if len(text) <= MAX_REASON_CHARS else f"{text[:MAX_REASON_CHARS]}…")


def _cell(text: str) -> str:
    """Escape text for a table cell."""
    clean = "".join(char if char.isprintable() else " " for char in text)
    for char in "\\|<>*_`[]":
        clean = clean.replace(char, f"\\{char}")
    return clean
