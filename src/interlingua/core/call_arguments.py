"""Parse and validate the arguments of a call. Errors are worded so that a model can correct the call."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Literal, TypeAlias, get_args

from interlingua.common.jsontext.codec import explain_invalid_object, read_full_object
from interlingua.common.jsontext.repair import repair_arguments
from interlingua.common.jsontext.scanner import JsonScanner
from interlingua.common.schema.validation import validation_errors
from interlingua.core.tools import Tool
from interlingua.errors import CallError, UsageError, expect_type
from interlingua.events import Finding

__all__ = ["RepairPolicy", "check_repair_policy", "parse_arguments"]

RepairPolicy: TypeAlias = Literal["never", "safe"]


def check_repair_policy(repair: object) -> None:
    """Raise UsageError if this is not a repair policy."""
    if repair not in get_args(RepairPolicy):
        raise UsageError(f"repair should be one of {', '.join(map(repr, get_args(RepairPolicy)))}, not {repair!r}")


def parse_arguments(
    name: str,
    arguments: str,
    tool: Tool | Mapping[str, Any] | None,
    repair: RepairPolicy = "never",
    complete: bool = True,
) -> tuple[dict[str, Any], list[Finding]]:
    """Parse the arguments of a call and validate them against the tool's schema.

    Args:
        name: The tool name in the call, for messages.
        arguments: The JSON text of the arguments.
        tool: The tool with the schema; None skips validation.
        repair: `safe` allows repairs that cannot change the meaning.
        complete: False if the reply was cut inside the call; then the arguments are never accepted.

    Returns:
        The arguments as an object, and a finding for each repair.

    Raises:
        CallError: The call is incomplete, or the arguments are invalid.
    """
    check_repair_policy(repair)
    expect_type(tool, Tool | Mapping | None, "parse() takes a tool", "pass a Tool, or the tool's dict from the request")
    tool = Tool.read(tool) if isinstance(tool, Mapping) else tool
    value, findings = read_full_object(arguments), []
    if value is None and complete and repair == "safe" and (repaired := repair_arguments(arguments)):
        text, notes = repaired
        value = read_full_object(text)
        findings = [Finding("repaired-arguments", note, f"the call of {name!r}") for note in notes]
    if value is None or not complete:
        raise CallError(name, *_explain_unreadable(arguments, tool, complete))
    problems = validation_errors(value, tool.schema, tool.name) if tool and tool.schema else []
    if problems:
        raise CallError(name, "misfit", problems)
    return value, findings


def _explain_unreadable(arguments: str, tool: Tool | None, complete: bool) -> tuple[str, list[str]]:
    """Return the kind of the CallError and its problems."""
    if complete and arguments.strip() in ("", "null"):
        return "empty", [f"the arguments are empty: send a JSON object{_required_hint(tool)}"]
    scanner = JsonScanner()
    pos = scanner.scan_all(arguments)
    if not complete and (scanner.ended or scanner.problem or not arguments.strip()):
        return "cut", ["the reply ended inside this call: send the complete call again"]
    if not scanner.ended and scanner.problem is None:
        position = f"at character {len(arguments):,}" + (", inside a string" if scanner.in_string else "")
        return "cut", [f"the arguments were cut off {position}: send the complete call again"]
    scanner.finish()
    if scanner.problem is None and scanner.first_char != "{":
        return "not-object", [f"the arguments should be a JSON object but are {arguments.strip()[:60]}"]
    if scanner.problem is None and not arguments[pos:].strip():
        return "not-json", [f"the arguments cannot be parsed: {explain_invalid_object(arguments)}"]
    if scanner.problem is None:
        return "not-json", [
            f"the arguments are a JSON object followed by other text {_format_position(arguments, pos)}"
        ]
    problem, _, offset = scanner.problem.rpartition(" at character ")
    position = _format_position(arguments, int(offset)) if offset.isdecimal() and problem else ""
    return "not-json", [f"the arguments are not JSON: {problem or scanner.problem} {position}".rstrip()]


def _required_hint(tool: Tool | None) -> str:
    required = ", ".join(f"`{name}`" for name in sorted(tool.required)) if tool else ""
    return f" with {required}" if required else ", such as {}"


def _format_position(text: str, offset: int) -> str:
    prefix = text[:offset]
    return f"(line {prefix.count(chr(10)) + 1}, column {offset - prefix.rfind(chr(10))})"
