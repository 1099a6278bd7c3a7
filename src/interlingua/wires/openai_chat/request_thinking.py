"""Reasoning settings in chat completion requests. Each upstream has its own fields for them."""

from __future__ import annotations

from typing import Any

from interlingua.core.findings import FindingCollector
from interlingua.core.request import Thinking
from interlingua.upstreams.profile import Profile
from interlingua.wires.base import Json
from interlingua.wires.requests.downgrades import drop_thinking_display, note_inexact_effort
from interlingua.wires.requests.object_reader import ObjectReader

__all__ = ["read_thinking", "write_thinking"]

_TEMPLATE_SWITCHES = ("enable_thinking", "thinking")
"""Switches in chat templates: `enable_thinking` for Qwen and GLM, `thinking` for DeepSeek, Granite and Kimi."""


def read_thinking(fields: ObjectReader) -> Thinking:
    """Read the reasoning settings from all fields that any upstream uses for them."""
    on = _first_not_none(fields.flag("enable_thinking"), *_template_switches(fields))
    effort = fields.text("reasoning_effort", "") or None
    budget = fields.integer("thinking_budget")
    show = None
    thinking = fields.inner("thinking")
    if thinking_type := thinking.text("type", ""):
        on = _first_not_none(on, thinking_type != "disabled")
    reasoning = fields.inner("reasoning")
    on = _first_not_none(on, reasoning.flag("enabled"))
    if reasoning.flag("exclude"):
        show = "omitted"
    think = fields.get("think")
    if isinstance(think, str):
        effort = effort or think
    elif isinstance(think, bool):
        on = _first_not_none(on, think)
    effort = effort or reasoning.text("effort", "") or None
    budget = _first_not_none(budget, thinking.integer("budget_tokens"), reasoning.integer("max_tokens"))
    return Thinking(on, effort, budget, show)


def _template_switches(fields: ObjectReader) -> list[bool | None]:
    """Return the values of the template switches.

    If `chat_template_kwargs` has other keys too, the whole object also stays among the extra fields.
    """
    raw_kwargs = fields.object.get("chat_template_kwargs")
    if isinstance(raw_kwargs, dict) and set(raw_kwargs) - set(_TEMPLATE_SWITCHES):
        template = ObjectReader(raw_kwargs, "chat_template_kwargs")
    else:
        template = fields.inner("chat_template_kwargs")
    return [template.flag(key) for key in _TEMPLATE_SWITCHES]


def _first_not_none(*values: Any) -> Any:
    return next((value for value in values if value is not None), None)


def write_thinking(thinking: Thinking, profile: Profile, notes: FindingCollector) -> Json:
    """Return the fields that set the reasoning of this upstream."""
    if profile.thinking != "openrouter" or thinking.show != "omitted":
        drop_thinking_display(thinking, notes)
    if thinking.requested is None:
        return {}
    fields, is_exact = _write_fields(thinking, thinking.requested, profile)
    if thinking.requested and not is_exact:
        note_inexact_effort(thinking, notes)
    return fields


def _write_fields(thinking: Thinking, on: bool, profile: Profile) -> tuple[Json, bool]:
    """Return the fields, and whether they express all that the client requested."""
    effort = {"reasoning_effort": thinking.as_effort()} if on and thinking.as_effort() else {}
    budget = thinking.budget if on else None
    only_switch = thinking.effort is None and thinking.budget is None
    switch = {"type": "enabled" if on else "disabled"}
    match profile.thinking:
        case "effort":
            return (effort if on else {"reasoning_effort": "none"}), thinking.effort is not None
        case "openrouter":
            return {"reasoning": _openrouter_fields(thinking, on)}, True
        case "type":
            return {"thinking": switch}, only_switch
        case "type-effort":
            return {"thinking": switch, **effort}, only_switch or thinking.effort is not None
        case "adaptive":
            return {"thinking": {"type": "adaptive"} if on else switch}, only_switch
        case "budget":
            amount = {} if budget is None else {"budget_tokens": budget}
            return {"thinking": {**switch, **amount}}, only_switch or thinking.budget is not None
        case "enable":
            amount = {} if budget is None else {"thinking_budget": budget}
            return {"enable_thinking": on, **amount}, only_switch or thinking.budget is not None
        case "template":
            return {"chat_template_kwargs": dict.fromkeys(_TEMPLATE_SWITCHES, on)}, only_switch
        case "none":
            return {}, False


def _openrouter_fields(thinking: Thinking, on: bool) -> Json:
    exclude = {"exclude": True} if thinking.show == "omitted" else {}
    if not on:
        return {"enabled": False}
    if thinking.budget is not None:
        return {"max_tokens": thinking.budget, **exclude}
    return {"effort": thinking.effort, **exclude} if thinking.effort else {"enabled": True, **exclude}
