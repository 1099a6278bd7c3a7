"""Function-call parser of an SGLang release with our detector, over one text at a time: whole, and in pieces.

`do=load` names the folder of the release, and loads the plugins that are installed beside it.
"""

import os
import sys
from typing import Any

from answers import answer_requests

PIECE_CHARS = 7


def load(release: str) -> dict[str, Any]:
    sys.path.insert(0, release)
    os.environ["SGLANG_PLUGINS"] = "interlingua"
    from sglang.srt.function_call.function_call_parser import FunctionCallParser
    from sglang.srt.plugins import load_plugins

    load_plugins()
    from sglang.version import __version__

    return {"version": __version__, "registered": "interlingua" in FunctionCallParser.ToolCallParserEnum}


def make_parser(tools: list[dict[str, Any]], dialect: str, tool_choice: Any = "auto") -> Any:
    from sglang.srt.entrypoints.openai.protocol import Tool
    from sglang.srt.function_call.function_call_parser import FunctionCallParser

    os.environ["INTERLINGUA_DIALECT"] = dialect
    return FunctionCallParser([Tool(**tool) for tool in tools], "interlingua", tool_choice=tool_choice)


def read(*, dialect: str, text: str, tools: list[dict[str, Any]]) -> dict[str, Any]:
    """Return the reply whole, and for each way to stream it, as SGLang's chat server does."""

    def whole() -> dict[str, Any]:
        parser = make_parser(tools, dialect)
        content, calls = parser.parse_non_stream(text) if parser.has_tool_call(text) else (text, [])
        return {"content": content, "calls": [[call.name, call.parameters] for call in calls]}

    def streamed(size: int) -> dict[str, Any]:
        parser = make_parser(tools, dialect)
        pieces = [parser.parse_stream_chunk(text[start : start + size]) for start in range(0, len(text), size)]
        content, calls = "", []
        for new_text, new_calls in [*pieces, parser.parse_stream_end()]:
            content += new_text
            for call in new_calls:
                if call.name:
                    calls.append([call.name, ""])
                calls[call.tool_index][1] += call.parameters
        return {"content": content, "calls": calls}

    return {
        "whole": whole(),
        "character": streamed(1),
        "several": streamed(PIECE_CHARS),
        "once": streamed(len(text) or 1),
    }


def constrain(*, dialect: str, tools: list[dict[str, Any]], tool_choice: Any) -> Any:
    """Return the kind of constraint for a request, and the calls of a parser that owns their format."""
    from sglang.srt.entrypoints.openai.protocol import ToolChoice

    choice = ToolChoice(**tool_choice) if isinstance(tool_choice, dict) else tool_choice
    parser = make_parser(tools, dialect, choice)
    constraint = parser.get_structure_constraint(choice)
    return {"owns_format": parser.owns_tool_format(), "kind": constraint[0] if constraint else None}


if __name__ == "__main__":
    answer_requests(load=load, read=read, constrain=constrain)
