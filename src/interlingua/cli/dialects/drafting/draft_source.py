"""Input of `dialects draft`: a chat template or recorded replies, and where they were found.

A template comes as a Jinja file, inside the JSON of a tokenizer or a server, or in a model folder. Everything that is
neither a template nor text of a model is refused: what a template engine makes of a JSON file is no dialect.
"""

from __future__ import annotations

import json
import re
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import interlingua as il
from interlingua.captures.capture_replay import load_capture, plan_replay
from interlingua.cli.common import console
from interlingua.errors import BadInput
from interlingua.wires import WIRES

__all__ = ["KnownCall", "RecordedReply", "RecordingSource", "TemplateSource", "read_source"]

TOKENIZER_FILE, TEMPLATE_FILE = "tokenizer_config.json", "chat_template.jinja"
FOLDER_FILES = ("additional_chat_templates/tool_use.jinja", TEMPLATE_FILE, "chat_template.json", TOKENIZER_FILE)
"""Files of a model folder that may have the template, in the order in which transformers prefers them."""
TOOL_TEMPLATE, DEFAULT_TEMPLATE = "tool_use", "default"
"""Names of templates, if a model has several."""
DEFAULT_NAME = "my_model"
GENERIC_NAMES = frozenset({"chat_template", "tokenizer_config", "template", "tool_use", "props", "recorded", "reply"})
"""Names of files that do not name a model."""
SOURCE_HINT = f"pass {TEMPLATE_FILE}, {TOKENIZER_FILE}, a folder with one of them, or text that the model has written"
_GO_TEMPLATE = re.compile(r"\{\{-?\s*(?:if|range|with|else if)?\s*[.$](?:Messages|System|Prompt|Tools|ToolCalls|Role)")
_CACHE_FOLDER = re.compile(r"models--.+--(.+)")
"""Folder of a model in the cache of Hugging Face."""


@dataclass(frozen=True)
class TemplateSource:
    """Chat template of a model."""

    text: str
    description: str
    """Description of the source, for the user."""
    name: str
    """Name for the dialect."""
    eos_token: str = ""
    """The model's own end-of-sequence token; "" if it is unknown."""


@dataclass(frozen=True)
class KnownCall:
    """Call that a recorded reply is expected to have."""

    name: str
    args: dict[str, Any]


@dataclass(frozen=True)
class RecordedReply:
    """Text that a model has written."""

    text: str
    calls: tuple[KnownCall, ...] | None = None
    """The calls in it; None if they are not known."""


@dataclass(frozen=True)
class RecordingSource:
    """Texts that a model has written."""

    replies: tuple[RecordedReply, ...]
    description: str
    name: str


def read_source(path: str) -> TemplateSource | RecordingSource:
    """Read a file, a folder, or standard input (`-`). Raises BadInput if it has neither a template nor a reply."""
    if path != console.STDIN and Path(path).is_dir():
        return _read_folder(Path(path))
    data = console.read_all(path, "a chat template, or text that the model has written")
    return _read_file(data, path)


def _read_folder(folder: Path) -> TemplateSource:
    files = [folder / name for name in FOLDER_FILES if (folder / name).is_file()]
    eos_token = _eos_token(_read_object(folder / TOKENIZER_FILE))
    for file in files:
        text = file.read_text(encoding="utf-8-sig", errors="replace")
        template, label = (text, "") if file.suffix == ".jinja" else _template_in(_parse_json(text))
        if template:
            description = f"the chat template{label} in {file}"
            return TemplateSource(template, description, _model_name(str(folder / "x")), eos_token)
    present = f"{', '.join(file.name for file in files)} has none" if files else f"none of {', '.join(FOLDER_FILES)}"
    raise BadInput(f"{folder} has no chat template: {present}", SOURCE_HINT)


def _read_file(data: bytes, path: str) -> TemplateSource | RecordingSource:
    label = "standard input" if path == console.STDIN else path
    if data.startswith(b"GGUF"):
        hint = "start llama.cpp's server with it, and pass the JSON that its path /props returns"
        raise BadInput(f"{label} is a GGUF file, not a chat template", hint)
    if b"\0" in data:
        raise BadInput(f"{label} is not text", SOURCE_HINT)
    text = data.decode("utf-8-sig", "replace")
    if not text.strip():
        raise BadInput(f"{label} is empty", SOURCE_HINT)
    if re.match(r"\s*<(?:!doctype html|html)\b", text, re.IGNORECASE):
        raise BadInput(f"{label} is a web page", "download the file itself, for example with the link `raw`")
    value = _parse_json(text)
    if value is not None:
        return _read_json(value, path, label)
    if recording := _read_lines(text, path, label):
        return recording
    if Path(path).suffix == ".json":
        raise BadInput(f"{label} is not valid JSON", "download the file again; it may be incomplete")
    if re.match(r"\s*(?:data|event|id):|:", text):
        return _read_body(data, path, label, "stream")
    if _GO_TEMPLATE.search(text):
        raise BadInput(
            f"{label} is a Go template, as Ollama uses it", f"pass the model's own {TEMPLATE_FILE} from Hugging Face"
        )
    if "{{" in text or "{%" in text:
        eos_token = _eos_token(_read_object(Path(path).with_name(TOKENIZER_FILE)))
        return TemplateSource(text, f"the chat template in {label}", _model_name(path), eos_token)
    return RecordingSource((RecordedReply(text),), f"the text of one reply in {label}", _model_name(path))


# ── JSON ──────────────────────────────────────────────────────────────────────────────────────────────────────────────


