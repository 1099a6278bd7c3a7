"""Growth of time with the size of the input: one line for each list or text that a request or a reply can have.

    python -m bench.growth              # all cases of the quick tests
    python -m bench.growth tools chat   # those with these words in their name

Each line has the size of the smaller input, its CPU time, the time of the input that is four times as long, and the
ratio. Linear time has a ratio of about 4, quadratic time of 16.
"""

from __future__ import annotations

import sys

from tests.support.growth import measure_case
from tests.support.growth_checks import CHECK_CASES
from tests.support.growth_replies import BODY_CASES, STREAM_CASES
from tests.support.growth_requests import SOURCE_CASES

SECONDS = 0.02
"""CPU time of the smaller input."""


def main(words: list[str]) -> None:
    print(f"{'input':80} {'n':>6} {'1 ×':>9} {'4 ×':>9} {'ratio':>6}")
    for case in (*SOURCE_CASES, *STREAM_CASES, *BODY_CASES, *CHECK_CASES):
        if all(word in case.name for word in words):
            size, small, large = measure_case(case, SECONDS)
            print(
                f"{case.name:80} {size:6} {small * 1e3:6.1f} ms {large * 1e3:6.1f} ms {large / small:6.1f}", flush=True
            )


if __name__ == "__main__":
    main(sys.argv[1:])
