"""The SGLang plugin with stand-ins for SGLang's interface."""

from __future__ import annotations

from types import ModuleType
from typing import Any

import pytest

from tests.integrations.stand_ins import CharTokenizer, Record, import_plugin
from tests.support.harness import tool

CALL = '<tool_call>{"name": "ls", "arguments": {"path": "."}}</tool_call>'
TOOLS = [Record(**tool("ls", ["path"]))]


class Detector:
    def __init__(self) -> None:
        pass


class Parser:
    ToolCallParserEnum: dict[str, Any] = {}  # noqa: RUF012 (the interface of SGLang)


class Tag(Record):
    @classmethod
    def model_validate(cls, tag: dict[str, Any]) -> Tag:
        return cls(**tag)


@pytest.fixture
def plugin(monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    monkeypatch.delenv("INTERLINGUA_DIALECT", raising=False)
    modules: dict[str, dict[str, Any]] = {
        "sglang.srt.function_call.base_format_detector": {"BaseFormatDetector": Detector},
        "sglang.srt.function_call.core_types": {"StreamingParseResult": Record, "ToolCallItem": Record},
        "sglang.srt.function_call.function_call_parser": {"FunctionCallParser": Parser},
        "xgrammar": {"StructuralTag": Tag},
    }
    return import_plugin(monkeypatch, "sglang_plugin", modules)


def make_detector(plugin: ModuleType, model: str = "Qwen/Qwen3-8B") -> Any:
    plugin.register()
    return Parser.ToolCallParserEnum["interlingua"](tokenizer=CharTokenizer(model))


ROWS = [
    (f"I will.{CALL}", "I will.", [["ls", '{"path": "."}']]),
    ("Hello.", "Hello.", []),
    ("a <tool_ca", "a <tool_ca", []),
]


@pytest.mark.parametrize(("text", "content", "calls"), ROWS)
def test_complete_reply(plugin: ModuleType, text: str, content: str, calls: list[list[str]]) -> None:
    result = make_detector(plugin).detect_and_parse(text, TOOLS)
    assert result.normal_text == content
    assert [[call.name, call.parameters] for call in result.calls] == calls


@pytest.mark.parametrize(("text", "content", "calls"), ROWS)
@pytest.mark.parametrize("size", [1, 7, 1000])
def test_streamed_reply(plugin: ModuleType, text: str, content: str, calls: list[list[str]], size: int) -> None:
    detector = make_detector(plugin)
    pieces = [text[start : start + size] for start in range(0, len(text), size)]
    results = [*(detector.parse_streaming_increment(piece, TOOLS) for piece in pieces), detector.finish(TOOLS)]
    assert "".join(result.normal_text for result in results) == content
    found: list[list[str]] = []
    for call in (call for result in results for call in result.calls):
        if call.name is not None:
            found.append([call.name, ""])
        found[call.tool_index][1] += call.parameters
    assert found == calls


def test_detector_tells_plain_text_from_markup(plugin: ModuleType) -> None:
    detector = make_detector(plugin)
    assert detector.has_tool_call(CALL)
    assert not detector.has_tool_call("Hello.")


def test_guided_json_of_a_required_call(plugin: ModuleType) -> None:
    detector = make_detector(plugin)
    assert detector.get_required_tool_parser("required") is None
    result = detector.detect_and_parse('[{"name": "ls", "parameters": {"path": "."}}]', TOOLS)
    assert [call.name for call in result.calls] == ["ls"]


def test_required_call_has_a_structural_tag(plugin: ModuleType) -> None:
    detector = make_detector(plugin)
    choice = Record(type="function", function={"name": "ls"})
    assert detector.get_structural_tag(TOOLS, choice).type == "structural_tag"
    assert detector.parses_required_natively()
    assert not detector.supports_structural_tag()
    with pytest.raises(NotImplementedError):
        detector.structure_info()


def test_dialect_without_a_tag_is_not_constrained(
    plugin: ModuleType, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setenv("INTERLINGUA_DIALECT", "standard")
    assert make_detector(plugin).get_structural_tag(TOOLS, "required") is None
    assert "not constrained" in caplog.text
