"""Reading one HTTP answer: where it ends, how it is packed, and when it is too much."""

from __future__ import annotations

import gzip
import zlib

import pytest
from hypothesis import given
from hypothesis import strategies as st

from instar.wire.webhooks.http1_response import (
    MOST_HEAD,
    AnswerFailed,
    AnswerReader,
    CutShort,
    HttpResponse,
    MalformedResponse,
    ResponseTooLarge,
)

MOST = 1000
OK = b"HTTP/1.1 200 OK\r\n"
CHUNKED = OK + b"Transfer-Encoding: chunked\r\n\r\n"
PACKED = gzip.compress(b"hello", mtime=0)
BOMB = gzip.compress(bytes(50_000_000), mtime=0)
EMPTY = gzip.compress(b"", mtime=0)


def sized(body: bytes, *headers: bytes) -> bytes:
    lines = b"".join(header + b"\r\n" for header in headers)
    return OK + lines + b"Content-Length: %d\r\n\r\n" % len(body) + body


def packed(body: bytes, coding: bytes = b"gzip") -> bytes:
    return sized(body, b"Content-Encoding: " + coding)


WHOLE = {
    "sized": (sized(b"hello"), b"hello"),
    "empty": (sized(b""), b""),
    "no content": (b"HTTP/1.1 204 No Content\r\n\r\n", b""),
    "chunked": (CHUNKED + b"2\r\nhe\r\n3;x=y\r\nllo\r\n0\r\n\r\n", b"hello"),
    "trailers": (CHUNKED + b"5\r\nhello\r\n0\r\nSum: 1\r\n\r\n", b"hello"),
    "provisional": (b"HTTP/1.1 100 Continue\r\n\r\n" + sized(b"hello"), b"hello"),
    "hints": (b"HTTP/1.1 103 Hints\r\nContent-Length: 9\r\n\r\n" + sized(b"hello"), b"hello"),
    "no reason": (b"HTTP/1.1 200\r\nContent-Length: 5\r\n\r\nhello", b"hello"),
    "bare line feeds": (b"HTTP/1.1 200 OK\nContent-Length: 5\n\nhello", b"hello"),
    "gzip": (packed(PACKED), b"hello"),
    "gzip in capitals": (packed(PACKED, b"GZIP"), b"hello"),
    "gzip twice": (packed(PACKED + PACKED), b"hellohello"),
    "gzip of nothing": (packed(b""), b""),
    "gzip in chunks": (
        OK
        + b"Transfer-Encoding: chunked\r\nContent-Encoding: gzip\r\n\r\n"
        + b"%x\r\n%b\r\n0\r\n\r\n" % (len(PACKED), PACKED),
        b"hello",
    ),
    "deflate": (packed(zlib.compress(b"hello"), b"deflate"), b"hello"),
    "bare deflate": (packed(zlib.compress(b"hello")[2:-4], b"deflate"), b"hello"),
    "not packed": (packed(b"hello", b"identity"), b"hello"),
    "packed as nobody asked": (packed(b"hello", b"br"), b"hello"),
}


def read(*pieces: bytes, most_bytes: int = MOST) -> HttpResponse:
    reader = AnswerReader(most_bytes)
    for piece in pieces:
        reader.feed(piece)
    assert reader.complete
    return reader.answer()


@pytest.mark.parametrize("name", WHOLE)
def test_an_answer_is_read_to_its_end(name: str) -> None:
    raw, body = WHOLE[name]
    reader = AnswerReader(MOST)

    complete = reader.feed(raw)

    assert complete
    assert reader.reusable
    assert reader.answer().body == body


@given(st.sampled_from(sorted(WHOLE)), st.data())
def test_it_does_not_matter_in_what_pieces_it_arrives(name: str, data: st.DataObject) -> None:
    raw, _ = WHOLE[name]
    cuts = sorted(data.draw(st.sets(st.integers(1, len(raw) - 1))))

    pieces = [raw[start:end] for start, end in zip([0, *cuts], [*cuts, len(raw)], strict=True)]

    assert read(*pieces) == read(raw)


def test_status_and_headers_are_those_of_the_final_answer() -> None:
    raw = b"HTTP/1.1 100 Continue\r\nX: no\r\n\r\nHTTP/1.1 503 Busy\r\nRetry-AFTER: 2\r\n"

    answer = read(raw + b"Retry-After: 9\r\nContent-Length: 0\r\n\r\n")

    assert answer.status == 503
    assert answer.headers == {b"retry-after": b"2", b"content-length": b"0"}


@pytest.mark.parametrize("version", [b"1.0", b"1.1"])
def test_an_answer_of_unknown_length_ends_with_the_connection(version: bytes) -> None:
    reader = AnswerReader(MOST)

    assert not reader.feed(b"HTTP/" + version + b" 200 OK\r\n\r\nhello")
    assert reader.end()

    assert not reader.reusable
    assert reader.answer().body == b"hello"


