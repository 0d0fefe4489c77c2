"""Header blocks: the examples of RFC 7541 that need no table, and what must be refused."""

from __future__ import annotations

from contextlib import suppress

import pytest
from hypothesis import given
from hypothesis import strategies as st

from instar.base.http2 import huffman
from instar.base.http2.huffman import Garbled
from instar.wire.rpc import headers


@pytest.mark.parametrize(
    ("packed", "text"),
    [
        ("f1e3c2e5f23a6ba0ab90f4ff", b"www.example.com"),
        ("a8eb10649cbf", b"no-cache"),
        ("25a849e95bb8e8b4bf", b"custom-value"),
        ("6402", b"302"),
        ("d07abe941054d444a8200595040b8166e082a62d1bff", b"Mon, 21 Oct 2013 20:13:21 GMT"),
        ("", b""),
    ],
)
def test_packed_texts_are_read(packed: str, text: bytes) -> None:
    assert huffman.decode(bytes.fromhex(packed)) == text


def test_every_byte_has_a_code_of_its_own() -> None:
    assert sorted(huffman.codes().values()) == list(range(257))


@pytest.mark.parametrize("packed", ["ffffffff", "00ffff", "00"])
def test_a_packed_text_that_ends_within_a_letter_is_refused(packed: str) -> None:
    with pytest.raises(Garbled):
        huffman.decode(bytes.fromhex(packed))


@pytest.mark.parametrize(
    ("block", "found"),
    [
        ("400a637573746f6d2d6b65790d637573746f6d2d686561646572", ("custom-key", "custom-header")),
        ("040c2f73616d706c652f70617468", (":path", "/sample/path")),
        ("100870617373776f726406736563726574", ("password", "secret")),
        ("82", (":method", "GET")),
        ("408825a849e95ba97d7f8925a849e95bb8e8b4bf", ("custom-key", "custom-value")),
    ],
)
def test_the_examples_of_the_rfc_are_read(block: str, found: tuple[str, str]) -> None:
    assert headers.read(bytes.fromhex(block)) == (found,)


def test_written_headers_are_read_back() -> None:
    long = "v" * 5000
    assert headers.read(headers.literal("n", long) + headers.literal("m", "")) == (
        ("n", long),
        ("m", ""),
    )


def test_a_server_may_only_set_the_header_table_size_to_zero() -> None:
    assert headers.read(b"\x20\x88") == ((":status", "200"),)
    with pytest.raises(Garbled):
        headers.read(b"\x3f\xe1\x1f\x88")


@pytest.mark.parametrize(
    "block",
    [
        b"\x80",  # no header has the number 0
        b"\xbe",  # the first of a table we do not keep
        b"\x00\x05ab",
        b"\x00\x01a",
        b"\x40",
        b"\xff\xff\xff\xff\xff\xff\x01",
        b"".join(headers.literal("n", "v" * 9000) for _ in range(2)),
    ],
)
def test_a_block_that_lies_is_refused(block: bytes) -> None:
    with pytest.raises(Garbled):
        headers.read(block)


@given(st.binary(max_size=60))
def test_any_header_block_is_read_or_refused(block: bytes) -> None:
    with suppress(Garbled):
        headers.read(block)
