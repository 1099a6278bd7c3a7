"""Parser of the prompt language, which specifies the calls of the demo model. It can be mixed with prose.

    Use Bash command='echo one > a.txt' and Bash command='echo two > b.txt', then Bash command='cat a.txt b.txt'

- The name of an offered tool starts a call, and `key=value` adds an argument. `Bash(command=ls, timeout=5)` and
  `Bash {"command": "ls"}` are other forms. All other words are prose and ignored.
- Several calls are made in one reply, in order. `then` starts the next step: its calls are made after the results of
  the previous step.
- A value ends at whitespace, a comma or a closing parenthesis, unless it is JSON in brackets or is quoted: '…', "…",
  `…`, “…”, ‘…’. Inside quotes a backslash escapes a quote or a backslash; before other characters it is literal.
- A key that the call already has starts another call of the same tool: `get_weather city=Paris city=Rome`.
- A key that the tool does not accept starts a call of the first tool that accepts it: `city=Paris` alone is enough.
  Keys that no tool declares are ignored.
- A name alone is a call if it cannot be a word of prose (`get_time`, `WebSearch`) or has parentheses: `date()`.

The schema decides the type of a value: for a string `5` is "5", for a number 5. Missing required arguments are
generated.
"""

from __future__ import annotations

import json
import re
from dataclasses import dataclass, field
from typing import Any

from interlingua.common.jsontext.codec import read_json
from interlingua.common.schema.resolver import as_mapping
from interlingua.core.tools import ToolSet

__all__ = ["CallRequest", "parse_steps", "user_text"]

MAX_PROMPT_CHARS = 100_000
"""Maximum length of a prompt. Of a longer one, only the end is read."""
_TOKEN = re.compile(r"(?P<key>[\w.-]+)=(?!=)|(?P<word>[^\s,;()'\"`=<>\[\]{}“”‘’]+)")
_BARE_VALUE = re.compile(r"[^\s,)]*")
_QUOTES = {"'": "'", '"': '"', "`": "`", "“": "”", "‘": "’"}
_QUOTED_VALUES = {
    opener: re.compile(rf"{opener}((?:\\.|[^\\{closer}])*){closer}", re.S) for opener, closer in _QUOTES.items()
}
_BEFORE_JSON = re.compile(r"\s*\(?\s*(?=\{)")
_SENTENCE_END_CHARS = ".:;!?\"'"
"""Punctuation that is stripped from the end of words and unquoted values."""
_AGENT_NOTE = re.compile(r"<([\w-]*(?:reminder|context|instructions|info|details|stdout|caveat|system))>", re.I)
_QUOTED_PROMPT = re.compile(r'"(?:\\.|[^"\\])*"', re.S)
_JSON_DECODER = json.JSONDecoder()


@dataclass
class CallRequest:
    """Call that the prompt requests: name of the tool and its arguments."""

    tool: str
    args: dict[str, Any] = field(default_factory=dict)
    is_explicit: bool = False
    """True if this is a call even without arguments."""


def user_text(text: str) -> str:
    """Return the user's text without the notes that agents insert, and without enclosing quotes."""
    chunks, position = [], 0
    while note := _AGENT_NOTE.search(text, position):
        end = text.find(f"</{note[1]}>", note.end())
        if end < 0:
            break
        chunks.append(text[position : note.start()])
        position = end + len(note[0]) + 1
    if _AGENT_NOTE.match(text, position):
        return "".join(chunks).strip()  # the last note is truncated
    remaining_text = "".join((*chunks, text[position:])).strip()[-MAX_PROMPT_CHARS:]
    return (
        remaining_text[1:-1].replace('\\"', '"').strip() if _QUOTED_PROMPT.fullmatch(remaining_text) else remaining_text
    )


def parse_steps(text: str, tool_set: ToolSet) -> list[list[CallRequest]]:
    """Return the calls of each step. The list is empty if the prompt is only prose."""
    parser = _PromptParser(text, tool_set)
    position = 0
    while token := _TOKEN.search(text, position):
        position = parser.read_key(token) if token["key"] else parser.read_word(token)
    requested_steps = ([request for request in step if request.args or request.is_explicit] for step in parser.steps)
    return [step for step in requested_steps if step]


