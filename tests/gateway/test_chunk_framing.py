"""Tests of the framing of HTTP chunks."""

from __future__ import annotations

import pytest

from interlingua.gateway.chunk_framing import frame_chunk, unframe_chunk

SIZES = [16, 17, 206, 254, 255, 256, 257, 4094, 4095]


@pytest.mark.parametrize("size", SIZES)
def test_chunk_is_unframed(size: int) -> None:
    content = bytes(number % 256 for number in range(size))
    assert unframe_chunk(frame_chunk(content)) == content


@pytest.mark.parametrize("size_line", [b"ab\r\n", b"AB\r\n", b"aB\r\n"])
def test_digits_of_the_size_in_any_case(size_line: bytes) -> None:
    assert unframe_chunk(size_line + b"x" * 0xAB + b"\r\n") == b"x" * 0xAB


@pytest.mark.parametrize("size", [0, 1, 15, 4096, 70_000])
def test_very_short_and_long_chunks_are_left_to_the_parser(size: int) -> None:
    assert unframe_chunk(frame_chunk(b"x" * size)) is None


@pytest.mark.parametrize("size", SIZES)
def test_other_data_than_one_chunk_is_left_to_the_parser(size: int) -> None:
    chunk = frame_chunk(b"x" * size)
    others = [chunk[:-1], chunk[1:], chunk + b"0", chunk + chunk, chunk + b"0\r\n\r\n", b"0" + chunk, b" " + chunk]
    assert [unframe_chunk(data) for data in others] == [None] * len(others)


@pytest.mark.parametrize("size", range(14, 300))
def test_size_must_be_that_of_the_content(size: int) -> None:
    for length in range(size - 3, size + 4):
        data = b"%x\r\n%b\r\n" % (size, b"x" * length)
        assert (unframe_chunk(data) is not None) == (length == size >= 16)


@pytest.mark.parametrize("data", [b"", b"\r\n", b"0\r\n\r\n", b"-5\r\n", b"14;name=value\r\n" + b"x" * 20 + b"\r\n"])
def test_malformed_and_special_chunks_are_left_to_the_parser(data: bytes) -> None:
    assert unframe_chunk(data) is None
