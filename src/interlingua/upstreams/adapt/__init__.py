"""Adaptation of a request to one upstream: content that the profile rules out is converted or dropped.

Each step is a function of the request and the context, and reads the profile fields that it handles. A step reports
every loss or change as a finding. A step looks at a message and at the messages before it, never at later ones: so a
conversation has the same prefix in every later request, and prompt caches stay valid. Adapting twice changes nothing.
"""

from __future__ import annotations

from collections.abc import Sequence

from interlingua import events as ev
from interlingua.core.reasoning_signatures import OwnershipCheck
from interlingua.core.request import Request
from interlingua.core.wire_traits import WireTraits
from interlingua.upstreams.adapt import call_id_formats, messages, thinking, tool_files, tool_search
from interlingua.upstreams.adapt import generation_settings as settings
from interlingua.upstreams.adapt.context import AdaptContext, AdaptStep
from interlingua.upstreams.profile import Profile

__all__ = ["adapt", "adapt_to_model"]

ADAPT_STEPS = (
    thinking.drop_foreign_signatures,
    tool_search.resolve_deferred_tools,
    *messages.CONTENT_STEPS,
    call_id_formats.rebuild_call_ids,
    tool_files.move_files,
    *messages.TURN_STEPS,
    *settings.STEPS,
)
"""Call ids are rebuilt before files are moved, because moved files mention the ids of their calls."""
MODEL_STEPS = (
    messages.omit_images,
    call_id_formats.rebuild_call_ids,
    settings.limit_max_tokens,
    settings.drop_max_tokens,
    settings.choose_none_without_parser,
)
"""Steps for facts about the model and its server that hold whatever the upstream's API is."""


def _accept_any_seal(_: ev.Seal) -> bool:
    return True


def adapt(
    request: Request, profile: Profile, traits: WireTraits, is_own: OwnershipCheck = _accept_any_seal
) -> tuple[Request, list[ev.Finding]]:
    """Return the request in the form that this upstream accepts, and a finding for each loss. Repair its history first.

    Args:
        request: The request.
        profile: The upstream's profile.
        traits: The traits of the upstream's wire.
        is_own: Predicate that is true for the upstream's own signatures. Default: all that its wire can carry.
    """
    return _run_steps(ADAPT_STEPS, request, profile, traits, is_own)


def adapt_to_model(request: Request, profile: Profile, traits: WireTraits) -> tuple[Request, list[ev.Finding]]:
    """Return the request in the form that the model accepts, for an upstream that is otherwise unknown."""
    return _run_steps(MODEL_STEPS, request, profile, traits, _accept_any_seal)


def _run_steps(
    steps: Sequence[AdaptStep], request: Request, profile: Profile, traits: WireTraits, is_own: OwnershipCheck
) -> tuple[Request, list[ev.Finding]]:
    findings: list[ev.Finding] = []

    def report(kind: str, message: str) -> None:
        findings.append(ev.Finding(kind, message))

    context = AdaptContext(profile, traits, report, is_own)
    for step in steps:
        request = step(request, context)
    return request, findings
