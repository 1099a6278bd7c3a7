"""What every step of an adaption is told: the upstream, the wire it is asked on, and whom to tell what was lost."""

from __future__ import annotations

from collections.abc import Callable

import msgspec

from interlingua.core.reasoning_signatures import OwnershipCheck
from interlingua.core.reply import Reasoning
from interlingua.core.request import Request, Thinking
from interlingua.upstreams.profile import CHAT, MESSAGES, RESPONSES, Profile

__all__ = ["AdaptContext"]


class AdaptContext(msgspec.Struct, frozen=True):
    profile: Profile
    wire: str
    report: Callable[[str, str], None]
    is_own: OwnershipCheck

    def can_carry_signature(self, reasoning: Reasoning) -> bool:
        """Whether this thinking has a seal that this upstream's wire can carry."""
        return reasoning.seal is not None and reasoning.seal.wire == self.wire

    def will_think(self, thinking: Thinking) -> bool:
        """Whether the model thinks when it is asked so."""
        return self.profile.thinks_unasked if thinking.requested is None else thinking.requested

    def uses_token_budget(self, request: Request) -> bool:
        """Whether it is told in tokens how much to think. In Messages a client of the same wire may tell an effort: it
        knows that its model takes it."""
        if self.wire == MESSAGES:
            return self.profile.budgets and request.wire != MESSAGES
        return self.wire == CHAT and self.profile.thinking in ("budget", "enable")

    @property
    def accepts_effort(self) -> bool:
        """Whether it can be told to think a little."""
        if self.wire == MESSAGES:
            return not self.profile.budgets
        return self.wire == RESPONSES or self.profile.thinking in ("effort", "openrouter", "type-effort")

    @property
    def accepts_effort_only(self) -> bool:
        """Whether it is told in words only, and these are known."""
        if self.wire == MESSAGES:
            return not self.profile.budgets
        uses_effort = self.wire == RESPONSES or self.profile.thinking in ("effort", "type-effort")
        return uses_effort and bool(self.profile.efforts)

    @property
    def accepts_blank_text(self) -> bool:
        return self.profile.blank_text and self.wire != MESSAGES

    @property
    def accepts_several_tool_names(self) -> bool:
        """Whether a choice may name several tools."""
        return self.wire == RESPONSES or (self.wire == CHAT and self.profile.allowed_tools)
