"""Replacement for the `parse_response` of a transformers tokenizer, whole and streamed.

    message = parse_response(tokenizer, output, prefix=prompt, tools=tools)

    streamer = ResponseStreamer(tokenizer, tools=tools)
    Thread(target=model.generate, kwargs={**inputs, "streamer": streamer}).start()
    for delta in streamer: ...

A tokenizer's own `parse_response` needs a `response_template`, which few models have, and a complete reply.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from queue import Empty, Queue
from typing import Any

from interlingua.core.reply import Call, Reply
from interlingua.core.tools import ToolsLike
from interlingua.dialects.registry import get_dialect
from interlingua.integrations.reply_stream import Delta, ReplyStream, choose_dialect, find_prefill
from interlingua.parsing.dialect import Dialect

__all__ = ["ResponseStreamer", "parse_response"]

HALF_CHARACTER = "\ufffd"
"""The character to which a tokenizer decodes the first bytes of a character."""
PREFIX_CHARS = 1000
"""End of a prompt in which an opener of thinking is looked for."""


def parse_response(
    tokenizer: Any,
    response: Any,
    *,
    prefix: Any = "",
    tools: ToolsLike = None,
    dialect: str | Dialect | None = None,
) -> Any:
    """Return a reply as a message for `apply_chat_template`; a list of messages for a batch.

    Args:
        tokenizer: The tokenizer of the model. Its name selects the dialect.
        response: The generated text or tokens, or a batch of them.
        prefix: The prompt, as text or tokens. It may open the thinking.
        tools: The tools in the prompt, as JSON; None if they are not known.
        dialect: The dialect, if the tokenizer's name does not show it.
    """
    model_dialect = _find_dialect(tokenizer, dialect)
    texts = _without_end(_decode(tokenizer, response), _end_texts(tokenizer, model_dialect))
    prefixes = _decode(tokenizer, prefix)
    if isinstance(texts, str):
        return _message(_parse(texts, str(prefixes), tools, model_dialect))
    prefix_list = [prefixes] * len(texts) if isinstance(prefixes, str) else prefixes
    pairs = zip(texts, prefix_list, strict=True)
    return [_message(_parse(text, before, tools, model_dialect)) for text, before in pairs]


class ResponseStreamer:
    """Streamer for `model.generate` that yields what is new in the reply, as parts of a message.

    Each delta has the new text of `thinking` and `content`, and in `tool_calls` the new parts of calls, as in a chunk
    of Chat Completions: their arguments are pieces of JSON text. `message` is the message so far.

    Args:
        tokenizer: The tokenizer of the model. Its name selects the dialect.
        tools: The tools in the prompt, as JSON; None if they are not known.
        dialect: The dialect, if the tokenizer's name does not show it.
        timeout: Seconds to wait for the next token; None waits for ever.

    Raises:
        TimeoutError: No token came in time, for example because `generate` has failed in its thread.
    """

    def __init__(
        self,
        tokenizer: Any,
        tools: ToolsLike = None,
        dialect: str | Dialect | None = None,
        timeout: float | None = None,
    ) -> None:
        self._tokenizer = tokenizer
        self._tools = tools
        self._dialect = _find_dialect(tokenizer, dialect)
        self._end_token = tokenizer.eos_token_id if _end_texts(tokenizer, self._dialect) else None
        self._timeout = timeout
        self._texts: Queue[str | None] = Queue()
        self._decoder: TokenDecoder | None = None
        self._stream: ReplyStream | None = None

    def put(self, value: Any) -> None:
        """Receive the prompt, and then the new tokens. `model.generate` calls this in its thread."""
        tokens = [int(token) for token in (value[0] if len(value.shape) > 1 else value)]
        if self._decoder is None:
            self._decoder = TokenDecoder(self._tokenizer)
            self._stream = _open_stream(self._tokenizer.decode(tokens), self._tools, self._dialect)
        else:
            self._texts.put(self._decoder.feed([token for token in tokens if token != self._end_token]))

    def end(self) -> None:
        if self._decoder is not None:
            self._texts.put(self._decoder.close())
        self._texts.put(None)

    def __iter__(self) -> Iterator[dict[str, Any]]:
        while (text := self._next_text()) is not None:
            if self._stream is not None:
                yield from _delta_parts(self._stream.feed(text))
        if self._stream is not None:
            yield from _delta_parts(self._stream.close())

    def _next_text(self) -> str | None:
        try:
            return self._texts.get(timeout=self._timeout)
        except Empty:
            raise TimeoutError(f"no token in {self._timeout} seconds: see the thread of `generate`") from None

    @property
    def message(self) -> dict[str, Any]:
        """The message so far, for `apply_chat_template`."""
        return _message(self._stream.reply if self._stream is not None else Reply())


class TokenDecoder:
    """Incremental decoder: new tokens in, new text out, never half of a character.

    The last tokens are decoded again with the new ones, because the text of a token depends on the one before it.
    """

    def __init__(self, tokenizer: Any) -> None:
        self._tokenizer = tokenizer
        self._sent: list[int] = []  # the last tokens whose text was returned
        self._new: list[int] = []

    def feed(self, tokens: list[int]) -> str:
        self._new += tokens
        text = self._decode_new()
        if not text or text.endswith(HALF_CHARACTER):
            return ""
        self._sent, self._new = self._new, []
        return text

    def close(self) -> str:
        """Return the text of the tokens that end inside a character."""
        return self._decode_new()

    def _decode_new(self) -> str:
        before: str = self._tokenizer.decode(self._sent)
        both: str = self._tokenizer.decode(self._sent + self._new)
        return both[len(before) :]


def _find_dialect(tokenizer: Any, dialect: str | Dialect | None) -> Dialect:
    return get_dialect(dialect) if dialect is not None else choose_dialect(getattr(tokenizer, "name_or_path", None))


def _decode(tokenizer: Any, value: Any) -> str | Sequence[str]:
    """Return the text of a string or of tokens, and the texts of a batch."""
    if isinstance(value, str):
        return value
    if isinstance(value, list | tuple) and (not value or isinstance(value[0], str)):
        return list(value)
    decoded: str | list[str] = tokenizer.decode(value)
    return decoded


def _end_texts(tokenizer: Any, dialect: Dialect) -> tuple[str, ...]:
    """Return the tokens for the end of the turn and for padding. A marker of the dialect is for the parser."""
    eos, pad = getattr(tokenizer, "eos_token", None), getattr(tokenizer, "pad_token", None)
    return () if eos in dialect.markers else tuple(filter(None, (eos, pad)))


def _without_end(texts: str | Sequence[str], ends: tuple[str, ...]) -> str | Sequence[str]:
    """Return the texts without the end of the turn, and without the padding of a batch."""
    if not isinstance(texts, str):
        return [str(_without_end(text, ends)) for text in texts]
    while ends and texts.endswith(ends):
        texts = next(texts.removesuffix(end) for end in ends if texts.endswith(end))
    return texts


def _open_stream(prefix: str, tools: ToolsLike, dialect: Dialect) -> ReplyStream:
    return ReplyStream(dialect, tools, prefill=find_prefill(prefix[-PREFIX_CHARS:], dialect))


def _parse(text: str, prefix: str, tools: ToolsLike, dialect: Dialect) -> Reply:
    return _open_stream(prefix, tools, dialect).parse(text)


def _message(reply: Reply) -> dict[str, Any]:
    message: dict[str, Any] = {"role": "assistant"}
    if reply.reasoning:
        message["thinking"] = reply.reasoning
    message["content"] = reply.text
    if reply.calls:
        message["tool_calls"] = [_call_entry(call) for call in reply.calls]
    return message


def _call_entry(call: Call) -> dict[str, Any]:
    """Return a call as chat templates take it: with its arguments as an object."""
    try:
        arguments = json.loads(call.arguments)
    except ValueError:
        arguments = call.arguments  # the reply was cut off inside the call
    return {"id": call.id, "type": "function", "function": {"name": call.name, "arguments": arguments}}


def _delta_parts(delta: Delta) -> Iterator[dict[str, Any]]:
    parts: dict[str, Any] = {}
    if delta.reasoning:
        parts["thinking"] = delta.reasoning
    if delta.text:
        parts["content"] = delta.text
    if delta.calls:
        parts["tool_calls"] = [
            {
                "index": call.index,
                **({"id": call.id, "type": "function"} if call.name is not None else {}),
                "function": {
                    **({"name": call.name} if call.name is not None else {}),
                    "arguments": call.arguments,
                },
            }
            for call in delta.calls
        ]
    if parts:
        yield parts
