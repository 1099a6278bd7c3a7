"""Token estimate for a request. The gateway does not have the model's tokenizer. An estimate never raises."""

from __future__ import annotations

from typing import Any

import msgspec

from interlingua.common.jsontext.codec import write_json
from interlingua.tokens.image_estimator import UNKNOWN_IMAGE_TOKENS, image_tokens
from interlingua.tokens.text_estimator import NO_TEXT, WHOLE_CHARS, TextSize, measure_texts
from interlingua.wires import WIRES, get_wire
from interlingua.wires.requests.data_urls import read_data_url

__all__ = [
    "EMPTY_CONVERSATION",
    "ConversationSize",
    "estimate_tokens",
    "measure_conversation",
    "measure_items",
    "measure_prompt",
    "measure_tools",
    "request_tokens",
]

TOKENS_PER_MESSAGE = 4
TOKENS_PER_TOOL = 6
TOOL_PREAMBLE_TOKENS = 20
"""Tokens of the template text that introduces the tools."""
TOKENS_PER_PAGE, PAGE_BYTES, MAX_PAGES = 2000, 48 * 1024, 100
"""Documents are estimated by page: tokens per page, bytes per page, maximum number of pages."""
DATA_URL_HEAD_CHARS = 160 * 1024
"""Prefix of a data URL that contains the image header with the size."""
MAX_VALUES = 100_000
"""Maximum number of values in an item that are visited one by one. The rest is estimated as JSON text."""
MAX_WHOLE_TOOLS_CHARS = 4096
"""Size up to which the JSON of tools is analysed as a whole: requests share the result."""

_UNCOUNTED_FIELDS = frozenset(
    (
        "annotations",
        "cache_control",
        "call_id",
        "citations",
        "detail",
        "encrypted_content",
        "format",
        "id",
        "index",
        "logprobs",
        "media_type",
        "mime_type",
        "phase",
        "role",
        "signature",
        "status",
        "tool_call_id",
        "tool_use_id",
        "type",
    )
)
"""Fields that are not part of the prompt, or whose tokens are already included in `TOKENS_PER_MESSAGE`."""
_THINKING_NAMES = frozenset({"thinking", "reasoning", "reasoning_content", "reasoning_details", "redacted_thinking"})
"""Message fields and block types that contain thinking. It is sent back to the model only within the current turn."""
_IMAGE_TYPES = frozenset({"image", "image_url", "input_image"})
_DOCUMENT_TYPES = frozenset({"document", "file", "input_file", "input_audio"})
_ARGUMENT_FIELDS = frozenset({"input", "arguments"})


class ConversationSize(msgspec.Struct, frozen=True):
    """Estimated size of the beginning of a conversation. Items can be added to it one by one, or many at once."""

    text: TextSize = NO_TEXT
    """Texts, without thinking."""
    other_tokens: int = 0
    """Tokens of all other content, without thinking."""
    thinking: TextSize = NO_TEXT
    """Thinking since the last prompt of the user: earlier thinking is not sent to the model."""
    thinking_tokens: int = 0

    @property
    def tokens(self) -> float:
        return (self.text + self.thinking).tokens + self.other_tokens + self.thinking_tokens


EMPTY_CONVERSATION = ConversationSize()


def estimate_tokens(body: dict[str, Any], model: str = "", whole_chars: int = WHOLE_CHARS) -> int:
    """Estimate the input tokens of a request body of any wire.

    Args:
        body: JSON body of the request.
        model: Model id, which decides how images are counted.
        whole_chars: Texts up to this length are analysed as a whole, and a sample of longer ones.
    """
    size = EMPTY_CONVERSATION
    for field in {get_wire(wire).TRAITS.conversation_field for wire in WIRES}:
        messages = body.get(field)
        items = messages if isinstance(messages, list) else [messages] if messages is not None else []
        size = measure_items(size, items, model, whole_chars)
    prompt = measure_prompt([body.get("system"), body.get("instructions")], model, whole_chars)
    return request_tokens(size, prompt, *(measure_tools(body.get(name)) for name in ("tools", "functions")))


def request_tokens(conversation: ConversationSize, *parts: ConversationSize) -> int:
    """Return the tokens of a request with this conversation and these other parts."""
    text = sum((part.text for part in parts), conversation.text + conversation.thinking)
    other_tokens = conversation.other_tokens + conversation.thinking_tokens + sum(part.other_tokens for part in parts)
    return round(text.tokens + other_tokens)


def measure_prompt(values: list[Any], model: str = "", whole_chars: int = WHOLE_CHARS) -> ConversationSize:
    """Estimate the size of the system prompt."""
    counter = _ContentCounter(model, separates_thinking=False)
    for value in values:
        counter.walk(value)
    return ConversationSize(measure_texts(counter.texts, whole_chars), counter.tokens)


def measure_tools(tools: Any) -> ConversationSize:
    """Estimate the size of a list of tools."""
    if not isinstance(tools, list) or not tools:
        return EMPTY_CONVERSATION
    return ConversationSize(
        measure_texts([write_json(tools)], MAX_WHOLE_TOOLS_CHARS), TOOL_PREAMBLE_TOKENS + TOKENS_PER_TOOL * len(tools)
    )


