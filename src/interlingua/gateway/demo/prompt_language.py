"""What a prompt asks the demo model to call, word by word: a little language that passes for prose.

    Use Bash command='echo one > a.txt' and Bash command='echo two > b.txt', then Bash command='cat a.txt b.txt'

- The name of an offered tool begins a call, and `key=value` gives it an argument. So do `Bash(command=ls, timeout=5)`
  and `Bash {"command": "ls"}`. All other words are prose.
- Several calls go out in one reply, in order. `then` begins the next step: its calls wait for the results before it.
- A value ends at white space, a comma or a closing parenthesis, unless it is JSON in brackets or stands in quotes:
  '…', "…", `…`, “…”, ‘…’. In them a backslash keeps a quote or a backslash, and is itself in front of all else.
- A key that the call has already begins another call of the same tool: `get_weather city=Paris city=Rome`.
- A key that the tool does not take begins a call of the first tool that does: `city=Paris` alone will do. Keys that no
  tool declares mean nothing.
- A name alone is a call if it is no word of prose (`get_time`, `WebSearch`), or with parentheses: `date()`.

The schema says what a value is: for a string `5` is "5", for a number 5. What is required and not given is made up.
"""

from __future__ import annotations

import json
import re
from dataclasses import dataclass, field
from typing import Any

from interlingua.common.jsontext.codec import read_json
from interlingua.common.schema.resolver import as_mapping
from interlingua.core.tools import Offer

__all__ = ["Wish", "own_words", "steps"]

LONGEST = 100_000
"""How much of a long text is read: its end."""
_TOKEN = re.compile(r"(?P<key>[\w.-]+)=(?!=)|(?P<word>[^\s,;()'\"`=<>\[\]{}“”‘’]+)")
_BARE = re.compile(r"[^\s,)]*")
_QUOTES = {"'": "'", '"': '"', "`": "`", "“": "”", "‘": "’"}
_QUOTED = {opener: re.compile(rf"{opener}((?:\\.|[^\\{closer}])*){closer}", re.S) for opener, closer in _QUOTES.items()}
_BEFORE_JSON = re.compile(r"\s*\(?\s*(?=\{)")
_ENDS = ".:;!?\"'"
"""What ends a sentence is no part of a word or a bare value."""
_NOTE = re.compile(r"<([\w-]*(?:reminder|context|instructions|info|details|stdout|caveat))>", re.I)
_WRAPPED = re.compile(r'"(?:\\.|[^"\\])*"', re.S)
_JSON = json.JSONDecoder()


@dataclass
class Wish:
    """A call that was asked for: the tool's name, and the arguments that were given."""

    tool: str
    args: dict[str, Any] = field(default_factory=dict)
    sure: bool = False
    """Whether it is a call even without arguments."""


def own_words(text: str) -> str:
    """A user's text without the notes that agents put into it, and without the quotes that some put around it."""
    kept, at = [], 0
    while note := _NOTE.search(text, at):
        end = text.find(f"</{note[1]}>", note.end())
        if end < 0:
            break
        kept.append(text[at : note.start()])
        at = end + len(note[0]) + 1
    if _NOTE.match(text, at):
        return "".join(kept).strip()  # the last one was cut short
    words = "".join((*kept, text[at:])).strip()[-LONGEST:]
    return words[1:-1].replace('\\"', '"').strip() if _WRAPPED.fullmatch(words) else words


def steps(text: str, offer: Offer) -> list[list[Wish]]:
    """The calls of each step. None at all: the prompt is but prose."""
    reading = _Reading(text, offer)
    at = 0
    while token := _TOKEN.search(text, at):
        at = reading.key(token) if token["key"] else reading.word(token)
    meant = ([wish for wish in step if wish.args or wish.sure] for step in reading.steps)
    return [step for step in meant if step]


class _Reading:
    def __init__(self, text: str, offer: Offer) -> None:
        self.steps: list[list[Wish]] = [[]]
        self._text = text
        self._offer = offer
        self._folded = {name.casefold(): name for name in reversed(offer.names)}

    def word(self, token: re.Match[str]) -> int:
        """A tool's name, `then`, or prose. Where to read on."""
        word = token["word"].rstrip(_ENDS)
        name = word if self._offer.has(word) else self._folded.get(word.casefold())
        if name is None:
            if word.casefold() == "then":
                self.steps.append([])
            return token.end()
        called = self._text.startswith("(", token.end())
        args, end = self._object(token.end())
        self.steps[-1].append(Wish(name, args, called or bool(args) or _is_telling(name)))
        return end

    def key(self, token: re.Match[str]) -> int:
        """A key and its value. Where to read on."""
        key = token["key"]
        raw, quoted, end = self._value(token.end())
        last = self.steps[-1][-1] if self.steps[-1] else None
        if last is None or not _takes(self._offer, last.tool, key):
            tool = next((name for name in self._offer.names if self._offer.declares(name, key)), None)
            if tool is None:
                return end
            self.steps[-1].append(Wish(tool))
        elif key in last.args:
            self.steps[-1].append(Wish(last.tool))
        wish = self.steps[-1][-1]
        wish.args[key] = self._typed(wish.tool, key, raw, quoted)
        return end

    def _value(self, at: int) -> tuple[str, bool, int]:
        """The value that stands here, whether it was quoted, and where it ends."""
        text = self._text
        pattern = _QUOTED.get(text[at : at + 1])
        found = pattern.match(text, at) if pattern else None
        if found:
            quotes = text[at] + _QUOTES[text[at]]
            return re.sub(rf"\\([\\{quotes}])", r"\1", found[1]), True, found.end()
        if text[at : at + 1] in ("{", "["):
            end = _json_end(text, at)
            if end is not None:
                return text[at:end], False, end
        bare = _BARE.match(text, at)
        raw = bare[0] if bare else ""
        return raw.rstrip(_ENDS), False, at + len(raw)

    def _object(self, at: int) -> tuple[dict[str, Any], int]:
        """The arguments behind a name, if they stand there as one JSON object."""
        found = _BEFORE_JSON.match(self._text, at)
        end = _json_end(self._text, found.end()) if found else None
        return (json.loads(self._text[found.end() : end]), end) if found and end is not None else ({}, at)

    def _typed(self, tool: str, key: str, raw: str, quoted: bool) -> Any:
        plan = self._offer.param(tool, key)
        return raw if quoted and plan.takes_string else read_json(plan.convert(raw).json, object)


def _json_end(text: str, at: int) -> int | None:
    try:
        return _JSON.raw_decode(text, at)[1]
    except (ValueError, RecursionError):
        return None


def _takes(offer: Offer, tool: str, key: str) -> bool:
    """Whether the tool has such a param, or takes all there are."""
    offered = offer.get(tool)
    schema = as_mapping(offered.schema if offered else None)
    free = not offer.params(tool) and "properties" not in schema and schema.get("additionalProperties") is not False
    return free or offer.declares(tool, key)


def _is_telling(name: str) -> bool:
    """Whether it is no word of prose."""
    return not name.isalpha() or name[1:] != name[1:].lower()
