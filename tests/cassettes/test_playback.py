"""Playback of a recorded reply: cuts and times."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from interlingua.cassettes.playback import Playback
from interlingua.cassettes.recorded_exchange import RecordedReply, ReplyPiece
from interlingua.errors import UsageError

BODY = "data: é1\n\ndata: 2\r\n\r\ndata: 3\n\n".encode()
REPLY = RecordedReply(body=BODY, pieces=(ReplyPiece(0.5, 4), ReplyPiece(1.0, 8), ReplyPiece(2.0, len(BODY) - 12)))
CUTS = ["recorded", "whole", "event", "character", "byte", "random", "random:7"]


@pytest.mark.parametrize(
    ("cut", "pieces"),
    [
        ("recorded", [BODY[:4], BODY[4:12], BODY[12:]]),
        ("whole", [BODY]),
        ("event", ["data: é1\n\n".encode(), b"data: 2\r\n\r\n", b"data: 3\n\n"]),
        ("character", [character.encode() for character in BODY.decode()]),
        ("byte", [bytes([byte]) for byte in BODY]),
    ],
)
def test_cut(cut: str, pieces: list[bytes]) -> None:
    assert [piece.data for piece in Playback(cut=cut).pieces(REPLY)] == pieces


def test_random_cuts_depend_on_the_seed_only() -> None:
    reply = RecordedReply(body=bytes(1000), pieces=(ReplyPiece(0.0, 1000),))
    cuts = {seed: list(Playback(cut=f"random:{seed}").pieces(reply)) for seed in (1, 2)}
    assert cuts[1] == list(Playback(cut="random:1").pieces(reply)) == list(Playback(cut="random").pieces(reply))
    assert cuts[1] != cuts[2]
    assert all(20 < len(pieces) < 200 for pieces in cuts.values())


@given(st.binary(), st.lists(st.tuples(st.floats(0, 9), st.integers(0, 30))), st.sampled_from(CUTS))
def test_pieces_are_the_body_whatever_the_cut_and_the_recorded_sizes(
    body: bytes, sizes: list[tuple[float, int]], cut: str
) -> None:
    reply = RecordedReply(body=body, pieces=tuple(ReplyPiece(*piece) for piece in sizes))
    pieces = list(Playback(cut=cut, speed=1).pieces(reply))
    assert b"".join(piece.data for piece in pieces) == body
    assert all(piece.data for piece in pieces)


@pytest.mark.parametrize(
    ("playback", "seconds"),
    [
        (Playback(), [0, 0, 0]),
        (Playback(speed=1), [0.5, 1.0, 2.0]),
        (Playback(speed=4), [0.125, 0.25, 0.5]),
        (Playback(speed=0.5, cut="event"), [2.0, 4.0, 4.0]),  # each when its last byte was recorded
        (Playback(speed=1, cut="whole"), [2.0]),
    ],
)
def test_times(playback: Playback, seconds: list[float]) -> None:
    assert [piece.seconds for piece in playback.pieces(REPLY)] == seconds


def test_options_of_a_request_override_those_of_the_gateway() -> None:
    playback = Playback(cut="byte", speed=2)
    assert playback.with_options("") is playback
    assert playback.with_options(" cut=event;fault = reset-in-text@2; ") == Playback(
        cut="event", speed=2, fault="reset-in-text@2"
    )


@pytest.mark.parametrize(
    ("options", "problem"),
    [
        ("cut=words", "cannot be cut by 'words'"),
        ("cut=byte:7", "cannot be cut by 'byte:7'"),
        ("speed=fast", "not a speed: 'fast'"),
        ("speed=-1", r"not a speed: -1\.0"),
        ("speed=nan", "not a speed: nan"),
        *((f"fault=crlf@{n}", f"not a fault: 'crlf@{n}'") for n in ("x", "0", "-1", "1@2", "")),
        ("fault=@2", "not a fault: '@2'"),
        ("pace=1", "not an option of a replay: 'pace=1'"),
        ("cut", "not an option of a replay: 'cut'"),
    ],
)
def test_wrong_option_is_an_error(options: str, problem: str) -> None:
    with pytest.raises(UsageError, match=problem):
        Playback().with_options(options)
