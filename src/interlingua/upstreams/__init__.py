"""Lookup of upstream profiles by name and by URL."""

from __future__ import annotations

from fnmatch import fnmatchcase
from functools import lru_cache
from urllib.parse import urlsplit

from interlingua.core.reasoning_signatures import OwnershipCheck
from interlingua.core.wire_traits import WireTraits
from interlingua.errors import UnknownUpstream, expect_type
from interlingua.events import Seal
from interlingua.upstreams.catalog import PROFILES
from interlingua.upstreams.model_overrides import profile_for_model
from interlingua.upstreams.profile import UNKNOWN_PROFILE, Profile

__all__ = ["get_profile", "list_profiles", "ownership_check", "profile_for_model", "profile_for_url", "signs_on_wire"]

PROFILES_BY_NAME = {profile.name: profile for profile in (*PROFILES, UNKNOWN_PROFILE)}


def list_profiles() -> tuple[Profile, ...]:
    """Return the profiles of all known upstreams."""
    return PROFILES


def get_profile(name: str | Profile) -> Profile:
    """Return the profile of this name; `any` is the profile of an unknown upstream."""
    if isinstance(name, Profile):
        return name
    profile = PROFILES_BY_NAME.get(str(name))
    if profile is None:
        raise UnknownUpstream(name, PROFILES_BY_NAME)
    return profile


@lru_cache(1024)
def signs_on_wire(upstream: str, wire: str) -> bool:
    """Return whether this upstream defines the signatures or the encryption of this wire. Other upstreams on the same
    wire may have their own, in the same fields."""
    return any(profile.name == upstream and profile.seal_wire == wire for profile in PROFILES)


def ownership_check(upstream: str, traits: WireTraits) -> OwnershipCheck:
    """Return a predicate: true for signed data that came from the upstream of this name on the wire with these traits.

    Data that clients receive unchanged contains no upstream name. It is accepted for the upstream that defines the
    wire's signatures, and for all upstreams if the traits say so. Without an upstream name, all data of the wire is
    accepted, because its owner is unknown.
    """
    wire = traits.wire
    accepts_unnamed = not upstream or traits.accepts_unnamed_signatures or signs_on_wire(upstream, wire)

    def is_own(seal: Seal) -> bool:
        return seal.wire == wire and (upstream in ("", seal.upstream) or (accepts_unnamed and not seal.upstream))

    return is_own


def profile_for_url(address: str) -> Profile:
    """Return the profile of the upstream at this URL or host (with an optional port); `any` if it is unknown."""
    expect_type(address, str, "an address is str", "for example 'https://api.moonshot.ai/v1' or 'localhost:11434'")
    try:
        url = urlsplit(address if "//" in address else f"//{address}")
        host, port = url.hostname or "", url.port
    except ValueError:  # incomplete IPv6 address, or a port that is not a number
        return UNKNOWN_PROFILE
    candidates = (host, f"{host}:{port}")
    matches = (
        profile
        for profile in PROFILES
        if any(fnmatchcase(candidate, pattern) for candidate in candidates for pattern in profile.hosts)
    )
    return next(matches, UNKNOWN_PROFILE)
