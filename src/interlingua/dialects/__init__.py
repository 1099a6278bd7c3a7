"""Dialects: how each model family writes tool calls and thinking."""

from interlingua.dialects.registry import DETECT, STANDARD, dialect_for, dialect_named, dialects

__all__ = ["DETECT", "STANDARD", "dialect_for", "dialect_named", "dialects"]
