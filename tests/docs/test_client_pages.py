"""Tests of docs/clients: the pages show the lines and versions that `make e2e` runs."""

from __future__ import annotations

import re

import pytest

from e2e.clients import CLIENTS
from e2e.scenarios import SCENARIO_RUNS
from e2e.script import SCRIPTS
from tests.support.paths import ROOT

PAGES = ROOT / "docs" / "clients"
SHOWN = re.compile(r"^ *```(\w+)\n(.*?)^ *```$", re.M | re.S)
LINKED = re.compile(r"\]\([./]*/e2e/scripts/([^)]+)\)")
PINNED = re.compile(r"(@?[\w/-]+)(?:\[[\w,]+\])?(?:==|@)(\d[\w.]+)")

SDKS = sorted(path.stem for path in PAGES.glob("*.md") if LINKED.search(path.read_text("utf-8")))


@pytest.mark.parametrize("name", SDKS)
def test_shown_lines_are_in_the_script(name: str) -> None:
    text = (PAGES / f"{name}.md").read_text("utf-8")
    run = {
        line.strip() for script in LINKED.findall(text) for line in (SCRIPTS / script).read_text("utf-8").splitlines()
    }
    blocks = [block for language, block in SHOWN.findall(text) if language in ("python", "js", "sh")]
    shown = [line.strip() for block in blocks for line in block.splitlines()]
    assert shown
    assert [line for line in shown if line and line not in run] == []


@pytest.mark.parametrize("name", SDKS)
def test_versions_match_the_pins(name: str) -> None:
    text, client = (PAGES / f"{name}.md").read_text("utf-8"), CLIENTS[name]
    pins = {**client.python, **client.npm}
    named = dict(PINNED.findall(text))
    assert named
    assert {package: pins.get(package) for package in named} == named
    assert re.search(rf"^Tried with [\w-]+ {re.escape(client.version)}, ", text, re.M)


ROW = re.compile(r"^\| ([^|]+) \| [^|]+ \| `([^|]+)` \|", re.M)


def test_results_page_lists_every_run() -> None:
    usual, _, scenarios = (PAGES.parent / "clients.md").read_text("utf-8").partition("## Scenarios")
    assert ROW.findall(usual) == [(client.title, api) for client in CLIENTS.values() for api in client.apis]
    assert ROW.findall(scenarios) == [(spec.scenario.title, spec.api) for spec in SCENARIO_RUNS]


def test_every_script_has_a_page() -> None:
    linked = {name for path in PAGES.glob("*.md") for name in LINKED.findall(path.read_text("utf-8"))}
    assert {path.name for path in SCRIPTS.iterdir() if path.is_file()} == linked