def measure_items(
    before: ConversationSize, items: list[Any], model: str = "", whole_chars: int = WHOLE_CHARS
) -> ConversationSize:
    """Return the estimated size of a conversation with these items in addition."""
    last_prompt = next((n for n in range(len(items) - 1, -1, -1) if _is_user_prompt(items[n])), None)
    earlier, current = _ContentCounter(model), _ContentCounter(model)
    for item in items[:last_prompt] if last_prompt is not None else ():
        earlier.walk(item)
    for item in items[last_prompt or 0 :]:
        current.walk(item)
    thinking = _ContentCounter(model, separates_thinking=False)
    for value in current.thinking:
        thinking.walk(value)
    is_new_turn = last_prompt is not None
    return ConversationSize(
        before.text + measure_texts([*earlier.texts, *current.texts], whole_chars),
        before.other_tokens + earlier.tokens + current.tokens + TOKENS_PER_MESSAGE * len(items),
        (NO_TEXT if is_new_turn else before.thinking) + measure_texts(thinking.texts, whole_chars),
        (0 if is_new_turn else before.thinking_tokens) + thinking.tokens,
    )


def measure_conversation(before: ConversationSize | None, items: list[Any], model: str) -> ConversationSize:
    """Return the estimated size of a conversation with these items in addition. `before`: None at its beginning."""
    return measure_items(before or EMPTY_CONVERSATION, items, model)


def _is_user_prompt(message: Any) -> bool:
    """Return whether the message is from the user and contains more than tool results."""
    if not isinstance(message, dict) or message.get("role") != "user":
        return False
    content = message.get("content")
    blocks = content if isinstance(content, list) else []
    return not blocks or any(not isinstance(block, dict) or block.get("type") != "tool_result" for block in blocks)


class _ContentCounter:
    """Collects the texts of content, and counts the tokens of all other content.

    Args:
        model: Model id, which decides how images are counted.
        separates_thinking: Collect thinking apart from all else.
    """

    def __init__(self, model: str, *, separates_thinking: bool = True) -> None:
        self.texts: list[str] = []
        self.tokens = 0
        self.thinking: list[Any] = []
        """Thinking, not counted."""
        self._model = model
        self._thinking_names = _THINKING_NAMES if separates_thinking else frozenset[str]()

    def walk(self, content: Any) -> None:
        """Visit a value recursively."""
        stack, values_left = [content], MAX_VALUES
        while stack and values_left:
            values_left -= 1
            value = stack.pop()
            if isinstance(value, str):
                self.texts.append(value)
            elif isinstance(value, list):
                stack += value
            elif isinstance(value, dict):
                self._visit_object(value, stack)
            elif value is not None:
                self.tokens += 1
        if stack:
            self.texts.append(write_json(stack))

    def _visit_object(self, value: dict[str, Any], stack: list[Any]) -> None:
        block_type = value.get("type")
        block_type = block_type if isinstance(block_type, str) else ""
        if block_type in self._thinking_names:
            self.thinking.append(value)
            return
        if block_type in _IMAGE_TYPES:
            self.tokens += _image_block_tokens(value, self._model)
            return
        if block_type in _DOCUMENT_TYPES and (tokens := _document_block_tokens(value)):
            self.tokens += tokens
            return
        for key, inner in value.items():
            if isinstance(inner, dict) and key in _ARGUMENT_FIELDS:
                self.texts.append(write_json(inner))
            elif key in self._thinking_names:
                self.thinking.append(inner)
            elif key not in _UNCOUNTED_FIELDS:
                stack.append(inner)


def _image_block_tokens(block: dict[str, Any], model: str) -> int:
    """Count an image: `{"source": {"data": …}}`, `{"image_url": {"url": "data:…"}}` or `{"image_url": "data:…"}`."""
    source = block.get("source") or block.get("image_url")
    source_fields = source if isinstance(source, dict) else {"url": source}
    data, url, detail = (
        source_fields.get("data"),
        source_fields.get("url"),
        source_fields.get("detail") or block.get("detail"),
    )
    if isinstance(url, str) and (data_url := read_data_url(url[:DATA_URL_HEAD_CHARS])):
        data = data_url[1]
    return image_tokens(data, model, str(detail)) if isinstance(data, str) else UNKNOWN_IMAGE_TOKENS


def _document_block_tokens(block: dict[str, Any]) -> int:
    """Estimate a document by its size in base64.

    Returns 0 if the document is text, which is counted elsewhere. A document that is only referenced counts as one
    page.
    """
    source = next(
        (block[name] for name in ("source", "file", "input_audio") if isinstance(block.get(name), dict)), block
    )
    if source.get("type") in ("text", "content"):
        return 0
    data = next((source[name] for name in ("data", "file_data") if isinstance(source.get(name), str)), "")
    return TOKENS_PER_PAGE * max(1, min(MAX_PAGES, len(data) * 3 // 4 // PAGE_BYTES))
