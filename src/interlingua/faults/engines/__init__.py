"""Scripted engines: model servers whose template, model, parser or delivery has a known fault.

An engine answers a request in the stages of a real one. `EngineFault` replaces one stage, so that the cause of every
failure is known. `ENGINE_FAULTS` lists them.
"""

from interlingua.faults.engines.engine_fault import NO_ENGINE_FAULT, EngineFault
from interlingua.faults.engines.fault_mix import FaultMix
from interlingua.faults.engines.fault_table import ENGINE_FAULTS
from interlingua.faults.engines.scripted_engine import EngineKind, EngineResponse, ScriptedEngine

__all__ = [
    "ENGINE_FAULTS",
    "NO_ENGINE_FAULT",
    "EngineFault",
    "EngineKind",
    "EngineResponse",
    "FaultMix",
    "ScriptedEngine",
]
