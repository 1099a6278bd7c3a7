"""Advice for each cause of failures: the setting or flag that helps."""

from __future__ import annotations

from collections.abc import Sequence

from interlingua.verification.attribution.causes import Cause
from interlingua.verification.card.formats import sentence
from interlingua.verification.engine_flags import parser_flags, template_advice, unparsed_start
from interlingua.verification.run.run_log import RunHeader
from interlingua.verification.run.trial_result import TrialResult

__all__ = ["advise"]

PROXY = "put Interlingua in front of it"
_ALL = "all of them"


def advise(cause: Cause, failed: Sequence[TrialResult], header: RunHeader) -> str:
    """Return what the user can do about these failures, which have the same cause."""
    match cause:
        case "model":
            return "Try another model, clearer descriptions of the tools, or fewer tools."
        case "template":
            return sentence(template_advice(header.engine))
        case "engine-parser":
            return _advise_on_parser(failed, header)
        case "transport":
            return _advise_on_transport(failed)
        case "client-request":
            return "Change the request as the message says; Interlingua's profiles do it for known providers."


def _advise_on_parser(failed: Sequence[TrialResult], header: RunHeader) -> str:
    flags, unparsed = parser_flags(header.engine, header.dialect), unparsed_start(header.engine)
    corrected = _corrected(failed)
    if flags and corrected:
        return f"Start the server with {flags}, or {PROXY}, which makes {corrected} right."
    if unparsed:
        own = f"with {flags}, or " if flags else ""
        return f"Start the server {own}{unparsed}: then Interlingua reads the calls."
    if corrected:
        return sentence(f"{PROXY}, which makes {corrected} right")
    return "Only the server can correct this: use another tool parser, or another provider."


def _advise_on_transport(failed: Sequence[TrialResult]) -> str:
    if all(result.attribution is not None and result.attribution.kind == "no-reply" for result in failed):
        return "The provider is overloaded or unstable: retry later, or with fewer parallel requests."
    corrected = _corrected(failed)
    if not corrected:
        return "What is lost cannot be restored: retry, or use another provider."
    rest = "" if corrected == _ALL else " The others need a retry, or another provider."
    return sentence(f"{PROXY}, which makes {corrected} right") + rest


def _corrected(failed: Sequence[TrialResult]) -> str:
    """Return how many of these replies are right if Interlingua corrects them, in words; "" for none."""
    count = sum(not result.corrected_failures for result in failed)
    return "" if not count else _ALL if count == len(failed) else f"{count} of them"
