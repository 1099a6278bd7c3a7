"""Random sessions of agents: requests that continue, change or repeat earlier ones, as JSON of every wire."""

from __future__ import annotations

import json
import random
from collections.abc import Callable
from contextlib import suppress
from typing import Any

from interlingua.core.reasoning_signatures import write_value_envelope
from interlingua.translation.request_translation import prepare_request
from tests.support.request_forms import CHAT, FULL_PROFILE, MESSAGES, RESPONSES

__all__ = ["FIELDS", "KEYS", "RandomSession"]

Json = dict[str, Any]
FIELDS = {CHAT: "messages", MESSAGES: "messages", RESPONSES: "input"}
"""Field of the conversation."""
KEYS = (b"key", b"other key")
WORDS = ("a", "look", "it's done", " ", "", "ünï", "[tool error] no", "two\nlines", "x" * 300)
NAMES = ("read", "write", "shell.exec", "ns__find", "odd name!", "x" * 70)
ARGUMENTS = ('{"path":"a"}', "{}", '{"input": "x"}', '{"a": [1, 2.50, {"b": null}]}', "", "not json")
INPUTS: tuple[Json, ...] = ({"path": "a"}, {}, {"a": [1, 2.50, {"b": None}]}, {"INVALID_JSON": "x"})
SETTINGS: tuple[Json, ...] = (
    {},
    {"stream": True},
    {"temperature": 0.5, "max_tokens": 100},
    {"reasoning_effort": "high"},
    {"tool_choice": "required"},
    {"tool_choice": "none"},
    {"parallel_tool_calls": False},
)
THINKING = {"thinking": {"type": "enabled", "budget_tokens": 2000}, "max_tokens": 9000}
LAYOUTS: tuple[Callable[[Any], str], ...] = (
    json.dumps,
    lambda body: json.dumps(body, separators=(",", ":"), ensure_ascii=False),
    lambda body: json.dumps(body, indent=1),
)


