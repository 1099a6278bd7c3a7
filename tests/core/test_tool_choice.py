"""Tool choices of callers and of all wires, and the tools that they leave."""

from __future__ import annotations

from typing import Any

import pytest

from interlingua.core.tool_choice import ToolChoice, read_tool_choice
from interlingua.core.tools import ToolSet
from interlingua.errors import BadInput
from tests.support.harness import tool

NAMED = ToolChoice("required", ("a",))
TOOLS = [tool("a", ["x"]), tool("b")]


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        (None, None),
        (NAMED, NAMED),
        ("auto", ToolChoice("auto")),
        ("required", ToolChoice("required")),
        ("any", ToolChoice("required")),
        ("none", ToolChoice("none")),
        ("a", NAMED),
        ({"type": "function", "function": {"name": "a"}}, NAMED),
        ({"type": "custom", "custom": {"name": "a"}}, NAMED),
        ({"type": "function", "name": "a"}, NAMED),
        ({"type": "tool", "name": "a"}, NAMED),
        ({"type": "auto"}, ToolChoice("auto")),
        ({"type": "any", "disable_parallel_tool_use": True}, ToolChoice("required")),
        ({"type": "none"}, ToolChoice("none")),
        ({"type": "allowed_tools", "mode": "required", "tools": [{"type": "function", "name": "a"}]}, NAMED),
        ({"type": "allowed_tools", "mode": "auto", "tools": []}, ToolChoice("auto")),
        (
            {"type": "allowed_tools", "allowed_tools": {"mode": "required", "tools": [{"function": {"name": "a"}}]}},
            NAMED,
        ),
    ],
)
def test_read_tool_choice(value: Any, expected: ToolChoice | None) -> None:
    assert read_tool_choice(value) == expected


@pytest.mark.parametrize("value", ["", 3, {}, [1], {"type": []}, {"type": "function"}, {"type": "tool", "name": 3}])
def test_invalid_tool_choice(value: Any) -> None:
    with pytest.raises(BadInput):
        read_tool_choice(value)


@pytest.mark.parametrize(
    ("tools", "choice", "requires_call", "required_tool"),
    [
        (TOOLS, None, False, None),
        (TOOLS, "auto", False, None),
        (TOOLS, "required", True, None),
        (TOOLS, "a", True, "a"),
        (TOOLS, "c", True, None),
        (TOOLS, ToolChoice("required", ("a", "b")), True, None),
        (TOOLS, ToolChoice("auto", ("a",)), False, None),
        (TOOLS, "none", False, None),
        ([], "required", False, None),
        (None, "required", True, None),
        (None, "a", True, "a"),
    ],
)
def test_required_tool(tools: Any, choice: Any, requires_call: bool, required_tool: str | None) -> None:
    tool_set = ToolSet(ToolSet(tools, choice))
    assert (tool_set.requires_call, tool_set.required_tool) == (requires_call, required_tool)
    assert tool_set.is_empty == (choice == "none" or tools == [])
