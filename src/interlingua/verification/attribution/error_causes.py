"""Causes of error messages that name the part of a server that failed: one row for each message."""

from __future__ import annotations

import re

from interlingua.upstreams.refusals import recognize_refusal
from interlingua.verification.attribution.causes import Cause

__all__ = ["cause_of_error"]

_PATTERNS: tuple[tuple[str, Cause, str], ...] = (
    (
        r"template ?error|jinja|chat[ _-]template|roles must alternate|system message must be at the beginning"
        r"|role not supported|unexpected role",
        "template",
        "the chat template raises an error",
    ),
    (
        r"failed to parse (the )?(input|tool call|function call|model output)|error in extracting tool call"
        r"|could not parse (the )?tool call|failed_generation",
        "engine-parser",
        "the server cannot parse what the model wrote",
    ),
    (r"tools param requires --jinja", "template", "llama.cpp shows tools only with --jinja"),
)
_COMPILED = [(re.compile(pattern, re.IGNORECASE), cause, reason) for pattern, cause, reason in _PATTERNS]


def cause_of_error(status: int, message: str) -> tuple[Cause, str] | None:
    """Return the cause of an error and the reason in words; None if the message does not name it."""
    refusal = recognize_refusal(status, message)
    if refusal is not None and refusal.kind == "no-tool-parser":
        return "engine-parser", "the server has no tool parser and rejects tools"
    return next(((cause, reason) for regex, cause, reason in _COMPILED if regex.search(message)), None)
