"""Compile times: how long xgrammar takes for the structural tag of each dialect, with forty tools."""

from __future__ import annotations

import json
import sys
from typing import Any

import interlingua as il
from engines.environments import FOLDER
from engines.judge import Judge
from interlingua.errors import NotExpressible

__all__ = ["TOOL_COUNT", "load_compile_times", "measure_compile_times"]

TOOL_COUNT = 40
RUNS = 3
RESULTS = FOLDER / "results" / "compile-times.json"


def make_tools(count: int) -> list[dict[str, Any]]:
    """Return tools with four params each, of the types that agents use."""
    properties = {
        "path": {"type": "string"},
        "limit": {"type": "integer"},
        "recursive": {"type": "boolean"},
        "edits": {
            "type": "array",
            "items": {"type": "object", "properties": {"old": {"type": "string"}, "new": {"type": "string"}}},
        },
    }
    parameters = {"type": "object", "properties": properties, "required": ["path"]}
    return [
        {"type": "function", "function": {"name": f"tool_{n}", "description": "A tool.", "parameters": parameters}}
        for n in range(count)
    ]


def measure_compile_times() -> dict[str, Any]:
    """Compile each tag a few times on one thread. Print and return the shortest times in seconds, and keep them."""
    tools = make_tools(TOOL_COUNT)
    times: dict[str, float] = {}
    with Judge("xgrammar", "xgrammar_judge.py") as judge:
        for dialect in il.dialects():
            if not dialect.shape:
                continue
            try:
                tag = il.export("structural-tag", dialect, tools).content
            except NotExpressible as error:
                print(f"{dialect.name}: {error}", file=sys.stderr)
                continue
            times[dialect.name] = min(judge.compile(tag) for _ in range(RUNS))
            print(f"{dialect.name:20} {times[dialect.name] * 1000:8.0f} ms")
        measured = {"xgrammar": judge.ask(do="version"), "seconds": times}
    RESULTS.parent.mkdir(parents=True, exist_ok=True)
    RESULTS.write_text(json.dumps(measured), encoding="utf-8")
    return measured


def load_compile_times() -> dict[str, Any]:
    """Return the kept times; none if they were not measured."""
    if not RESULTS.exists():
        return {"xgrammar": "", "seconds": {}}
    measured: dict[str, Any] = json.loads(RESULTS.read_text(encoding="utf-8"))
    return measured
