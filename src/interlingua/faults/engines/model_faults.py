"""Faults of the model and of its chat template."""

from __future__ import annotations

import json
import random
from collections.abc import Mapping
from typing import Any

from interlingua.common.schema.resolver import as_list, as_mapping
from interlingua.core.reply import Call, Part, Reasoning, Reply, Text
from interlingua.faults.engines.engine_fault import EngineFault

__all__ = ["MODEL_FAULTS", "TEMPLATE_FAULTS"]

Json = dict[str, Any]
_SIMPLE_VALUES: Mapping[str, Any] = {
    "string": "x",
    "integer": 1,
    "number": 1,
    "boolean": True,
    "array": [],
    "object": {},
}


def _with_calls(reply: Reply, calls: list[Call]) -> Reply:
    others: list[Part] = [part for part in reply.parts if not isinstance(part, Call)]
    return Reply(parts=[*others, *calls], stop_reason="tool_calls" if calls else "stop")


def _never_call(reply: Reply, _: Json) -> Reply:
    if not reply.calls:
        return reply
    return Reply(
        parts=[Text(f"I would use {reply.calls[0].name} for that, but I leave it to you.")], stop_reason="stop"
    )


def _think_only(_reply: Reply, _: Json) -> Reply:
    return Reply(parts=[Reasoning("I wonder what to do. Perhaps nothing at all.")], stop_reason="stop")


def _call_other_tool(reply: Reply, body: Json) -> Reply:
    names = {call.name for call in reply.calls}
    functions = [as_mapping(as_mapping(tool).get("function")) for tool in as_list(body.get("tools"))]
    other = next((function for function in functions if function.get("name") not in names), None)
    if not reply.calls or other is None:
        return reply
    schema = as_mapping(other.get("parameters"))
    arguments = {
        name: _simple_value(as_mapping(schema.get("properties")).get(name)) for name in as_list(schema.get("required"))
    }
    first, *rest = reply.calls
    return _with_calls(reply, [Call(first.id, str(other["name"]), json.dumps(arguments)), *rest])


def _simple_value(schema: object) -> Any:
    fields = as_mapping(schema)
    choices = as_list(fields.get("enum"))
    return choices[0] if choices else _SIMPLE_VALUES.get(str(fields.get("type")), "x")


def _call_unknown_tool(reply: Reply, _: Json) -> Reply:
    return _with_calls(
        reply, [Call(call.id.replace(call.name, "do_it"), "do_it", call.arguments) for call in reply.calls]
    )


def _omit_required(reply: Reply, _: Json) -> Reply:
    """Leave out the first argument of each call."""
    calls = []
    for call in reply.calls:
        arguments = json.loads(call.arguments)
        kept = dict(list(arguments.items())[1:])
        calls.append(Call(call.id, call.name, json.dumps(kept)))
    return _with_calls(reply, calls)


def _change_values(reply: Reply, _: Json) -> Reply:
    """Change the last string of each call."""
    calls = []
    for call in reply.calls:
        arguments = json.loads(call.arguments)
        for name, value in reversed(arguments.items()):
            if isinstance(value, str):
                arguments[name] = value[: len(value) // 2] + " or so"
                break
        calls.append(Call(call.id, call.name, json.dumps(arguments)))
    return _with_calls(reply, calls)


def _call_once(reply: Reply, _: Json) -> Reply:
    return _with_calls(reply, reply.calls[:1])


def _call_always(reply: Reply, body: Json) -> Reply:
    tools = as_list(body.get("tools"))
    if reply.calls or not tools:
        return reply
    function = as_mapping(as_mapping(tools[0]).get("function"))
    schema = as_mapping(function.get("parameters"))
    arguments = {
        name: _simple_value(as_mapping(schema.get("properties")).get(name)) for name in as_list(schema.get("required"))
    }
    name = str(function.get("name"))
    return Reply(parts=[Call(f"functions.{name}:0", name, json.dumps(arguments))], stop_reason="tool_calls")


class _SometimesInWords:
    """Model that answers one request in four in words instead of calling, without a pattern."""

    def __init__(self) -> None:
        self._random = random.Random(19)

    def __call__(self, reply: Reply, body: Json) -> Reply:
        return _never_call(reply, body) if self._random.random() < 0.25 else reply


MODEL_FAULTS = (
    EngineFault("model-varies", "model", "The model calls in three of four cases.", generate=_SometimesInWords()),
    EngineFault(
        "model-never-calls", "model", "The model describes the call instead of making it.", generate=_never_call
    ),
    EngineFault("model-only-thinks", "model", "The model thinks and then stops.", generate=_think_only),
    EngineFault("model-wrong-tool", "model", "The model calls another tool.", generate=_call_other_tool),
    EngineFault(
        "model-unknown-tool", "model", "The model calls a tool that does not exist.", generate=_call_unknown_tool
    ),
    EngineFault("model-omits-arguments", "model", "The model leaves out the first argument.", generate=_omit_required),
    EngineFault(
        "model-changes-values", "model", "The model changes a text that it should copy.", generate=_change_values
    ),
    EngineFault("model-one-call", "model", "The model makes the first of several calls only.", generate=_call_once),
    EngineFault("model-always-calls", "model", "The model calls a tool although none fits.", generate=_call_always),
)


def _hide_tools(body: Json) -> Json:
    return {name: value for name, value in body.items() if name != "tools"}


def _refuse_template(body: Json) -> tuple[int, str] | None:
    if any(as_mapping(message).get("role") == "system" for message in as_list(body.get("messages"))):
        return 400, "chat template error: TemplateError: System role not supported"
    return None


TEMPLATE_FAULTS = (
    EngineFault(
        "template-drops-tools", "template", "The template does not show the tools to the model.", see=_hide_tools
    ),
    EngineFault(
        "template-refuses-system",
        "template",
        "The template raises an error for system messages.",
        refuse=_refuse_template,
    ),
)