class RandomSession:
    """A session of one agent. `next` changes the request of the turn before, mostly by adding to its conversation."""

    def __init__(self, wire: str, rng: random.Random) -> None:
        self.wire = wire
        self._rng = rng
        self._layout = rng.choice(LAYOUTS)
        self._call_count = 0
        self._earlier_ids: list[str] = []
        self._earlier_bodies: list[Json] = []
        first = [self._system()] if wire != MESSAGES and rng.random() < 0.7 else []
        self.body: Json = {"model": "m", **self._settings(), FIELDS[wire]: [*first, self._user()]}

    @property
    def items(self) -> list[Json]:
        items: list[Json] = self.body[FIELDS[self.wire]]
        return items

    def encode(self) -> bytes:
        return self._layout(self.body).encode()

    def next(self) -> None:
        """Make the next request."""
        self._earlier_bodies.append(json.loads(json.dumps(self.body)))
        for _ in range(self._rng.choice((1, 1, 1, 2, 3))):
            self.items.extend(self._turn())
        change = self._rng.random()
        if change < 0.2:
            self._move_marks()
        elif change < 0.4:
            self._rng.choice((self._drop, self._repeat, self._swap, self._edit, self._rewind, self._insert))()
        elif change < 0.5:
            self.body |= self._settings()

    # ── changes ───────────────────────────────────────────────────────────────────────────────────────────────────

    def _position(self) -> int:
        return self._rng.randrange(len(self.items))

    def _drop(self) -> None:
        if len(self.items) > 1:
            del self.items[self._position()]

    def _repeat(self) -> None:
        self.items.insert(self._position(), json.loads(json.dumps(self._rng.choice(self.items))))

    def _swap(self) -> None:
        left, right = self._position(), self._position()
        self.items[left], self.items[right] = self.items[right], self.items[left]

    def _insert(self) -> None:
        self.items.insert(self._position(), self._rng.choice((self._system, self._user))())

    def _rewind(self) -> None:
        """Return to an earlier request, as after an edit of the conversation."""
        self.body = json.loads(json.dumps(self._rng.choice(self._earlier_bodies)))

    def _edit(self) -> None:
        """Change one character of the conversation."""
        text = json.dumps(self.items, ensure_ascii=False)
        position = self._rng.choice([n for n, char in enumerate(text) if char in "adeilno"] or [0])
        with suppress(ValueError):  # a letter of `null`
            self.body[FIELDS[self.wire]] = json.loads(f"{text[:position]}x{text[position + 1 :]}")

    def _move_marks(self) -> None:
        """Move the cache marks to the end, as Claude Code does."""
        parts = [part for item in self.items for part in _markable_parts(item)]
        for part in parts:
            part.pop("cache_control", None)
        for part in parts[-2:]:
            part["cache_control"] = {"type": "ephemeral"}

    # ── turns ─────────────────────────────────────────────────────────────────────────────────────────────────────

    def _text(self) -> str:
        return f"{self._rng.choice(WORDS)} {self._rng.randrange(5)}" if self._rng.random() < 0.9 else ""

    def _system(self) -> Json:
        roles = ("system",) if self.wire == MESSAGES else ("system", "developer")
        return {"role": self._rng.choice(roles), "content": self._text()}

    def _user(self) -> Json:
        extra = {"note": 1} if self._rng.random() < 0.05 else {}
        name = {"name": "bob"} if self.wire == CHAT and self._rng.random() < 0.05 else {}
        return {"role": "user", "content": self._user_content(), **extra, **name}

    def _user_content(self) -> Any:
        text = self._text()
        if self._rng.random() < 0.5:
            return text
        if self.wire == CHAT:
            image = {"type": "image_url", "image_url": {"url": "data:image/png;base64,AA"}}
            return [{"type": "text", "text": text}, image][: self._rng.choice((1, 2))]
        if self.wire == MESSAGES:
            return [{"type": "text", "text": text, "cache_control": {"type": "ephemeral"}}]
        return [{"type": "input_text", "text": text}]

    def _turn(self) -> list[Json]:
        """Return a turn: the model's items, and the results or the user's message."""
        ids = [self._new_id() for _ in range(self._rng.choice((0, 1, 1, 1, 2, 3)))]
        turn = self._model_items(ids)
        if self._rng.random() < 0.05:
            return turn
        answered_ids = [id for id in ids if self._rng.random() < 0.95]
        if self._rng.random() < 0.05:
            self._rng.shuffle(answered_ids)
        if self._rng.random() < 0.04:
            answered_ids.append(self._rng.choice((*self._earlier_ids, "unknown")))
        self._earlier_ids += ids
        turn += self._results(answered_ids)
        if not ids or self._rng.random() < 0.1:
            turn.append(self._user())
        return turn

    def _new_id(self) -> str:
        self._call_count += 1
        if self._rng.random() < 0.06:
            return self._rng.choice((*self._earlier_ids, "", "functions.read:0"))
        number = self._call_count
        return self._rng.choice((f"call_{number}", f"toolu_{number}", f"functions.read:{number}"))

    def _model_items(self, ids: list[str]) -> list[Json]:
        text, thought = self._text(), self._text() if self._rng.random() < 0.3 else ""
        if self.wire == CHAT:
            return [self._chat_message(ids, text, thought)]
        if self.wire == MESSAGES:
            return [{"role": "assistant", "content": self._blocks(ids, text, thought)}]
        return self._output_items(ids, text, thought)

    def _chat_message(self, ids: list[str], text: str, thought: str) -> Json:
        message: Json = {"role": "assistant", "content": text or self._rng.choice((None, ""))}
        functions = ({"name": self._rng.choice(NAMES), "arguments": self._rng.choice(ARGUMENTS)} for _ in ids)
        if ids:
            pairs = zip(ids, functions, strict=True)
            message["tool_calls"] = [{"id": id, "type": "function", "function": function} for id, function in pairs]
        if thought:
            message[self._rng.choice(("reasoning_content", "reasoning"))] = thought
            detail = {"type": "reasoning.text", "text": thought, "signature": self._signature()}
            message |= self._rng.choice(({}, {"reasoning_details": [detail]}))
        return message

    def _blocks(self, ids: list[str], text: str, thought: str) -> list[Json]:
        blocks: list[Json] = []
        if thought:
            blocks.append({"type": "thinking", "thinking": thought, "signature": self._signature()})
        if text:
            blocks.append({"type": "text", "text": text})
        for id in ids:
            name, arguments = self._rng.choice(NAMES), self._rng.choice(INPUTS)
            blocks.append({"type": "tool_use", "id": id, "name": name, "input": arguments})
        return blocks

    def _output_items(self, ids: list[str], text: str, thought: str) -> list[Json]:
        items: list[Json] = []
        if thought:
            sealed = self._rng.choice(({}, {"encrypted_content": self._signature()}))
            items.append({"type": "reasoning", "summary": [{"type": "summary_text", "text": thought}], **sealed})
        if text:
            items.append({"type": "message", "role": "assistant", "content": [{"type": "output_text", "text": text}]})
        for id in ids:
            function = {"name": self._rng.choice(NAMES), "arguments": self._rng.choice(ARGUMENTS)}
            custom = {"type": "custom_tool_call", "call_id": id, "name": "patch", "input": text}
            items.append(custom if self._rng.random() < 0.2 else {"type": "function_call", "call_id": id, **function})
        return items

    def _signature(self) -> str:
        """Return a signature: of the upstream itself, or in an envelope, which may be of another upstream or key."""
        if self._rng.random() < 0.3:
            return "c2lnbmF0dXJl"
        upstream = self._rng.choice(("openai", "@x", "moonshot", "anthropic"))
        return write_value_envelope("native", self.wire, upstream, self._rng.choice(KEYS))

    def _results(self, ids: list[str]) -> list[Json]:
        if self.wire == CHAT:
            return [{"role": "tool", "tool_call_id": id, "content": self._text()} for id in ids]
        if self.wire == RESPONSES:
            return [{"type": "function_call_output", "call_id": id, "output": self._text()} for id in ids]
        blocks = [{"type": "tool_result", "tool_use_id": id, **self._result()} for id in ids]
        return [{"role": "user", "content": blocks}] if blocks else []

    def _result(self) -> Json:
        image = {"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": "AA"}}
        found = {"type": "tool_reference", "tool_name": "write"}
        kinds: tuple[Any, ...] = (self._text(), [{"type": "text", "text": self._text()}], [image], [found], [])
        return {"content": self._rng.choice(kinds), **({"is_error": True} if self._rng.random() < 0.1 else {})}

    # ── settings ──────────────────────────────────────────────────────────────────────────────────────────────────

    def _settings(self) -> Json:
        tools = [self._tool("read"), self._tool("write"), self._tool("ns__find")]
        self._rng.shuffle(tools)
        messages = [{"role": "user", "content": "x"}]
        body: Json = {"model": "m", "messages": messages, "tools": tools[self._rng.randrange(2) :]}
        body |= self._rng.choice(SETTINGS) | self._rng.choice(SETTINGS)
        if self.wire != CHAT:
            body = prepare_request(body, CHAT, self.wire, upstream=FULL_PROFILE).body
        if self.wire == MESSAGES:
            body |= self._rng.choice(({}, {"system": f"s {self._rng.random()}"}, THINKING))
            if self._rng.random() < 0.3:
                body["tools"][0]["defer_loading"] = True
        elif self.wire == RESPONSES:
            body |= self._rng.choice(({}, {"instructions": "be good"}))
            if self._rng.random() < 0.3:
                body["tools"].append({"type": "custom", "name": "patch"})
        body |= {"unknown_field": [1]} if self._rng.random() < 0.1 else {}
        return {name: value for name, value in body.items() if name not in (FIELDS[self.wire], "model")}

    def _tool(self, name: str) -> Json:
        parameters = self._rng.choice(({"type": "object", "properties": {"path": {}}}, {}))
        strict = {"strict": True} if self._rng.random() < 0.1 else {}
        return {"type": "function", "function": {"name": name, "description": "d", "parameters": parameters, **strict}}


def _markable_parts(item: Json) -> list[Json]:
    """Return the parts of an item that can have a cache mark."""
    content = item.get("content")
    parts = content if isinstance(content, list) else []
    return [part for part in parts if isinstance(part, dict) and part.get("type") in ("text", "tool_result")]
