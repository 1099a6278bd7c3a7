"""Attribution: who caused a failure, and the evidence for it. Pure functions."""

from interlingua.verification.attribution.attribution import Attribution, attribute, missing_evidence
from interlingua.verification.attribution.causes import CAUSES
from interlingua.verification.attribution.evidence import Control, Evidence, EvidenceKind, PromptCheck, Repetition

__all__ = [
    "CAUSES",
    "Attribution",
    "Control",
    "Evidence",
    "EvidenceKind",
    "PromptCheck",
    "Repetition",
    "attribute",
    "missing_evidence",
]
