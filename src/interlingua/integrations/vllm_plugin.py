"""Tool parser and reasoning parser for vLLM, both named `interlingua`.

    vllm serve MODEL --enable-auto-tool-choice \\
        --tool-parser-plugin interlingua.integrations.vllm_plugin --tool-call-parser interlingua \\
        --reasoning-parser-plugin interlingua.integrations.vllm_plugin --reasoning-parser interlingua

vLLM gives a reply to the reasoning parser first, and to the tool parser when the thinking has ended. But models also
write calls inside their thinking, and think between calls. So if both parsers are configured, the reasoning parser
passes all text on, and the tool parser returns the thinking, the text and the calls.
"""

from __future__ import annotations

import json
import threading
from collections.abc import Iterable, Iterator, Sequence
from functools import cached_property
from typing import Any

from vllm.entrypoints.generate.base.protocol import (
    DeltaFunctionCall,
    DeltaMessage,
    DeltaToolCall,
    ExtractedToolCallInformation,
    FunctionCall,
    ToolCall,
)
from vllm.reasoning import ReasoningParser, ReasoningParserManager
from vllm.sampling_params import StructuredOutputsParams
from vllm.tool_parsers import ToolParser, ToolParserManager

from interlingua.core.reply import Reply
from interlingua.core.tool_choice import read_tool_choice
from interlingua.errors import NotExpressible
from interlingua.exports.exporter import export
from interlingua.integrations.reply_stream import (
    LOGGER,
    Delta,
    ReplyStream,
    as_json,
    choose_dialect,
    find_call_ids,
    find_prefill,
)
from interlingua.parsing.dialect import Dialect

__all__ = ["InterlinguaReasoningParser", "InterlinguaToolParser"]

NAME = "interlingua"
MAX_PROMPT_END_TOKENS = 64
"""Tokens at the end of a prompt in which an opener of thinking is looked for."""


class InterlinguaToolParser(ToolParser):
    """Parser of one reply's calls. With the reasoning parser of this module also of its thinking."""

    engine_based_streaming = True  # vLLM passes only new text, and calls `finish_streaming` at the end
    supports_required_and_named = False  # a required call comes here, too, and not to vLLM's JSON reader

    def __init__(self, tokenizer: Any, tools: list[Any] | None = None) -> None:
        super().__init__(tokenizer, tools)
        self._partner = _PARTNERS.take(tokenizer)
        if self._partner is not None:
            self._partner.passes_all_text = True
        self._stream: ReplyStream | None = None

    def adjust_request(self, request: Any) -> Any:
        """Keep special tokens in the text, and constrain a required call to the dialect or to JSON."""
        _keep_special_tokens(request)
        if request.tools and _requires_call(request) and getattr(request, "structured_outputs", None) is None:
            request.structured_outputs = _call_constraint(self._dialect(request), request)
            for field in ("response_format", "text"):  # of Chat Completions and of Responses
                if getattr(request, field, None) is not None:
                    setattr(request, field, None)  # vLLM takes one constraint, and the required call comes first
        return request

    def extract_tool_calls(self, model_output: str, request: Any) -> Any:
        reply = self._open_stream(request).parse(model_output)
        calls = [
            ToolCall(id=call.id, type="function", function=FunctionCall(name=call.name, arguments=call.arguments))
            for call in reply.calls
        ]
        return ExtractedToolCallInformation(tools_called=bool(calls), tool_calls=calls, content=reply.text or None)

    def extract_tool_calls_streaming(
        self,
        previous_text: str,  # noqa: ARG002 (the parser never sees old text)
        current_text: str,  # noqa: ARG002
        delta_text: str,
        previous_token_ids: Sequence[int],  # noqa: ARG002
        current_token_ids: Sequence[int],  # noqa: ARG002
        delta_token_ids: Sequence[int],  # noqa: ARG002
        request: Any,
    ) -> Any:
        if self._stream is None:
            self._stream = self._open_stream(request)
        return _delta_message(self._stream.feed(delta_text))

    def finish_streaming(self) -> Any:
        """Return the text and the arguments that were held back until the end of the reply."""
        stream, self._stream = self._stream, None
        return _delta_message(stream.close()) if stream is not None else None

    def _open_stream(self, request: Any) -> ReplyStream:
        partner = self._partner
        return _open_stream(
            self._dialect(request),
            request,
            prefill=partner.prefill if partner is not None else "",
            # Without the reasoning parser, vLLM has no place for the thinking of a complete reply.
            reasoning="keep" if partner is not None else "as_content",
        )

    def _dialect(self, request: Any) -> Dialect:
        if self._partner is not None:
            return self._partner.dialect
        return choose_dialect(getattr(self.model_tokenizer, "name_or_path", None), request.model)


