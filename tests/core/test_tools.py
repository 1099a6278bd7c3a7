"""Tool formats of all wires, and matching of names and arguments to tools."""

from __future__ import annotations

import gc
from typing import Any
from weakref import ref

import pytest

from interlingua.core.tool_choice import ToolChoice
from interlingua.core.tools import MAX_DERIVED_VALUES, MAX_GUESSED_TOOLS, SharedTools, Tool, ToolSet, shared_tool_set
from interlingua.errors import BadInput

SCHEMA = {"type": "object", "properties": {"path": {"type": "string"}}, "required": ["path"]}


@pytest.mark.parametrize(
    "tool",
    [
        {"type": "function", "function": {"name": "read", "description": "…", "parameters": SCHEMA}},
        {"type": "function", "name": "read", "parameters": SCHEMA, "strict": True},
        {"name": "read", "description": "…", "input_schema": SCHEMA},
        Tool("read", SCHEMA),
    ],
    ids=["chat", "responses", "messages", "our own"],
)
def test_tool_formats_of_all_wires(tool: Any) -> None:
    offer = ToolSet([tool])
    assert offer.has("read")
    assert offer.match_by_arguments('{"path": "x"}') == "read"


def test_no_tool_is_guessed_among_too_many() -> None:
    read = Tool("read", SCHEMA)
    others = [Tool(f"tool_{n}") for n in range(MAX_GUESSED_TOOLS)]
    assert ToolSet([read, *others[1:]]).match_by_arguments('{"path": "x"}') == "read"
    assert ToolSet([read, *others]).match_by_arguments('{"path": "x"}') is None


def test_tool_without_parameters() -> None:
    offer = ToolSet([{"type": "function", "function": {"name": "now"}}, {"name": "bad", "input_schema": [1]}])
    assert offer.names == ["now", "bad"]
    assert ToolSet([Tool("now")]).match_by_arguments("{}") == "now"
    assert ToolSet([Tool("now")]).match_by_arguments('{"a": 1}') is None


@pytest.mark.parametrize("tool", [{}, {"function": {}}, {"function": "x"}, {"name": ""}, {"name": 3}, "bash", None])
def test_tool_without_name_is_rejected(tool: Any) -> None:
    with pytest.raises(BadInput, match="without a name") as caught:
        ToolSet([tool])
    assert "parameters" in caught.value.hint


def test_unknown_tools_differ_from_no_tools() -> None:
    assert not ToolSet(None).is_known
    assert not ToolSet(None).is_empty
    assert ToolSet([]).is_known
    assert ToolSet([]).is_empty
    assert ToolSet(ToolSet([])).is_empty


@pytest.mark.parametrize(
    ("arguments", "tool"),
    [
        ('{"path": "x"}', "read"),
        ('{"command": "x"}', "bash"),
        ('{"command": "x", "timeout": 3}', "bash"),
        ('{"timeout": 3}', None),  # the required param is missing
        ('{"path": "x", "command": "y"}', None),
        ("{}", None),
        ("[]", None),
        ("not json", None),
        ('{"path": ' + "[" * 100_000, None),
    ],
)
def test_match_by_arguments(arguments: str, tool: str | None) -> None:
    bash = {"properties": {"command": {}, "timeout": {}}, "required": ["command"]}
    assert ToolSet([Tool("read", SCHEMA), Tool("bash", bash)]).match_by_arguments(arguments) == tool


@pytest.mark.parametrize(
    "schema", [{"properties": 5}, {"properties": {"a": {}}, "required": 7}, {"required": [{}]}, [1]]
)
def test_match_with_malformed_schema(schema: Any) -> None:
    assert ToolSet([{"name": "x", "parameters": schema}]).match_by_arguments('{"b": 1}') is None


def test_ambiguous_match_returns_none() -> None:
    assert ToolSet([Tool("a", SCHEMA), Tool("b", SCHEMA)]).match_by_arguments('{"path": "x"}') is None


def test_namespace_tool_is_resolved_by_local_name() -> None:
    tools = [{"type": "function", "name": name} for name in ("read", "write")]
    offer = ToolSet([{"type": "namespace", "name": name, "tools": tools[: n + 1]} for n, name in enumerate(("a", "b"))])
    assert offer.names == ["a__read", "b__read", "b__write"]
    assert [offer.resolve_name(name) for name in ("write", "b.write", "a/read", "functions.a.read")] == [
        "b__write",
        "b__write",
        "a__read",
        "a__read",
    ]
    assert offer.resolve_name("read") is None  # ambiguous: two tools match


