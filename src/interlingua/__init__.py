"""Any model's tool calls, in any client's API, exactly."""

from interlingua.client import Accumulator, ToolBox, ToolResult
from interlingua.dialect import Dialect, Span
from interlingua.dialect_file import load_dialect
from interlingua.dialects import dialect_for, dialects
from interlingua.errors import CallError, InterlinguaError
from interlingua.limits import Limits
from interlingua.options import Options
from interlingua.pipeline import Translator, translate_reply
from interlingua.reply import Call, Reply, fold
from interlingua.request_translation import translate_request
from interlingua.text import Parser, parse, render
from interlingua.tools import Tool

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
