"""Target of a verification: the route to a model, and what its server has said about itself."""

from __future__ import annotations

import msgspec

from interlingua.dialects.registry import get_dialect
from interlingua.gateway.routing.routes import Route
from interlingua.parsing.dialect import Dialect
from interlingua.upstreams import get_profile
from interlingua.upstreams.profile import UNKNOWN, UNKNOWN_PROFILE, Profile
from interlingua.verification.probing.sender import Sender
from interlingua.verification.probing.server_facts import ENGINES, ServerFacts, collect_server_facts

__all__ = ["Target", "find_target"]

DETECT = "detect"


class Target(msgspec.Struct, frozen=True, kw_only=True):
    route: Route
    facts: ServerFacts

    @property
    def profile(self) -> Profile:
        """Profile of the settings, or that of the server that was detected."""
        if self.route.profile.name != UNKNOWN:
            return self.route.profile
        is_wanted = self.route.upstream.profile != UNKNOWN and self.facts.engine in ENGINES
        return get_profile(self.facts.engine) if is_wanted else UNKNOWN_PROFILE

    @property
    def dialect(self) -> Dialect:
        """Dialect of the model. For an unknown model, it is detected in each text."""
        dialect = self.route.dialect
        if isinstance(dialect, Dialect) and dialect.shape is not None:
            return dialect
        return get_dialect(DETECT)


async def find_target(sender: Sender, route: Route) -> Target:
    """Ask the server of a route about itself."""
    profile = "" if route.profile.name == UNKNOWN else route.profile.name
    is_local = route.upstream.url.startswith("http://")  # providers on the internet use TLS, and have no such paths
    return Target(route=route, facts=await collect_server_facts(sender, profile, is_local=is_local))
