"""Engine with several faults, each of which affects a part of the conversations."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Sequence
from typing import Any

from interlingua.faults.engines.engine_fault import NO_ENGINE_FAULT, EngineFault
from interlingua.faults.engines.scripted_engine import Answer, EngineKind, EngineResponse, ScriptedEngine
from interlingua.faults.engines.token_vocabulary import TokenVocabulary
from interlingua.parsing.dialect import Dialect

__all__ = ["FaultMix"]


class FaultMix:
    """Engine whose fault depends on the conversation. A repeated request meets the same fault.

    Args:
        model: The id of the model.
        dialect: The dialect in which the model writes.
        answer: Returns what a good model answers.
        faults: The faults. All of them are equally frequent.
        share: Share of the conversations that meet a fault, from 0 to 1.
        kind: The server that it imitates.
    """

    def __init__(
        self,
        model: str,
        dialect: Dialect,
        answer: Answer,
        faults: Sequence[EngineFault],
        share: float,
        kind: EngineKind = "vllm",
    ) -> None:
        vocabulary = TokenVocabulary(dialect)
        self._engines = [
            ScriptedEngine(model, dialect, answer, fault, kind, vocabulary) for fault in (NO_ENGINE_FAULT, *faults)
        ]
        self._share = share

    def respond(self, path: str, body: dict[str, Any]) -> EngineResponse:
        return self._engine_for(body).respond(path, body)

    def fault_for(self, body: dict[str, Any]) -> EngineFault:
        """Return the fault that this request meets."""
        return self._engine_for(body).fault

    def _engine_for(self, body: dict[str, Any]) -> ScriptedEngine:
        healthy, *faulty = self._engines
        conversation = body.get("messages") or body.get("input")  # Responses call it so
        if not conversation or not faulty:
            return healthy
        digest = hashlib.sha256(json.dumps(conversation[-1], sort_keys=True).encode()).digest()
        position = int.from_bytes(digest[:4], "big") / 2**32
        return healthy if position >= self._share else faulty[int.from_bytes(digest[4:8], "big") % len(faulty)]