class InterlinguaReasoningParser(ReasoningParser):
    """Parser of one reply's thinking. If the tool parser of this module follows, it passes all text to that parser."""

    engine_based_streaming = True

    def __init__(self, tokenizer: Any, *args: Any, **kwargs: Any) -> None:
        super().__init__(tokenizer, *args, **kwargs)
        model = getattr(kwargs.get("model_config"), "model", None)
        self.dialect = choose_dialect(model, getattr(tokenizer, "name_or_path", None))
        self.passes_all_text = False
        self._prompt_end: list[int] = []
        self._stream: ReplyStream | None = None
        self._text_after_thinking: str | None = None
        """The text after the thinking; None as long as the thinking goes on."""
        _PARTNERS.put(self)

    @property
    def prefill(self) -> str:
        """The beginning of the reply at the end of the prompt, such as an opener of thinking."""
        if not self._prompt_end:
            return ""
        return find_prefill(self.model_tokenizer.decode(self._prompt_end), self.dialect)

    @property
    def reasoning_start_str(self) -> str | None:
        return self.dialect.thinking[0].open if self.dialect.thinking else None

    @property
    def reasoning_end_str(self) -> str | None:
        return self.dialect.thinking[0].close if self.dialect.thinking else None

    def adjust_request(self, request: Any) -> Any:
        _keep_special_tokens(request)
        return request

    def set_prompt_token_ids(self, prompt_token_ids: Sequence[int]) -> None:
        self._prompt_end = list(prompt_token_ids[-MAX_PROMPT_END_TOKENS:])

    def adjust_initial_state_from_prompt(self, prompt_token_ids: Sequence[int]) -> None:
        self.set_prompt_token_ids(prompt_token_ids)

    def is_reasoning_end(self, input_ids: Sequence[int]) -> bool:
        """Return whether these tokens end outside thinking. The scheduler constrains a reply only from there on."""
        # vLLM 0.31 and 0.32 pass the prompt of a reply that is not streamed only to this method.
        self.set_prompt_token_ids(input_ids)
        if not self.dialect.thinking:
            return True
        opener = max((_rfind(input_ids, ids) for ids in self._opener_ids), default=-1)
        return max((_rfind(input_ids, ids) for ids in self._closer_ids), default=-1) > opener

    def is_reasoning_end_streaming(self, input_ids: Sequence[int], delta_ids: Iterable[int]) -> bool:
        """Return whether thinking ends in the last tokens. Only they are looked at: this runs for each token."""
        new = len(list(delta_ids))
        starts = ((ids, max(len(input_ids) - new - len(ids) + 1, 0)) for ids in self._closer_ids)
        return new > 0 and any(_rfind(input_ids[start:], ids) >= 0 for ids, start in starts)

    def extract_content_ids(self, input_ids: list[int]) -> list[int]:
        """Return the tokens after the thinking."""
        ends = [end + len(ids) for ids in self._closer_ids if (end := _rfind(input_ids, ids)) >= 0]
        return input_ids[max(ends) :] if ends else []

    def count_reasoning_tokens(self, token_ids: Sequence[int]) -> int:
        """Return the number of tokens before the end of the thinking; the markers do not count."""
        ends = [end for ids in self._closer_ids if (end := _rfind(token_ids, ids)) >= 0]
        starts = [start + len(ids) for ids in self._opener_ids if (start := _rfind(token_ids, ids)) >= 0]
        if not ends and not starts and not self.prefill:
            return 0
        return max((max(ends) if ends else len(token_ids)) - (min(starts) if starts else 0), 0)

    def extract_reasoning(self, model_output: str, request: Any) -> tuple[str | None, str | None]:
        if self.passes_all_text:
            reply = self._parse(model_output, request)
            return reply.reasoning or None, model_output
        reply = ReplyStream(self.dialect, tools=[], prefill=self.prefill).parse(model_output)
        return reply.reasoning or None, reply.text or None

    def extract_reasoning_streaming(
        self,
        previous_text: str,  # noqa: ARG002
        current_text: str,  # noqa: ARG002
        delta_text: str,
        previous_token_ids: Sequence[int],  # noqa: ARG002
        current_token_ids: Sequence[int],  # noqa: ARG002
        delta_token_ids: Sequence[int],  # noqa: ARG002
    ) -> Any:
        if self.passes_all_text:
            self._text_after_thinking = delta_text
            return None
        if self._stream is None:
            self._stream = ReplyStream(self.dialect, tools=[], prefill=self.prefill)
        delta = self._stream.feed(delta_text)
        if delta.text:
            # From here on vLLM passes the text to the tool parser: it also gets what is held back.
            self._text_after_thinking = delta.text + self._stream.held
        return DeltaMessage(reasoning=delta.reasoning) if delta.reasoning else None

    def has_engine_confirmed_reasoning_end(self) -> bool:
        return self._text_after_thinking is not None

    def finish_streaming(self) -> Any:
        """Return the text after the thinking, or at the end of the reply what was held back."""
        if self._text_after_thinking is not None:
            rest, self._text_after_thinking = self._text_after_thinking, ""
            return DeltaMessage(content=rest) if rest else None
        stream, self._stream = self._stream, None
        return _delta_message(stream.close()) if stream is not None else None

    def _parse(self, model_output: str, request: Any) -> Reply:
        return _open_stream(self.dialect, request, prefill=self.prefill).parse(model_output)

    @cached_property
    def _opener_ids(self) -> list[list[int]]:
        return list(self._encode_markers(self.dialect.thinking_openers))

    @cached_property
    def _closer_ids(self) -> list[list[int]]:
        return list(self._encode_markers(self.dialect.thinking_closers))

    def _encode_markers(self, markers: Iterable[str]) -> Iterator[list[int]]:
        """Yield the tokens of each marker: one if the model has a token for it."""
        for marker in markers:
            token = self.vocab.get(marker)
            ids = [token] if token is not None else self.model_tokenizer.encode(marker, add_special_tokens=False)
            if ids:
                yield list(ids)


