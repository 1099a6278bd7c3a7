"""Advice for each cause of failures: the setting or flag that helps."""

from __future__ import annotations

from collections.abc import Sequence

from interlingua.verification.attribution import Attribution
from interlingua.verification.engine_flags import parser_flags
from interlingua.verification.run.run_log import RunHeader

__all__ = ["advise"]


def advise(cause: str, attributions: Sequence[Attribution], header: RunHeader) -> str:
    """Return what the user can do about these failures."""
    kinds = {attribution.kind for attribution in attributions}
    match cause:
        case "model":
            return "Try another model, clearer descriptions of the tools, or fewer tools."
        case "template":
            return "Use the chat template of the model's own repository; see --chat-template of the server."
        case "engine-parser":
            flags = parser_flags(header.engine, header.dialect)
            front = "put Interlingua in front of it, which reads the calls from the text."
            return f"Start the server with {flags}, or {front}" if flags else f"{front[:1].upper()}{front[1:]}"
        case "transport":
            if kinds <= {"no-reply"}:
                return "The provider is overloaded or unstable: retry later, or with fewer parallel requests."
            return (
                "Put Interlingua in front of it: it corrects ids, order and finish reasons. Cut replies need a retry."
            )
        case _:
            return "Change the request as the message says; Interlingua's profiles do it for known providers."