@pytest.mark.parametrize(
    "raw",
    [
        sized(b"{}", b"Connection: close"),
        sized(b"{}") + b"junk",
        sized(b"{}") + sized(b"{}"),
        sized(b"{}", b"Connection: close") + b"junk",
        b"HTTP/1.0 200 OK\r\nContent-Length: 2\r\n\r\n{}",
        b"HTTP/1.1 101 Switching\r\nUpgrade: x\r\nConnection: upgrade\r\n\r\n",
    ],
)
def test_a_connection_whose_state_is_doubtful_is_not_used_again(raw: bytes) -> None:
    reader = AnswerReader(MOST)

    assert reader.feed(raw)

    assert not reader.reusable
    assert reader.answer().body in (b"{}", b"")


@pytest.mark.parametrize(
    "raw",
    [
        OK + b"Content-Length: 9\r\n\r\nhello",
        CHUNKED + b"5\r\nhello\r\n",
        OK + b"Transfer-Encoding: gzip\r\n\r\nhello",
        OK + b"Content-Length: 2\r\n",
        b"HTTP/1.1 100 Continue\r\n\r\n",
        b"",
    ],
)
def test_an_answer_that_ends_early_is_not_complete(raw: bytes) -> None:
    reader = AnswerReader(MOST)

    assert not reader.feed(raw)

    assert not reader.end()


@pytest.mark.parametrize(
    "raw",
    [
        b"220 smtp ready\r\n",
        b"{}",
        OK + b"No Name: x\r\n\r\n",
        OK + b"Content-Length: 2\r\nContent-Length: 3\r\n\r\n",
        OK + b"Content-Length: -2\r\n\r\n",
    ],
)
def test_bytes_that_are_not_http_are_malformed(raw: bytes) -> None:
    with pytest.raises(MalformedResponse):
        AnswerReader(MOST).feed(raw)


@pytest.mark.parametrize(
    "raw",
    [
        CHUNKED + b"zz\r\nhello\r\n",
        packed(b"nonsense"),
        packed(PACKED + b"nonsense"),
        packed(PACKED[:-4]),
        packed(zlib.compress(b"hello")[:-4], b"deflate"),
    ],
)
def test_broken_content_is_an_answer_cut_short(raw: bytes) -> None:
    with pytest.raises(CutShort):
        AnswerReader(MOST).feed(raw)


def test_half_a_packed_answer_is_cut_short_when_the_connection_ends() -> None:
    reader = AnswerReader(MOST)
    reader.feed(OK + b"Content-Encoding: gzip\r\n\r\n" + PACKED[:-1])

    with pytest.raises(CutShort):
        reader.end()


@pytest.mark.parametrize(
    "raw",
    [
        OK + b"X: " + b"y" * MOST_HEAD + b"\r\n\r\n",
        OK + b"X: " + b"y" * MOST_HEAD,
        OK + b"X: y\r\n" * (MOST_HEAD // 4),
        b"HTTP/1.1 100 Continue\r\n\r\n" * (MOST_HEAD // 20),
        CHUNKED + b"5\r\nhello\r\n0\r\nX: " + b"y" * MOST_HEAD + b"\r\n\r\n",
        CHUNKED + b"5;" + b"x" * MOST_HEAD,
    ],
)
@pytest.mark.parametrize("size", [1000, 10_000_000])
def test_there_is_an_end_to_headers(raw: bytes, size: int) -> None:
    pieces = [raw[start : start + size] for start in range(0, len(raw), size)]

    with pytest.raises(AnswerFailed):
        read(*pieces)


def test_many_small_chunks_are_not_mistaken_for_headers() -> None:
    count = MOST_HEAD

    answer = read(CHUNKED, b"1\r\nx\r\n" * count + b"0\r\n\r\n", most_bytes=count)

    assert len(answer.body) == count


@pytest.mark.parametrize("coding", [b"identity", b"gzip"])
def test_as_much_as_allowed_is_read(coding: bytes) -> None:
    body = bytes(range(250)) * 4

    answer = read(packed(gzip.compress(body) if coding == b"gzip" else body, coding))

    assert answer.body == body


@pytest.mark.parametrize(
    "start",
    [
        OK + b"Content-Length: 9999999\r\n\r\n" + b"x" * (MOST + 1),
        CHUNKED + b"ffffff\r\n" + b"x" * (MOST + 1),
        OK + b"\r\n" + b"x" * (MOST + 1),
        OK + b"Content-Encoding: gzip\r\n\r\n" + BOMB[:10_000],
        OK + b"Content-Encoding: gzip\r\n\r\n" + EMPTY * 100,
    ],
    ids=["sized", "chunked", "until close", "bomb", "nothing in many packets"],
)
def test_more_than_allowed_is_noticed_before_the_answer_ends(start: bytes) -> None:
    with pytest.raises(ResponseTooLarge):
        AnswerReader(MOST).feed(start)