class PartnerRegister(threading.local):
    """The reasoning parser that was created last in this thread.

    vLLM creates both parsers of a reply one after the other, but does not introduce them to each other.
    """

    _last_parser: InterlinguaReasoningParser | None = None

    def put(self, parser: InterlinguaReasoningParser) -> None:
        self._last_parser = parser

    def take(self, tokenizer: Any) -> InterlinguaReasoningParser | None:
        parser, self._last_parser = self._last_parser, None
        return parser if parser is not None and parser.model_tokenizer is tokenizer else None


_PARTNERS = PartnerRegister()


def _open_stream(dialect: Dialect, request: Any, **options: Any) -> ReplyStream:
    return ReplyStream(
        dialect,
        _tools(request),
        as_json(request.tool_choice),
        taken_ids=find_call_ids(getattr(request, "messages", ())),
        **options,
    )


def _tools(request: Any) -> list[dict[str, Any]]:
    return [as_json(tool) for tool in request.tools or ()]


def _requires_call(request: Any) -> bool:
    choice = read_tool_choice(as_json(request.tool_choice))
    return choice is not None and choice.mode == "required"


def _call_constraint(dialect: Dialect, request: Any) -> Any:
    """Return the constraint for a required call: the dialect's structural tag, or JSON if it cannot have one."""
    parallel = request.parallel_tool_calls is not False
    tools, choice = _tools(request), as_json(request.tool_choice)
    try:
        tag = export("structural-tag", dialect, tools, choice, parallel=parallel, thinking=False).content
    except NotExpressible as error:
        LOGGER.info("required call as JSON: %s", error)
        return StructuredOutputsParams(json=_json_calls_schema(tools, choice, parallel))
    return StructuredOutputsParams(structural_tag=json.dumps(tag))


def _json_calls_schema(tools: list[dict[str, Any]], choice: Any, parallel: bool) -> dict[str, Any]:
    """Return the schema of a list of calls in JSON, which is a call in every dialect if a call is required."""
    functions = [tool.get("function") or tool for tool in tools]
    tool_choice = read_tool_choice(choice)
    names = tool_choice.names if tool_choice is not None else ()
    calls = [
        {
            "type": "object",
            "properties": {"name": {"const": tool["name"]}, "parameters": tool.get("parameters") or {"type": "object"}},
            "required": ["name", "parameters"],
            "additionalProperties": False,
        }
        for tool in functions
        if not names or tool["name"] in names
    ]
    return {"type": "array", "minItems": 1, "items": {"anyOf": calls}, **({} if parallel else {"maxItems": 1})}


def _keep_special_tokens(request: Any) -> None:
    """Keep special tokens in the text: they are the markers of many dialects."""
    request.skip_special_tokens = False


def _delta_message(delta: Delta) -> Any:
    """Return a delta as vLLM's message; None if it is empty."""
    if not delta:
        return None
    calls = [
        DeltaToolCall(
            index=call.index,
            id=call.id,
            type="function" if call.name is not None else None,
            function=DeltaFunctionCall(name=call.name, arguments=call.arguments),
        )
        for call in delta.calls
    ]
    return DeltaMessage(reasoning=delta.reasoning or None, content=delta.text or None, tool_calls=calls)


def _rfind(tokens: Sequence[int], wanted: list[int]) -> int:
    """Return the last position of these tokens; -1 if they do not occur."""
    last = wanted[-1]
    for end in range(len(tokens) - 1, len(wanted) - 2, -1):
        start = end - len(wanted) + 1
        if tokens[end] == last and list(tokens[start : end + 1]) == wanted:
            return start
    return -1


ToolParserManager.register_module(NAME, module=InterlinguaToolParser)
ReasoningParserManager.register_module(NAME, module=InterlinguaReasoningParser)
