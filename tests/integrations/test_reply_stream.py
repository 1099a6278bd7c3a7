"""Beginning of a reply at the end of a prompt, as plugins find it: the reply is then read as with the right prefill."""

from __future__ import annotations

import pytest

import interlingua as il
from interlingua.integrations.reply_stream import find_prefill
from tests.support.harness import FIXTURES, Case, find_dialect, load_cases, reply_as_row

PROMPT = "<|user|>What is <b>this</b>?<|end|>\n"
CASES = [case for path in sorted(FIXTURES.glob("*.toml")) for case in load_cases(path.stem)]
PREFILLED = [case for case in CASES if case.prefill]


@pytest.mark.parametrize("case", PREFILLED, ids=str)
def test_prompt_that_begins_the_reply(case: Case) -> None:
    dialect = find_dialect(case.dialect)
    found = find_prefill(PROMPT + case.prefill, dialect)
    expected = il.parse(case.full_text, dialect, case.offered_tools, case.prefill)
    actual = il.parse(case.full_text, dialect, case.offered_tools, found)
    assert reply_as_row(actual) == reply_as_row(expected), found


def test_prompt_that_does_not_begin_the_reply() -> None:
    for dialect in il.dialects():
        if dialect.router is None:
            assert find_prefill(PROMPT, dialect) == ""
            closed = [f"{PROMPT}{span.open}Hm.{span.close}\n\n" for span in dialect.thinking]
            assert {find_prefill(prompt, dialect) for prompt in closed} <= {""}
