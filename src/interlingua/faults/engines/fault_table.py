"""All faults of scripted engines."""

from __future__ import annotations

from interlingua.faults.engines.delivery_faults import DELIVERY_FAULTS, REQUEST_FAULTS
from interlingua.faults.engines.engine_fault import EngineFault
from interlingua.faults.engines.model_faults import MODEL_FAULTS, TEMPLATE_FAULTS
from interlingua.faults.engines.parser_faults import PARSER_FAULTS

__all__ = ["ENGINE_FAULTS"]

ENGINE_FAULTS: dict[str, EngineFault] = {
    fault.name: fault for fault in (*MODEL_FAULTS, *TEMPLATE_FAULTS, *PARSER_FAULTS, *DELIVERY_FAULTS, *REQUEST_FAULTS)
}
"""Faults by name."""