def _read_json(value: Any, path: str, label: str) -> TemplateSource | RecordingSource:
    """Read the JSON of a tokenizer, of a server's answer, of a reply, or of one recorded line."""
    template, template_label = _template_in(value)
    if template:
        description = f"the chat template{template_label} in {label}"
        return TemplateSource(template, description, _model_name(path), _eos_token(value))
    if isinstance(value, dict) and (row := _recorded_row(value)):
        return RecordingSource((row,), f"one recorded reply in {label}", _model_name(path))
    if isinstance(value, dict) and any(field in value for field in ("choices", "content", "output")):
        return _read_body(json.dumps(value).encode(), path, label, "reply")
    sibling = Path(path).with_name(TEMPLATE_FILE)
    if path != console.STDIN and sibling.is_file():
        text = sibling.read_text(encoding="utf-8-sig", errors="replace")
        description = f"the chat template {sibling}, because {label} has none"
        return TemplateSource(text, description, _model_name(path), _eos_token(value))
    raise BadInput(f"{label} is JSON without a chat template", SOURCE_HINT)


def _template_in(value: Any) -> tuple[str, str]:
    """Return the template in the JSON of a tokenizer or of llama.cpp's /props, and its name for the user."""
    template = value.get("chat_template") if isinstance(value, dict) else None
    if isinstance(template, str):
        return template, ""
    named = template if isinstance(template, list) else []
    by_name = {str(entry.get("name")): entry.get("template") for entry in named if isinstance(entry, dict)}
    for name in (TOOL_TEMPLATE, DEFAULT_TEMPLATE, *by_name):
        if isinstance(found := by_name.get(name), str):
            return found, f" {name!r}"
    return "", ""


def _eos_token(value: Any) -> str:
    token = value.get("eos_token") if isinstance(value, dict) else None
    token = token.get("content") if isinstance(token, dict) else token
    return token if isinstance(token, str) else ""


def _parse_json(text: str) -> Any:
    """Return the JSON value of a whole text; None if it is no object or list."""
    try:
        value = json.loads(text) if text.lstrip()[:1] in ("{", "[") else None
    except (ValueError, RecursionError):
        return None
    return value if isinstance(value, dict | list) else None


def _read_object(path: Path) -> Any:
    try:
        return _parse_json(path.read_text(encoding="utf-8-sig", errors="replace"))
    except OSError:
        return None


# ── recorded replies ──────────────────────────────────────────────────────────────────────────────────────────────────


def _read_lines(text: str, path: str, label: str) -> RecordingSource | None:
    """Read lines of JSON: rows as `dialects check` takes them, or a capture of the gateway."""
    lines = [_parse_json(line) for line in text.splitlines() if line.strip()]
    if not all(isinstance(line, dict) for line in lines):
        return None
    if lines[0].get("kind") == "request" and path != console.STDIN:
        captured = load_capture(path)
        received = b"".join(line.data for line in captured.received)
        return _read_body(received, path, f"the capture {label}", "reply", (plan_replay(captured, path).source,))
    rows = [_recorded_row(line) for line in lines]
    if any(row is None for row in rows):
        return None
    replies = tuple(row for row in rows if row is not None)
    noun = "reply" if len(replies) == 1 else "replies"
    return RecordingSource(replies, f"{len(replies)} recorded {noun} in {label}", _model_name(path))


def _recorded_row(line: dict[str, Any]) -> RecordedReply | None:
    """Return a row as `dialects check` takes it: a text, and perhaps its calls. None if it has no text."""
    text = line.get("text", line.get("generated_text"))
    if not isinstance(text, str):
        return None
    calls = line.get("calls", line.get("expected_calls"))
    known = [_known_call(call) for call in calls] if isinstance(calls, list) else [None]
    is_known = all(call is not None for call in known)
    return RecordedReply(text, tuple(call for call in known if call is not None) if is_known else None)


def _known_call(call: Any) -> KnownCall | None:
    if not isinstance(call, dict) or not isinstance(call.get("name"), str):
        return None
    args = call.get("arguments", {})
    args = _parse_json(args) if isinstance(args, str) else args
    return KnownCall(call["name"], args) if isinstance(args, dict) else None


def _read_body(body: bytes, path: str, label: str, form: str, wires: tuple[str, ...] = tuple(WIRES)) -> RecordingSource:
    """Read the text of a reply from the response body of a server, with calls left in the text."""
    for wire in wires:
        accumulator = il.Accumulator(wire, dialect="standard")
        accumulator.add(body)
        accumulator.close()
        reply = accumulator.reply()
        texts = [text for text in (reply.text, reply.reasoning) if text.strip()]
        if reply.calls and not texts:
            raise BadInput(f"{label} has calls already: the server has parsed them", "no dialect is needed for them")
        if texts:
            replies = tuple(RecordedReply(text) for text in texts)
            return RecordingSource(replies, f"the text of the {form} in {label} ({wire})", _model_name(path))
    raise BadInput(f"{label} has no text of a reply", SOURCE_HINT)


# ── name ──────────────────────────────────────────────────────────────────────────────────────────────────────────────


def _model_name(path: str) -> str:
    """Return a name for the dialect: that of the file, or of its folder if all models have a file of this name."""
    if path == console.STDIN:
        return DEFAULT_NAME
    file = Path(path)
    cached = next((match[1] for part in file.parts if (match := _CACHE_FOLDER.fullmatch(part))), "")
    stem = file.stem if file.stem not in GENERIC_NAMES and file.name != "x" else file.parent.name
    return re.sub(r"\W+", "_", (cached or stem).lower()).strip("_") or DEFAULT_NAME
