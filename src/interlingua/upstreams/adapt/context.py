"""Context of the adaptation steps: the profile, the upstream's wire, and the function that reports findings."""

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
        """Return whether this thinking has a signature that the upstream's wire can carry."""
        return reasoning.seal is not None and reasoning.seal.wire == self.wire

    def will_think(self, thinking: Thinking) -> bool:
        """Return whether the model thinks with this setting."""
        return self.profile.thinks_unasked if thinking.requested is None else thinking.requested

    def uses_token_budget(self, request: Request) -> bool:
        """Return whether the amount of thinking is sent as a number of tokens. On Messages, an effort from a client of
        the same wire is kept: the client has chosen it for its model."""
        if self.wire == MESSAGES:
            return self.profile.budgets and request.wire != MESSAGES
        return self.wire == CHAT and self.profile.thinking in ("budget", "enable")

    @property
    def accepts_effort(self) -> bool:
        """True if the upstream accepts an effort for thinking."""
        if self.wire == MESSAGES:
            return not self.profile.budgets
        return self.wire == RESPONSES or self.profile.thinking in ("effort", "openrouter", "type-effort")

    @property
    def accepts_effort_only(self) -> bool:
        """True if the upstream accepts only an effort, no budget, and its effort names are known."""
        if self.wire == MESSAGES:
            return not self.profile.budgets
        uses_effort = self.wire == RESPONSES or self.profile.thinking in ("effort", "type-effort")
        return uses_effort and bool(self.profile.efforts)

    @property
    def accepts_blank_text(self) -> bool:
        return self.profile.blank_text and self.wire != MESSAGES

    @property
    def accepts_several_tool_names(self) -> bool:
        """True if a tool choice may name several tools."""
        return self.wire == RESPONSES or (self.wire == CHAT and self.profile.allowed_tools)
