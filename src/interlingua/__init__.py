"""Translation of LLM tool calls between model dialects and client protocols.

The names below are imported on first use, so that `import interlingua` is fast.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from interlingua.client.accumulator import Accumulator
    from interlingua.client.tools.tool_result import ToolResult
    from interlingua.client.tools.toolbox import ToolBox
    from interlingua.core.options import Limits, Options
    from interlingua.core.reply import Call, Reply, fold
    from interlingua.core.tools import Tool
    from interlingua.dialects.native_text import Parser, parse, render
    from interlingua.dialects.registry import dialect_for, list_dialects
    from interlingua.dialects.registry import list_dialects as dialects
    from interlingua.dialects.yaml_loader import load_dialect
    from interlingua.errors import CallError, InterlinguaError, NotExpressible
    from interlingua.exports.exporter import Export, export
    from interlingua.parsing.dialect import Dialect, Span
    from interlingua.translation.request_translation import translate_request
    from interlingua.translation.translator import Translator, translate_reply

__all__ = [
    "Accumulator",
    "Call",
    "CallError",
    "Dialect",
    "Export",
    "InterlinguaError",
    "Limits",
    "NotExpressible",
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
    "export",
    "fold",
    "list_dialects",
    "load_dialect",
    "parse",
    "render",
    "translate_reply",
    "translate_request",
]
__version__ = "0.1.0"

_MODULES = {
    "Accumulator": "client.accumulator",
    "Call": "core.reply",
    "CallError": "errors",
    "Dialect": "parsing.dialect",
    "Export": "exports.exporter",
    "InterlinguaError": "errors",
    "Limits": "core.options",
    "NotExpressible": "errors",
    "Options": "core.options",
    "Parser": "dialects.native_text",
    "Reply": "core.reply",
    "Span": "parsing.dialect",
    "Tool": "core.tools",
    "ToolBox": "client.tools.toolbox",
    "ToolResult": "client.tools.tool_result",
    "Translator": "translation.translator",
    "dialect_for": "dialects.registry",
    "export": "exports.exporter",
    "fold": "core.reply",
    "list_dialects": "dialects.registry",
    "load_dialect": "dialects.yaml_loader",
    "parse": "dialects.native_text",
    "render": "dialects.native_text",
    "translate_reply": "translation.translator",
    "translate_request": "translation.request_translation",
}
"""Each public name and its module."""
_SUBMODULES = ("client", "dialects", "errors", "events", "trace")
"""Public modules, imported on first use. `dialects` can also be called: see there."""


def __getattr__(name: str) -> Any:
    if name in _SUBMODULES:
        return import_module(f"{__name__}.{name}")
    if name not in _MODULES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    value = getattr(import_module(f"{__name__}.{_MODULES[name]}"), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted({*__all__, *_SUBMODULES, "__version__"})
