"""Context of the adaptation steps: profile, traits of the upstream's wire, and the function that reports findings."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeAlias

import msgspec

from interlingua.core.reasoning_signatures import OwnershipCheck
from interlingua.core.reply import Reasoning
from interlingua.core.request import Request, Thinking
from interlingua.core.wire_traits import WireTraits
from interlingua.upstreams.profile import Profile

__all__ = ["AdaptContext", "AdaptStep"]


class AdaptContext(msgspec.Struct, frozen=True):
    profile: Profile
    traits: WireTraits
    report: Callable[[str, str], None]
    is_own: OwnershipCheck

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
