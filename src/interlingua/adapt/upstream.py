"""What every step of an adaption is told: the upstream, the wire it is asked on, and whom to tell what was lost."""

from __future__ import annotations

from collections.abc import Callable

import msgspec

from interlingua.profile import Profile
from interlingua.reply import Reasoning
from interlingua.request import Thinking

__all__ = ["Upstream"]


class Upstream(msgspec.Struct, frozen=True):
    profile: Profile
    wire: str
    report: Callable[[str, str], None]

    def signed(self, thinking: Reasoning) -> bool:
        """Whether this thinking has a seal that this upstream's wire can carry."""
        return thinking.seal is not None and thinking.seal.wire == self.wire

    def thinks(self, thinking: Thinking) -> bool:
        """Whether the model thinks when it is asked so."""
        if thinking.on is not None:
            return thinking.on
        if thinking.effort is not None or thinking.budget is not None:
            return thinking.effort != "none" and thinking.budget != 0
        return self.profile.thinks_unasked
