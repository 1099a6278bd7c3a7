"""Built-in set: a hundred conversations. Each is sent as a stream and whole, which makes two hundred requests."""

from __future__ import annotations

from interlingua.verification.samples.builtin import (
    argument_values,
    call_count,
    conversations,
    schemas,
    texts,
    tool_selection,
)
from interlingua.verification.samples.sample import Sample

__all__ = ["BUILTIN_SET_NAME", "builtin_samples"]

BUILTIN_SET_NAME = "interlingua-1"
"""Name of the set. A change of any sample needs a new name, because runs of different sets cannot be compared."""


def builtin_samples() -> list[Sample]:
    """Return all samples, in the order of the categories."""
    modules = (tool_selection, call_count, conversations, schemas, argument_values, texts)
    return [sample for module in modules for sample in module.SAMPLES]
