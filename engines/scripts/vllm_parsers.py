"""Parsers of a vLLM release, ours and its own, over one text at a time: whole, and streamed in groups of tokens.

`do=load` names the folder of the release. `do=read` parses a text as vLLM's server does, with the parser that vLLM
composes of a tool parser and a reasoning parser.
"""

import logging
import os
import sys
from collections.abc import Iterator
from functools import lru_cache
from typing import Any

from answers import answer_requests

BYTES = 256
MERGES = 600
SEVERAL = 4
"""Tokens of a delta if several come at once, as with speculative decoding."""


def load(release: str) -> str:
    sys.path.insert(0, release)
    os.environ["VLLM_LOGGING_LEVEL"] = "CRITICAL"
    logging.disable(logging.CRITICAL)
    import vllm
    from vllm.reasoning import ReasoningParserManager
    from vllm.tool_parsers import ToolParserManager

    for manager in (ToolParserManager.import_tool_parser, ReasoningParserManager.import_reasoning_parser):
        manager("interlingua.integrations.vllm_plugin")
    return str(vllm.__version__)


def has_parsers(*, tool_parser: str, reasoning_parser: str | None) -> bool:
    """Return whether this release has both parsers."""
    from vllm.reasoning import ReasoningParserManager
    from vllm.tool_parsers import ToolParserManager

    names = ToolParserManager.list_registered(), ReasoningParserManager.list_registered()
    return tool_parser in names[0] and reasoning_parser in (None, *names[1])


@lru_cache(maxsize=4)
def make_tokenizer(markers: tuple[str, ...], samples: tuple[str, ...]) -> Any:
    """Return a byte-level tokenizer that has learned these samples and has one token for each marker."""
    from tokenizers import AddedToken, Tokenizer, decoders, models, pre_tokenizers, trainers
    from transformers import PreTrainedTokenizerFast

    tokenizer = Tokenizer(models.BPE())
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    tokenizer.decoder = decoders.ByteLevel()
    trainer = trainers.BpeTrainer(
        vocab_size=BYTES + MERGES, initial_alphabet=pre_tokenizers.ByteLevel.alphabet(), show_progress=False
    )
    tokenizer.train_from_iterator(samples, trainer)
    tokenizer.add_special_tokens([AddedToken(marker, normalized=False, special=True) for marker in markers])
    return PreTrainedTokenizerFast(tokenizer_object=tokenizer, clean_up_tokenization_spaces=False)


def read(
    *,
    tool_parser: str,
    reasoning_parser: str | None,
    dialect: str,
    markers: list[str],
    samples: list[str],
    text: str,
    tools: list[dict[str, Any]],
    prefill: str = "",
    tool_choice: Any = "auto",
) -> dict[str, Any]:
    """Return the reply whole, and for each way to stream it."""
    from vllm.entrypoints.openai.chat_completion.protocol import ChatCompletionRequest
    from vllm.parser import ParserManager

    os.environ["INTERLINGUA_DIALECT"] = dialect
    tokenizer = make_tokenizer(tuple(markers), tuple(samples))
    tokens = tokenizer.encode(text, add_special_tokens=False)
    prompt = tokenizer.encode("user: hi\n" + prefill, add_special_tokens=False)
    make_parser = ParserManager.get_parser(
        tool_parser_name=tool_parser, reasoning_parser_name=reasoning_parser, enable_auto_tools=True, model_name="m"
    )

    def request() -> Any:
        messages = [{"role": "user", "content": "hi"}]
        offered = {"tools": tools, "tool_choice": tool_choice} if tools else {}
        return ChatCompletionRequest(model="m", messages=messages, **offered)

    def whole() -> dict[str, Any]:
        parser, whole_request = make_parser(tokenizer, request().tools), request()
        parser.is_reasoning_end(prompt)  # the server asks this before the model replies
        if hasattr(parser, "set_prompt_token_ids"):
            parser.set_prompt_token_ids(prompt)
        reasoning, content, calls = parser.parse(
            text, whole_request, enable_auto_tools=True, model_output_token_ids=tokens
        )
        return {
            "reasoning": reasoning or "",
            "content": content or "",
            "calls": [[call.name, call.arguments] for call in calls or ()],
        }

    def streamed(group: int) -> dict[str, Any]:
        parser, stream_request = make_parser(tokenizer, request().tools), request()
        reply: dict[str, Any] = {"reasoning": "", "content": "", "calls": []}
        groups = list(delta_groups(tokenizer, tokens, group)) or [("", [])]
        for number, (piece, ids) in enumerate(groups, 1):
            is_last = number == len(groups)
            add_delta(reply, parser.parse_delta(piece, ids, stream_request, prompt, finished=is_last))
        return reply

    ways = {"whole": whole, "token": lambda: streamed(1), "several": lambda: streamed(SEVERAL)}
    ways["once"] = lambda: streamed(len(tokens) or 1)
    return {name: attempt(way) for name, way in ways.items()}


