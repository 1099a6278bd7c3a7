"""Passthrough of same-wire requests: keep the client's JSON except for the fields that must change.

Unknown fields and prompt caches survive that way.
"""

from __future__ import annotations

from typing import Any

import msgspec

from interlingua.core.options import Options
from interlingua.core.request import Request
from interlingua.errors import BadRequest
from interlingua.events import Finding
from interlingua.upstreams.profile import Profile
from interlingua.wires.base import Json, RequestCodec

__all__ = ["preserve_unchanged"]

FULL_PROFILE = Profile(allowed_tools=True)
"""Profile with the most common field names and without restrictions: it writes everything that was read."""
FULL_PROFILE_NEW_LIMIT = Profile(allowed_tools=True, max_tokens="max_completion_tokens")
"""The same, for a client that limits the reply with the newer of the two fields."""


def preserve_unchanged(
    body: Json, original: Request, request: Request, profile: Profile | None, wire: RequestCodec
) -> tuple[Json, list[Finding]]:
    """Return the client's body with only the necessary changes.

    Both versions of the request are written, and their difference is applied to the client's body.

    Args:
        body: the body as the client sent it.
        original: the request that was read from `body`.
        request: the same request after changes.
        profile: the upstream's profile; None if the upstream is unknown.
        wire: the wire of client and upstream.

    Returns: the body to send, and findings for what is dropped or changed in it.
    """
    if profile is None and request == original:
        return body, []
    client_profile = FULL_PROFILE_NEW_LIMIT if "max_completion_tokens" in body else FULL_PROFILE
    target, findings = wire.write_request(request, profile or client_profile)
    baseline, baseline_findings = wire.write_request(
        original, _opposite_profile(profile) if profile else client_profile
    )
    merged = {key: _merge(body.get(key), baseline.get(key), value) for key, value in target.items()}
    if profile is None:
        unchanged = {key: value for key, value in body.items() if baseline.get(key) == target.get(key)}
        merged = unchanged | {key: value for key, value in merged.items() if baseline.get(key) != target[key]}
        known_findings = set(baseline_findings)
        findings = [finding for finding in findings if finding not in known_findings]
    if merged == target:  # the usual case: agents write requests as we do
        return merged, findings
    # Positions in `body` and in `target` may differ. Then the merged body could have another meaning, or be invalid.
    target_request = _try_read(target, wire)
    return (merged if target_request is not None and _try_read(merged, wire) == target_request else target), findings


def _try_read(body: Json, wire: RequestCodec) -> Request | None:
    """Parse the body; None if it is malformed."""
    try:
        return msgspec.structs.replace(wire.read_request(body, Options()), unread=(), source_paths={})
    except BadRequest:
        return None


def _opposite_profile(profile: Profile) -> Profile:
    """Return a profile with the other value for each field name that an upstream may choose.

    What is written alike for both profiles does not depend on the choice and may stay as the client wrote it.
    """
    return msgspec.structs.replace(
        FULL_PROFILE,
        cache_marks=profile.cache_marks,
        system_role="developer" if profile.system_role == "system" else "system",
        replay="reasoning" if profile.replay == "reasoning_content" else "reasoning_content",
    )


def _merge(original: Any, baseline: Any, target: Any) -> Any:
    """Return `target`, with the client's own values wherever they need no change.

    Args:
        original: the value in the client's body.
        baseline: the same value as Interlingua writes it.
        target: the value that is wanted. Where it equals `baseline`, `original` stays.
    """
    match original, baseline, target:
        case None, _, _:
            return target
        case _ if baseline == target:
            return original
        case dict(), dict(), dict():
            return {key: _merge(original.get(key), baseline.get(key), value) for key, value in target.items()}
        case list(), list(), list() if len(original) == len(baseline):
            return _merge_lists(original, baseline, target)
    return target


def _merge_lists(original: list[Any], baseline: list[Any], target: list[Any]) -> list[Any]:
    """Merge lists: the items before and after the changed range stay as the client sent them."""
    head = _common_prefix_length(baseline, target)
    tail = _common_prefix_length(baseline[head:][::-1], target[head:][::-1])
    middle = target[head : len(target) - tail]
    if len(baseline) == len(target):
        changed = slice(head, len(target) - tail)
        middle = [_merge(*triple) for triple in zip(original[changed], baseline[changed], middle, strict=True)]
    return [*original[:head], *middle, *original[len(original) - tail :]]


def _common_prefix_length(left: list[Any], right: list[Any]) -> int:
    """Return the number of leading items that are equal."""
    return next((n for n, (a, b) in enumerate(zip(left, right, strict=False)) if a != b), min(len(left), len(right)))
