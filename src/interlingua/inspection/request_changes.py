"""Changes of a request on its way to the upstream, and the reason for each.

The two requests can be of different wires, so both are read into the neutral form and compared entry by entry. To find
the reason of a change, the client's request is translated once more: the step in which an entry changes is the reason,
and the findings of the translation explain it.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from difflib import SequenceMatcher
from typing import Any, Literal, TypeAlias

import msgspec

from interlingua.captures.capture_format import CapturedExchange, ClientRequestLine, RouteFacts, UpstreamRequestLine
from interlingua.common.jsontext.codec import read_full_object
from interlingua.core.options import Options
from interlingua.core.request import Request
from interlingua.errors import BadInput, InterlinguaError
from interlingua.events import Finding
from interlingua.inspection.conversation import Entry, EntryKind, PartTokens, list_entries, tokens_by_part
from interlingua.translation.request_translation import RequestContext, Translated, translate_body
from interlingua.wires import get_wire

__all__ = ["ChangeReason", "ChangeRow", "RequestChanges", "Step", "compare_requests"]

Step: TypeAlias = Literal["history repair", "profile", "API", "settings"]
_STEP_WORDS: dict[Step, str] = {
    "history repair": "the history was repaired, or sealed thinking was opened",
    "profile": "the upstream or the model requires it",
    "API": "the upstream's API has another form for it",
    "settings": "the settings of the gateway, or another version of it",
}
MAX_MATCHED_ENTRIES = 4000
"""Requests with more changed entries are compared by position only."""


class ChangeReason(msgspec.Struct, frozen=True, omit_defaults=True):
    """Reason of a change."""

    step: Step
    words: str
    finding: str = ""
    """Kind of the finding that reports it; "" if there is none."""


class ChangeRow(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """One entry of the two requests, or of one of them."""

    change: Literal["same", "changed", "added", "removed"]
    client: Entry | None = None
    upstream: Entry | None = None
    client_path: str = ""
    """Place in the client's body."""
    fields: list[str] = []
    """Fields of the entry that changed: text, id, note, role, label."""
    reasons: list[ChangeReason] = []
    equal_start: int = 0
    """Number of characters that both texts begin with, if the text changed."""
    equal_end: int = 0
    """Number of characters that both texts end with."""


