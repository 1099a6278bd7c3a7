"""Every upstream that is known, by its name and by where it is served."""

from __future__ import annotations

from fnmatch import fnmatchcase
from urllib.parse import urlsplit

from interlingua.core.reasoning_signatures import OwnershipCheck
from interlingua.errors import UnknownUpstream, expect_type
from interlingua.events import Seal
from interlingua.upstreams.catalog import PROFILES
from interlingua.upstreams.model_overrides import profile_for_model
from interlingua.upstreams.profile import CHAT, UNKNOWN_PROFILE, Profile

__all__ = ["get_profile", "list_profiles", "ownership_check", "profile_for_model", "profile_for_url", "signs_on_wire"]

PROFILES_BY_NAME = {profile.name: profile for profile in (*PROFILES, UNKNOWN_PROFILE)}


def list_profiles() -> tuple[Profile, ...]:
    """Every upstream that is known."""
    return PROFILES


def get_profile(name: str | Profile) -> Profile:
    """The upstream of this name; `any` is one that nobody knows."""
    if isinstance(name, Profile):
        return name
    profile = PROFILES_BY_NAME.get(str(name))
    if profile is None:
        raise UnknownUpstream(name, PROFILES_BY_NAME)
    return profile


def signs_on_wire(upstream: str, wire: str) -> bool:
    """Whether this is the upstream whose signatures or encryption a wire is made for. Others may have their own, which
    look alike."""
    return any(profile.name == upstream and profile.seal_wire == wire for profile in PROFILES)


def ownership_check(upstream: str, wire: str) -> OwnershipCheck:
    """What the upstream of this name had sent, if it is asked on this wire. What clients get as it is has no name; and
    where the one that is asked has none, nobody knows whose it is."""
    accepts_unnamed = not upstream or wire == CHAT or signs_on_wire(upstream, wire)

    def is_own(seal: Seal) -> bool:
        return seal.wire == wire and (upstream in ("", seal.upstream) or (accepts_unnamed and not seal.upstream))

    return is_own


def profile_for_url(address: str) -> Profile:
    """The upstream at this URL or host, which may have a port; any, if nobody knows it."""
    expect_type(address, str, "an address is str", "for example 'https://api.moonshot.ai/v1' or 'localhost:11434'")
    try:
        url = urlsplit(address if "//" in address else f"//{address}")
        host, port = url.hostname or "", url.port
    except ValueError:  # half an IPv6 address, a port that is no number
        return UNKNOWN_PROFILE
    candidates = (host, f"{host}:{port}")
    matches = (
        profile
        for profile in PROFILES
        if any(fnmatchcase(candidate, pattern) for candidate in candidates for pattern in profile.hosts)
    )
    return next(matches, UNKNOWN_PROFILE)
