"""Constraints of requests: the model is forced to write valid calls, where the upstream's engine can do that.

The constraint is a structural tag of the model's dialect with the schemas of the tools. It also enforces the tool
choice, so the request leaves the choice to the model: engines that receive both would force the model to write JSON
instead of its own format.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Literal, NamedTuple, TypeAlias

from interlingua.core.tool_choice import ToolChoice
from interlingua.core.tools import SharedTools, Tool
from interlingua.errors import InterlinguaError
from interlingua.events import Finding
from interlingua.exports.exporter import Export, export
from interlingua.exports.request_constraint import constraint_fields
from interlingua.parsing.dialect import Dialect
from interlingua.upstreams.adapt.generation_settings import NO_TOOL_PARSER, SKIP_SPECIAL_TOKENS
from interlingua.upstreams.profile import Profile

__all__ = ["NO_CONSTRAINT", "Constraint", "Strictness", "find_constraint"]

Strictness: TypeAlias = Literal["auto", "off", "always"]
_OTHER_CONSTRAINTS = (
    "response_format",
    "structured_outputs",
    "guided_json",
    "guided_grammar",
    "guided_regex",
    "grammar",
)
"""Fields of chat completions with which a client constrains the reply itself."""


class Constraint(NamedTuple):
    """Fields of the upstream's request that constrain the model, and what is reported about them."""

    fields: dict[str, Any]
    summary: str = ""
    """The constraint in words; "" if there is none."""
    findings: tuple[Finding, ...] = ()


NO_CONSTRAINT = Constraint({})


def find_constraint(
    strictness: Strictness,
    profile: Profile,
    dialect: Dialect | None,
    body: dict[str, Any],
    tools: Sequence[Tool],
    choice: ToolChoice | None,
    prefill: str,
) -> Constraint:
    """Return the constraint of a request.

    Args:
        strictness: `auto`: if a call is required, or a tool is strict. `always`: if there are tools.
        profile: The upstream's profile.
        dialect: The model's dialect; None if it is not known.
        body: The request for the upstream.
        tools: The tools on offer.
        choice: The client's tool choice.
        prefill: The beginning of the reply that the prompt already contains.
    """
    is_required = choice is not None and choice.mode == "required"
    is_wanted = strictness == "always" or is_required or any(tool.strict for tool in tools)
    if strictness == "off" or not tools or not is_wanted:
        return NO_CONSTRAINT
    if profile.constraint == "none":
        reason = f"the upstream ({profile.name}) is not known to take a constraint"
        return _report(reason) if strictness == "always" else NO_CONSTRAINT
    if field := next((name for name in _OTHER_CONSTRAINTS if body.get(name)), ""):
        return _report(f"the request has a constraint of its own: {field}")
    if dialect is None or dialect.grammar is None:
        return _report("the model's dialect is not known")
    parallel = body.get("parallel_tool_calls") is not False
    try:
        exported = _export(dialect, tools, choice, parallel, prefill)
    except InterlinguaError as error:
        return _report(str(error))
    choice_fields, choice_findings = _choice_beside_constraint(body, profile)
    return Constraint(
        {**constraint_fields(profile.constraint, exported.content), **choice_fields},
        f"{len(tools)} tools in {dialect.name}" + (", a call is required" if is_required else ""),
        (*choice_findings, *(Finding("partly-constrained", note) for note in exported.notes)),
    )


def _report(reason: str) -> Constraint:
    return NO_CONSTRAINT._replace(findings=(Finding("not-constrained", f"{reason}: sent without a constraint"),))


def _export(dialect: Dialect, tools: Sequence[Tool], choice: ToolChoice | None, parallel: bool, prefill: str) -> Export:
    """Return the structural tag. Tools that several requests share have it computed once."""

    def compute() -> Export:
        return export("structural-tag", dialect, tools, choice, parallel=parallel, prefill=prefill)

    if not isinstance(tools, SharedTools):
        return compute()
    return tools.derive(("structural-tag", dialect.name, choice, parallel, prefill), compute)


def _choice_beside_constraint(body: dict[str, Any], profile: Profile) -> tuple[dict[str, Any], list[Finding]]:
    """Return the fields with a tool choice that forces no call, and what is reported about it.

    That is `auto`, or `none` for a server without a tool parser, as `choose_none_without_parser` explains.
    """
    if body.get("tool_choice") in (None, "auto", "none"):
        return {}, []
    if "auto" not in profile.unparsed_choices:
        return {"tool_choice": "auto"}, []
    return {"tool_choice": "none", SKIP_SPECIAL_TOKENS: False}, [Finding("no-tool-parser", NO_TOOL_PARSER)]
