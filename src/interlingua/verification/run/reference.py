"""Reference of a run: for each sample, whether another provider's model called a tool.

A reference is a run log of this project, or `results.jsonl` of K2-Vendor-Verifier or MiniMax-Provider-Verifier.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import msgspec

from interlingua.common.schema.resolver import as_mapping
from interlingua.errors import BadInput
from interlingua.verification.run.run_log import StoredRun, is_run_log, read_run
from interlingua.verification.samples.sample import request_digest

__all__ = ["Reference", "read_reference"]

HINT = "pass a run log of `interlingua verify`, or results.jsonl of K2-Vendor-Verifier or MiniMax-Provider-Verifier"


class Reference(msgspec.Struct, frozen=True, kw_only=True):
    name: str
    called: dict[tuple[str, bool], bool]
    """For digest and mode of a sample, whether the reply called a tool."""
    run: StoredRun | None = None
    """The run, if the reference is a log of this project."""


def read_reference(path: str) -> Reference:
    """Read a reference.

    Raises:
        BadInput: The file cannot be read, or has another format.
    """
    try:
        with Path(path).open(encoding="utf-8") as file:
            first_line = file.readline()
            if not is_run_log(first_line):
                return Reference(name=Path(path).name, called=_read_results([first_line, *file], path))
    except OSError as error:
        raise BadInput(f"cannot read {path}: {error.strerror}", HINT) from error
    except UnicodeDecodeError:
        raise BadInput(f"{path} is not UTF-8 text", HINT) from None
    run = read_run(path)
    called = {(result.digest, result.stream): result.wants_tools for result in run.results}
    return Reference(name=f"{run.header.model} at {run.header.url}", called=called, run=run)


def _read_results(lines: list[str], path: str) -> dict[tuple[str, bool], bool]:
    called: dict[tuple[str, bool], bool] = {}
    for number, line in enumerate(lines, 1):
        if not line.strip():
            continue
        try:
            entry: Any = json.loads(line)
        except ValueError:
            raise BadInput(f"{path}, line {number} is not JSON", HINT) from None
        request = as_mapping(entry).get("request")
        if not isinstance(request, dict) or "finish_reason" not in entry:
            raise BadInput(f"{path}, line {number} has no request or no finish_reason", HINT)
        wants_tools = entry["finish_reason"] == "tool_calls"
        digest = request_digest(request)
        # The other verifiers send each request once, as a stream or whole. It is the reference for both.
        called |= {(digest, stream): wants_tools for stream in (True, False)}
    return called
