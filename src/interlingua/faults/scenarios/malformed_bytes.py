"""Bytes that are odd, broken, packed or too many: rows 12, 17, 18 and 22."""

from __future__ import annotations

import gzip
import json
import zlib

from interlingua.faults.checker.expectations import (
    check_any,
    check_failure,
    check_reply,
    check_response,
    failed,
    judge_failure,
    judge_reply,
    verify_still_serving,
)
from interlingua.faults.checker.scenario import Scenario, TrialOutcome, Verdict
from interlingua.faults.checker.trial import Trial, TrialResponse
from interlingua.faults.scenarios.helpers import CHAT_ONLY, repeat_script, stream_fault
from interlingua.faults.upstream import chat_chunks as chat
from interlingua.faults.upstream.reply_writers import ReplyWriter
from interlingua.faults.upstream.script import Script, send, send_headers, send_pieces, send_response, stream_response

__all__ = ["SCENARIOS"]

MIB = 1024 * 1024
SLOW_TIMEOUT_SECONDS = 60
"""How long a client waits for much, in seconds."""
LONG_TEXT = "0123456789abcde\n" * (10 * MIB // 17)
TINY_PIECE_COUNT = 20_000
EMOJI = "naïve 😀 日本"


def _compressed(data: bytes, encoding: str) -> Script:
    compressed = gzip.compress(data) if encoding == "gzip" else zlib.compress(data)
    pieces = [compressed[:15], compressed[15:40], compressed[40:]]
    return [send_headers("200 OK", "text/event-stream", f"content-encoding: {encoding}"), send_pieces(pieces, 0.01)]


def _gzip_bomb(_: ReplyWriter) -> Script:
    compressor = zlib.compressobj(1, wbits=31)
    bomb = b"".join(compressor.compress(b" " * MIB) for _ in range(200)) + compressor.flush()
    return [send_response("200 OK", bomb, "text/event-stream", "content-encoding: gzip")]


def _raw_content_events(*contents: bytes) -> bytes:
    """Chat events whose text is written just so."""
    return b"".join(
        chat.event(b'{"choices": [{"index": 0, "delta": {"content": "' + content + b'"}}]}') for content in contents
    )


def _ten_megabytes(writer: ReplyWriter) -> Script:
    args = json.dumps({"city": LONG_TEXT})
    data = (
        writer.begin()
        + writer.call("get_weather", *[args[start : start + MIB] for start in range(0, len(args), MIB)])
        + writer.end()
    )
    return [send_headers(), send_pieces([data[at : at + 65536] for at in range(0, len(data), 65536)])]


def _tiny_pieces(writer: ReplyWriter) -> Script:
    pieces = ['{"city": "', *(str(n % 10) for n in range(TINY_PIECE_COUNT)), '"}']
    data = writer.begin() + writer.call("get_weather", *pieces) + writer.end()
    return [send_headers(), send_pieces([data[start : start + 65536] for start in range(0, len(data), 65536)])]


def _judge_utf8(response: TrialResponse, trial: Trial) -> Verdict:
    try:
        response.body.decode("utf-8")
    except UnicodeDecodeError:
        return failed("the client gets bytes that are not UTF-8")
    if response.error or response.truncated:
        return judge_failure(response, trial)
    text = response.text
    if not (text.startswith("ab") and text.endswith("cd")):
        return failed(f"what stood beside it is lost: {text!r}")
    return judge_reply(response, trial, text)


def _check_recovery(trial: Trial) -> Verdict:
    """An end, whatever it is, and another request is answered."""
    response = trial.send_request(seconds=SLOW_TIMEOUT_SECONDS)
    verdict = judge_failure(response, trial) if not response.ended else judge_reply(response, trial, None)
    return verify_still_serving(verdict, trial) if verdict.outcome is TrialOutcome.PASSED else verdict


def _sse_variant(name: str, description: str, change: tuple[bytes, bytes] | None = None, **options: bytes) -> Scenario:
    """The same stream, written otherwise."""

    def script(writer: ReplyWriter) -> Script:
        data = options.get("before", b"") + writer.hello_stream()
        data = data.replace(*change) if change else data
        return stream_response(data.rstrip(b"\n") if "bare" in options else data)

    return stream_fault(
        12, name, description, "It is the same stream: the reply comes through.", repeat_script(script), check_reply()
    )


SCENARIOS: list[Scenario] = [
    _sse_variant("crlf", "Lines end with CR LF.", (b"\n", b"\r\n")),
    _sse_variant("cr", "Lines end with CR.", (b"\n", b"\r")),
    _sse_variant("bom", "The stream begins with a byte order mark.", before=b"\xef\xbb\xbf"),
    _sse_variant("no-space", "`data:` without a space behind it.", (b"data: ", b"data:")),
    _sse_variant(
        "comments", "Comments before and inside of events.", (b"data: ", b": why\ndata: "), before=b": hi\n\n"
    ),
    _sse_variant(
        "fields",
        "Lines with `id:` and `retry:`, and one that means nothing.",
        (b"data: ", b"id: 7\nretry: 9\nodd\ndata: "),
    ),
    _sse_variant("blank-lines", "Many blank lines between events.", (b"\n\n", b"\n\n\n\n\n")),
    _sse_variant("several-lines", "An event whose data is in several lines.", (b'{"', b'{\ndata: "')),
    _sse_variant("no-last-blank", "The blank line behind the last event is missing.", bare=b""),
    stream_fault(
        12,
        "byte-by-byte",
        "Each byte comes alone.",
        "It is the same stream: the reply comes through.",
        repeat_script(lambda say: [send_headers(), send_pieces([bytes([byte]) for byte in say.hello_stream()])]),
        check_reply(),
    ),
    stream_fault(
        17,
        "split-characters",
        "Characters of several bytes, cut at every byte.",
        "The text comes through as it was.",
        repeat_script(
            lambda say: [
                send_headers(),
                send_pieces(
                    [
                        bytes([byte])
                        for byte in (say.begin() + say.text("@@") + say.end()).replace(b"@@", EMOJI.encode())
                    ],
                ),
            ]
        ),
        check_reply(EMOJI),
    ),
    stream_fault(
        17,
        "surrogate-halves",
        "An emoji whose two halves come in two deltas.",
        "One emoji: halves are joined before they go out.",
        repeat_script(
            lambda _: stream_response(
                chat.ROLE + _raw_content_events(rb"ab\ud83d", rb"\ude00cd") + chat.delta(finish="stop") + chat.DONE
            )
        ),
        check_reply("ab😀cd"),
        **CHAT_ONLY,
    ),
    stream_fault(
        17,
        "lone-surrogate",
        "Half an emoji, whose other half never comes.",
        "Valid UTF-8 with a replacement, or an error; what stands beside it stays.",
        repeat_script(
            lambda _: stream_response(
                chat.ROLE + _raw_content_events(rb"ab\ud83d ", rb"cd") + chat.delta(finish="stop") + chat.DONE
            )
        ),
        check_response(_judge_utf8),
        **CHAT_ONLY,
    ),
    stream_fault(
        17,
        "invalid-bytes",
        "Bytes in a text that are not UTF-8.",
        "Valid UTF-8 with a replacement, or an error; what stands beside them stays.",
        repeat_script(
            lambda _: stream_response(
                chat.ROLE + _raw_content_events(b"ab\xff\xfe", b"cd") + chat.delta(finish="stop") + chat.DONE
            )
        ),
        check_response(_judge_utf8),
        **CHAT_ONLY,
    ),
    stream_fault(
        18,
        "ten-megabytes",
        "One argument of ten megabytes.",
        "The call comes through whole, in time that grows with its length only; or a clear error.",
        repeat_script(_ten_megabytes),
        check_any(
            lambda heard, play: judge_reply(heard, play, "", [("get_weather", {"city": LONG_TEXT})]),
            judge_failure,
            seconds=SLOW_TIMEOUT_SECONDS,
        ),
        alone=True,
    ),
    stream_fault(
        18,
        "tiny-pieces",
        f"Arguments in {TINY_PIECE_COUNT:,} pieces of one character.",
        "The call comes through whole, within three minutes.",
        repeat_script(_tiny_pieces),
        check_reply(
            "",
            [("get_weather", {"city": "".join(str(n % 10) for n in range(TINY_PIECE_COUNT))})],
            seconds=3 * SLOW_TIMEOUT_SECONDS,
        ),
        alone=True,
    ),
    stream_fault(
        18,
        "endless-event",
        "One event of 40 MB that does not end.",
        "It ends with an error, and the gateway goes on.",
        repeat_script(
            lambda say: [
                *stream_response(say.begin() + say.text("So")),
                send(b"data: "),
                send_pieces([b"x" * MIB] * 40),
            ]
        ),
        _check_recovery,
        alone=True,
    ),
    stream_fault(
        22,
        "gzip",
        "The stream is packed with gzip though nobody asked.",
        "The reply comes through.",
        repeat_script(lambda say: _compressed(say.hello_stream(), "gzip")),
        check_reply(),
    ),
    stream_fault(
        22,
        "deflate",
        "The stream is packed with deflate though nobody asked.",
        "The reply comes through.",
        repeat_script(lambda say: _compressed(say.hello_stream(), "deflate")),
        check_reply(),
    ),
    stream_fault(
        22,
        "junk-as-gzip",
        "It says gzip, and is nothing that can be unpacked.",
        "An error of the upstream's, 5xx.",
        repeat_script(
            lambda _: [
                send_response("200 OK", b"this is not packed " * 9, "text/event-stream", "content-encoding: gzip")
            ]
        ),
        check_failure(),
    ),
    stream_fault(
        22,
        "bomb",
        "A few kilobytes of gzip that unpack to 200 MB of blanks.",
        "An end in time, and the gateway goes on.",
        repeat_script(_gzip_bomb),
        _check_recovery,
        alone=True,
    ),
]
