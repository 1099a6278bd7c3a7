"""Analyses of exchanges for the page: what `interlingua.inspection` computes, for the exchanges of a source.

All methods may run in any thread. A page asks for the same exchange several times, so the last few are kept.
"""

from __future__ import annotations

import json
import platform
import threading
from collections import OrderedDict
from collections.abc import Collection, Iterable, Iterator
from itertools import islice
from typing import Any

import msgspec

from interlingua import __version__
from interlingua.captures.capture_format import (
    AnsweredLine,
    CapturedExchange,
    ClientRequestLine,
    EndLine,
    FindingsLine,
    UpstreamRequestLine,
)
from interlingua.captures.capture_replay import ReplayedReply, ReplyReplay, describe_outcome, replay_reply
from interlingua.common.jsontext.codec import encode_json, read_full_object
from interlingua.core.options import Options
from interlingua.dialects.registry import list_dialects
from interlingua.errors import BadInput, InterlinguaError
from interlingua.events import Finding
from interlingua.gateway.inspector.exchange_source import ExchangeSource, UnknownExchange
from interlingua.inspection.exchange_summary import ExchangeSummary
from interlingua.inspection.finding_help import FindingHelp, finding_help
from interlingua.inspection.numbers import Numbers, count_exchanges
from interlingua.inspection.prompt_cache import CacheReport, TurnRequests, compare_turns
from interlingua.inspection.reply_timeline import build_timeline
from interlingua.inspection.request_changes import RequestChanges, compare_requests
from interlingua.inspection.search import contains_text
from interlingua.inspection.sessions import Session, Thread, group_sessions
from interlingua.inspection.waterfall import Waterfall, build_waterfall
from interlingua.inspection.what_if import Changes, WhatIf, apply_changes, compare_changes, plan_known_replay
from interlingua.translation.request_translation import prepare_request
from interlingua.wires import WIRES

__all__ = ["Analyses", "Attempt", "ExchangeDetail", "PageInfo", "TurnCache", "versions"]

_Version = tuple[str, int]
"""Id of an exchange, and when it has changed last."""
MAX_KEPT_EXCHANGES = 8
MAX_KEPT_REPORTS = 5000
"""Reports about the prompt cache. A long conversation takes seconds to compare."""
MESSAGES_PER_LINE = 100
"""Messages of a timeline in one line of the response: a page shows the first ones while the others are computed."""
OPEN_OUTCOME = "open: the reply is still arriving"
MAX_SEARCHED = 5000
"""Exchanges that are searched for a text: the newest ones."""
MAX_SHOWN_PROBLEMS = 100


class PageInfo(msgspec.Struct, frozen=True, kw_only=True):
    """Facts that the page needs at its start."""

    version: str
    is_live: bool
    dialects: list[str]
    wires: list[str]
    findings: dict[str, FindingHelp]


