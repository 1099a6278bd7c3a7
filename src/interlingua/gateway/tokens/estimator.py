"""About how many tokens is a request? Nobody here has the model's tokenizer: an estimate, and never an error."""

from __future__ import annotations

from typing import Any

from interlingua.common.jsontext.codec import write_json
from interlingua.gateway.tokens.image_estimator import UNKNOWN, image_tokens
from interlingua.gateway.tokens.text_estimator import SAMPLE, text_tokens
from interlingua.wires.requests.data_urls import read_data_url

__all__ = ["estimate"]

PER_MESSAGE = 4
PER_TOOL = 6
TOOLS = 20
"""What a model is told of tools at all."""
PER_PAGE, PAGE, PAGES = 2000, 48 * 1024, 100
"""A document, page by page: tokens, bytes, and the most that are read."""
URL_HEAD = 160 * 1024
"""So much of a data URL has the size of its image in it."""
VALUES = 100_000
"""So many values are looked at one by one; what is left counts as the JSON that it is."""

_SILENT = frozenset(
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
"""What is not told to the model, or is no more than a token of what stands around it."""
_THINKING = frozenset({"thinking", "reasoning", "reasoning_content", "reasoning_details", "redacted_thinking"})
"""Fields of a message, and kinds of its blocks. It goes back to the model as long as the turn lasts."""
_IMAGES = frozenset({"image", "image_url", "input_image"})
_DOCUMENTS = frozenset({"document", "file", "input_file", "input_audio"})
_ARGUMENTS = frozenset({"input", "arguments"})


def estimate(body: dict[str, Any], model: str = "", sample: int = SAMPLE) -> int:
    """Of what a client of any wire sends: what the model will read of it."""
    counted = _Counted(model)
    counted.walk([body.get("system"), body.get("instructions")], frozenset())
    for said in (body.get("messages"), body.get("input")):
        before, turn = _turns(said)
        counted.tokens += PER_MESSAGE * (len(before) + len(turn))
        counted.walk(before, _THINKING)
        counted.walk(turn, frozenset())
    for tools in (body.get("tools"), body.get("functions")):
        if isinstance(tools, list) and tools:
            counted.tokens += TOOLS + PER_TOOL * len(tools)
            counted.texts.append(write_json(tools))
    return round(counted.tokens + text_tokens(counted.texts, sample))


def _turns(said: Any) -> tuple[list[Any], list[Any]]:
    """What was said before, and since the user has spoken last."""
    if not isinstance(said, list):
        return [], [said] if said is not None else []
    last = next((n for n in range(len(said) - 1, -1, -1) if _is_users(said[n])), 0)
    return said[:last], said[last:]


def _is_users(message: Any) -> bool:
    """And not only what tools have brought."""
    if not isinstance(message, dict) or message.get("role") != "user":
        return False
    content = message.get("content")
    blocks = content if isinstance(content, list) else []
    return not blocks or any(not isinstance(block, dict) or block.get("type") != "tool_result" for block in blocks)


class _Counted:
    """What was found: texts, and tokens of all else."""

    def __init__(self, model: str) -> None:
        self.texts: list[str] = []
        self.tokens = 0.0
        self._model = model
        self._values = VALUES

    def walk(self, values: list[Any], skipped: frozenset[str]) -> None:
        """`skipped` are the fields and kinds of blocks that do not go to the model."""
        waiting = list(values)
        while waiting and self._values:
            self._values -= 1
            value = waiting.pop()
            if isinstance(value, str):
                self.texts.append(value)
            elif isinstance(value, list):
                waiting += value
            elif isinstance(value, dict):
                self._look(value, waiting, skipped)
            elif value is not None:
                self.tokens += 1
        if waiting:
            self.texts.append(write_json(waiting))

    def _look(self, value: dict[str, Any], waiting: list[Any], skipped: frozenset[str]) -> None:
        kind = value.get("type")
        kind = kind if isinstance(kind, str) else ""
        if kind in skipped:
            return
        if kind in _IMAGES:
            self.tokens += _image(value, self._model)
            return
        if kind in _DOCUMENTS and (tokens := _document(value)):
            self.tokens += tokens
            return
        for key, inner in value.items():
            if isinstance(inner, dict) and key in _ARGUMENTS:
                self.texts.append(write_json(inner))
            elif key not in _SILENT and key not in skipped:
                waiting.append(inner)


def _image(block: dict[str, Any], model: str) -> int:
    """`{"source": {"data": …}}`, `{"image_url": {"url": "data:…"}}` or `{"image_url": "data:…"}`."""
    where = block.get("source") or block.get("image_url")
    held = where if isinstance(where, dict) else {"url": where}
    data, url, detail = held.get("data"), held.get("url"), held.get("detail") or block.get("detail")
    if isinstance(url, str) and (read := read_data_url(url[:URL_HEAD])):
        data = read[1]
    return image_tokens(data, model, str(detail)) if isinstance(data, str) else UNKNOWN


def _document(block: dict[str, Any]) -> int:
    """By its size in base64; nothing if it is told as text. One that is elsewhere is taken for a page."""
    held = next((block[name] for name in ("source", "file", "input_audio") if isinstance(block.get(name), dict)), block)
    if held.get("type") in ("text", "content"):
        return 0
    data = next((held[name] for name in ("data", "file_data") if isinstance(held.get(name), str)), "")
    return PER_PAGE * max(1, min(PAGES, len(data) * 3 // 4 // PAGE))
