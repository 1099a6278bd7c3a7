"""Where client and upstream speak one wire: a request goes out like the one that came, but for what has to change."""

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
"""Names all fields as most do: what is written so says all that was read."""


def preserve_unchanged(
    body: Json, original: Request, request: Request, profile: Profile | None, wire: RequestCodec
) -> tuple[Json, list[Finding]]:
    """The request as it came, but for what was changed in it, and for what a known upstream wants otherwise."""
    if profile is None and request == original:
        return body, []
    target, findings = wire.write_request(request, profile or FULL_PROFILE)
    baseline, baseline_findings = wire.write_request(original, _opposite_profile(profile) if profile else FULL_PROFILE)
    merged = {key: _merge(body.get(key), baseline.get(key), value) for key, value in target.items()}
    if profile is None:
        unchanged = {key: value for key, value in body.items() if baseline.get(key) == target.get(key)}
        merged = unchanged | {key: value for key, value in merged.items() if baseline.get(key) != target[key]}
        findings = [finding for finding in findings if finding not in baseline_findings]
    if merged == target:  # as it mostly is: agents write as we do
        return merged, findings
    # Places in what came and in what is wanted may not be the same: then it would say something else, or nothing.
    target_request = _try_read(target, wire)
    return (merged if target_request is not None and _try_read(merged, wire) == target_request else target), findings


def _try_read(body: Json, wire: RequestCodec) -> Request | None:
    """What the body says; None if nobody can tell."""
    try:
        return msgspec.structs.replace(wire.read_request(body, Options()), unread=(), source_paths={})
    except BadRequest:
        return None


def _opposite_profile(profile: Profile) -> Profile:
    """An upstream that wants otherwise named what this one wants just so: what is written for both alike needs no
    change, whatever the client has written."""
    return msgspec.structs.replace(
        FULL_PROFILE,
        cache_marks=profile.cache_marks,
        system_role="developer" if profile.system_role == "system" else "system",
        replay="reasoning" if profile.replay == "reasoning_content" else "reasoning_content",
    )


def _merge(original: Any, baseline: Any, target: Any) -> Any:
    """`plain` is what came, in our words: where just these are wanted, what came may stay."""
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
    """What stands before and behind a change stays as it came."""
    head = _common_prefix_length(baseline, target)
    tail = _common_prefix_length(baseline[head:][::-1], target[head:][::-1])
    middle = target[head : len(target) - tail]
    if len(baseline) == len(target):
        changed = slice(head, len(target) - tail)
        middle = [_merge(*triple) for triple in zip(original[changed], baseline[changed], middle, strict=True)]
    return [*original[:head], *middle, *original[len(original) - tail :]]


def _common_prefix_length(left: list[Any], right: list[Any]) -> int:
    """How many of their first items are the same."""
    return next((n for n, (a, b) in enumerate(zip(left, right, strict=False)) if a != b), min(len(left), len(right)))
