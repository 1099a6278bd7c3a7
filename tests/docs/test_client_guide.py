"""Tests of docs/guides/client.md: all its examples run."""

from __future__ import annotations

import doctest
import re
import subprocess
import sys

from tests.support.gateway_process import run_gateway
from tests.support.paths import ROOT

GUIDE = ROOT / "docs" / "guides" / "client.md"


def test_doctests_pass() -> None:
    failed, tried = doctest.testfile(str(GUIDE), module_relative=False)
    assert (failed, tried > 15) == (0, True)


def test_programs_run() -> None:
    """Blocks without `>>>` only create objects; they send no requests."""
    text = GUIDE.read_text(encoding="utf-8")
    programs = [block for block in re.findall(r"```python\n(.*?)```", text, re.S) if ">>>" not in block]
    assert len(programs) == 4
    exec(compile("\n".join(programs), str(GUIDE), "exec"), {})


def test_example_agent_works() -> None:
    agent = ROOT / "examples" / "agent.py"
    assert len(agent.read_text(encoding="utf-8").splitlines()) <= 60
    with run_gateway("--demo", INTERLINGUA_DEMO_PACE="0") as gateway:
        argv = [sys.executable, str(agent), "--url", f"{gateway.base}/v1"]
        ran = subprocess.run(argv, cwd=ROOT, capture_output=True, text=True, timeout=60)
    assert ran.returncode == 0, ran.stderr
    assert ran.stdout.count("→ ok") == 3
    assert ran.stdout.endswith("Done. “MIT License”\n")
