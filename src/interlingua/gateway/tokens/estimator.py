"""Token estimate for a request. The gateway does not have the model's tokenizer. An estimate never raises."""

from __future__ import annotations

from typing import Any

from interlingua.common.jsontext.codec import write_json
from interlingua.gateway.tokens.image_estimator import UNKNOWN_IMAGE_TOKENS, image_tokens
from interlingua.gateway.tokens.text_estimator import DEFAULT_SAMPLE_CHARS, text_tokens
from interlingua.wires import WIRES, get_wire
from interlingua.wires.requests.data_urls import read_data_url

__all__ = ["estimate_tokens"]

TOKENS_PER_MESSAGE = 4
TOKENS_PER_TOOL = 6
TOOL_PREAMBLE_TOKENS = 20
"""Tokens of the template text that introduces the tools."""
TOKENS_PER_PAGE, PAGE_BYTES, MAX_PAGES = 2000, 48 * 1024, 100
"""Documents are estimated by page: tokens per page, bytes per page, maximum number of pages."""
DATA_URL_HEAD_CHARS = 160 * 1024
"""Prefix of a data URL that contains the image header with the size."""
MAX_VALUES = 100_000
"""Maximum number of values that are visited one by one. The rest is estimated as JSON text."""

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


def estimate_tokens(body: dict[str, Any], model: str = "", sample_chars: int = DEFAULT_SAMPLE_CHARS) -> int:
    """Estimate the input tokens of a request body of any wire.

    Args:
        body: JSON body of the request.
        model: Model id, which decides how images are counted.
        sample_chars: Size of the sample that is analysed in long texts.
    """
    counter = _ContentCounter(model)
    counter.walk([body.get("system"), body.get("instructions")], frozenset())
    for field in {get_wire(wire).TRAITS.conversation_field for wire in WIRES}:
        earlier, current_turn = _split_current_turn(body.get(field))
        counter.tokens += TOKENS_PER_MESSAGE * (len(earlier) + len(current_turn))
        counter.walk(earlier, _THINKING_NAMES)
        counter.walk(current_turn, frozenset())
    for tools in (body.get("tools"), body.get("functions")):
        if isinstance(tools, list) and tools:
            counter.tokens += TOOL_PREAMBLE_TOKENS + TOKENS_PER_TOOL * len(tools)
            counter.texts.append(write_json(tools))
    return round(counter.tokens + text_tokens(counter.texts, sample_chars))


def _split_current_turn(messages: Any) -> tuple[list[Any], list[Any]]:
    """Split the messages before the last user prompt, and return both parts."""
    if not isinstance(messages, list):
        return [], [messages] if messages is not None else []
    last = next((n for n in range(len(messages) - 1, -1, -1) if _is_user_prompt(messages[n])), 0)
    return messages[:last], messages[last:]


def _is_user_prompt(message: Any) -> bool:
    """Return whether the message is from the user and contains more than tool results."""
    if not isinstance(message, dict) or message.get("role") != "user":
        return False
    content = message.get("content")
    blocks = content if isinstance(content, list) else []
    return not blocks or any(not isinstance(block, dict) or block.get("type") != "tool_result" for block in blocks)


class _ContentCounter:
    """Collects the texts of a request and counts the tokens of all other content."""

    def __init__(self, model: str) -> None:
        self.texts: list[str] = []
        self.tokens = 0.0
        self._model = model
        self._values_left = MAX_VALUES

    def walk(self, values: list[Any], skipped: frozenset[str]) -> None:
        """Visit the values recursively. Fields and block types in `skipped` are not part of the prompt."""
        stack = list(values)
        while stack and self._values_left:
            self._values_left -= 1
            value = stack.pop()
            if isinstance(value, str):
                self.texts.append(value)
            elif isinstance(value, list):
                stack += value
            elif isinstance(value, dict):
                self._visit_object(value, stack, skipped)
            elif value is not None:
                self.tokens += 1
        if stack:
            self.texts.append(write_json(stack))

    def _visit_object(self, value: dict[str, Any], stack: list[Any], skipped: frozenset[str]) -> None:
        block_type = value.get("type")
        block_type = block_type if isinstance(block_type, str) else ""
        if block_type in skipped:
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
            elif key not in _UNCOUNTED_FIELDS and key not in skipped:
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
