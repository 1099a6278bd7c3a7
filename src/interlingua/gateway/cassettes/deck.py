"""Cassette deck of one worker: finds recordings for requests, and stores new ones."""

from __future__ import annotations

import asyncio
import re
import threading
import time
import traceback
from collections import Counter, deque
from collections.abc import Callable, Mapping
from contextlib import suppress
from hashlib import sha256
from typing import Any, NoReturn, cast

import aiohttp
import msgspec

from interlingua.cassettes.cassette_files import CassetteFiles
from interlingua.cassettes.match_rules import MatchRules
from interlingua.cassettes.playback import Playback
from interlingua.cassettes.recorded_exchange import RecordedExchange
from interlingua.cassettes.recording_index import CassetteMiss, Recording, RecordingIndex
from interlingua.cassettes.request_meaning import RequestMeaning, read_request_meaning
from interlingua.common.redaction import Redactor
from interlingua.dialects.registry import STANDARD_DIALECT
from interlingua.errors import BadInput, InterlinguaError, suggestion_hint
from interlingua.gateway.cassettes.fault_server import FaultServer
from interlingua.gateway.cassettes.recorded_session import recorded_session
from interlingua.gateway.cassettes.recording import CassetteRecording
from interlingua.gateway.observability.background_writer import BackgroundWriter
from interlingua.gateway.observability.log import GatewayLog
from interlingua.gateway.routing.model_dialects import DETECT, DialectChoice, ModelDialects
from interlingua.gateway.routing.routes import REPLAY_UPSTREAM, Route
from interlingua.gateway.settings.schema import Api, Cassettes, Rest, Retries, Settings, Timeouts, Upstream
from interlingua.gateway.shared_memory.event_log import EventLog
from interlingua.parsing.dialect import Dialect
from interlingua.upstreams import get_profile
from interlingua.upstreams.profile import UNKNOWN

__all__ = ["PLAYBACK_HEADER", "CassetteDeck", "Replay", "check_options"]

PLAYBACK_HEADER = "x-interlingua-replay"
"""Header with which a client chooses how its reply is replayed: `cut=byte; speed=1; fault=reset-in-text`."""
MAX_QUEUED_BYTES = 256 * 1024 * 1024
MAX_KEPT_MISSES = 100
FLUSH_SECONDS = 30.0
"""Time to write the last recordings when the gateway stops."""
WRITE_SECONDS = 2.0
"""Time that a request without a recording waits for the one before it to be written."""
_HEADER_SAFE_NAME = re.compile(r"[!-~](?:[ -~]*[!-~])?")


class RecordingPlayed(msgspec.Struct, frozen=True):
    """Event for other workers: a recording was replayed."""

    key: str


class Replay(msgspec.Struct, frozen=True):
    """The recording that answers a request, and how it is replayed."""

    exchange: RecordedExchange
    route: Route
    session: aiohttp.ClientSession | None
    """Session that sends the reply; None if the gateway's own session fetches it, from the fault server."""
    reply_id: str


