"""Progress of a run on standard error: one line that is updated on a terminal, or a line now and then."""

from __future__ import annotations

import asyncio
import sys
import time
from contextlib import suppress

from interlingua.cli.common import console, terminal
from interlingua.verification.card.formats import format_tokens
from interlingua.verification.recording import Recording
from interlingua.verification.reply_reading import read_reply
from interlingua.verification.run.runner import Progress

__all__ = ["ProgressLine", "WaitNotes"]

UPDATE_SECONDS = 0.1
LINE_SECONDS = 10.0
"""Interval of the lines if standard error is not a terminal, and of the notes about delays."""
MIN_NOTED_SECONDS = 2.0
"""Shorter delays are not reported."""
_CLEAR_LINE = "\r\x1b[K"


class ProgressLine:
    """Line that shows the state of a run, and on a terminal also that it continues while no reply arrives."""

    def __init__(self) -> None:
        self._is_terminal = sys.stderr is not None and sys.stderr.isatty()
        self._progress: Progress | None = None
        self._start = time.monotonic()
        self._first_done: int | None = None
        self._next_update = 0.0

    async def tick(self) -> None:
        """Update the elapsed time each second, until the task is cancelled."""
        while True:
            await asyncio.sleep(1)
            if self._is_terminal and self._progress is not None:
                self.update(self._progress)

    def update(self, progress: Progress) -> None:
        now, self._progress = time.monotonic(), progress
        if self._first_done is None:
            self._first_done = progress.done
        if now < self._next_update:
            return
        self._next_update = now + (UPDATE_SECONDS if self._is_terminal else LINE_SECONDS)
        line = self._describe(progress, now)
        if self._is_terminal:
            _write(f"{_CLEAR_LINE}{line[: terminal.stderr_width() - 1]}")
        elif progress.done > self._first_done:
            console.print_stderr(line)

    def finish(self) -> None:
        """Remove the line."""
        if self._is_terminal:
            _write(_CLEAR_LINE)

    def _describe(self, progress: Progress, now: float) -> str:
        if progress.phase == "evidence":
            failures = f"{progress.evidence_done} of {progress.evidence_total} failures"
            return f"evidence for {failures}, {now - self._start:.0f} s"
        limited = f", {progress.rate_limited} rate limits" if progress.rate_limited else ""
        counts = f"{progress.done}/{progress.total} requests, {progress.right} right, {progress.wrong} wrong"
        return f"{counts}, {format_tokens(progress.tokens.total)} tokens{limited}{self._time_left(progress, now)}"

    def _time_left(self, progress: Progress, now: float) -> str:
        done = progress.done - (self._first_done or 0)
        if done < 5 or progress.done >= progress.total:
            return f", {now - self._start:.0f} s"
        seconds = (now - self._start) / done * (progress.total - progress.done)
        return f", {seconds:.0f} s left" if seconds < 90 else f", {seconds / 60:.0f} min left"


class WaitNotes:
    """Lines that say why a run waits before it repeats a request."""

    def __init__(self) -> None:
        self._next_note = 0.0

    def report(self, recording: Recording, seconds: float) -> None:
        """Report the delay after a failed response, unless another one was reported a moment ago."""
        now = time.monotonic()
        if seconds < MIN_NOTED_SECONDS or now < self._next_note:
            return
        self._next_note = now + LINE_SECONDS
        answer = f"the upstream answers with status {recording.status}" if recording.status else "no answer"
        note = f"{answer} ({read_reply(recording).error}): waiting {seconds:.0f} s"
        if terminal.is_terminal(sys.stderr):
            _write(_CLEAR_LINE)
        console.print_stderr(console.printable(note))


def _write(text: str) -> None:
    with suppress(OSError):
        sys.stderr.write(text)
        sys.stderr.flush()
