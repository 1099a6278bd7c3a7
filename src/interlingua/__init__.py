"""Any model's tool calls, in any client's API, exactly."""

from interlingua.client import Accumulator, ToolBox, ToolResult
from interlingua.core.options import Limits, Options
from interlingua.core.reply import Call, Reply, fold
from interlingua.core.tools import Tool
from interlingua.dialects.native_text import Parser, parse, render
from interlingua.dialects.registry import dialect_for, dialects
from interlingua.dialects.yaml_loader import load_dialect
from interlingua.errors import CallError, InterlinguaError
from interlingua.parsing.dialect import Dialect, Span
from interlingua.translation.request_translation import translate_request
from interlingua.translation.translator import Translator, translate_reply

__all__ = [
    "Accumulator",
    "Call",
    "CallError",
    "Dialect",
    "InterlinguaError",
    "Limits",
    "Options",
    "Parser",
    "Reply",
    "Span",
    "Tool",
    "ToolBox",
    "ToolResult",
    "Translator",
    "dialect_for",
    "dialects",
    "fold",
    "load_dialect",
    "parse",
    "render",
    "translate_reply",
    "translate_request",
]
__version__ = "0.1.0"
