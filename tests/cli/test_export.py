"""Tests of `interlingua export`."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from interlingua.cli import main
from tests.support.export_cases import TOOLS, closed, function


@pytest.fixture
def tools(tmp_path: Path) -> str:
    path = tmp_path / "tools.json"
    path.write_text(json.dumps(TOOLS), encoding="utf-8")
    return str(path)


def test_structural_tag_goes_to_standard_output(tools: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["export", "structural-tag", "--model", "Qwen/Qwen3-8B", "--tools", tools]) == 0
    output, errors = capsys.readouterr()
    assert (json.loads(output)["type"], errors) == ("structural_tag", "")


def test_prefill_is_left_out(tools: str, capsys: pytest.CaptureFixture[str]) -> None:
    options = ["export", "gbnf", "--dialect", "hermes", "--tools", tools, "--tool-choice", "now"]
    assert main([*options, "--prefill", "<think>"]) == 0
    root = capsys.readouterr().out.splitlines()[0]
    assert root.startswith("root ::= text-")


def test_what_is_not_enforced_is_a_note(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "tools.json"
    path.write_text(json.dumps([function("f", closed({"a": {"type": "string", "pattern": "^x$"}}))]), encoding="utf-8")
    assert main(["export", "structural-tag", "--dialect", "hermes", "--tools", str(path)]) == 0
    assert capsys.readouterr().err == "note: f.a: 'pattern' is not enforced\n"


@pytest.mark.parametrize(
    ("arguments", "status", "error"),
    [
        (["gbnf", "--dialect", "hermes"], 2, "error: gbnf needs --tools: it contains their names and params"),
        (
            ["gbnf", "--dialect", "hermes", "--tools", "TOOLS", "--tool-choice", "nwo"],
            1,
            "error: --tool-choice names 'nwo', which",
        ),
        (["response-template", "--dialect", "pythonic"], 1, "error: calls of the shape pythonic"),
        (["json", "--model", "a/b"], 2, "error: no dialect is known for the model 'a/b'\nhint: add --dialect NAME"),
        (["structural-tag", "--dialect", "hermes", "--tools", "TOOLS", "--prefill", "<tool_cal"], 1, "error: "),
    ],
)
def test_errors(arguments: list[str], status: int, error: str, tools: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["export", *(tools if argument == "TOOLS" else argument for argument in arguments)]) == status
    output, errors = capsys.readouterr()
    assert (output, errors[: len(error)]) == ("", error)


def test_templates_without_an_anchor_and_with_tools_are_noted(tools: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["export", "response-template", "--dialect", "hermes", "--tools", tools]) == 0
    assert capsys.readouterr().err.splitlines() == [
        "note: without --start-anchor, the template reads earlier replies of a prompt, too",
        "note: response-template does not depend on the tools",
    ]