def constrain(*, dialect: str, tools: list[dict[str, Any]], tool_choice: Any, api: str) -> dict[str, Any]:
    """Return the constraint that the parsers add to a request, and its type in the engine's grammar."""
    from vllm.entrypoints.openai.chat_completion.protocol import ChatCompletionRequest
    from vllm.entrypoints.openai.responses.protocol import ResponsesRequest
    from vllm.parser import ParserManager
    from vllm.parser.abstract_parser import structured_outputs_to_format

    os.environ["INTERLINGUA_DIALECT"] = dialect
    fields = {"model": "m", "tools": tools, "tool_choice": tool_choice}
    if api == "chat":
        request = ChatCompletionRequest(messages=[{"role": "user", "content": "hi"}], **fields)
    else:
        request = ResponsesRequest(input="hi", **fields)
    parser_class = ParserManager.get_parser("interlingua", "interlingua", enable_auto_tools=True, model_name="m")
    parser = parser_class(make_tokenizer((), ("a sample",)), request.tools)
    request = parser.adjust_request(request)
    constraint = request.structured_outputs
    return {
        "skip_special_tokens": request.skip_special_tokens,
        "tag": constraint.structural_tag if constraint else None,
        "json": constraint.json if constraint else None,
        "grammar": type(structured_outputs_to_format(constraint)).__name__ if constraint else None,
    }


def import_file(path: str) -> list[str]:
    """Import the plugin by its path, as `--tool-parser-plugin FILE` does, and return the names of both its parsers."""
    from vllm.reasoning import ReasoningParserManager
    from vllm.tool_parsers import ToolParserManager

    ToolParserManager.tool_parsers.pop("interlingua")
    ReasoningParserManager.reasoning_parsers.pop("interlingua")
    ToolParserManager.import_tool_parser(path)
    found = ToolParserManager.get_tool_parser("interlingua"), ReasoningParserManager.get_reasoning_parser("interlingua")
    return [parser.__name__ for parser in found]


def attempt(way: Any) -> dict[str, Any]:
    try:
        result: dict[str, Any] = way()
    except Exception as error:  # noqa: BLE001 (it is a fact about the parser)
        return {"error": f"{type(error).__name__}: {error}"[:200]}
    return result


def delta_groups(tokenizer: Any, tokens: list[int], group: int) -> Iterator[tuple[str, list[int]]]:
    """Yield the new text and the new tokens, as vLLM's detokenizer does: never half of a character."""
    sent, waiting = 0, []
    for end in range(group, len(tokens) + group, group):
        waiting += tokens[end - group : end]
        text = tokenizer.decode(tokens[:end], skip_special_tokens=False)
        if text.endswith("\ufffd") and end < len(tokens):
            continue
        yield text[sent:], waiting
        sent, waiting = len(text), []


def add_delta(reply: dict[str, Any], delta: Any) -> None:
    if delta is None:
        return
    reply["reasoning"] += delta.reasoning or ""
    reply["content"] += delta.content or ""
    for call in delta.tool_calls or ():
        while len(reply["calls"]) <= call.index:
            reply["calls"].append(["", ""])
        entry = reply["calls"][call.index]
        entry[0] += (call.function.name or "") if call.function else ""
        entry[1] += (call.function.arguments or "") if call.function else ""


if __name__ == "__main__":
    answer_requests(load=load, has_parsers=has_parsers, read=read, constrain=constrain, import_file=import_file)
