"""Findings explained: what each kind means, and the setting that changes what is done about it."""

from __future__ import annotations

import msgspec

from interlingua.core.finding_severity import Severity, advice_for, severity_of
from interlingua.core.findings import FINDING_KINDS

__all__ = ["FindingHelp", "finding_help"]

_HISTORY = "history: strict refuses such requests instead of repairing them"
_PROFILE = "upstreams.NAME.profile: the profile of the upstream decides it"
_DIALECT = "models.ID.dialect, or overrides: the dialect in which the model writes calls"
_RETRIES = "upstreams.NAME.retries and models.ID.fallback"
_SETTINGS: dict[str, str] = {
    "repaired-arguments": "arguments: exact sends them as the model wrote them",
    "mended-arguments": "arguments: exact sends them as the model wrote them",
    "bad-arguments": "delivery: whole withholds calls whose arguments are invalid",
    "call-withheld": "delivery: stream sends calls as they arrive",
    "cut-short": "delivery: whole withholds calls that are incomplete",
    "call-not-closed": "delivery: whole withholds calls that are incomplete",
    "string-not-closed": "delivery: whole withholds calls that are incomplete",
    "reasoning-dropped": "reasoning: keep sends the thinking",
    "empty-turn": "empty: retry sends the request once more",
    "detected": _DIALECT,
    "stray-marker": _DIALECT,
    "noise": _DIALECT,
    "no-opener": _DIALECT,
    "no-section": _DIALECT,
    "not-a-tool": _DIALECT,
    "runaway": "limits.blanks",
    "over-limit": "limits.header, limits.held or limits.args; limits.over: error ends the reply instead",
    "asked-again": _RETRIES,
    "not-asked-again": _RETRIES,
    "refusal-corrected": _PROFILE,
    "image-omitted": "models.ID.vision: true sends the images",
    "no-result": _HISTORY,
    "orphan-result": _HISTORY,
    "late-result": _HISTORY,
    "several-results": _HISTORY,
    "result-moved": _HISTORY,
    "split-turn": _HISTORY,
    "misplaced": _HISTORY,
    "empty-content": _HISTORY,
    "odd-name": _HISTORY,
    "system-as-user": _PROFILE,
    "thinking-lost": _PROFILE,
    "thinking-stopped": _PROFILE,
    "thinking-dropped": _PROFILE,
    "thinking-wish": _PROFILE,
    "no-tool-parser": _PROFILE,
    "choice-relaxed": _PROFILE,
    "bridge": _PROFILE,
    "go-on": _PROFILE,
    "max-tokens": _PROFILE,
    "stop-dropped": _PROFILE,
    "setting-dropped": _PROFILE,
    "cache-mark-dropped": _PROFILE,
    "seal-unreadable": "seal_key: all gateways that a client uses need the same key",
    "prompt-truncated": "the context of the model server, such as num_ctx of Ollama",
    "usage-estimated": "the upstream reports no usage; some servers have an option for it",
}


class FindingHelp(msgspec.Struct, frozen=True, omit_defaults=True):
    """Explanation of one kind of finding."""

    irregularity: str
    correction: str
    severity: Severity
    advice: str = ""
    """Advice for the user; "" if it is harmless."""
    setting: str = ""
    """Setting of the gateway that changes it; "" if there is none."""


def finding_help() -> dict[str, FindingHelp]:
    """Return the explanation of each kind of finding."""
    explanations: dict[str, FindingHelp] = {}
    for kind, words in FINDING_KINDS.items():
        irregularity, _, correction = words.rpartition(": ")
        explanations[kind] = FindingHelp(
            irregularity or correction, correction, severity_of(kind), advice_for(kind), _SETTINGS.get(kind, "")
        )
    return explanations
