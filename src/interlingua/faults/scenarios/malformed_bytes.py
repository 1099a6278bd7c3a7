"""Bytes that are odd, broken, packed or too many: rows 12, 17, 18 and 22."""

from __future__ import annotations

import gzip
import json
import zlib

from interlingua.faults.checker.expectations import either, failing, fails, lives, on_hearing, says, well, wrong
from interlingua.faults.checker.scenario import Outcome, Scenario, Verdict
from interlingua.faults.checker.trial import Play, Told
from interlingua.faults.scenarios.helpers import IN_CHAT, always, stream_fault
from interlingua.faults.upstream import chat_chunks as chat
from interlingua.faults.upstream.reply_writers import Voice
from interlingua.faults.upstream.script import Script, answer, each, head, send, streamed

__all__ = ["SCENARIOS"]

MIB = 1024 * 1024
SLOW = 60
"""How long a client waits for much, in seconds."""
LONG_TEXT = "0123456789abcde\n" * (10 * MIB // 17)
TINY = 20_000
EMOJI = "naïve 😀 日本"


def _packed(data: bytes, how: str) -> Script:
    packed = gzip.compress(data) if how == "gzip" else zlib.compress(data)
    cuts = [packed[:15], packed[15:40], packed[40:]]
    return [head("200 OK", "text/event-stream", f"content-encoding: {how}"), each(cuts, 0.01)]


def _bomb(_: Voice) -> Script:
    pack = zlib.compressobj(1, wbits=31)
    bomb = b"".join(pack.compress(b" " * MIB) for _ in range(200)) + pack.flush()
    return [answer("200 OK", bomb, "text/event-stream", "content-encoding: gzip")]


def _raw(*escaped: bytes) -> bytes:
    """Chat events whose text is written just so."""
    return b"".join(chat.event(b'{"choices": [{"index": 0, "delta": {"content": "' + one + b'"}}]}') for one in escaped)


def _long(say: Voice) -> Script:
    args = json.dumps({"city": LONG_TEXT})
    data = say.begin() + say.call("get_weather", *[args[at : at + MIB] for at in range(0, len(args), MIB)]) + say.end()
    return [head(), each([data[at : at + 65536] for at in range(0, len(data), 65536)])]


def _tiny(say: Voice) -> Script:
    pieces = ['{"city": "', *(str(n % 10) for n in range(TINY)), '"}']
    data = say.begin() + say.call("get_weather", *pieces) + say.end()
    return [head(), each([data[at : at + 65536] for at in range(0, len(data), 65536)])]


def _valid(heard: Told, play: Play) -> Verdict:
    try:
        heard.body.decode("utf-8")
    except UnicodeDecodeError:
        return wrong("the client gets bytes that are not UTF-8")
    if heard.error or heard.cut:
        return failing(heard, play)
    text = heard.text
    if not (text.startswith("ab") and text.endswith("cd")):
        return wrong(f"what stood beside it is lost: {text!r}")
    return well(heard, play, text)


def _goes_on(play: Play) -> Verdict:
    """An end, whatever it is, and another request is answered."""
    heard = play.ask(seconds=SLOW)
    verdict = failing(heard, play) if not heard.ended else well(heard, play, None)
    return lives(verdict, play) if verdict.outcome is Outcome.RIGHT else verdict


def _odd(name: str, happens: str, change: tuple[bytes, bytes] | None = None, **how: bytes) -> Scenario:
    """The same stream, written otherwise."""

    def script(say: Voice) -> Script:
        data = how.get("before", b"") + say.hello()
        data = data.replace(*change) if change else data
        return streamed(data.rstrip(b"\n") if "bare" in how else data)

    return stream_fault(12, name, happens, "It is the same stream: the reply comes through.", always(script), says())


SCENARIOS: list[Scenario] = [
    _odd("crlf", "Lines end with CR LF.", (b"\n", b"\r\n")),
    _odd("cr", "Lines end with CR.", (b"\n", b"\r")),
    _odd("bom", "The stream begins with a byte order mark.", before=b"\xef\xbb\xbf"),
    _odd("no-space", "`data:` without a space behind it.", (b"data: ", b"data:")),
    _odd("comments", "Comments before and inside of events.", (b"data: ", b": why\ndata: "), before=b": hi\n\n"),
    _odd(
        "fields",
        "Lines with `id:` and `retry:`, and one that means nothing.",
        (b"data: ", b"id: 7\nretry: 9\nodd\ndata: "),
    ),
    _odd("blank-lines", "Many blank lines between events.", (b"\n\n", b"\n\n\n\n\n")),
    _odd("several-lines", "An event whose data is in several lines.", (b'{"', b'{\ndata: "')),
    _odd("no-last-blank", "The blank line behind the last event is missing.", bare=b""),
    stream_fault(
        12,
        "byte-by-byte",
        "Each byte comes alone.",
        "It is the same stream: the reply comes through.",
        always(lambda say: [head(), each([bytes([byte]) for byte in say.hello()])]),
        says(),
    ),
    stream_fault(
        17,
        "split-characters",
        "Characters of several bytes, cut at every byte.",
        "The text comes through as it was.",
        always(
            lambda say: [
                head(),
                each(
                    [
                        bytes([byte])
                        for byte in (say.begin() + say.text("@@") + say.end()).replace(b"@@", EMOJI.encode())
                    ],
                ),
            ]
        ),
        says(EMOJI),
    ),
    stream_fault(
        17,
        "surrogate-halves",
        "An emoji whose two halves come in two deltas.",
        "One emoji: halves are joined before they go out.",
        always(
            lambda _: streamed(chat.ROLE + _raw(rb"ab\ud83d", rb"\ude00cd") + chat.delta(finish="stop") + chat.DONE)
        ),
        says("ab😀cd"),
        **IN_CHAT,
    ),
    stream_fault(
        17,
        "lone-surrogate",
        "Half an emoji, whose other half never comes.",
        "Valid UTF-8 with a replacement, or an error; what stands beside it stays.",
        always(lambda _: streamed(chat.ROLE + _raw(rb"ab\ud83d ", rb"cd") + chat.delta(finish="stop") + chat.DONE)),
        on_hearing(_valid),
        **IN_CHAT,
    ),
    stream_fault(
        17,
        "invalid-bytes",
        "Bytes in a text that are not UTF-8.",
        "Valid UTF-8 with a replacement, or an error; what stands beside them stays.",
        always(lambda _: streamed(chat.ROLE + _raw(b"ab\xff\xfe", b"cd") + chat.delta(finish="stop") + chat.DONE)),
        on_hearing(_valid),
        **IN_CHAT,
    ),
    stream_fault(
        18,
        "ten-megabytes",
        "One argument of ten megabytes.",
        "The call comes through whole, in time that grows with its length only; or a clear error.",
        always(_long),
        either(
            lambda heard, play: well(heard, play, "", [("get_weather", {"city": LONG_TEXT})]), failing, seconds=SLOW
        ),
        alone=True,
    ),
    stream_fault(
        18,
        "tiny-pieces",
        f"Arguments in {TINY:,} pieces of one character.",
        "The call comes through whole, within three minutes.",
        always(_tiny),
        says("", [("get_weather", {"city": "".join(str(n % 10) for n in range(TINY))})], seconds=3 * SLOW),
        alone=True,
    ),
    stream_fault(
        18,
        "endless-event",
        "One event of 40 MB that does not end.",
        "It ends with an error, and the gateway goes on.",
        always(lambda say: [*streamed(say.begin() + say.text("So")), send(b"data: "), each([b"x" * MIB] * 40)]),
        _goes_on,
        alone=True,
    ),
    stream_fault(
        22,
        "gzip",
        "The stream is packed with gzip though nobody asked.",
        "The reply comes through.",
        always(lambda say: _packed(say.hello(), "gzip")),
        says(),
    ),
    stream_fault(
        22,
        "deflate",
        "The stream is packed with deflate though nobody asked.",
        "The reply comes through.",
        always(lambda say: _packed(say.hello(), "deflate")),
        says(),
    ),
    stream_fault(
        22,
        "junk-as-gzip",
        "It says gzip, and is nothing that can be unpacked.",
        "An error of the upstream's, 5xx.",
        always(lambda _: [answer("200 OK", b"this is not packed " * 9, "text/event-stream", "content-encoding: gzip")]),
        fails(),
    ),
    stream_fault(
        22,
        "bomb",
        "A few kilobytes of gzip that unpack to 200 MB of blanks.",
        "An end in time, and the gateway goes on.",
        always(_bomb),
        _goes_on,
        alone=True,
    ),
]
