"""Registry of the scenarios beside the usual task, each with the runs that have it."""

from __future__ import annotations

from e2e.run import RunSpec
from e2e.scenarios import compaction, subagents, tool_search, web_search

__all__ = ["SCENARIO_RUNS"]

SCENARIO_RUNS: tuple[RunSpec, ...] = (
    *tool_search.RUNS,
    *web_search.RUNS,
    *subagents.RUNS,
    *compaction.RUNS,
)
