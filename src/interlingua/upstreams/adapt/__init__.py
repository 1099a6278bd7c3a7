"""Adaptation of a request to one upstream: content that the profile rules out is converted or dropped.

Each step is a function of the request and the context, and reads the profile fields that it handles. A step reports
every loss or change as a finding. A step looks at a message and at the messages before it, never at later ones: so a
conversation has the same prefix in every later request, and prompt caches stay valid. Adapting twice changes nothing.
"""

from __future__ import annotations

import msgspec

from interlingua import events as ev
from interlingua.core.reasoning_signatures import OwnershipCheck
from interlingua.core.reply import Call
from interlingua.core.request import Request
from interlingua.core.wire_traits import WireTraits
from interlingua.upstreams.adapt import call_id_formats, messages, thinking, tool_files, tool_search
from interlingua.upstreams.adapt import generation_settings as settings
from interlingua.upstreams.adapt.context import NO_TURNS, AdaptContext, AdaptedTurns, AdaptFindings, AdaptStep
from interlingua.upstreams.profile import Profile

__all__ = [
    "ALL_STEPS",
    "MODEL_STEPS",
    "NO_TURNS",
    "AdaptContext",
    "AdaptFindings",
    "AdaptSteps",
    "AdaptedTurns",
    "accept_any_seal",
    "adapt",
    "adapt_content",
    "adapt_settings",
    "adapt_to_model",
    "adapted_turns",
]


class AdaptSteps(msgspec.Struct, frozen=True):
    """Steps of an adaptation, in order."""

    content: tuple[AdaptStep, ...]
    """Steps that adapt the system prompt and each turn."""
    settings: tuple[AdaptStep, ...]
    """Steps that adapt all else. Some of them look at the end of the conversation, or add a message to it."""


ALL_STEPS = AdaptSteps(
    content=(
        thinking.drop_foreign_signatures,
        tool_search.resolve_references,
        *messages.CONTENT_STEPS,
        call_id_formats.rebuild_call_ids,
        tool_files.move_files,
        *messages.TURN_STEPS,
    ),
    settings=(tool_search.resolve_deferred_tools, messages.append_go_on, *settings.STEPS),
)
"""Call ids are rebuilt before files are moved, because moved files mention the ids of their calls."""
MODEL_STEPS = AdaptSteps(
    content=(messages.omit_images, call_id_formats.rebuild_call_ids),
    settings=(
        thinking.drop_thinking_setting,
        settings.limit_max_tokens,
        settings.drop_max_tokens,
        settings.choose_none_without_parser,
    ),
)
"""Steps for facts about the model and its server that hold whatever the upstream's API is."""


def accept_any_seal(_: ev.Seal) -> bool:
    return True


def adapt(
    request: Request, profile: Profile, traits: WireTraits, is_own: OwnershipCheck = accept_any_seal
) -> tuple[Request, list[ev.Finding]]:
    """Return the request in the form that this upstream accepts, and a finding for each loss. Repair its history first.

    Args:
        request: The request.
        profile: The upstream's profile.
        traits: The traits of the upstream's wire.
        is_own: Predicate that is true for the upstream's own signatures. Default: all that its wire can carry.
    """
    return _adapt(request, AdaptContext(profile, traits, AdaptFindings(), is_own), ALL_STEPS)


def adapt_to_model(request: Request, profile: Profile, traits: WireTraits) -> tuple[Request, list[ev.Finding]]:
    """Return the request in the form that the model accepts, for an upstream that is otherwise unknown."""
    return _adapt(request, AdaptContext(profile, traits, AdaptFindings(), accept_any_seal), MODEL_STEPS)


def _adapt(request: Request, context: AdaptContext, steps: AdaptSteps) -> tuple[Request, list[ev.Finding]]:
    adapted = adapt_settings(adapt_content(request, context, steps), context, steps)
    return adapted, context.findings.findings()


def adapt_content(request: Request, context: AdaptContext, steps: AdaptSteps) -> Request:
    """Adapt the system prompt and the messages: the whole conversation, or turns that follow `context.earlier`."""
    for number, step in enumerate(steps.content):
        context.findings.step = number
        request = step(request, context)
    return request


def adapt_settings(request: Request, context: AdaptContext, steps: AdaptSteps) -> Request:
    """Adapt all else. The request needs only the last turn of its conversation, if `context.earlier` has the others."""
    for number, step in enumerate(steps.settings, len(steps.content)):
        context.findings.step = number
        request = step(request, context)
    return request


def adapted_turns(request: Request, context: AdaptContext) -> AdaptedTurns:
    """Return what the next turns need to know of those before and of the adapted messages of this request."""
    calls = (piece for message in request.messages for piece in message.pieces if isinstance(piece, Call))
    return AdaptedTurns(
        (*context.earlier.ids, *(call.id for call in calls)), thinking.open_loop_is_signed(request.messages, context)
    )
