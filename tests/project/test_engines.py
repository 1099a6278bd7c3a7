"""Tests of the programs that ask engines about exports: they notice what is wrong, and their page is complete."""

from __future__ import annotations

import re
import sys

import pytest

import interlingua as il
from engines.builtin_tags import BUILTIN_TAGS
from engines.decoding import endings_of
from engines.environments import ENVIRONMENTS, NotInstalled, python_of
from engines.reply_check import find_problems
from interlingua.dialects.registry import get_dialect
from tests.support.paths import ROOT

HERMES = get_dialect("hermes")
CALL = '<tool_call>\n{"name": "get_weather", "arguments": {"city": "Paris"}}\n</tool_call>'
PAGE = (ROOT / "docs" / "engines.md").read_text(encoding="utf-8")


@pytest.mark.parametrize(
    ("text", "ended", "problems"),
    [
        (CALL, True, []),
        (CALL + '\n<tool_call>\n{"name": "get_wea', False, []),
        (CALL + '\n<tool_call>\n{"name": "now", "arguments": {', True, ["a call is incomplete"]),
        ("Paris.", True, ["no call"]),
        ("Paris.", False, []),
        (CALL.replace("get_weather", "get_wether"), True, ["no call"]),
    ],
)
def test_problems_of_replies(text: str, ended: bool, problems: list[str]) -> None:
    assert find_problems(text, HERMES, ended=ended) == problems


def test_arguments_that_do_not_fit_are_a_problem() -> None:
    [problem] = find_problems(CALL.replace('"city"', '"town": 1, "city"'), HERMES, ended=True)
    assert "town" in problem


def test_endings_of_a_dialect() -> None:
    assert endings_of(HERMES) == ['"}}\n</tool_call>', "</think>"]


def test_habits_go_on_with_markers(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(str(ROOT / "engines" / "scripts"))
    from habits import END, Habits  # type: ignore[import-not-found]

    habits = Habits(["<ab>", "<a"], ["</a>"], END + 2)
    state = 0
    for byte in b"x<a":
        state = habits.next_state[state][byte]
    likes = max(range(END + 2), key=habits.bonus[state].__getitem__)
    assert likes == ord("b")
    assert habits.bonus[state][END + 1] < -1e6
    assert habits.next_state[state][END] == 0
    sys.modules.pop("habits")


def test_environments_have_pins() -> None:
    assert {"llama-cpp", "xgrammar"} <= set(ENVIRONMENTS)


def test_missing_environment_is_named(monkeypatch: pytest.MonkeyPatch, tmp_path: object) -> None:
    monkeypatch.setattr("engines.environments.FOLDER", tmp_path)
    with pytest.raises(NotInstalled, match="`make engines` creates it"):
        python_of("xgrammar")


def test_page_has_every_dialect_and_every_built_in_tag() -> None:
    carried, _, rest = PAGE.partition("## Replies of a constrained model")
    decoded, _, builtin = rest.partition("## xgrammar's built-in tags")
    dialects = {dialect.name for dialect in il.dialects() if dialect.shape}
    assert set(re.findall(r"^\| `(\w+)` \|", carried, re.M)) == dialects
    assert set(re.findall(r"^\| `(\w+)` \|", builtin, re.M)) == {tag.model for tag in BUILTIN_TAGS}
    rows = re.findall(r"^\| `\w+` \| ours \| [\d,]+ \| ([\d,]+) \| (\S*)", decoded, re.M)
    assert rows
    assert {share for ended, share in rows if ended != "0"} == {"100%"}
