"""Kinds of failures, and the judgement of a reply."""

from __future__ import annotations

import msgspec

__all__ = ["FAILURE_KINDS", "Failure", "Judgement"]

FAILURE_KINDS: dict[str, str] = {
    # no reply at all
    "refused": "the server refuses the request",
    "no-reply": "there is no reply: no connection, a timeout, or an error of the server",
    "error-in-reply": "the reply ends with an error",
    # a reply that is damaged
    "cut": "the reply is cut off: it has no finish reason or final event",
    "bad-event": "an event or the reply is not JSON",
    "empty": "the reply has neither text nor calls",
    "only-thinking": "the reply has only thinking",
    "length": "the reply ran out of tokens",
    # calls
    "no-call": "a call is expected, and there is none",
    "missing-call": "some of the expected calls are missing",
    "unwanted-call": "there is a call although none is wanted",
    "unknown-tool": "a call of a tool that was not offered",
    "wrong-tool": "a call of another tool than the expected one",
    "bad-json": "arguments that are not a JSON object",
    "schema": "arguments that do not fit the tool's schema",
    "wrong-arguments": "arguments that fit the schema and differ from the expected ones",
    # delivery
    "call-id": "a call without an id, or two calls with the same id",
    "finish-reason": "a finish reason that does not match the reply",
    "call-in-text": "a call, or a marker of one, in the text of the reply",
    # checks of other verifiers
    "prompt-tokens": "another number of prompt tokens than expected",
    "language": "Cyrillic characters in a text of another language",
    "repetition": "a text that repeats itself",
    "parameter-order": "a text that names the parameters of a tool in another order than the request",
}
"""Each kind of failure in words, the gravest first: the first one of a reply is attributed."""
_RANKS = {kind: rank for rank, kind in enumerate(FAILURE_KINDS)}


class Failure(msgspec.Struct, frozen=True):
    kind: str
    message: str
    """Description of the failure in this reply."""

    @property
    def rank(self) -> int:
        return _RANKS[self.kind]


class Judgement(msgspec.Struct, frozen=True):
    """Failures of a reply, the gravest first, and irregularities that a tolerant client survives."""

    failures: tuple[Failure, ...] = ()
    oddities: tuple[str, ...] = ()
    """Kinds of findings."""

    @property
    def is_right(self) -> bool:
        return not self.failures

    @property
    def kinds(self) -> list[str]:
        return [failure.kind for failure in self.failures]