class Attempt(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """One attempt at an upstream."""

    at: float
    url: str
    upstream: str = ""
    model: str = ""
    profile: str = ""
    dialect: str = ""
    status: int = 0
    connect_seconds: float | None = None
    headers: dict[str, str] = {}
    """Headers of the response."""


class ExchangeDetail(msgspec.Struct, frozen=True, kw_only=True):
    """Everything about one exchange but its request and its reply."""

    summary: ExchangeSummary
    outcome: str
    """The outcome in words."""
    findings: list[Finding]
    attempts: list[Attempt]
    session: Session | None
    previous: str
    """Id of the turn before in the same conversation."""
    next: str
    turn: int
    """Number of the turn in its conversation, from 1."""
    turns: int


class TurnCache(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """Report about the prompt cache of one turn."""

    id: str
    previous: str = ""
    """Id of the turn that it is compared with: the last one before it that reached an upstream."""
    report: CacheReport | None = None
    """None for the first turn that reached an upstream, and for turns that cannot be compared."""
    problem: str = ""
    input_tokens: int | None = None
    cached_tokens: int | None = None


class Analyses:
    """Analyses of the exchanges of one source."""

    def __init__(self, source: ExchangeSource, problems: list[str] | None = None) -> None:
        self._source = source
        self._problems = problems if problems is not None else []
        self._lock = threading.Lock()
        self._loaded: OrderedDict[_Version, CapturedExchange] = OrderedDict()
        self._replies: OrderedDict[_Version, ReplayedReply] = OrderedDict()
        self._reports: OrderedDict[tuple[_Version, _Version], CacheReport] = OrderedDict()
        self._sessions: tuple[int, list[Session]] | None = None

    def info(self) -> PageInfo:
        return PageInfo(
            version=__version__,
            is_live=self._source.is_live,
            dialects=[dialect.name for dialect in list_dialects()],
            wires=list(WIRES),
            findings=finding_help(),
        )

    @property
    def problems(self) -> list[str]:
        """Files that could not be read."""
        return self._problems[:MAX_SHOWN_PROBLEMS]

    # ── lists ─────────────────────────────────────────────────────────────────────────────────────────────────────────

    def list_summaries(self) -> list[ExchangeSummary]:
        return [one.summary for one in self._source.list_exchanges()]

    def summaries_of(self, ids: Iterable[str]) -> list[ExchangeSummary]:
        """Return the summaries of these exchanges, without those that are gone."""
        summaries: list[ExchangeSummary] = []
        for id in ids:
            try:
                summaries.append(self._source.find_summary(id).summary)
            except UnknownExchange:
                continue
        return summaries

    def list_sessions(self) -> list[Session]:
        version = self._source.changes.version
        with self._lock:
            if self._sessions is not None and self._sessions[0] == version and version:
                return self._sessions[1]
        exchanges = [
            (one.summary.id, one.summary.time, one.summary.client, one.facts) for one in self._source.list_exchanges()
        ]
        sessions = group_sessions(exchanges)
        with self._lock:
            self._sessions = version, sessions
        return sessions

    def numbers(self, filters: dict[str, str]) -> Numbers:
        """Return the numbers of the exchanges whose fields have these values."""
        return count_exchanges(one for one in self.list_summaries() if _matches(one, filters))

    def search(self, text: str, ids: list[str] | None = None) -> list[str]:
        """Return the ids of the exchanges in which this text occurs, in a request or a reply.

        Args:
            text: The text.
            ids: The exchanges to search. None: all.
        """
        if ids is None:
            newest = sorted(self._source.list_exchanges(), key=lambda one: -one.summary.time)
            ids = [one.summary.id for one in newest]
        return [id for id in ids[:MAX_SEARCHED] if self._contains(id, text)]

    def _contains(self, id: str, text: str) -> bool:
        try:
            return contains_text(self._source.load(id), text)
        except InterlinguaError:
            return False

    # ── one exchange ──────────────────────────────────────────────────────────────────────────────────────────────────

    def load(self, id: str) -> CapturedExchange:
        """Return an exchange. Raises UnknownExchange, or BadInput."""
        version = self._version(id)
        with self._lock:
            if version in self._loaded:
                self._loaded.move_to_end(version)
                return self._loaded[version]
        captured = self._source.load(id)
        if _has_ended(captured):  # this version does not change any more
            with self._lock:
                self._loaded[version] = captured
                while len(self._loaded) > MAX_KEPT_EXCHANGES:
                    self._loaded.popitem(last=False)
        return captured

    def _version(self, id: str) -> _Version:
        return id, self._source.changes.changed_at(id)

    def detail(self, id: str) -> ExchangeDetail:
        captured, summary = self.load(id), self._source.find_summary(id).summary
        session, thread, index = self._find_turn(id)
        turns = thread.turns if thread is not None else []
        return ExchangeDetail(
            summary=summary,
            outcome=OPEN_OUTCOME if self._source.is_live and not _has_ended(captured) else describe_outcome(captured),
            findings=[finding for line in captured.lines_of(FindingsLine) for finding in line.findings],
            attempts=_attempts(captured),
            session=session,
            previous=turns[index - 1].id if index > 0 else "",
            next=turns[index + 1].id if 0 <= index < len(turns) - 1 else "",
            turn=index + 1,
            turns=len(turns),
        )

    def _find_turn(self, id: str) -> tuple[Session | None, Thread | None, int]:
        """Return the session and thread of an exchange, and its index there."""
        for session in self.list_sessions():
            for thread in session.threads:
                for index, turn in enumerate(thread.turns):
                    if turn.id == id:
                        return session, thread, index
        return None, None, -1

    def waterfall(self, id: str) -> Waterfall:
        version, captured = self._version(id), self.load(id)
        try:
            events = self._replay(version, captured).events
        except InterlinguaError:
            events = []
        return build_waterfall(captured, events)

    def reply(self, id: str, changes: Changes) -> Iterator[bytes]:
        """Yield the timeline of a reply as lines of JSON: its facts, lists of messages, and its end.

        Raises:
            InterlinguaError: There is no reply, or a change is not possible.
        """
        version, captured = self._version(id), self.load(id)
        replay = apply_changes(plan_known_replay(captured), changes)
        kept = self._kept_reply(version) if changes == Changes() else None
        running = ReplyReplay(captured, replay, has_ended=_has_ended(captured))
        events = iter(kept.events) if kept is not None else running.run()
        yield _encode({"source": replay.source, "target": replay.target, "seconds": _end(captured)}) + b"\n"
        messages = build_timeline(events, replay.source)
        while batch := list(islice(messages, MESSAGES_PER_LINE)):
            yield _encode(batch) + b"\n"
        reply = kept or running.result()
        if changes == Changes():
            self._keep_reply(version, captured, reply)
        yield _encode({"findings": reply.findings, "dialect": reply.dialect}) + b"\n"

    def _replay(self, version: _Version, captured: CapturedExchange) -> ReplayedReply:
        reply = self._kept_reply(version)
        if reply is None:
            reply = replay_reply(captured, plan_known_replay(captured), has_ended=_has_ended(captured))
            self._keep_reply(version, captured, reply)
        return reply

    def _kept_reply(self, version: _Version) -> ReplayedReply | None:
        with self._lock:
            reply = self._replies.get(version)
            if reply is not None:
                self._replies.move_to_end(version)
            return reply

    def _keep_reply(self, version: _Version, captured: CapturedExchange, reply: ReplayedReply) -> None:
        """Keep a reply that does not change any more."""
        if _has_ended(captured):
            with self._lock:
                self._replies[version] = reply
                while len(self._replies) > MAX_KEPT_EXCHANGES:
                    self._replies.popitem(last=False)

    def request(self, id: str) -> RequestChanges:
        input_tokens, _ = _reported_usage(self._source.find_summary(id).summary)
        return compare_requests(self.load(id), input_tokens)

    def what_if(self, id: str, changes: Changes) -> WhatIf:
        return compare_changes(self.load(id), changes)

    # ── prompt cache ──────────────────────────────────────────────────────────────────────────────────────────────────

    def cache(self, id: str) -> TurnCache:
        """Return what a turn can reuse of the turn before."""
        _, thread, index = self._find_turn(id)
        input_tokens, cached_tokens = _reported_usage(self._source.find_summary(id).summary)
        cache = TurnCache(id=id, input_tokens=input_tokens, cached_tokens=cached_tokens)
        earlier = thread.turns[:index] if thread is not None else []
        if not earlier:
            return cache
        try:
            if not self._has_asked(id):
                return msgspec.structs.replace(cache, problem="no request was sent to an upstream")
            previous = next((turn.id for turn in reversed(earlier) if self._has_asked(turn.id)), "")
            if not previous:
                return cache
            return msgspec.structs.replace(cache, previous=previous, report=self._cache_report(previous, id))
        except InterlinguaError as error:
            return msgspec.structs.replace(cache, problem=str(error))

    def _has_asked(self, id: str) -> bool:
        """Return whether an exchange has sent a request to an upstream."""
        return self._source.find_summary(id).summary.attempts > 0

    def _cache_report(self, previous: str, id: str) -> CacheReport:
        """Return what a turn can reuse of an earlier one. Raises InterlinguaError if that is not known."""
        versions = self._version(previous), self._version(id)
        with self._lock:
            kept = self._reports.get(versions)
        if kept is not None:
            return kept
        report = compare_turns(self._turn_requests(previous), self._turn_requests(id), _translate)
        if _has_ended(self.load(id)):  # it does not change any more
            with self._lock:
                self._reports[versions] = report
                while len(self._reports) > MAX_KEPT_REPORTS:
                    self._reports.popitem(last=False)
        return report

    def _turn_requests(self, id: str) -> TurnRequests:
        captured = self.load(id)
        input_tokens, cached_tokens = _reported_usage(self._source.find_summary(id).summary)
        requests, asked = captured.lines_of(ClientRequestLine), captured.lines_of(UpstreamRequestLine)
        if not requests or not asked:
            raise BadInput(f"the request of {id} is not recorded", "its capture may be incomplete")
        route = asked[-1].route
        return TurnRequests(
            client_wire=requests[0].wire,
            client_body=requests[0].data,
            upstream_wire=route.wire if route else requests[0].wire,
            upstream_body=asked[-1].data,
            upstream=route.upstream if route else "",
            model=route.model if route else "",
            profile=route.profile if route else "",
            cached_tokens=cached_tokens,
            input_tokens=input_tokens,
        )

    def thread_cache(self, id: str) -> list[TurnCache]:
        """Return the reports of all turns of the conversation of an exchange."""
        _, thread, _ = self._find_turn(id)
        return [self.cache(turn.id) for turn in thread.turns] if thread is not None else []


def _translate(body: bytes, turn: TurnRequests) -> bytes | None:
    """Translate a client's request as the gateway has translated that of a turn. Return None if it cannot be."""
    decoded = read_full_object(body.decode("utf-8", "replace"))
    if decoded is None:
        return None
    try:
        prepared = prepare_request(
            decoded, turn.client_wire, turn.upstream_wire, turn.model or None, turn.profile or None, Options()
        )
    except InterlinguaError:
        return None
    return encode_json(prepared.body)


def versions() -> dict[str, str]:
    """Return the versions for bug reports."""
    return {"interlingua": __version__, "Python": platform.python_version(), "system": platform.platform()}


def _reported_usage(summary: ExchangeSummary) -> tuple[int | None, int | None]:
    """Return the input tokens and the cached tokens that the upstream reported; None if it reported none."""
    tokens = summary.tokens
    if not tokens or tokens.get("estimated"):
        return None, None
    return tokens.get("input"), tokens.get("cached")


def _attempts(captured: CapturedExchange) -> list[Attempt]:
    attempts: list[Attempt] = []
    for line in captured.lines:
        if isinstance(line, UpstreamRequestLine):
            route = msgspec.structs.asdict(line.route) if line.route else {}
            fields = {name: route[name] for name in ("upstream", "model", "profile", "dialect") if name in route}
            attempts.append(Attempt(at=line.at, url=line.url, **fields))
        elif isinstance(line, AnsweredLine) and attempts:
            attempts[-1] = msgspec.structs.replace(
                attempts[-1], status=line.status, connect_seconds=line.connect_seconds, headers=line.headers
            )
    return attempts


def _matches(summary: ExchangeSummary, filters: dict[str, str]) -> bool:
    return all(value in _filter_values(summary, name) for name, value in filters.items())


def _filter_values(summary: ExchangeSummary, name: str) -> Collection[str]:
    match name:
        case "finding":
            return summary.findings
        case "model":  # as in the list: that of the client, if no upstream was asked
            return (summary.upstream_model or summary.model,)
        case _:
            return (str(getattr(summary, name, "")),)


def _has_ended(captured: CapturedExchange) -> bool:
    return bool(captured.lines_of(EndLine))


def _end(captured: CapturedExchange) -> float:
    return captured.lines[-1].at if captured.lines else 0.0


def _encode(value: Any) -> bytes:
    """Encode as JSON. Half of a surrogate pair, which JSON text cannot hold, becomes a `?`."""
    try:
        return msgspec.json.encode(value)
    except UnicodeEncodeError:
        return json.dumps(msgspec.to_builtins(value), ensure_ascii=False).encode("utf-8", "replace")
