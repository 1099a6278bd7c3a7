"""Genuine samples and a public parity corpus, where they lie beside the checkout. They are not part of the project."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

import interlingua as il
from interlingua.dialects import BY_NAME, dialect_named
from interlingua.markers import markers
from tests.harness import Case, cuttings, reply

CORPUS = Path(__file__).parents[2] / "shared" / "corpus"
pytestmark = pytest.mark.skipif(not CORPUS.is_dir(), reason="the corpus is not beside this checkout")

DIFFERENT = {
    "TOOLCALLING.batch.5.d": "the engines drop a call that lacks only its closer; its JSON has ended, so it is a call",
}


def rows(name: str) -> list[dict[str, Any]]:
    path = CORPUS / name
    lines = path.read_text(encoding="utf-8").splitlines() if path.exists() else []
    return [row for line in lines if (row := json.loads(line)).get("dialect") in BY_NAME]


def case(row: dict[str, Any], text: str) -> Case:
    return Case(name=text[:40], dialect=row["dialect"], text=text, prefill=row.get("prompt_prefill") or "", parts=[])


@pytest.mark.parametrize("row", rows("native.jsonl"), ids=lambda row: f"{row['template']}-{row['scenario']}")
def test_native(row: dict[str, Any]) -> None:
    if row["roundtrip"] != "exact":
        pytest.skip("what the template renders does not tell the arguments")
    text = row["generated_text"]
    whole = reply(case(row, text), [text])
    calls = [{"name": call.name, "arguments": json.loads(call.arguments)} for call in whole.calls]
    assert calls == row["expected_calls"]
    assert whole.text == (row["expected_content"] or "")
    reasoning = row["expected_reasoning"] or ""
    assert whole.reasoning == (reasoning if reasoning in text else "")  # some templates leave it out
    for _, pieces in cuttings(text):
        assert reply(case(row, text), pieces) == whole


@pytest.mark.parametrize("row", [r for r in rows("parity.jsonl") if "model_text" in r], ids=lambda row: row["case"])
def test_parity_inputs_are_cut_proof_and_leak_nothing(row: dict[str, Any]) -> None:
    text = row["model_text"]
    offered = [{"function": tool} for tool in row["tools"]]
    whole = il.parse(text, row["dialect"], tools=offered)
    assert not markers(*dialect_named(row["dialect"]).markers).search(whole.text + whole.reasoning, 0)
    parser = il.Parser(row["dialect"], tools=offered)
    assert il.fold([event for char in text for event in parser.feed(char)] + parser.close()) == whole
    engines = [e["calls"] for e in row["expected"].values() if isinstance(e, dict) and "calls" in e]
    agreed = len(engines) == 3 and all(calls == engines[0] != [] for calls in engines)
    if agreed and row["case"] not in DIFFERENT:
        complete = [call for call in whole.calls if call.complete]
        assert [{"name": call.name, "arguments": json.loads(call.arguments)} for call in complete] == engines[0]
