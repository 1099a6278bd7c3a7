"""Every upstream that is known, by its name and by where it is served."""

from __future__ import annotations

from fnmatch import fnmatchcase
from urllib.parse import urlsplit

from interlingua.core.reasoning_signatures import Own
from interlingua.errors import UnknownUpstream, expect
from interlingua.events import Seal
from interlingua.upstreams.catalog import PROFILES
from interlingua.upstreams.model_overrides import for_model
from interlingua.upstreams.profile import ANY, CHAT, Profile

__all__ = ["for_model", "owned_by", "profile_for", "profile_named", "profiles", "signs"]

BY_NAME = {profile.name: profile for profile in (*PROFILES, ANY)}


def profiles() -> tuple[Profile, ...]:
    """Every upstream that is known."""
    return PROFILES


def profile_named(name: str | Profile) -> Profile:
    """The upstream of this name; `any` is one that nobody knows."""
    if isinstance(name, Profile):
        return name
    known = BY_NAME.get(str(name))
    if known is None:
        raise UnknownUpstream(name, BY_NAME)
    return known


def signs(upstream: str, wire: str) -> bool:
    """Whether this is the upstream whose signatures or encryption a wire is made for. Others may have their own, which
    look alike."""
    return any(profile.name == upstream and profile.seal_wire == wire for profile in PROFILES)


def owned_by(upstream: str, wire: str) -> Own:
    """What the upstream of this name had sent, if it is asked on this wire. What clients get as it is has no name; and
    where the one that is asked has none, nobody knows whose it is."""
    nameless = not upstream or wire == CHAT or signs(upstream, wire)

    def own(seal: Seal) -> bool:
        return seal.wire == wire and (upstream in ("", seal.upstream) or (nameless and not seal.upstream))

    return own


def profile_for(address: str) -> Profile:
    """The upstream at this URL or host, which may have a port; any, if nobody knows it."""
    expect(address, str, "an address is str", "for example 'https://api.moonshot.ai/v1' or 'localhost:11434'")
    try:
        url = urlsplit(address if "//" in address else f"//{address}")
        host, port = url.hostname or "", url.port
    except ValueError:  # half an IPv6 address, a port that is no number
        return ANY
    places = (host, f"{host}:{port}")
    served = (one for one in PROFILES if any(fnmatchcase(place, at) for place in places for at in one.hosts))
    return next(served, ANY)
