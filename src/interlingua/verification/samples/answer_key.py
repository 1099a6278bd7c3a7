"""Answer key: what a good model answers to each sample. Scripted engines use it as their model."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable
from typing import Any

from interlingua.core.reply import Call, Reply, Text
from interlingua.verification.samples.sample import Sample

__all__ = ["AnswerKey", "ideal_reply"]

FALLBACK_ANSWER = "I have no tool for that, so I answer in my own words."


def ideal_reply(sample: Sample) -> Reply:
    """Return the reply that meets the expectation of a sample."""
    calls = [
        Call(f"functions.{wanted.name}:{number}", wanted.name, json.dumps(wanted.arguments or {}, ensure_ascii=False))
        for number, wanted in enumerate(sample.expect.calls)
    ]
    if calls:
        return Reply(parts=[*calls], stop_reason="tool_calls")
    return Reply(parts=[Text("Here is my answer, in plain words.")], stop_reason="stop")


def _answer_in_words(_: dict[str, Any]) -> Reply:
    return Reply(parts=[Text(FALLBACK_ANSWER)], stop_reason="stop")


class AnswerKey:
    """Model that knows these samples.

    Args:
        samples: The samples.
        answer_others: Answers other requests, and requests that show no tools; by default with a text.
    """

    def __init__(
        self, samples: Iterable[Sample], answer_others: Callable[[dict[str, Any]], Reply] = _answer_in_words
    ) -> None:
        self._replies = {_conversation(sample.request): ideal_reply(sample) for sample in samples}
        self._answer_others = answer_others

    def __call__(self, request: dict[str, Any]) -> Reply:
        reply = self._replies.get(_conversation(request)) if request.get("tools") else None
        return reply or self._answer_others(request)


def _conversation(request: dict[str, Any]) -> str:
    """Return the text of a conversation, without ids and fields that servers and clients change."""
    messages = [message for message in request.get("messages") or () if isinstance(message, dict)]
    return json.dumps([[message.get("role"), message.get("content")] for message in messages])