class _PromptParser:
    def __init__(self, text: str, tool_set: ToolSet) -> None:
        self.steps: list[list[CallRequest]] = [[]]
        self._text = text
        self._tool_set = tool_set
        self._names_by_casefold = {name.casefold(): name for name in reversed(tool_set.names)}

    def read_word(self, token: re.Match[str]) -> int:
        """Read a tool name, `then`, or prose. Return the position after it."""
        word = token["word"].rstrip(_SENTENCE_END_CHARS)
        name = word if self._tool_set.has(word) else self._names_by_casefold.get(word.casefold())
        if name is None:
            if word.casefold() == "then":
                self.steps.append([])
            return token.end()
        has_parenthesis = self._text.startswith("(", token.end())
        args, end = self._read_object(token.end())
        self.steps[-1].append(CallRequest(name, args, has_parenthesis or bool(args) or _is_distinctive(name)))
        return end

    def read_key(self, token: re.Match[str]) -> int:
        """Read a key and its value. Return the position after them."""
        key = token["key"]
        raw, quoted, end = self._read_value(token.end())
        last = self.steps[-1][-1] if self.steps[-1] else None
        if last is None or not _accepts_key(self._tool_set, last.tool, key):
            tool = next((name for name in self._tool_set.names if self._tool_set.has_param(name, key)), None)
            if tool is None:
                return end
            self.steps[-1].append(CallRequest(tool))
        elif key in last.args:
            self.steps[-1].append(CallRequest(last.tool))
        request = self.steps[-1][-1]
        request.args[key] = self._coerce(request.tool, key, raw, quoted)
        return end

    def _read_value(self, position: int) -> tuple[str, bool, int]:
        """Return the value at this position, whether it is quoted, and the position after it."""
        text = self._text
        pattern = _QUOTED_VALUES.get(text[position : position + 1])
        match = pattern.match(text, position) if pattern else None
        if match:
            quotes = text[position] + _QUOTES[text[position]]
            return re.sub(rf"\\([\\{quotes}])", r"\1", match[1]), True, match.end()
        if text[position : position + 1] in ("{", "["):
            end = _json_end(text, position)
            if end is not None:
                return text[position:end], False, end
        bare = _BARE_VALUE.match(text, position)
        raw = bare[0] if bare else ""
        return raw.rstrip(_SENTENCE_END_CHARS), False, position + len(raw)

    def _read_object(self, position: int) -> tuple[dict[str, Any], int]:
        """Return the JSON object after a tool name and the position after it; ({}, position) if there is none."""
        match = _BEFORE_JSON.match(self._text, position)
        end = _json_end(self._text, match.end()) if match else None
        return (json.loads(self._text[match.end() : end]), end) if match and end is not None else ({}, position)

    def _coerce(self, tool: str, key: str, raw: str, quoted: bool) -> Any:
        coercion = self._tool_set.coercion_for(tool, key)
        return raw if quoted and coercion.accepts_string else read_json(coercion.convert(raw).json, object)


def _json_end(text: str, position: int) -> int | None:
    try:
        return _JSON_DECODER.raw_decode(text, position)[1]
    except (ValueError, RecursionError):
        return None


def _accepts_key(tool_set: ToolSet, tool: str, key: str) -> bool:
    """Return whether the tool has this param or accepts any."""
    definition = tool_set.get(tool)
    schema = as_mapping(definition.schema if definition else None)
    is_free_form = (
        not tool_set.param_names(tool)
        and "properties" not in schema
        and schema.get("additionalProperties") is not False
    )
    return is_free_form or tool_set.has_param(tool, key)


def _is_distinctive(name: str) -> bool:
    """Return whether the name cannot be a word of prose."""
    return not name.isalpha() or name[1:] != name[1:].lower()
