"""A request as one upstream takes it: what its profile says it does not take is told otherwise, or left out.

Each step is a function of the request and the upstream, and asks of the profile what it is about. What a step loses or
changes is a finding. Steps look at a message and at those before it, never at those behind: a conversation is told the
same in every later request, and prompt caches hold. A request that has been adapted stays as it is.
"""

from __future__ import annotations

from interlingua import events as ev
from interlingua.core.reasoning_signatures import OwnershipCheck
from interlingua.core.request import Request
from interlingua.upstreams.adapt import call_ids, messages
from interlingua.upstreams.adapt import generation_settings as settings
from interlingua.upstreams.adapt import thinking as whose
from interlingua.upstreams.adapt import tool_files as results
from interlingua.upstreams.adapt.context import AdaptContext
from interlingua.upstreams.profile import CHAT, Profile

__all__ = ["adapt"]

ADAPT_STEPS = (
    whose.drop_foreign_signatures,
    *messages.CONTENT_STEPS,
    call_ids.rebuild_call_ids,
    results.move_files,
    *messages.TURN_STEPS,
    *settings.STEPS,
)
"""Ids come before files, which are told with the ids of their calls."""


def _accept_any_seal(_: ev.Seal) -> bool:
    return True


def adapt(
    request: Request, profile: Profile, wire: str = "", is_own: OwnershipCheck = _accept_any_seal
) -> tuple[Request, list[ev.Finding]]:
    """The request as this upstream takes it, and what was lost on the way. Mend its history first.

    `wire` is the one that the upstream is asked on: without it, the one it signs thinking on, or chat completions.
    `own` says which seals are its own: without it, all that its wire can carry.
    """
    findings: list[ev.Finding] = []

    def report(kind: str, message: str) -> None:
        findings.append(ev.Finding(kind, message))

    context = AdaptContext(profile, wire or profile.seal_wire or CHAT, report, is_own)
    for step in ADAPT_STEPS:
        request = step(request, context)
    return request, findings