class RequestChanges(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """Comparison of the two requests of an exchange."""

    client_wire: str
    upstream_wire: str
    url: str
    rows: list[ChangeRow]
    findings: list[Finding]
    """Findings about the request that belong to no single row."""
    client_tokens: list[PartTokens]
    upstream_tokens: list[PartTokens]
    reported_tokens: int | None = None
    """Input tokens that the upstream reported."""
    client_body: str = ""
    upstream_body: str = ""
    client_headers: dict[str, str] = {}
    upstream_headers: dict[str, str] = {}
    problem: str = ""
    """The reason why the requests could not be compared; "" if they were."""


def compare_requests(captured: CapturedExchange, reported_tokens: int | None = None) -> RequestChanges:
    """Compare the client's request of an exchange with the last one to an upstream.

    Raises:
        BadInput: The capture has no request of a client.
    """
    requests, asked = captured.lines_of(ClientRequestLine), captured.lines_of(UpstreamRequestLine)
    if not requests:
        raise BadInput("the capture has no request of a client", "the gateway writes captures if `capture` is set")
    client, upstream = requests[0], asked[-1] if asked else None
    route = upstream.route if upstream else None
    upstream_wire = route.wire if route else client.wire
    client_body = _decode(client.data)
    upstream_body = _decode(upstream.data) if upstream else None
    comparison = _Comparison(client.wire, upstream_wire, route)
    rows, findings, problem = comparison.run(client_body, upstream_body, is_sent=upstream is not None)
    return RequestChanges(
        client_wire=client.wire,
        upstream_wire=upstream_wire if upstream else "",
        url=upstream.url if upstream else "",
        rows=rows,
        findings=findings,
        client_tokens=tokens_by_part([row.client for row in rows if row.client is not None]),
        upstream_tokens=tokens_by_part([row.upstream for row in rows if row.upstream is not None]),
        reported_tokens=reported_tokens,
        client_body=client.data.decode("utf-8", "replace"),
        upstream_body=upstream.data.decode("utf-8", "replace") if upstream else "",
        client_headers=client.headers,
        upstream_headers=upstream.headers if upstream else {},
        problem=problem,
    )


def _decode(data: bytes) -> dict[str, Any] | None:
    return read_full_object(data.decode("utf-8", "replace"))


class _Comparison:
    """Comparison of the requests of one exchange."""

    def __init__(self, client_wire: str, upstream_wire: str, route: RouteFacts | None) -> None:
        self._client_wire = client_wire
        self._upstream_wire = upstream_wire
        self._route = route

    def run(
        self, client_body: dict[str, Any] | None, upstream_body: dict[str, Any] | None, *, is_sent: bool
    ) -> tuple[list[ChangeRow], list[Finding], str]:
        """Return the rows, the findings that belong to no row, and the problem if there is one.

        `is_sent`: a request was sent to an upstream.
        """
        original = self._read(self._client_wire, client_body)
        received = self._read(self._upstream_wire, upstream_body)
        if isinstance(original, str):
            return self._one_sided(received), [], f"the client's request cannot be read: {original}"
        if isinstance(received, str):
            rows = [ChangeRow(change="same", client=entry) for entry in list_entries(original)]
            return rows, [], f"the upstream's request cannot be read: {received}" if is_sent else ""
        translated, problem = self._translate(client_body or {})
        rows = _align(list_entries(original), list_entries(received))
        steps = _steps(translated, self._upstream_wire) if translated is not None else []
        findings = translated.findings.all() if translated is not None else []
        explained = _explain(rows, original, steps, findings)
        return *explained, problem

    @staticmethod
    def _one_sided(received: Request | str) -> list[ChangeRow]:
        if isinstance(received, str):
            return []
        return [ChangeRow(change="same", upstream=entry) for entry in list_entries(received)]

    @staticmethod
    def _read(wire: str, body: dict[str, Any] | None) -> Request | str:
        """Return the neutral request, or why the body cannot be read."""
        if body is None:
            return "it is not a JSON object"
        try:
            return get_wire(wire).read_request(body, Options())
        except InterlinguaError as error:
            return str(error)

    def _translate(self, body: dict[str, Any]) -> tuple[Translated | None, str]:
        """Translate the client's request as the gateway did."""
        route = self._route
        profile = route.profile if route and route.profile else None
        try:
            context = RequestContext.create(self._client_wire, self._upstream_wire, profile, Options(), strict=False)
            return translate_body({**body, **({"model": route.model} if route else {})}, context), ""
        except InterlinguaError as error:
            return None, f"the request cannot be translated once more: {error}"


# ── alignment ─────────────────────────────────────────────────────────────────────────────────────────────────────────


def _content_key(entry: Entry) -> tuple[str, ...]:
    """Return what makes an entry the same for a reader: not its id, and not its place."""
    return (entry.part, entry.kind, entry.label, entry.text)


def _slot_key(entry: Entry) -> tuple[str, ...]:
    """Return what an entry keeps if its content changes."""
    return (entry.part, entry.kind, entry.label if entry.kind in ("setting", "tool", "call") else entry.role)


def _align(client: list[Entry], upstream: list[Entry]) -> list[ChangeRow]:
    """Return the rows of both sides, in order. Settings are matched by name, tools too."""
    rows: list[ChangeRow] = []
    for part in ("setting", "tool"):
        rows += _align_named(*([entry for entry in side if entry.part == part] for side in (client, upstream)))
    ours, theirs = ([entry for entry in side if entry.part in ("system", "message")] for side in (client, upstream))
    return rows + _align_sequence(ours, theirs)


def _align_named(client: list[Entry], upstream: list[Entry]) -> list[ChangeRow]:
    remaining = {(entry.kind, entry.label): entry for entry in upstream}
    rows = [_row(entry, remaining.pop((entry.kind, entry.label), None)) for entry in client]
    return rows + [_row(None, entry) for entry in remaining.values()]


def _align_sequence(client: list[Entry], upstream: list[Entry]) -> list[ChangeRow]:
    if len(client) + len(upstream) > MAX_MATCHED_ENTRIES:
        return _pair_slots(client, upstream)
    our_keys, their_keys = ([_content_key(entry) for entry in side] for side in (client, upstream))
    matcher = SequenceMatcher(None, our_keys, their_keys, autojunk=False)
    rows: list[ChangeRow] = []
    for tag, start, end, other_start, other_end in matcher.get_opcodes():
        ours, theirs = client[start:end], upstream[other_start:other_end]
        if tag == "equal":
            rows += [_row(entry, other) for entry, other in zip(ours, theirs, strict=True)]
        else:
            rows += _pair_slots(ours, theirs)
    return rows


def _pair_slots(client: Sequence[Entry], upstream: Sequence[Entry]) -> list[ChangeRow]:
    """Pair entries of one kind, in order. The others were added or removed."""
    rows: list[ChangeRow] = []
    position = 0
    for entry in client:
        match = next((at for at in range(position, len(upstream)) if _slot_key(upstream[at]) == _slot_key(entry)), None)
        if match is None:
            rows.append(_row(entry, None))
            continue
        rows += [_row(None, other) for other in upstream[position:match]]
        rows.append(_row(entry, upstream[match]))
        position = match + 1
    return rows + [_row(None, other) for other in upstream[position:]]


def _row(client: Entry | None, upstream: Entry | None) -> ChangeRow:
    if client is None or upstream is None:
        return ChangeRow(change="added" if client is None else "removed", client=client, upstream=upstream)
    names = ("text", "id", "note", "role", "label", "is_error")
    fields = [name for name in names if getattr(client, name) != getattr(upstream, name)]
    start, end = _common_ends(client.text, upstream.text) if "text" in fields else (0, 0)
    return ChangeRow(
        change="changed" if fields else "same",
        client=client,
        upstream=upstream,
        fields=fields,
        equal_start=start,
        equal_end=end,
    )


def _common_ends(before: str, after: str) -> tuple[int, int]:
    """Return the number of equal characters at the start and at the end."""
    shortest = min(len(before), len(after))
    start = next((at for at in range(shortest) if before[at] != after[at]), shortest)
    rest = shortest - start
    end = next((at for at in range(rest) if before[-1 - at] != after[-1 - at]), rest)
    return start, end


# ── reasons ───────────────────────────────────────────────────────────────────────────────────────────────────────────


class _StepResult(msgspec.Struct, frozen=True):
    step: Step
    contents: Counter[tuple[str, ...]]
    ids: frozenset[str]


def _steps(translated: Translated, upstream_wire: str) -> list[_StepResult]:
    """Return the entries after each step of the translation."""
    results = [
        _step_result("history repair", list_entries(translated.repaired)),
        _step_result("profile", list_entries(translated.request)),
    ]
    try:
        written = get_wire(upstream_wire).read_request(translated.written, Options())
    except InterlinguaError:
        return results
    return [*results, _step_result("API", list_entries(written))]


_MODEL_SETTING = "model"
_FINDING_ENTRIES: dict[str, EntryKind] = {
    "cache-mark-dropped": "cache mark",
    "custom-tool": "tool",
    "deferred-tool": "tool",
    "document-as-text": "document",
    "error-as-text": "result",
    "hosted-tool": "tool",
    "image-moved": "image",
    "image-omitted": "image",
    "name-shortened": "tool",
    "namespace": "tool",
    "seal-dropped": "thinking",
    "seal-unreadable": "thinking",
    "thinking-dropped": "thinking",
    "thinking-lost": "thinking",
    "tools-narrowed": "tool",
    "wrapped-arguments": "call",
}
"""The kind of entry that a finding is about, if it is always the same."""


def _step_result(step: Step, entries: Iterable[Entry]) -> _StepResult:
    entries = list(entries)
    return _StepResult(step, Counter(map(_content_key, entries)), frozenset(entry.id for entry in entries))


def _explain(
    rows: list[ChangeRow], original: Request, steps: list[_StepResult], findings: list[Finding]
) -> tuple[list[ChangeRow], list[Finding]]:
    """Return the rows with their reasons, and the findings that belong to none."""
    used: set[int] = set()
    explained: list[ChangeRow] = []
    for row in rows:
        path = original.source_path(row.client.path) if row.client is not None else ""
        if row.change == "same":
            explained.append(msgspec.structs.replace(row, client_path=path))
            continue
        matching = [index for index, finding in enumerate(findings) if _explains(finding, row, path)]
        used.update(matching)
        step = _step_of(row, steps)
        reasons = [ChangeReason(step, findings[index].message, findings[index].kind) for index in matching]
        explained.append(msgspec.structs.replace(row, client_path=path, reasons=reasons or [_plain_reason(row, step)]))
    return explained, [finding for index, finding in enumerate(findings) if index not in used]


def _explains(finding: Finding, row: ChangeRow, path: str) -> bool:
    """Return whether a finding is about the entry of this row."""
    entry = row.client or row.upstream
    assert entry is not None, "a row has an entry"
    kind = _FINDING_ENTRIES.get(finding.kind)
    if kind is not None and kind != entry.kind:
        return False
    if path and finding.place:
        return _concerns(finding.place, path)
    is_about_setting = entry.kind == "setting" and entry.label in finding.message.replace(":", " ").split()
    return not finding.place and (kind is not None or is_about_setting)


def _plain_reason(row: ChangeRow, step: Step) -> ChangeReason:
    """Return the reason of a change that no finding reports."""
    entry = row.client or row.upstream
    if entry is not None and entry.kind == "setting" and entry.label == _MODEL_SETTING:
        return ChangeReason("settings", "the settings route the client's model to this one")
    if row.fields == ["id"] and step == "profile":
        return ChangeReason(step, "call ids in the form that the upstream or the model expects")
    return ChangeReason(step, _STEP_WORDS[step])


def _concerns(place: str, path: str) -> bool:
    """Return whether a finding at this place is about the entry at this path, or about a part of it."""
    if not place:
        return False
    return place == path or place.startswith((f"{path}.", f"{path}[")) or path.startswith((f"{place}.", f"{place}["))


def _step_of(row: ChangeRow, steps: list[_StepResult]) -> Step:
    """Return the first step in which the entry of the client is gone, or that of the upstream is there."""
    for result in steps:
        if row.upstream is None and row.client is not None:
            is_done = not result.contents[_content_key(row.client)]
        elif row.upstream is not None and "id" in row.fields and "text" not in row.fields:
            is_done = row.upstream.id in result.ids
        else:
            is_done = row.upstream is not None and bool(result.contents[_content_key(row.upstream)])
        if is_done:
            return result.step
    return "settings"
