"""Hostile bytes for every pair of wires: line ends, fields and comments of server-sent events, scraps of genuine
streams, bytes that are no UTF-8, in any cutting.

    python -m fuzz.sse                        a minute of chance, without atheris
    python -m fuzz.sse -max_total_time=600    where atheris is installed: libFuzzer, led by coverage
"""

from __future__ import annotations

import sys

from fuzz.engine import Dice, Fuzzer
from fuzz.streams import CHECKS, GENUINE, WIRES, Row, Way

LONGEST = 1500
"""Bytes of a stream, about. Longer ones find no more, more slowly."""
SCRAPS = (
    *(
        b"data: ",
        b"data:",
        b"data",
        b"event: ",
        b"event: error\n",
        b"id: 1\n",
        b"id: \0\n",
        b"retry: 5\n",
        b": ping\n\n",
    ),
    *(b"\n", b"\n\n", b"\r", b"\r\n", b"\r\n\r\n", b"\r\r", b"\n\r", b"\xef\xbb\xbf", b"\xef", b"\0", b" ", b":"),
    *(b"[DONE]", b"data: [DONE]\n\n", b"data: \n\n", b"data: {}\n\n", b"data: null\n\n", b"data: [", b"data: {", b"}"),
    *(b"\xff", b"\xc3", b"\xa9", b"\xf0\x9f\x98\x80", b"\xf0\x9f", b"\xed\xa0\x80", b"\\ud83d", b"\\ude00", b"\\u0000"),
    *(b'{"error": {"message": "boom"}}', b'"error": "x", ', b'{"type": "error"}', b'"type": "ping"', b"<html>", b'"'),
    *(b"\xe2\x80\xa8", b"1e999", b"NaN", b"-", b"9" * 400, b"[" * 300, b'{"a":' * 300, b"null", b"true", b",", b"\\"),
)


def chosen_by(data: bytes) -> Row:
    dice = Dice(data)
    way = Way.chosen_by(dice)
    cuts = [dice.below(1 << 16) for _ in range(dice.below(6))]
    stream = b""
    while dice.left and len(stream) < LONGEST:
        stream += _fragment(way.source, dice)
    return Row.of(way, stream, cuts)


def _fragment(wire: str, dice: Dice) -> bytes:
    choice = dice.below(12)
    if choice < 4:
        return dice.pick(SCRAPS)
    if choice < 5:
        return bytes([dice.below(256)])
    if choice < 6:
        return b"data: " + dice.pick(SCRAPS) + b"\n\n"
    blocks = dice.pick(BLOCKS[wire] if choice < 11 else BLOCKS[dice.pick(WIRES)])
    begin = 0 if choice < 8 else dice.below(len(blocks))
    some = b"".join(blocks[begin : begin + 1 + dice.below(len(blocks) - begin)])
    if choice < 9:
        return some
    at = dice.below(len(some) + 1)
    if choice < 10:
        return some[:at]
    return some[:at] + dice.pick(SCRAPS) + some[at + dice.below(4) :]


BLOCKS = {wire: [stream.split(b"\n\n") for stream in GENUINE[wire]] for wire in WIRES}
BLOCKS = {wire: [[block + b"\n\n" for block in one if block] for one in BLOCKS[wire]] for wire in WIRES}

if __name__ == "__main__":
    sys.exit(Fuzzer(__doc__, chosen_by, CHECKS).main())
