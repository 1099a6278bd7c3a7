"""How rows are made out of bytes, checked, made smaller and told: what all fuzzers here share.

A fuzzer has a `Row`, which bytes choose, and checks, which say what must hold for each. Without atheris the bytes come
by chance, and all failures are collected; with it they are led by coverage, and the first failure ends the run, as is
usual there, unless `--go-on` is said. A row that fails is made smaller for as long as it fails the same way.
"""

from __future__ import annotations

import argparse
import importlib
import random
import signal
import sys
import time
import traceback
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, nullcontext, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Generic, Protocol, Self, TypeVar

atheris: Any = None
if Path(sys.argv[0]).parent == Path(__file__).parent and not any(arg.startswith("--seconds") for arg in sys.argv):
    with suppress(ImportError):  # only where it leads the way, for instrumented code is slow
        atheris = importlib.import_module("atheris")

__all__ = ["Broken", "Dice", "Fuzzer", "Row", "instrumented"]

SECONDS = 4
"""How long one check of a row may take. Nearly all need a few thousandths."""
SHRINKING = 20.0
"""Seconds that are spent on making one row smaller."""

T = TypeVar("T")


def instrumented() -> AbstractContextManager[Any]:
    """Where the code is imported whose coverage leads the way."""
    return atheris.instrument_imports(include=["interlingua"]) if atheris else nullcontext()


class Dice:
    """Choices out of bytes. When these run out, everything is the first choice."""

    def __init__(self, data: bytes) -> None:
        self._data = data
        self._at = 0

    @property
    def left(self) -> bool:
        return self._at < len(self._data)

    def below(self, n: int) -> int:
        """A number from 0 to n - 1."""
        size = 1 if n <= 256 else 2
        chosen = int.from_bytes(self._data[self._at : self._at + size], "big")
        self._at += size
        return chosen % max(n, 1)

    def pick(self, choices: Sequence[T]) -> T:
        return choices[self.below(len(choices))]


class Row(Protocol):
    """What is tried. Its text is how it is told to a person."""

    @property
    def family(self) -> str:
        """Failures of one family that look alike are one."""

    def smaller(self) -> Iterator[Self]:
        """The same with less in it, the boldest cut first."""


R = TypeVar("R", bound=Row)


class Endless(Exception):
    """The time is up."""


class Broken(Exception):
    """A promise that a row breaks: which, in what way, and how it shows."""

    def __init__(self, promise: str, way: str, shown: str) -> None:
        super().__init__(f"{promise} ({way})\n{shown}")
        self.promise = promise
        self.way = way


@dataclass
class Fuzzer(Generic[R]):
    doc: str | None
    chosen_by: Callable[[bytes], R]
    checks: Sequence[Callable[[R], None]]
    longest: int = 80
    """Bytes that choose one row."""

    def broken_by(self, row: R) -> Broken | None:
        """The first promise that the row breaks. Whatever is raised breaks one, and so does what does not end."""
        for check in self.checks:
            try:
                signal.setitimer(signal.ITIMER_VIRTUAL, SECONDS)
                check(row)
            except Broken as broken:
                return broken
            except Endless as endless:
                return Broken("reading ends", _place(endless), f"after {SECONDS} seconds of work it had not")
            except Exception as error:  # noqa: BLE001 (this is what is looked for)
                return Broken("nothing raises", f"{type(error).__name__} in {_place(error)}", f"{error!r}")
            finally:
                signal.setitimer(signal.ITIMER_VIRTUAL, 0)  # or it would end the process at some later time
        return None

    def smallest(self, row: R, broken: Broken, seconds: float = SHRINKING) -> R:
        """Tries every smaller row for as long as one still breaks the same promise in the same way."""
        until = time.monotonic() + seconds
        smaller: R | None = row
        while smaller is not None:
            row = smaller
            smaller = None
            for candidate in row.smaller():
                if time.monotonic() > until:
                    return row
                found = self.broken_by(candidate)
                if found is not None and (found.promise, found.way) == (broken.promise, broken.way):
                    smaller = candidate
                    break
        return row

    def by_chance(self, seconds: float, seed: int) -> int:
        """How many failures there were."""
        signal.signal(signal.SIGVTALRM, _has_not_ended)
        run = _Run(self, go_on=True)
        chance = random.Random(seed)
        start = said = time.monotonic()
        while (now := time.monotonic()) - start < seconds:
            run.one_input(chance.randbytes(chance.randint(6, self.longest)))
            if now - said >= 10:
                said = now
                print(f"# {now - start:5.0f} s {run.rows:8} rows {run.failures:4} failures", file=sys.stderr)
        print(f"# {run.rows} rows with seed {seed}: {run.failures} failures")
        return run.failures

    def main(self) -> int:
        options = argparse.ArgumentParser(description=self.doc, formatter_class=argparse.RawDescriptionHelpFormatter)
        options.add_argument("--seconds", type=float, default=0, help="by chance, for so long")
        options.add_argument("--seed", type=int, default=0)
        options.add_argument("--go-on", action="store_true", help="with atheris: do not stop at the first failure")
        ours, theirs = options.parse_known_args()
        if atheris is None:
            limits = [float(text.partition("=")[2]) for text in theirs if text.startswith("-max_total_time=")]
            return 1 if self.by_chance(ours.seconds or next(iter(limits), 60), ours.seed) else 0
        signal.signal(signal.SIGVTALRM, _has_not_ended)
        flags = [f"-max_len={self.longest}", "-len_control=0", "-timeout=60", *theirs]
        atheris.Setup([sys.argv[0], *flags], _Run(self, ours.go_on).one_input)
        atheris.Fuzz()
        return 0


class _Run(Generic[R]):
    """Runs rows, and tells of each kind of failure once."""

    def __init__(self, fuzzer: Fuzzer[R], go_on: bool) -> None:
        self._fuzzer = fuzzer
        self._go_on = go_on
        self._seen: set[tuple[str, str, str]] = set()
        self._told: set[tuple[str, str, str]] = set()
        self.rows = 0

    @property
    def failures(self) -> int:
        return len(self._told)

    def one_input(self, data: bytes) -> None:
        self.rows += 1
        row = self._fuzzer.chosen_by(data)
        broken = self._fuzzer.broken_by(row)
        if broken is None or (row.family, broken.promise, broken.way) in self._seen:
            return
        self._seen.add((row.family, broken.promise, broken.way))
        row = self._fuzzer.smallest(row, broken)
        broken = self._fuzzer.broken_by(row) or broken
        key = (row.family, broken.promise, broken.way)
        if key not in self._told:
            self._told.add(key)
            self._seen.add(key)
            _tell(row, broken)
        if not self._go_on:
            raise broken


def _tell(row: Row, broken: Broken) -> None:
    comment = "\n".join(f"# {line}" for line in str(broken).splitlines())
    text = f'\n[[case]]\nname = "{broken.promise}"\n{row}\n{comment}\n'
    sys.stdout.buffer.write(text.encode("utf-8", "backslashreplace"))
    sys.stdout.flush()


def _has_not_ended(*_: object) -> None:
    raise Endless


def _place(error: BaseException) -> str:
    """Where it was raised: the innermost function of ours."""
    ours = [frame.name for frame in traceback.extract_tb(error.__traceback__) if "interlingua" in frame.filename]
    return ours[-1] if ours else "?"