class CassetteDeck:
    """Recordings of one cassette.

    Args:
        settings: The settings of the gateway, with a cassette.
        log: The log of the gateway.
        events: The events of all workers.
        started: Unix time at which the gateway started.
    """

    def __init__(self, settings: Settings, log: GatewayLog, events: EventLog, started: float) -> None:
        assert settings.cassettes is not None, "there is no deck without a cassette"
        self._config = settings.cassettes
        self._log = log
        self._events = events
        self._started = started if self._config.mode == "record" else 0.0
        self._dialects = ModelDialects(settings)
        self._playback = playback_of(self._config)
        self._files = CassetteFiles(self._config.dir, RecordingIndex(match_rules(self._config)))
        self._lock = threading.Lock()  # recordings are added in another thread
        self._writer: BackgroundWriter[Callable[[], None]] = BackgroundWriter(
            lambda job: job(), MAX_QUEUED_BYTES, "cassettes"
        )
        self._last_write: asyncio.Event | None = None
        """Set as soon as the last recording of this worker is written."""
        self._fault_server = FaultServer()
        self._requests = 0
        self.record_hint = f"record it: start the gateway with --hybrid {self._config.dir}"
        """Hint of the error for a request without a recording."""
        self.misses: deque[str] = deque(maxlen=MAX_KEPT_MISSES)
        """Messages about requests without a recording."""
        self._play_counts: Counter[str] = Counter()
        self._events.subscribe(RecordingPlayed, lambda _, event: self._play_counts.update([event.key]))
        if self.records and not self._files.is_file:
            self._files.create_folder()
        if self._config.mode != "record":
            self._files.refresh()

    @property
    def records(self) -> bool:
        return self._config.mode != "replay"

    @property
    def recordings(self) -> list[Recording]:
        with self._lock:
            return self._files.index.recordings

    @property
    def model_ids(self) -> list[str]:
        """The models of the recorded requests."""
        bodies = (recording.exchange.request.body for recording in self.recordings)
        return sorted({str(body.get("model")) for body in bodies})

    def is_same_wire(self, wire: str) -> bool:
        """Return whether requests on this wire were recorded with an upstream of the same wire."""
        recorded = (recording.exchange for recording in self.recordings)
        return any(exchange.request.wire == exchange.upstream.wire == wire for exchange in recorded)

    async def close(self) -> None:
        """Write the last recordings."""
        await self._fault_server.close()
        if not self._writer.close(FLUSH_SECONDS):
            self._log.error("recordings are lost: they could not be written in time", seconds=FLUSH_SECONDS)

    # ── replay ────────────────────────────────────────────────────────────────────────────────────────────────────

    async def find(
        self, wire: str, body: dict[str, Any], headers: Mapping[str, str], redactor: Redactor
    ) -> Replay | None:
        """Return the recording that answers a request; None if there is none.

        Args:
            wire: The client's wire.
            body: The client's request.
            headers: Its headers.
            redactor: Finds the secrets of the settings.

        Raises:
            InterlinguaError: The request cannot be read, or its recording cannot be replayed.
        """
        if self._config.mode == "record":
            return None
        playback = self._playback.with_options(headers.get(PLAYBACK_HEADER, ""))
        meaning = self._read_meaning(wire, body, headers, redactor)
        takes = self._find_takes(meaning)
        if not takes and self._last_write and not self._last_write.is_set():
            with suppress(TimeoutError):  # a client may repeat a request as soon as it has the reply
                await asyncio.wait_for(self._last_write.wait(), WRITE_SECONDS)
            takes = self._find_takes(meaning)
        if not takes:
            return None
        recording, number = self._next_take(takes)
        self._requests += 1
        return await self._replay(recording.exchange, playback, number)

    def _read_meaning(
        self, wire: str, body: dict[str, Any], headers: Mapping[str, str], redactor: Redactor
    ) -> RequestMeaning:
        """Return the meaning of a request without secrets, as it would be recorded."""
        rules = self._files.index.rules.with_redactor(redactor.with_credentials(headers))
        return read_request_meaning(wire, body, rules)

    def _find_takes(self, meaning: RequestMeaning) -> list[Recording]:
        """Return the recordings that answer a request; none if it has to be sent to its upstream, or is a miss."""
        with self._lock:
            takes = self._complete_takes(meaning)
            if not takes and self._files.refresh():  # another worker may have recorded it
                takes = self._complete_takes(meaning)
            return takes

    def _complete_takes(self, meaning: RequestMeaning) -> list[Recording]:
        try:
            takes = self._files.index.find(meaning)
        except CassetteMiss:
            return []
        return [] if self.records and not takes[0].exchange.reply.is_complete else takes

    def _next_take(self, takes: list[Recording]) -> tuple[Recording, int]:
        """Return the recording for this request, and how often it was replayed before.

        A request that was recorded several times gets the recordings in order, and the last one from then on.
        """
        self._events.poll()
        key = sha256(repr([(take.source, take.number) for take in takes]).encode()).hexdigest()
        played = self._play_counts[key]
        self._play_counts[key] += 1
        self._events.publish(RecordingPlayed(key), time.monotonic())
        return takes[min(played, len(takes) - 1)], max(played - len(takes) + 1, 0)

    async def _replay(self, exchange: RecordedExchange, playback: Playback, number: int) -> Replay:
        dialect = self._dialect(exchange)
        reply_id = exchange.reply.id if not number else _derived_id(exchange.reply.id, number)
        if not playback.has_fault(self._requests):
            route = self._route(exchange, dialect, "http://127.0.0.1/v1", has_fault=False)
            return Replay(exchange, route, recorded_session(exchange.reply, playback), reply_id)
        from interlingua.faults.recorded_faults import fault_scripts, find_fault

        scenario, plain = find_fault(playback.fault_name), dialect if isinstance(dialect, Dialect) else STANDARD_DIALECT
        fault_scripts(scenario, exchange, plain, stream=True)  # raises if the fault cannot occur in this recording
        url = await self._fault_server.add(lambda stream: fault_scripts(scenario, exchange, plain, stream=stream))
        return Replay(exchange, self._route(exchange, dialect, url, has_fault=True), None, reply_id)

    def _route(self, exchange: RecordedExchange, dialect: DialectChoice, url: str, *, has_fault: bool) -> Route:
        recorded, stall = exchange.upstream, self._config.stall
        timeouts = Timeouts(first_event=stall, idle=stall, total=stall) if has_fault else Timeouts()
        upstream = Upstream(
            url=url,
            api=cast(Api, recorded.wire),  # checked when the cassette was read
            profile=UNKNOWN,  # it is not asked for its name
            count_tokens="estimate",
            timeouts=timeouts,
            retries=Retries(backoff=0.01, budget=1),
            rest=Rest(after=0),
        )
        return Route(
            name=recorded.name if _HEADER_SAFE_NAME.fullmatch(recorded.name) else REPLAY_UPSTREAM,
            upstream=upstream,
            profile=get_profile(recorded.profile),
            model=recorded.model,
            dialect=dialect,
            timeouts=timeouts,
            prefill=recorded.prefill,
            delivery=recorded.delivery,
            arguments=recorded.arguments,
            reasoning=recorded.reasoning,
            empty="keep",
            strict="off",
            fallback_on=(),
            extra={},
        )

    def _dialect(self, exchange: RecordedExchange) -> DialectChoice:
        name = exchange.upstream.dialect
        if name in ("auto", DETECT):
            return self._dialects.resolve(exchange.upstream.model, name)
        dialect = self._dialects.get(name)
        if dialect is None:
            hint = f"add it to `dialects` in the settings; {suggestion_hint(name, self._dialects.names)}"
            raise BadInput(f"the dialect {name!r} of the recording is not known", hint)
        return dialect

    # ── recording ─────────────────────────────────────────────────────────────────────────────────────────────────

    def start_recording(
        self,
        *,
        wire: str,
        body: dict[str, Any],
        headers: Mapping[str, str],
        redactor: Redactor,
        reply_id: str,
        created: int,
        exchange_id: str,
    ) -> CassetteRecording:
        """Return the observer that records an exchange. See there for the arguments; `exchange_id` is for the log.

        Raises:
            CassetteMiss: Nothing is recorded, so that this request without a recording has no reply.
        """
        if self._config.mode == "replay":
            self._report_miss(self._read_meaning(wire, body, headers, redactor), exchange_id)
        return CassetteRecording(
            wire=wire,
            body=body,
            headers=headers,
            redactor=redactor,
            reply_id=reply_id,
            created=created,
            store=lambda build, size: self._enqueue(build, size, exchange_id),
            report=lambda reason: self._log.info("not recorded", id=exchange_id, reason=reason),
        )

    def _report_miss(self, meaning: RequestMeaning, exchange_id: str) -> NoReturn:
        try:
            self._files.index.find(meaning)
        except CassetteMiss as found:
            miss = found
            if not self.recordings:
                state = "has no recordings" if self._files.path.exists() else "does not exist"
                miss = CassetteMiss(f"no recording for this request: the cassette {self._files.path} {state}")
            miss.hint = miss.hint or self.record_hint
            self._log.error("no recording", id=exchange_id, error=str(miss), hint=miss.hint)
            self.misses.append(str(miss))
            raise miss from None
        raise AssertionError("`find` has found no recording for this request")

    def _enqueue(self, build: Callable[[], RecordedExchange], size: int, exchange_id: str) -> None:
        loop, written = asyncio.get_running_loop(), asyncio.Event()

        def store() -> None:
            self._store(build, exchange_id)
            with suppress(RuntimeError):  # the loop was closed: the recordings took longer than FLUSH_SECONDS
                loop.call_soon_threadsafe(written.set)

        if self._writer.put(store, size):
            self._last_write = written
        else:
            self._log.error("not recorded: recordings arrive faster than they can be written", id=exchange_id)

    def _store(self, build: Callable[[], RecordedExchange], exchange_id: str) -> None:
        try:
            exchange = build()
            with self._lock:
                path = self._files.append(exchange, self._started)
        except InterlinguaError as error:
            self._log.error("cannot record", id=exchange_id, error=str(error), hint=error.hint)
            return
        except Exception:  # noqa: BLE001  (it would end the thread, and no later exchange would be recorded)
            self._log.error("cannot record", id=exchange_id, trace=traceback.format_exc())
            return
        self._log.info("recorded", id=exchange_id, file=str(path))


def match_rules(config: Cassettes) -> MatchRules:
    """Return the rules of the settings. Raises UsageError."""
    return MatchRules(config.ignore, config.replace, defaults=config.defaults)


def check_options(config: Cassettes) -> MatchRules:
    """Return the rules of the settings. Raises UsageError if a rule, the cut, the speed or the fault is wrong."""
    playback = playback_of(config)
    if playback.fault:
        from interlingua.faults.recorded_faults import find_fault

        find_fault(playback.fault_name)
    return match_rules(config)


def playback_of(config: Cassettes) -> Playback:
    """Return the playback of the settings. Raises UsageError."""
    return Playback(cut=config.cut, speed=config.speed, fault=config.fault)


def _derived_id(id: str, number: int) -> str:
    """Return another id for a reply that is replayed again: clients take two replies with one id for one."""
    return sha256(f"{id}/{number}".encode()).hexdigest()[:32]
