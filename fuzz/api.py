"""Requests by chance for every path of the gateway, made from its own description: Schemathesis asks, the demo model
answers. Nothing is a fault of the gateway, nothing takes long, and all answers are as described.

    python -m fuzz.api                   a minute; needs schemathesis (`pip install -e '.[dev]'`)
    python -m fuzz.api --seconds 600 --seed 7

This module is also what Schemathesis calls on its way: most of the requests ask for a model that is there.
"""

from __future__ import annotations

import argparse
import importlib
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

from tests.support.gateway_process import run_gateway

schemathesis: Any = importlib.import_module("schemathesis")

CHECKS = (
    "not_a_server_error",
    "status_code_conformance",
    "content_type_conformance",
    "response_headers_conformance",
    "response_schema_conformance",
    "unsupported_method",
    "allow_header_conformance",
)
SLOWEST = 10
"""Seconds after which an answer is a hang. The machine may be a slow one."""
MODELS = ("demo/kimi_k2", "demo/hermes", "demo/standard", "demo/harmony", "demo/qwen3_coder")
RUN = "from schemathesis.cli import schemathesis; schemathesis()"
CONFIG = "demo_pace: 0\n"


def before_call(context: Any, case: Any, kwargs: dict[str, Any]) -> None:  # noqa: ARG001 (called by these names)
    """Most ask for a model that is there, unless it was not to be one."""
    body = case.body
    if isinstance(body, dict) and isinstance(model := body.get("model"), str) and len(model) % 8:
        case.body = {**body, "model": MODELS[len(model) % len(MODELS)]}


schemathesis.hook(before_call)


def tried(seconds: float, seed: int, *more: str) -> subprocess.CompletedProcess[str]:
    """What Schemathesis has to say of a gateway of its own."""
    with run_gateway("--demo", config=CONFIG) as gateway:
        args = ["-c", RUN, "run", "--no-color", f"{gateway.base}/openapi.json", "--url", gateway.base]
        args += ["--checks", ",".join(CHECKS), "--max-time", str(int(seconds)), "--seed", str(seed)]
        args += ["--request-timeout", str(SLOWEST), "--phases", "coverage,fuzzing", "--continue-on-failure"]
        root = Path(__file__).parents[1]
        env = {**os.environ, "SCHEMATHESIS_HOOKS": "fuzz.api", "PYTHONPATH": os.pathsep.join([str(root), *sys.path])}
        return subprocess.run(
            [sys.executable, *args, *more],
            cwd=gateway.folder,
            env=env,
            capture_output=True,
            text=True,
            timeout=seconds * 4 + 120,
        )


def main() -> int:
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("--seconds", "-max_total_time", type=float, default=60, help="for so long")
    options.add_argument("--seed", type=int, default=0)
    ours, theirs = options.parse_known_args()
    run = tried(ours.seconds, ours.seed, *theirs)
    print(run.stdout + run.stderr)
    return run.returncode


if __name__ == "__main__":
    sys.exit(main())
