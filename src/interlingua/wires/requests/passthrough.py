"""Passthrough of same-wire requests: keep the client's JSON except for the fields that must change.

Unknown fields and prompt caches survive that way.
"""

from __future__ import annotations

from typing import Any

import msgspec

from interlingua.core.options import Options
from interlingua.core.request import Message, Request
from interlingua.core.tools import SharedTools, Tool
from interlingua.errors import BadRequest
from interlingua.events import Finding
from interlingua.upstreams.profile import Profile
from interlingua.wires.base import Json, RequestCodec, TurnCodec, Wire
from interlingua.wires.requests.object_reader import ObjectReader
from interlingua.wires.requests.tool_reader import read_tools

__all__ = ["PreservedBody", "is_written_alike", "preserve_items", "preserve_unchanged"]

FULL_PROFILE = Profile(allowed_tools=True)
"""Profile with the most common field names and without restrictions: it writes everything that was read."""
FULL_PROFILE_NEW_LIMIT = Profile(allowed_tools=True, max_tokens="max_completion_tokens")
"""The same, for a client that limits the reply with the newer of the two fields."""
TOOLS = "tools"


class PreservedBody(msgspec.Struct, frozen=True):
    """The body for an upstream of the client's wire, and findings for what is dropped or changed in it."""

    body: Json
    findings: list[Finding]
    keeps_items: bool = True
    """True if the client's own items of the conversation were kept or changed one by one."""
    is_changed: bool = True
    """False if it is the client's own body."""


def preserve_unchanged(
    body: Json, original: Request, request: Request, profile: Profile | None, wire: Wire
) -> PreservedBody:
    """Return the client's body with only the necessary changes.

    Both versions of the request are written, and their difference is applied to the client's body.

    Args:
        body: the body as the client sent it.
        original: the request that was read from `body`.
        request: the same request after changes.
        profile: the upstream's profile; None if the upstream is unknown.
        wire: the wire of client and upstream.
    """
    if profile is None and request == original:
        return PreservedBody(body, [], is_changed=False)
    keeps_shared_tools = isinstance(original.tools, SharedTools) and request.tools is original.tools
    if not keeps_shared_tools and isinstance(original.tools, SharedTools):
        original = msgspec.structs.replace(original, tools=list(original.tools))
    client_profile = FULL_PROFILE_NEW_LIMIT if "max_completion_tokens" in body else FULL_PROFILE
    target, findings = wire.write_request(request, profile or client_profile)
    baseline, baseline_findings = wire.write_request(
        original, _opposite_profile(profile) if profile else client_profile
    )
    merged = {key: _merge(body.get(key), baseline.get(key), value) for key, value in target.items()}
    if profile is None:
        changed = {key: value for key, value in merged.items() if baseline.get(key) != target[key]}
        unchanged = {key: value for key, value in body.items() if baseline.get(key) == target.get(key)}
        merged = {key: changed.get(key, value) for key, value in body.items() if key in unchanged or key in changed}
        merged |= changed
        findings = _new_findings(findings, baseline_findings)
    else:
        merged = _with_valid_tools(merged, target, request, wire)
    compared = _without_tools if TOOLS in merged and TOOLS in target else _same
    if not _means_same(compared(merged), compared(target), wire):
        return PreservedBody(target, findings, keeps_items=False)
    is_even = _item_count(body, wire) == _item_count(baseline, wire) == _item_count(target, wire)
    return PreservedBody(merged, findings, keeps_items=is_even)


def _with_valid_tools(merged: Json, target: Json, request: Request, wire: Wire) -> Json:
    """Return the merged body with the tools of the target, if the client's own do not mean the same."""
    tools, written = merged.get(TOOLS), target.get(TOOLS)
    if not isinstance(written, list) or tools == written:
        return merged

    def means_same() -> bool:
        return _try_read_tools(tools) == _try_read_tools(written)

    offered = request.tools
    same = offered.derive(("same", wire.NAME), means_same) if isinstance(offered, SharedTools) else means_same()
    return merged if same else {**merged, TOOLS: written}


def _try_read_tools(tools: Any) -> tuple[list[Tool], list[Json]] | None:
    """Parse a list of tools, some of which may be encoded; None if it is malformed."""
    try:
        decoded = [msgspec.json.decode(tool) if isinstance(tool, msgspec.Raw) else tool for tool in tools]
        return read_tools(ObjectReader({TOOLS: decoded}))
    except BadRequest:
        return None


def _means_same(merged: Json, target: Json, wire: RequestCodec) -> bool:
    """Return whether the merged body has the meaning of the target.

    Positions in the client's body and in the target may differ. Then the merged body could have another meaning, or be
    invalid.
    """
    if merged == target:  # the usual case: agents write requests as we do
        return True
    target_request = _try_read(target, wire)
    return target_request is not None and _try_read(merged, wire) == target_request


def _item_count(body: Json, wire: Wire) -> int | None:
    """Return the number of items in the conversation; None if it is a string."""
    items = body.get(wire.TRAITS.conversation_field)
    return len(items) if isinstance(items, list) else None


def preserve_items(
    items: list[Json], original: Request, request: Request, profile: Profile | None, turns: TurnCodec
) -> tuple[list[Json], list[Finding]] | None:
    """Return the client's items of some turns of a conversation with only the necessary changes, and the findings.

    `preserve_unchanged` does the same for a whole request.

    Returns: None if these turns cannot be treated alone, because items are added, removed or merged.
    """
    target, findings = turns.write(request, profile or FULL_PROFILE)
    baseline, baseline_findings = turns.write(original, _opposite_profile(profile) if profile else FULL_PROFILE)
    if not len(items) == len(baseline) == len(target):
        return None
    merged = [_merge(*triple) for triple in zip(items, baseline, target, strict=True)]
    if merged != target:
        target_messages = _try_read_turns(target, turns)
        if target_messages is None or _try_read_turns(merged, turns) != target_messages:
            return None
    return merged, findings if profile else _new_findings(findings, baseline_findings)


def is_written_alike(body: Json, original: Request, wire: Wire) -> bool:
    """Return whether a request that is read and written again has the same items and the same meaning.

    Args:
        body: the body as the client sent it.
        original: the request that was read from `body`.
        wire: its wire.
    """
    client_profile = FULL_PROFILE_NEW_LIMIT if "max_completion_tokens" in body else FULL_PROFILE
    written, _ = wire.write_request(original, client_profile)
    same_count = _item_count(body, wire) == _item_count(written, wire)
    return same_count and _means_same(_without_tools(body), _without_tools(written), wire)


def _same(body: Json) -> Json:
    return body


def _without_tools(body: Json) -> Json:
    return {key: value for key, value in body.items() if key != TOOLS}


def _new_findings(findings: list[Finding], baseline: list[Finding]) -> list[Finding]:
    """Return the findings that the unchanged request does not have. Positions may differ."""
    known_findings = {(finding.kind, finding.message) for finding in baseline}
    return [finding for finding in findings if (finding.kind, finding.message) not in known_findings]


def _try_read(body: Json, wire: RequestCodec) -> Request | None:
    """Parse the body; None if it is malformed."""
    try:
        return msgspec.structs.replace(wire.read_request(body, Options()), unread=(), source_paths={})
    except BadRequest:
        return None


def _try_read_turns(items: list[Json], turns: TurnCodec) -> list[Message] | None:
    """Parse the items; None if they are malformed."""
    try:
        return turns.read(items, Options(), 0).messages
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
