"""Engine of all fuzzers: generate rows from bytes, check them, minimize failing rows and print them.

A fuzzer has a `Row`, which is generated from bytes, and checks that every row must pass. Without atheris the bytes are
random, and all failures are collected. With atheris they are guided by coverage, and the first failure ends the run, as
usual with libFuzzer, unless `--go-on` is given. A failing row is minimized while it fails in the same way.
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
    with suppress(ImportError):  # only if atheris runs the fuzzer, because instrumented code is slow
        atheris = importlib.import_module("atheris")

__all__ = ["BrokenPromise", "ByteChooser", "Fuzzer", "Row", "instrument_imports"]

SECONDS = 4
"""CPU time limit of one check of a row. Nearly all checks need a few milliseconds."""
MINIMIZE_SECONDS = 20.0
"""Time limit in seconds for minimizing one row."""

T = TypeVar("T")


def instrument_imports() -> AbstractContextManager[Any]:
    """Return a context that instruments imported modules for coverage, if atheris is used."""
    return atheris.instrument_imports(include=["interlingua"]) if atheris else nullcontext()


class ByteChooser:
    """Make choices from bytes. After the last byte, every choice is the first one."""

    def __init__(self, data: bytes) -> None:
        self._data = data
        self._at = 0

    @property
    def left(self) -> bool:
        return self._at < len(self._data)

    def below(self, n: int) -> int:
        """Choose a number from 0 to n - 1."""
        size = 1 if n <= 256 else 2
        chosen = int.from_bytes(self._data[self._at : self._at + size], "big")
        self._at += size
        return chosen % max(n, 1)

    def pick(self, choices: Sequence[T]) -> T:
        return choices[self.below(len(choices))]


class Row(Protocol):
    """One input of a fuzzer. `str` formats it for a reader."""

    @property
    def family(self) -> str:
        """Failures that look the same in one family count once."""

    def smaller(self) -> Iterator[Self]:
        """Yield smaller variants of the row, the largest reduction first."""


R = TypeVar("R", bound=Row)


class CheckTimeout(Exception):
    """A check exceeded its time limit."""


class BrokenPromise(Exception):
    """A promise that a row breaks: its name, the kind of failure, and the details."""

    def __init__(self, promise: str, way: str, shown: str) -> None:
        super().__init__(f"{promise} ({way})\n{shown}")
        self.promise = promise
        self.way = way


@dataclass
class Fuzzer(Generic[R]):
    doc: str | None
    from_bytes: Callable[[bytes], R]
    checks: Sequence[Callable[[R], None]]
    longest: int = 80
    """Maximum number of bytes for one row."""

    def first_broken_promise(self, row: R) -> BrokenPromise | None:
        """Return the first promise that the row breaks, or None. Any exception and any timeout breaks one."""
        for check in self.checks:
            try:
                signal.setitimer(signal.ITIMER_VIRTUAL, SECONDS)
                check(row)
            except BrokenPromise as broken:
                return broken
            except CheckTimeout as timeout:
                return BrokenPromise("parsing ends", _place(timeout), f"still running after {SECONDS} s of CPU time")
            except Exception as error:  # noqa: BLE001 (the fuzzer searches for exceptions)
                return BrokenPromise("nothing raises", f"{type(error).__name__} in {_place(error)}", f"{error!r}")
            finally:
                signal.setitimer(signal.ITIMER_VIRTUAL, 0)  # otherwise the signal would end the process later
        return None

    def minimize(self, row: R, broken: BrokenPromise, seconds: float = MINIMIZE_SECONDS) -> R:
        """Return the smallest row found that breaks the same promise in the same way."""
        until = time.monotonic() + seconds
        smaller: R | None = row
        while smaller is not None:
            row = smaller
            smaller = None
            for candidate in row.smaller():
                if time.monotonic() > until:
                    return row
                found = self.first_broken_promise(candidate)
                if found is not None and (found.promise, found.way) == (broken.promise, broken.way):
                    smaller = candidate
                    break
        return row

    def run_randomly(self, seconds: float, seed: int) -> int:
        """Fuzz with random bytes and return the number of failures."""
        signal.signal(signal.SIGVTALRM, _raise_timeout)
        run = _Run(self, go_on=True)
        chance = random.Random(seed)
        start = reported = time.monotonic()
        while (now := time.monotonic()) - start < seconds:
            run.one_input(chance.randbytes(chance.randint(6, self.longest)))
            if now - reported >= 10:
                reported = now
                print(f"# {now - start:5.0f} s {run.rows:8} rows {run.failures:4} failures", file=sys.stderr)
        print(f"# {run.rows} rows with seed {seed}: {run.failures} failures")
        return run.failures

    def main(self) -> int:
        options = argparse.ArgumentParser(description=self.doc, formatter_class=argparse.RawDescriptionHelpFormatter)
        options.add_argument("--seconds", type=float, default=0, help="duration with random input")
        options.add_argument("--seed", type=int, default=0)
        options.add_argument("--go-on", action="store_true", help="with atheris: do not stop at the first failure")
        ours, theirs = options.parse_known_args()
        if atheris is None:
            limits = [float(text.partition("=")[2]) for text in theirs if text.startswith("-max_total_time=")]
            return 1 if self.run_randomly(ours.seconds or next(iter(limits), 60), ours.seed) else 0
        signal.signal(signal.SIGVTALRM, _raise_timeout)
        flags = [f"-max_len={self.longest}", "-len_control=0", "-timeout=60", *theirs]
        atheris.Setup([sys.argv[0], *flags], _Run(self, ours.go_on).one_input)
        atheris.Fuzz()
        return 0


class _Run(Generic[R]):
    """Check rows, and print each kind of failure once."""

    def __init__(self, fuzzer: Fuzzer[R], go_on: bool) -> None:
        self._fuzzer = fuzzer
        self._go_on = go_on
        self._seen: set[tuple[str, str, str]] = set()
        self._printed: set[tuple[str, str, str]] = set()
        self.rows = 0

    @property
    def failures(self) -> int:
        return len(self._printed)

    def one_input(self, data: bytes) -> None:
        self.rows += 1
        row = self._fuzzer.from_bytes(data)
        broken = self._fuzzer.first_broken_promise(row)
        if broken is None or (row.family, broken.promise, broken.way) in self._seen:
            return
        self._seen.add((row.family, broken.promise, broken.way))
        row = self._fuzzer.minimize(row, broken)
        broken = self._fuzzer.first_broken_promise(row) or broken
        key = (row.family, broken.promise, broken.way)
        if key not in self._printed:
            self._printed.add(key)
            self._seen.add(key)
            _print_failure(row, broken)
        if not self._go_on:
            raise broken


def _print_failure(row: Row, broken: BrokenPromise) -> None:
    comment = "\n".join(f"# {line}" for line in str(broken).splitlines())
    text = f'\n[[case]]\nname = "{broken.promise}"\n{row}\n{comment}\n'
    sys.stdout.buffer.write(text.encode("utf-8", "backslashreplace"))
    sys.stdout.flush()


def _raise_timeout(*_: object) -> None:
    raise CheckTimeout


def _place(error: BaseException) -> str:
    """Return the innermost function of this project in the traceback."""
    ours = [frame.name for frame in traceback.extract_tb(error.__traceback__) if "interlingua" in frame.filename]
    return ours[-1] if ours else "?"
