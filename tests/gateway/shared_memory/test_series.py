"""Tests of the shared memory for series: visible to other processes, bounded, intact after a crash."""

from __future__ import annotations

import subprocess
import sys

from interlingua.gateway.shared_memory.series import MAX_KEY_BYTES, RESERVED_BYTES, SeriesRegion


def contents(region: SeriesRegion) -> list[tuple[bytes, list[float]]]:
    return [(key, list(values)) for key, values in region.series()]


FORK = """
import os
from interlingua.gateway.shared_memory.series import SeriesRegion
region = SeriesRegion()
for _ in range(2):
    process = os.fork()
    if process == 0:
        values = dict(region.series()).get(b"first") or region.append(b"first", 2)
        values[1] += 1.5
        os._exit(0)
    assert os.waitpid(process, 0)[1] == 0
region.append(b"second, of another length", 1)[0] = 7
print([(key.decode(), list(values)) for key, values in region.series()])
"""


def test_series_of_a_child_process_are_visible_and_continued() -> None:
    ran = subprocess.run([sys.executable, "-c", FORK], capture_output=True, text=True, timeout=30, check=True)
    assert ran.stdout == "[('first', [0.0, 3.0]), ('second, of another length', [7.0])]\n"


def test_region_is_bounded_and_keeps_a_reserve() -> None:
    region = SeriesRegion(RESERVED_BYTES + 4096)
    number = 0
    while region.append(b"%d" % number, 1, use_reserve=False) is not None:
        number += 1
    assert len(contents(region)) == number == 4096 // 24
    while region.append(b"%d" % number, 1) is not None:
        number += 1
    assert len(contents(region)) == number == (RESERVED_BYTES + 4096) // 24
    assert region.append(b"one more", 1) is None


def test_long_key_is_refused() -> None:
    region = SeriesRegion()
    assert region.append(b"k" * MAX_KEY_BYTES, 1) is not None
    assert region.append(b"k" * (MAX_KEY_BYTES + 1), 1) is None
    assert len(contents(region)) == 1


def test_incomplete_series_is_ignored_and_overwritten() -> None:
    region = SeriesRegion()
    region.append(b"complete", 1)
    region.memory[24 + 8 : 24 + 40] = b"\xff" * 32  # key and values of a series whose header is missing
    assert contents(region) == [(b"complete", [0])]
    region.append(b"next", 2)
    assert contents(region) == [(b"complete", [0]), (b"next", [0, 0])]


def test_series_whose_key_is_not_visible_yet_is_ignored() -> None:
    region = SeriesRegion()
    region.append(b"complete", 1)
    region.append(b"cut off", 1)
    region.memory[24 + 8] ^= 1
    assert contents(region) == [(b"complete", [0])]
