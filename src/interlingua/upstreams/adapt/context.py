"""Context of the adaptation steps: profile, traits of the upstream's wire, findings, and earlier turns."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import TypeAlias

import msgspec

from interlingua.core.reasoning_signatures import OwnershipCheck
from interlingua.core.reply import Reasoning
from interlingua.core.request import Request, Thinking
from interlingua.core.wire_traits import WireTraits
from interlingua.events import Finding
from interlingua.upstreams.profile import Profile

__all__ = ["NO_TURNS", "AdaptContext", "AdaptFindings", "AdaptStep", "AdaptedTurns"]


class AdaptFindings:
    """Findings of the steps, in the order of the steps. Those of parts of a request can be joined."""

    def __init__(self) -> None:
        self.step = 0
        """Number of the step that reports."""
        self._counts: dict[tuple[int, str, str], int] = {}  # by step, kind and message

    def add(self, kind: str, message: str, count: int = 0) -> None:
        """Add a finding. One that is reported several times is reported once, with the sum of its counts.

        `message`: with `{}` for the count, if there is one.
        """
        key = (self.step, kind, message)
        self._counts[key] = self._counts.get(key, 0) + count

    @staticmethod
    def join(parts: Iterable[AdaptFindings]) -> AdaptFindings:
        """Return the findings of all parts of a request."""
        joined = AdaptFindings()
        for part in parts:
            for key, count in part._counts.items():
                joined._counts[key] = joined._counts.get(key, 0) + count
        return joined

    def __bool__(self) -> bool:
        return bool(self._counts)

    def findings(self) -> list[Finding]:
        return [
            Finding(kind, message.format(count) if count else message)
            for (_, kind, message), count in sorted(self._counts.items(), key=lambda entry: entry[0][0])
        ]


class AdaptedTurns(msgspec.Struct, frozen=True):
    """Earlier turns of the conversation that are adapted already: all that the adaptation of the next ones needs."""

    ids: tuple[str, ...] = ()
    """Ids of their calls."""
    signed_loop: bool | None = None
    """True if the tool loop with which they end has signed thinking in its first turn. None: there is no such loop."""


NO_TURNS = AdaptedTurns()


class AdaptContext(msgspec.Struct, frozen=True):
    profile: Profile
    traits: WireTraits
    findings: AdaptFindings
    is_own: OwnershipCheck
    earlier: AdaptedTurns = NO_TURNS

    def report(self, kind: str, message: str) -> None:
        self.findings.add(kind, message)

    def report_count(self, kind: str, message: str, count: int) -> None:
        """Report how often something was changed. `message` has `{}` for the count."""
        self.findings.add(kind, message, count)

    @property
    def wire(self) -> str:
        """Name of the upstream's wire."""
        return self.traits.wire

    def can_carry_signature(self, reasoning: Reasoning) -> bool:
        """Return whether this thinking has a signature that the upstream's wire can carry."""
        return reasoning.seal is not None and reasoning.seal.wire == self.wire

    def will_think(self, thinking: Thinking) -> bool:
        """Return whether the model thinks with this setting."""
        return self.profile.thinks_unasked if thinking.requested is None else thinking.requested

    def keeps_values(self, request: Request) -> bool:
        """Return whether the client speaks the upstream's own API, so that it knows best what the upstream accepts:
        values that are new or unknown here are sent as they are."""
        return request.wire == self.wire == self.profile.seal_wire

    def uses_token_budget(self, request: Request) -> bool:
        """Return whether the amount of thinking is sent as a number of tokens. On a wire with budgets, an effort from a
        client of the same wire is kept: the client has chosen it for its model."""
        match self.traits.thinking_control:
            case "budget":
                return self.profile.budgets and request.wire != self.wire
            case "profile":
                return self.profile.thinking in ("budget", "enable")
        return False

    @property
    def accepts_effort(self) -> bool:
        """True if the upstream accepts an effort for thinking."""
        match self.traits.thinking_control:
            case "budget":
                return not self.profile.budgets
            case "profile":
                return self.profile.thinking in ("effort", "openrouter", "type-effort")
        return True

    @property
    def accepts_effort_only(self) -> bool:
        """True if the upstream accepts only an effort, no budget, and its effort names are known."""
        match self.traits.thinking_control:
            case "budget":
                return not self.profile.budgets
            case "profile" if self.profile.thinking not in ("effort", "type-effort"):
                return False
        return bool(self.profile.efforts)

    @property
    def accepts_blank_text(self) -> bool:
        return self.profile.blank_text and self.traits.accepts_blank_text

    @property
    def accepts_several_tool_names(self) -> bool:
        """True if a tool choice may name several tools."""
        return self.traits.has_allowed_tools and (self.profile.allowed_tools or not self.traits.varies_by_server)


AdaptStep: TypeAlias = Callable[[Request, AdaptContext], Request]
