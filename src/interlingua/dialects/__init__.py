"""Dialects: how each model family writes tool calls and thinking."""

from interlingua.dialects.registry import DETECT_DIALECT, STANDARD_DIALECT, dialect_for, dialects, get_dialect

__all__ = ["DETECT_DIALECT", "STANDARD_DIALECT", "dialect_for", "dialects", "get_dialect"]
