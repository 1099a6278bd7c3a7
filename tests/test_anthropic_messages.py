"""Anthropic Messages: what each chunk says, what goes out, and streams to and from it."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import pytest

import interlingua as il
from tests import anthropic_client
from tests.anthropic_client import Heard, listen, parsed
from tests.anthropic_scenarios import SCENARIOS, Scenario
from tests.cuts import one_by_one, pieces, two_piece_cuts

NAME = "anthropic-messages"
each_scenario = pytest.mark.parametrize("scenario", SCENARIOS, ids=str)


def rows(table: dict[str, tuple[Any, ...]]) -> Any:
    return [pytest.param(*values, id=name) for name, values in table.items()]


def translate(parts: Iterable[bytes], source: str = NAME, target: str = NAME, **how: Any) -> tuple[bytes, list[str]]:
    translator = il.Translator(source, target, **how)
    out = b"".join([*map(translator.feed, parts), translator.close()])
    return out, [finding.kind for finding in translator.findings]


def shown(heard: Heard) -> list[Any]:
    """The blocks in the words of the scenarios."""
    told: list[Any] = []
    for block in heard.blocks:
        match block["type"]:
            case "text":
                told.append(block["text"])
            case "thinking":
                told.append((block["thinking"], block["signature"]))
            case "tool_use":
                told.append((block["id"], block["name"], block["input"]))
            case "redacted_thinking":
                told.append(block)
            case kind:
                told.append(kind)
    return told


# ── the same wire ─────────────────────────────────────────────────────────────────────────────────────────────────


@each_scenario
def test_scenario(scenario: Scenario) -> None:
    out, findings = translate([scenario.stream])
    heard = listen(out)
    assert shown(heard) == scenario.blocks, out.decode()
    assert (heard.stop or "") == scenario.stop
    assert scenario.error in (heard.error or ("", ""))[1]
    assert heard.done == (not scenario.error)
    assert findings == scenario.findings
    assert (out == scenario.stream) == scenario.untouched, out.decode()


@each_scenario
def test_however_it_is_cut(scenario: Scenario) -> None:
    stream = scenario.stream
    expected = translate([stream])
    for cut in [one_by_one(stream), *two_piece_cuts(stream, 60), *(pieces(stream, seed) for seed in range(5))]:
        assert translate(cut) == expected, cut


@each_scenario
def test_sdk(scenario: Scenario) -> None:
    out, _ = translate([scenario.stream])
    heard = listen(out)
    told = anthropic_client.accumulate(out)
    if heard.error:
        assert told.error == heard.error
    elif scenario.stop != "max_tokens":  # a call that was cut is read in another way by each client
        assert parsed(told) == parsed(heard)
