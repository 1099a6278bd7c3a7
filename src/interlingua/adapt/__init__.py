"""A request as one upstream takes it: what its profile says it does not take is told otherwise, or left out.

Each step is a function of the request and the upstream, and asks of the profile what it is about. What a step loses or
changes is a finding. Steps look at a message and at those before it, never at those behind: a conversation is told the
same in every later request, and prompt caches hold. A request that has been adapted stays as it is.
"""

from __future__ import annotations

from interlingua import events as ev
from interlingua.adapt import call_ids, messages, results, settings
from interlingua.adapt.upstream import Upstream
from interlingua.adapt.whose import disown
from interlingua.profile import CHAT, Profile
from interlingua.request import Request

__all__ = ["adapt", "disown"]

STEPS = (*messages.PIECES, call_ids.rebuild, results.move_files, *messages.SPEAKERS, *settings.STEPS)
"""Ids come before files, which are told with the ids of their calls."""


def adapt(request: Request, profile: Profile, wire: str = "") -> tuple[Request, list[ev.Finding]]:
    """The request as this upstream takes it, and what was lost on the way. Mend its history first.

    `wire` is the one that the upstream is asked on: without it, the one it signs thinking on, or chat completions.
    """
    findings: list[ev.Finding] = []

    def report(kind: str, message: str) -> None:
        findings.append(ev.Finding(kind, message))

    upstream = Upstream(profile, wire or profile.seal_wire or CHAT, report)
    for step in STEPS:
        request = step(request, upstream)
    return request, findings
