"""The hand-written messages against the wire format's own rules; real answers come from etcd."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from instar.kube.protobuf.errors import ProtobufError
from instar.kube.protobuf.wire import read_varint, varint
from instar.wire.storage.etcd import messages as wire
from instar.wire.storage.protobuf_fields import always_bytes, bytes_field, int_field

NUMBERS = st.integers(0, 2**63 - 1)
BLOBS = st.binary(max_size=300)


def key_value(key: bytes, value: bytes, created: int, modified: int) -> bytes:
    return (
        bytes_field(1, key) + int_field(2, created) + int_field(3, modified) + bytes_field(5, value)
    )


def header(revision: int) -> bytes:
    return bytes_field(1, int_field(1, 77) + int_field(3, revision))


@given(NUMBERS)
def test_a_number_reads_back(number: int) -> None:
    assert read_varint(varint(number), 0) == (number, len(varint(number)))


def test_a_negative_number_takes_ten_bytes_and_more_than_ten_are_refused() -> None:
    assert read_varint(varint(-1), 0) == (2**64 - 1, 10)
    with pytest.raises(ProtobufError):
        read_varint(b"\xff" * 10 + b"\x01", 0)
    with pytest.raises(IndexError):
        read_varint(b"\xff\xff", 0)


@given(
    st.lists(st.tuples(BLOBS, BLOBS, NUMBERS, NUMBERS)), st.integers(1, 2**63 - 1), st.booleans()
)
def test_a_range_reads_back(
    rows: list[tuple[bytes, bytes, int, int]], revision: int, more: bool
) -> None:
    data = header(revision)
    data += b"".join(always_bytes(2, key_value(*row)) for row in rows)
    data += int_field(3, int(more))
    answer = wire.read_range(data)
    assert answer == (revision, [wire.KeyValue(*row) for row in rows], more)


def test_an_event_reads_back() -> None:
    kv = key_value(b"k", b"", 0, 9)
    event = int_field(1, 1) + bytes_field(2, kv)
    data = header(12) + int_field(2, 3) + bytes_field(11, event)
    answer = wire.read_watch(data)
    assert (answer.revision, answer.watch_id) == (12, 3)
    assert answer.events == [wire.WatchEvent(wire.KeyValue(b"k", b"", 0, 9), deleted=True)]


def test_a_cancelled_watch_tells_why() -> None:
    data = int_field(4, 1) + int_field(5, 40) + bytes_field(6, b"compacted")
    answer = wire.read_watch(data)
    assert (answer.cancelled, answer.compact_revision) == (True, 40)
    assert answer.cancel_reason == "compacted"


def test_unknown_fields_of_a_newer_etcd_are_skipped() -> None:
    unknown = bytes_field(900, b"new") + int_field(901, 5)
    fixed = varint(902 << 3 | 1) + b"12345678" + varint(903 << 3 | 5) + b"1234"
    assert wire.read_range(unknown + fixed + header(8)).revision == 8


@pytest.mark.parametrize("data", [b"\x0b", int_field(1, 5), bytes_field(2, int_field(1, 3))])
def test_a_server_without_etcds_api_is_refused(data: bytes) -> None:
    with pytest.raises(ValueError):
        wire.read_range(data)


def test_only_a_response_with_nothing_but_events_reports_its_last_revision() -> None:
    event = bytes_field(11, bytes_field(2, key_value(b"k", b"v", 7, 9)))
    assert wire.events_up_to(header(9) + event) == 9
    assert wire.events_up_to(header(9) + event * 3) == 9
    for other in (
        b"",
        event,
        header(9),
        header(9) + int_field(3, 1),
        header(9) + int_field(4, 1) + int_field(5, 3),
        header(9) + int_field(2, 1) + event,
        header(9)[:-1],
        header(0) + event,
    ):
        assert wire.events_up_to(other) == 0