def test_name_that_is_written_twice() -> None:
    offer = ToolSet([{"name": "get_weather"}, {"name": "a.a"}, {"name": "b"}])
    for name in ("get_weather.get_weather", "functions.get_weather.get_weather"):
        assert offer.resolve_name(name) == "get_weather"
    assert offer.resolve_name("a.a") == "a.a"
    assert offer.resolve_name("b.get_weather") is None
    assert offer.resolve_name(".") is None


def test_requests_with_the_same_tools_share_a_set() -> None:
    shared = shared_tool_set([Tool("read", SCHEMA), Tool("ls")], None)
    assert shared.names == ["read", "ls"]
    assert shared_tool_set([Tool("read", SCHEMA), shared.get("ls") or Tool("ls")], None) is shared


@pytest.mark.parametrize(
    ("tools", "choice"),
    [
        ([Tool("read", SCHEMA)], ToolChoice("required")),
        ([Tool("read", SCHEMA)], ToolChoice("none")),
        ([Tool("read", SCHEMA), Tool("ls")], None),
        ([Tool("read", {**SCHEMA})], None),
        ([Tool("read", SCHEMA, kind="custom")], None),
        ([Tool("read", SCHEMA), Tool("read", SCHEMA)], None),
        ([], None),
    ],
)
def test_other_tools_or_another_choice_are_another_set(tools: list[Tool], choice: ToolChoice | None) -> None:
    shared = shared_tool_set([Tool("read", SCHEMA)], None)
    other = shared_tool_set(tools, choice)
    assert other is not shared
    assert other.names == ToolSet(tools, choice).names
    assert other.requires_call == ToolSet(tools, choice).requires_call


def test_shared_set_is_freed_with_its_last_request() -> None:
    shared = ref(shared_tool_set([Tool("read", {**SCHEMA})], None))
    gc.collect()
    assert shared() is None


@pytest.mark.parametrize("choice", [None, ToolChoice("auto"), ToolChoice("required", ("read",)), ToolChoice("none")])
def test_tools_of_replies_answer_as_the_offered_tools(choice: ToolChoice | None) -> None:
    tools = SharedTools(
        [Tool("read", SCHEMA, "Read a file."), Tool("a__find", kind="custom", local="find", about="A.")]
    )
    offered, for_replies = ToolSet(tools, choice), shared_tool_set(tools, choice)
    assert shared_tool_set(tools, choice) is for_replies
    assert for_replies.names == offered.names
    assert (for_replies.requires_call, for_replies.required_tool) == (offered.requires_call, offered.required_tool)
    assert for_replies.resolve_name("find") == offered.resolve_name("find")
    assert for_replies.param_names("read") == offered.param_names("read")
    for arguments in ('{"path": "a"}', '{"other": 1}', "{}"):
        assert for_replies.match_by_arguments(arguments) == offered.match_by_arguments(arguments)
    assert for_replies.can_omit_all_params("read") == offered.can_omit_all_params("read")
    assert for_replies.coercion_for("read", "path").convert("5") == offered.coercion_for("read", "path").convert("5")
    for name in offered.names:
        tool, original = for_replies.get(name), offered.get(name)
        assert tool is not None
        assert original is not None
        assert (tool.kind, tool.local, tool.schema) == (original.kind, original.local, original.schema)


def test_tools_of_replies_keep_no_descriptions() -> None:
    tools = SharedTools([Tool("read", SCHEMA, "Read a file.", about="Files.", extra={"a": 1})])
    assert shared_tool_set(tools, None).get("read") == Tool("read", SCHEMA)


def test_derived_values_are_computed_once_and_only_some_are_kept() -> None:
    offer, computed = ToolSet([]), list[int]()

    def derive(key: int) -> str:
        def compute() -> str:
            computed.append(key)
            return f"value {key}"

        return offer.derive(key, compute)

    assert [derive(1), derive(1), derive(2)] == ["value 1", "value 1", "value 2"]
    assert computed == [1, 2]
    for key in range(10 * MAX_DERIVED_VALUES):
        assert derive(key) == f"value {key}"
    assert len(offer._derived_values) <= MAX_DERIVED_VALUES
