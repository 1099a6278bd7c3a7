"""Function-call detector for SGLang, named `interlingua`.

    python -m sglang.launch_server --model-path MODEL --tool-call-parser interlingua

SGLang finds this module by its entry point (`sglang.srt.plugins`), if Interlingua is installed beside it. SGLang's own
reasoning parser (`--reasoning-parser`) reads the reply first, so the detector receives the text after the thinking.
"""

from __future__ import annotations

from typing import Any

from sglang.srt.function_call.base_format_detector import BaseFormatDetector
from sglang.srt.function_call.core_types import StreamingParseResult, ToolCallItem
from sglang.srt.function_call.function_call_parser import FunctionCallParser
from xgrammar import StructuralTag

from interlingua.errors import NotExpressible
from interlingua.exports.exporter import export
from interlingua.integrations.reply_stream import LOGGER, Delta, ReplyStream, as_json, choose_dialect

__all__ = ["InterlinguaDetector", "register"]

NAME = "interlingua"
CALL_BRACKETS = ("{", "(", "<")
"""Calls that no marker opens have one of these."""


class InterlinguaDetector(BaseFormatDetector):
    """Detector of one reply's calls."""

    def __init__(self, tokenizer: Any = None) -> None:
        super().__init__()
        self._dialect = choose_dialect(getattr(tokenizer, "name_or_path", None))
        self._tool_choice: Any = None
        self._stream: ReplyStream | None = None

    def get_required_tool_parser(self, tool_choice: Any) -> None:
        """Receive the request's tool choice. SGLang asks here for another parser for required calls; there is none."""
        self._tool_choice = as_json(tool_choice)

    def parses_required_natively(self) -> bool:
        return True

    def supports_structural_tag(self) -> bool:
        return False  # the older form of tags: one prefix per tool, which many dialects do not have

    def structure_info(self) -> Any:
        raise NotImplementedError("`get_structural_tag` describes the calls")

    def get_structural_tag(
        self,
        tools: Any = None,
        tool_choice: Any = "auto",
        thinking_mode: bool = False,
        parallel_tool_calls: bool = True,
    ) -> Any:
        """Return the dialect's structural tag for these tools; None if it cannot be expressed."""
        try:
            tag = export(
                "structural-tag",
                self._dialect,
                _tools(tools),
                as_json(tool_choice),
                parallel=parallel_tool_calls,
                thinking=thinking_mode,
            )
        except NotExpressible as error:
            LOGGER.warning("the call is not constrained: %s", error)
            return None
        return StructuralTag.model_validate(tag.content)

    def has_tool_call(self, text: str) -> bool:
        """Return whether the text may be more than text: only then SGLang parses a complete reply."""
        if any(opener in text for opener in (*self._dialect.markers, *CALL_BRACKETS)):
            return True
        return ReplyStream(self._dialect, reasoning="as_content").parse(text).text != text

    def detect_and_parse(self, text: str, tools: Any) -> Any:
        reply = self._open_stream(tools).parse(text)
        calls = [
            ToolCallItem(tool_index=index, name=call.name, parameters=call.arguments)
            for index, call in enumerate(reply.calls)
        ]
        return StreamingParseResult(normal_text=reply.text, calls=calls)

    def parse_streaming_increment(self, new_text: str, tools: Any) -> Any:
        if self._stream is None:
            self._stream = self._open_stream(tools)
        return _parse_result(self._stream.feed(new_text))

    def finish(self, tools: Any) -> Any:  # noqa: ARG002 (SGLang's interface)
        """Return the text and the arguments that were held back until the end of the reply."""
        stream, self._stream = self._stream, None
        return _parse_result(stream.close() if stream is not None else Delta())

    def _open_stream(self, tools: Any) -> ReplyStream:
        # Thinking that SGLang's reasoning parser has left is text: a detector has no place for it.
        return ReplyStream(self._dialect, _tools(tools), self._tool_choice, reasoning="as_content")


def register() -> None:
    """Add the detector to SGLang's parsers."""
    FunctionCallParser.ToolCallParserEnum[NAME] = InterlinguaDetector


def _tools(tools: Any) -> list[dict[str, Any]]:
    return [as_json(tool) for tool in tools or ()]


def _parse_result(delta: Delta) -> Any:
    calls = [ToolCallItem(tool_index=call.index, name=call.name, parameters=call.arguments) for call in delta.calls]
    return StreamingParseResult(normal_text=delta.text, calls=calls)
