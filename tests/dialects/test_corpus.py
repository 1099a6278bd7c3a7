"""Genuine samples and a public parity corpus, if they are next to the checkout. They are not part of the project."""

from __future__ import annotations

import json
import tomllib
from typing import Any

import pytest

import interlingua as il
from interlingua.common.jsontext.codec import read_shallow_object
from interlingua.dialects.registry import DIALECTS_BY_NAME, get_dialect
from interlingua.parsing.markers import compile_markers
from tests.support.harness import Case, parse_reply, random_cut_variants
from tests.support.paths import DATA, SHARED

CORPUS = SHARED / "corpus"
PARITY = DATA / "parity"
pytestmark = pytest.mark.skipif(not CORPUS.is_dir(), reason="the corpus is not next to this checkout")

DIFFERENT = {path.stem: tomllib.loads(path.read_text(encoding="utf-8")) for path in PARITY.glob("*.toml")}
"""By family and case: the reason for a result that differs from the one on which the engines agree."""


def rows(name: str) -> list[dict[str, Any]]:
    path = CORPUS / name
    lines = path.read_text(encoding="utf-8").splitlines() if path.exists() else []
    return [row for line in lines if (row := json.loads(line)).get("dialect") in DIALECTS_BY_NAME]


def parsed(call: il.Call) -> dict[str, Any]:
    arguments = read_shallow_object(call.arguments) and json.loads(call.arguments)
    return {"name": call.name, "arguments": call.arguments if arguments is None else arguments}


HISTORY = ("NVIDIA-Nemotron-Nano-v2",)
"""Templates that open the thinking in the prompt and omit it in the history: no model continues in that form."""

NATIVE = rows("native.jsonl")
PARITY_ROWS = [row for row in rows("parity.jsonl") if "model_text" in row or "chunks" in row]


@pytest.mark.one_row_in(4)
@pytest.mark.parametrize("row", NATIVE, ids=lambda row: f"{row['template']}-{row['scenario']}")
def test_native(row: dict[str, Any]) -> None:
    text = row["generated_text"]
    case = Case(
        name=text[:40],
        dialect=row["dialect"],
        text=text,
        tools=row["tools"],
        prefill="" if row["template"] in HISTORY else row["prompt_prefill"] or "",
        parts=[],
    )
    uncut = parse_reply(case, [text])
    for how, pieces in [("per character", list(text)), *random_cut_variants(text, 20)]:
        assert parse_reply(case, pieces) == uncut, how
    if row["roundtrip"] != "exact":
        assert [call.name for call in uncut.calls][:1] == [row["expected_calls"][0]["name"]]
        return
    assert [parsed(call) for call in uncut.calls] == row["expected_calls"]
    assert uncut.text == (row["expected_content"] or "" if row["content_in_text"] else "")
    assert uncut.reasoning == (row["expected_reasoning"] or "" if row["reasoning_in_text"] else "")


@pytest.mark.one_row_in(4)
@pytest.mark.parametrize("row", PARITY_ROWS, ids=lambda row: f"{row['family']}-{row['case']}")
def test_parity(row: dict[str, Any]) -> None:
    """Same result for all cuts, no leaked marker, and the calls that the engines agree on, or a documented reason."""
    pieces = row.get("chunks") or [row["model_text"]]
    dialect = get_dialect(row["dialect"])
    tools = [{"function": tool} for tool in row["tools"]] if row["tools"] is not None else None
    case = Case(name=row["case"], dialect=dialect.name, text="".join(pieces), tools=tools, parts=[])
    uncut = parse_reply(case, [case.text])
    assert parse_reply(case, pieces) == uncut
    assert parse_reply(case, case.text) == uncut
    reason = DIFFERENT.get(row["family"], {}).get(row["case"])
    if reason is None or not reason.startswith("text: "):
        # JSON that may begin a call is a marker in some dialects, and text if it is none.
        markers = compile_markers(*(marker for marker in dialect.markers if '"' not in marker))
        assert not markers.search(uncut.text + uncut.reasoning, 0), uncut
    got = [parsed(call) for call in uncut.calls if call.complete]
    agreed = agreement(row)
    if agreed is not None and got != agreed:
        assert reason, f"{case.text!r}\n  engines: {agreed}\n  ours:    {got}"
    else:
        assert reason is None or reason.startswith("text: "), f"no difference is left: {reason}"


def agreement(row: dict[str, Any]) -> list[dict[str, Any]] | None:
    """Return the calls that all engines for this family report, if there are at least two and they agree."""
    engines = [e["calls"] for e in row["expected"].values() if isinstance(e, dict) and "calls" in e]
    agreed = len(engines) >= 2 and all(calls == engines[0] for calls in engines)
    return engines[0] if agreed else None
