"""Public API: names that programs import and call. A change here affects users."""

from __future__ import annotations

import importlib
import inspect
import subprocess
import sys

import pytest

import interlingua as il

SIGNATURES = {
    "Accumulator": "(wire, dialect, model, tools, tool_choice, limits)",
    "Parser": "(dialect, tools, prefill, options, tool_choice)",
    "Translator": "(source, target, dialect, model, tools, options, tool_choice, observer)",
    "dialect_for": "(model)",
    "dialects": "()",
    "fold": "(events)",
    "load_dialect": "(source)",
    "parse": "(text, dialect, tools, prefill, options, tool_choice)",
    "render": "(reply, dialect)",
    "translate_reply": "(body, source, target, dialect, model, tools, options, tool_choice)",
    "translate_request": "(body, source, target, model, upstream, options)",
}
TYPES = ["Call", "CallError", "Dialect", "InterlinguaError", "Limits", "Options", "Reply", "Span", "Tool", "ToolBox"]
MODULES = {
    "interlingua.client": [
        *("Accumulator", "Exchange", "ExchangeSummary", "ToolBox", "ToolResult", "anthropic", "async_anthropic"),
        *("async_http_client", "async_openai", "http_client", "openai"),
    ],
    "interlingua.errors": ["BadInput", "CallError", "InterlinguaError", "RenderError", "UsageError"],
    "interlingua.events": [
        *("ArgsDelta", "Begin", "CallEnd", "CallStart", "Event", "Failure", "Finding", "ReasoningDelta"),
        *("RefusalDelta", "Seal", "Stop", "TextDelta", "Usage"),
    ],
    "interlingua.trace": [
        *("DialectChosen", "EventSent", "FindingReported", "FramesSent", "HeldBack", "InputEnded", "MarkerSeen"),
        *("MessageReceived", "Passed", "Released", "TraceEvent", "decode_trace", "encode_trace_event"),
    ],
    "interlingua.request_translation": ["Translation", "prepare_request", "translate_request"],
}


@pytest.mark.parametrize(("name", "signature"), SIGNATURES.items(), ids=SIGNATURES)
def test_public_function_has_its_parameters(name: str, signature: str) -> None:
    assert name in il.__all__
    parameters = inspect.signature(getattr(il, name)).parameters
    assert f"({', '.join(parameters)})" == signature


@pytest.mark.parametrize("name", TYPES)
def test_public_type_is_exported(name: str) -> None:
    assert name in il.__all__
    assert inspect.isclass(getattr(il, name))


@pytest.mark.parametrize(("module", "names"), MODULES.items(), ids=MODULES)
def test_public_module_has_its_names(module: str, names: list[str]) -> None:
    imported = importlib.import_module(module)
    assert [name for name in names if not hasattr(imported, name)] == []


def test_public_modules_are_attributes_of_the_package() -> None:
    code = "import interlingua as il; il.client.openai; il.errors.UsageError; il.events.TextDelta; il.trace.Passed"
    subprocess.run([sys.executable, "-c", code], check=True)
    assert {"client", "errors", "events", "trace"} <= {*dir(il)}
    assert {*il.client.__all__} <= {*dir(il.client)}
