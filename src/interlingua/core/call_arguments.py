"""A call's arguments as an object that fits its tool, or what is wrong with them, in words that a model can act on."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Literal, TypeAlias, get_args

from interlingua.common.jsontext.codec import read_values, why_no_object
from interlingua.common.jsontext.repair import repaired
from interlingua.common.jsontext.scanner import JsonCursor
from interlingua.common.schema.validation import misfits
from interlingua.core.tools import Tool
from interlingua.errors import CallError, UsageError, expect
from interlingua.events import Finding

__all__ = ["Repair", "check_repair", "read_arguments"]

Repair: TypeAlias = Literal["never", "safe"]


def check_repair(repair: object) -> None:
    """Raises UsageError if it is none."""
    if repair not in get_args(Repair):
        raise UsageError(f"repair should be one of {', '.join(map(repr, get_args(Repair)))}, not {repair!r}")


def read_arguments(
    name: str, arguments: str, tool: Tool | Mapping[str, Any] | None, repair: Repair = "never", complete: bool = True
) -> tuple[dict[str, Any], list[Finding]]:
    """The object, and what was mended for it. Raises CallError. Whatever there is of an incomplete call, it is cut."""
    check_repair(repair)
    expect(tool, Tool | Mapping | None, "parse() takes a tool", "give a Tool, or the dict that the request has")
    tool = Tool.read(tool) if isinstance(tool, Mapping) else tool
    value, findings = read_values(arguments), []
    if value is None and complete and repair == "safe" and (mended := repaired(arguments)):
        text, notes = mended
        value = read_values(text)
        findings = [Finding("repaired-arguments", note, f"the call of {name!r}") for note in notes]
    if value is None or not complete:
        raise CallError(name, *_unreadable(arguments, tool, complete))
    problems = misfits(value, tool.schema, tool.name) if tool and tool.schema else []
    if problems:
        raise CallError(name, "misfit", problems)
    return value, findings


def _unreadable(arguments: str, tool: Tool | None, complete: bool) -> tuple[str, list[str]]:
    """What kind of trouble it is, and the trouble in words."""
    if complete and arguments.strip() in ("", "null"):
        return "empty", [f"the arguments are empty: send a JSON object{_with(tool)}"]
    cursor = JsonCursor()
    pos = cursor.walk(arguments, 0)
    while pos < len(arguments) and not cursor.ended:
        pos = cursor.walk(arguments, cursor.skip(arguments, pos))
    if not complete and (cursor.ended or cursor.problem or not arguments.strip()):
        return "cut", ["the reply ended inside this call: send the whole call again"]
    if not cursor.ended and cursor.problem is None:
        where = f"at character {len(arguments):,}" + (", inside a string" if cursor.in_string else "")
        return "cut", [f"the arguments were cut short {where}: send the whole call again"]
    cursor.finish()
    if cursor.problem is None and cursor.first != "{":
        return "not-object", [f"the arguments should be a JSON object but are {arguments.strip()[:60]}"]
    if cursor.problem is None and not arguments[pos:].strip():
        return "not-json", [f"the arguments cannot be read: {why_no_object(arguments)}"]
    if cursor.problem is None:
        return "not-json", [f"the arguments are one JSON object and then something else {_place(arguments, pos)}"]
    problem, _, offset = cursor.problem.rpartition(" at character ")
    where = _place(arguments, int(offset)) if offset.isdecimal() and problem else ""
    return "not-json", [f"the arguments are not JSON: {problem or cursor.problem} {where}".rstrip()]


def _with(tool: Tool | None) -> str:
    wanted = ", ".join(f"`{name}`" for name in sorted(tool.required)) if tool else ""
    return f" with {wanted}" if wanted else ", such as {}"


def _place(text: str, offset: int) -> str:
    before = text[:offset]
    return f"(line {before.count(chr(10)) + 1}, column {offset - before.rfind(chr(10))})"
