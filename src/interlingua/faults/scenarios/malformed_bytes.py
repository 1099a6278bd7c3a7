"""Unusual, malformed, compressed or very large byte streams: rows 12, 17, 18 and 22."""

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
from interlingua.faults.upstream import chat_chunks
from interlingua.faults.upstream.reply_writers import ReplyWriter
from interlingua.faults.upstream.script import Script, send, send_headers, send_pieces, send_response, stream_response

__all__ = ["SCENARIOS"]

MIB = 1024 * 1024
SLOW_TIMEOUT_SECONDS = 60
"""Timeout of the client for very large replies."""
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
    """Return chat events with this content as raw bytes inside the JSON string."""
    return b"".join(
        chat_chunks.event(b'{"choices": [{"index": 0, "delta": {"content": "' + content + b'"}}]}')
        for content in contents
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
        return failed("the client receives bytes that are not UTF-8")
    if response.error or response.truncated:
        return judge_failure(response, trial)
    text = response.text
    if not (text.startswith("ab") and text.endswith("cd")):
        return failed(f"the text around it is lost: {text!r}")
    return judge_reply(response, trial, text)


def _check_recovery(trial: Trial) -> Verdict:
    """Pass if the response ends, with a reply or an error, and the gateway still handles another request."""
    response = trial.send_request(seconds=SLOW_TIMEOUT_SECONDS)
    verdict = judge_failure(response, trial) if not response.ended else judge_reply(response, trial, None)
    return verify_still_serving(verdict, trial) if verdict.outcome is TrialOutcome.PASSED else verdict


def _sse_variant(name: str, description: str, change: tuple[bytes, bytes] | None = None, **options: bytes) -> Scenario:
    """Return a scenario with the same stream in another SSE formatting."""

    def script(writer: ReplyWriter) -> Script:
        data = options.get("before", b"") + writer.hello_stream()
        data = data.replace(*change) if change else data
        return stream_response(data.rstrip(b"\n") if "bare" in options else data)

    return stream_fault(
        12,
        name,
        description,
        "The stream is equivalent: the client receives the reply.",
        repeat_script(script),
        check_reply(),
    )


SCENARIOS: list[Scenario] = [
    _sse_variant("crlf", "Lines end with CR LF.", (b"\n", b"\r\n")),
    _sse_variant("cr", "Lines end with CR.", (b"\n", b"\r")),
    _sse_variant("bom", "The stream begins with a byte order mark.", before=b"\xef\xbb\xbf"),
    _sse_variant("no-space", "`data:` without a space after it.", (b"data: ", b"data:")),
    _sse_variant("comments", "Comments before and inside events.", (b"data: ", b": why\ndata: "), before=b": hi\n\n"),
    _sse_variant(
        "fields",
        "Lines with `id:` and `retry:`, and a line with an unknown field.",
        (b"data: ", b"id: 7\nretry: 9\nodd\ndata: "),
    ),
    _sse_variant("blank-lines", "Many blank lines between events.", (b"\n\n", b"\n\n\n\n\n")),
    _sse_variant("several-lines", "An event with several `data:` lines.", (b'{"', b'{\ndata: "')),
    _sse_variant("no-last-blank", "The blank line after the last event is missing.", bare=b""),
    stream_fault(
        12,
        "byte-by-byte",
        "Each byte arrives separately.",
        "The stream is equivalent: the client receives the reply.",
        repeat_script(lambda writer: [send_headers(), send_pieces([bytes([byte]) for byte in writer.hello_stream()])]),
        check_reply(),
    ),
    stream_fault(
        17,
        "split-characters",
        "Multi-byte characters, split at every byte.",
        "The client receives the text unchanged.",
        repeat_script(
            lambda writer: [
                send_headers(),
                send_pieces(
                    [
                        bytes([byte])
                        for byte in (writer.begin() + writer.text("@@") + writer.end()).replace(b"@@", EMOJI.encode())
                    ],
                ),
            ]
        ),
        check_reply(EMOJI),
    ),
    stream_fault(
        17,
        "surrogate-halves",
        "An emoji whose two surrogates arrive in two deltas.",
        "One emoji: the surrogates are joined before they are sent.",
        repeat_script(
            lambda _: stream_response(
                chat_chunks.ROLE
                + _raw_content_events(rb"ab\ud83d", rb"\ude00cd")
                + chat_chunks.delta(finish="stop")
                + chat_chunks.DONE
            )
        ),
        check_reply("ab😀cd"),
        **CHAT_ONLY,
    ),
    stream_fault(
        17,
        "lone-surrogate",
        "A lone surrogate, whose other half never arrives.",
        "Valid UTF-8 with a replacement character and the text around it; or an error.",
        repeat_script(
            lambda _: stream_response(
                chat_chunks.ROLE
                + _raw_content_events(rb"ab\ud83d ", rb"cd")
                + chat_chunks.delta(finish="stop")
                + chat_chunks.DONE
            )
        ),
        check_response(_judge_utf8),
        **CHAT_ONLY,
    ),
    stream_fault(
        17,
        "invalid-bytes",
        "Bytes in a text that are not valid UTF-8.",
        "Valid UTF-8 with a replacement character and the text around it; or an error.",
        repeat_script(
            lambda _: stream_response(
                chat_chunks.ROLE
                + _raw_content_events(b"ab\xff\xfe", b"cd")
                + chat_chunks.delta(finish="stop")
                + chat_chunks.DONE
            )
        ),
        check_response(_judge_utf8),
        **CHAT_ONLY,
    ),
    stream_fault(
        18,
        "ten-megabytes",
        "One argument of ten megabytes.",
        "The client receives the complete call, in linear time; or a clear error.",
        repeat_script(_ten_megabytes),
        check_any(
            lambda response, trial: judge_reply(response, trial, "", [("get_weather", {"city": LONG_TEXT})]),
            judge_failure,
            seconds=SLOW_TIMEOUT_SECONDS,
        ),
        alone=True,
    ),
    stream_fault(
        18,
        "tiny-pieces",
        f"Arguments in {TINY_PIECE_COUNT:,} pieces of one character.",
        "The client receives the complete call within three minutes.",
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
        "An error, and the gateway continues to work.",
        repeat_script(
            lambda writer: [
                *stream_response(writer.begin() + writer.text("So")),
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
        "The stream is compressed with gzip although that was not requested.",
        "The client receives the reply.",
        repeat_script(lambda writer: _compressed(writer.hello_stream(), "gzip")),
        check_reply(),
    ),
    stream_fault(
        22,
        "deflate",
        "The stream is compressed with deflate although that was not requested.",
        "The client receives the reply.",
        repeat_script(lambda writer: _compressed(writer.hello_stream(), "deflate")),
        check_reply(),
    ),
    stream_fault(
        22,
        "junk-as-gzip",
        "The content encoding is gzip, but the body cannot be decompressed.",
        "An upstream error, 5xx.",
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
        "A few kilobytes of gzip that decompress to 200 MB of spaces.",
        "The response ends in time, and the gateway continues to work.",
        repeat_script(_gzip_bomb),
        _check_recovery,
        alone=True,
    ),
]
