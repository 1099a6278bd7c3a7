"""Scripted model server in a thread, for tests of commands: see `interlingua.faults.engines`."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from interlingua.core.reply import Reply
from interlingua.dialects.registry import get_dialect
from interlingua.faults.engines import ENGINE_FAULTS, EngineKind, FaultMix
from interlingua.faults.engines.engine_server import start_engine_server
from interlingua.gateway.demo.planner import plan_reply
from interlingua.verification.samples.answer_key import AnswerKey
from interlingua.verification.samples.builtin import builtin_samples

MODEL = "demo/kimi_k2"
_KIMI = get_dialect("kimi_k2")


def _plan(body: dict[str, Any]) -> Reply:
    return plan_reply(body, _KIMI)


@contextmanager
def run_engine(*faults: str, share: float = 1.0, kind: EngineKind = "vllm", pace_seconds: float = 0.0) -> Iterator[str]:
    """Run a server with these faults. Yields its base URL; its only model is `MODEL`."""
    answers = AnswerKey(builtin_samples(), _plan)
    mix = FaultMix(MODEL, _KIMI, answers, [ENGINE_FAULTS[name] for name in faults], share, kind)
    server = start_engine_server(mix, pace_seconds=pace_seconds)
    try:
        yield server.url
    finally:
        server.stop()
