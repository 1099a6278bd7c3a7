"""Fuzz every pair of wires with hostile bytes.

The bytes are line ends, fields and comments of server-sent events, fragments of genuine streams, and invalid UTF-8, cut
anywhere.

    python -m fuzz.sse                        a minute of random input, without atheris
    python -m fuzz.sse -max_total_time=600    with atheris installed: libFuzzer, guided by coverage
"""

from __future__ import annotations

import sys

from fuzz.engine import ByteChooser, Fuzzer
from fuzz.streams import CHECKS, GENUINE, WIRES, Route, Row

MAX_STREAM_BYTES = 1500
"""Approximate maximum size of a stream in bytes. Longer streams are slower and find no more failures."""
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


def from_bytes(data: bytes) -> Row:
    chooser = ByteChooser(data)
    route = Route.from_bytes(chooser)
    cuts = [chooser.below(1 << 16) for _ in range(chooser.below(6))]
    stream = b""
    while chooser.left and len(stream) < MAX_STREAM_BYTES:
        stream += _fragment(route.source, chooser)
    return Row.of(route, stream, cuts)


def _fragment(wire: str, chooser: ByteChooser) -> bytes:
    choice = chooser.below(12)
    if choice < 4:
        return chooser.pick(SCRAPS)
    if choice < 5:
        return bytes([chooser.below(256)])
    if choice < 6:
        return b"data: " + chooser.pick(SCRAPS) + b"\n\n"
    blocks = chooser.pick(BLOCKS[wire] if choice < 11 else BLOCKS[chooser.pick(WIRES)])
    begin = 0 if choice < 8 else chooser.below(len(blocks))
    some = b"".join(blocks[begin : begin + 1 + chooser.below(len(blocks) - begin)])
    if choice < 9:
        return some
    at = chooser.below(len(some) + 1)
    if choice < 10:
        return some[:at]
    return some[:at] + chooser.pick(SCRAPS) + some[at + chooser.below(4) :]


BLOCKS = {wire: [stream.split(b"\n\n") for stream in GENUINE[wire]] for wire in WIRES}
BLOCKS = {wire: [[block + b"\n\n" for block in one if block] for one in BLOCKS[wire]] for wire in WIRES}

if __name__ == "__main__":
    sys.exit(Fuzzer(__doc__, from_bytes, CHECKS).main())
