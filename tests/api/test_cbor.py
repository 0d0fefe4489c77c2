"""The CBOR codec: what it reads and writes. Answers were compared with kube-apiserver 1.36.4."""

from __future__ import annotations

import math
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from instar.base.errors import RequestTooLarge
from instar.base.limits import MAX_BODY, MAX_DEPTH
from instar.kube.api.encoding.cbor_reading import (
    MalformedCbor,
    UnacceptableCbor,
    items,
    read_cbor,
    type_name,
)
from instar.kube.api.encoding.cbor_writing import SELF_DESCRIBED, Encoded, write_cbor, write_item

_SCALARS = (
    st.none()
    | st.booleans()
    | st.integers(-(2**63), 2**63 - 1)
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(st.characters(exclude_categories=["Cs"]))
)
_VALUES: st.SearchStrategy[Any] = st.recursive(
    _SCALARS,
    lambda inner: st.lists(inner) | st.dictionaries(st.text(max_size=8), inner),
    max_leaves=20,
)


@given(_VALUES)
def test_what_is_written_is_read_again(value: Any) -> None:
    assert repr(read_cbor(write_cbor(value))) == repr(value)


@given(st.lists(_VALUES, max_size=4))
def test_a_sequence_is_split_into_its_items(values: list[Any]) -> None:
    written = [write_cbor(value) for value in values]

    assert list(items(b"".join(written))) == written


def test_events_are_split_whatever_they_hold() -> None:
    wide = Encoded(b"\xbf" + b"\x41a\x9f\xff" * (MAX_BODY // 3 + 1) + b"\xff")
    written = [write_cbor({"object": each}) for each in (Encoded(b"\x80"), wide)]
    nested = SELF_DESCRIBED + b"\xa1\x41a\x81" * (MAX_DEPTH * 10) + b"\xf6"

    assert list(items(b"".join([nested, *written]))) == [nested, *written]


@pytest.mark.parametrize("nest", ["81", "9f", "a1", "bf", "a14161", "c0", "c1", "d6", "d9d9f7"])
@pytest.mark.parametrize("between", ["", "c0", "c1c0", "d6", "81", "a1", "bf"])
def test_no_way_to_nest_items_goes_deeper_than_the_limit(nest: str, between: str) -> None:
    data = bytes.fromhex(nest + between) * (MAX_DEPTH * 100) + b"\x60"

    with pytest.raises(MalformedCbor, match=f"^cbor: exceeded max nested level {MAX_DEPTH}$"):
        read_cbor(data)


@given(st.binary(max_size=64))
def test_any_bytes_are_a_value_or_refused(data: bytes) -> None:
    try:
        value = read_cbor(data)
    except (MalformedCbor, UnacceptableCbor) as error:
        text = str(error)
        assert text
    else:
        assert read_cbor(write_cbor(value)) == value


@given(_VALUES, st.integers(min_value=1))
def test_a_part_of_an_item_is_malformed(value: Any, cut: int) -> None:
    written = write_cbor(value)

    with pytest.raises(MalformedCbor):
        read_cbor(written[: -(1 + cut % len(written))])


@pytest.mark.parametrize(
    ("value", "written"),
    [
        (23, "17"),
        (24, "1818"),
        (2**16, "1a00010000"),
        (2**62, "1b4000000000000000"),
        (-1, "20"),
        (-(2**63), "3b7fffffffffffffff"),
        (1.0, "f93c00"),
        (1.5, "f93e00"),
        (100000.5, "fa47c35040"),
        (1e300, "fb7e37e43c8800759c"),
        (-0.0, "f98000"),
        (None, "f6"),
        (True, "f5"),
        ("ü", "42c3bc"),
        ({"a": [1]}, "a141618101"),
        (b"\xff", "d641ff"),
        (Encoded(b"\x01"), "01"),
    ],
)
def test_the_shortest_form_is_written(value: Any, written: str) -> None:
    assert write_cbor(value) == SELF_DESCRIBED + bytes.fromhex(written)
    assert write_item(value).hex() == written


@pytest.mark.parametrize(
    ("written", "value"),
    [
        ("6161", "a"),
        ("41ff", "\ufffd"),
        ("5f41614162ff", "ab"),
        ("7f61616162ff", "ab"),
        ("9f0102ff", [1, 2]),
        ("bf414101ff", {"A": 1}),
        ("d86401", 1),
        ("d9d9f7d9d9f701", 1),
        ("d643726177", "cmF3"),
        ("d54161", "YQ"),
        ("d743726177", "726177"),
        ("d66161", "a"),
        ("d68143726177", ["cmF3"]),
        ("d6d743726177", "726177"),
        ("c074323032302d30312d30315430303a30303a30305a", "2020-01-01T00:00:00Z"),
        ("c11a5e0be100", "2020-01-01T00:00:00Z"),
        ("c1fb41d782f840200000", "2020-01-01T00:00:00.5Z"),
        ("c120", "1969-12-31T23:59:59Z"),
        ("c1f9be00", "1969-12-31T23:59:58.5Z"),
        ("fa3fc00000", 1.5),
    ],
)
def test_other_forms_of_the_same_values_are_read(written: str, value: Any) -> None:
    assert read_cbor(bytes.fromhex(written)) == value


_PROTOCOL = "is not accepted by protocol: "


@pytest.mark.parametrize(
    ("written", "text"),
    [
        ("", "EOF"),
        ("d9d9f7", "unexpected EOF"),
        ("0100", "cbor: 1 bytes of extraneous data starting at index 1"),
        ("ff", 'cbor: unexpected "break" code'),
        ("bf4161ff", 'cbor: unexpected "break" code'),
        ("1c", "cbor: invalid additional information 28 for type positive integer"),
        ("df01", "cbor: invalid additional information 31 for type tag"),
        ("f818", "cbor: invalid simple value 24 for type primitives"),
        ("f97e00", f"cbor: data item of cbor type primitives {_PROTOCOL}floating-point NaN"),
        ("f97c00", f"cbor: data item of cbor type primitives {_PROTOCOL}floating-point infinity"),
        ("c24101", f"cbor: data item of cbor type tag {_PROTOCOL}bignum"),
        (
            "5f6161ff",
            "cbor: wrong element type UTF-8 text string for indefinite-length byte string",
        ),
        (
            "5f5f4161ffff",
            "cbor: indefinite-length byte string chunk is not definite-length",
        ),
        (
            "5bffffffffffffffff",
            "cbor: byte string length 18446744073709551615 is too large, causing integer overflow",
        ),
        (
            "bbffffffffffffffff",
            "cbor: map length 18446744073709551615 is too large, it would cause integer overflow",
        ),
        ("9a7fffffff00", "unexpected EOF"),
    ],
)
def test_bytes_that_are_no_item_are_malformed(written: str, text: str) -> None:
    with pytest.raises(MalformedCbor) as caught:
        read_cbor(bytes.fromhex(written))

    assert str(caught.value) == text


@pytest.mark.parametrize(
    ("written", "text"),
    [
        ("a2416101416102", 'cbor: found duplicate map key "a" at map element index 1'),
        ("a2616101416102", 'cbor: found duplicate map key "a" at map element index 1'),
        ("a10101", "cbor: cannot unmarshal positive integer into Go value of type string"),
        ("a18001", "cbor: cannot unmarshal array into Go value of type string"),
        ("61ff", "cbor: invalid UTF-8 string"),
        (
            "1b8000000000000000",
            "cbor: cannot unmarshal positive integer into Go value of type int64 "
            "(9223372036854775808 overflows Go's int64)",
        ),
        (
            "3b8000000000000000",
            "cbor: cannot unmarshal negative integer into Go value of type int64 "
            "(-9223372036854775809 overflows Go's int64)",
        ),
        (
            "f7",
            f"cbor: data item of cbor type primitives {_PROTOCOL}simple value 23 is not recognized",
        ),
        (
            "f8ff",
            f"cbor: data item of cbor type primitives {_PROTOCOL}simple value 255 is not "
            "recognized",
        ),
        ("c04161", "cbor: tag number 0 must be followed by text string, got byte string"),
        (
            "c14161",
            "cbor: tag number 1 must be followed by integer or floating-point number, got byte "
            "string",
        ),
        (
            "c06178",
            'cbor: cannot set x for time.Time: parsing time "x" as RFC 3339',
        ),
        (
            "c11b00000fffffffffff",
            "cbor: decoded time cannot be represented in RFC3339 format with sub-second "
            "precision: Time.MarshalText: year outside of range [0,9999]",
        ),
    ],
)  # fmt: skip
def test_values_that_an_object_cannot_have_are_refused(written: str, text: str) -> None:
    with pytest.raises(UnacceptableCbor) as caught:
        read_cbor(bytes.fromhex(written))

    assert str(caught.value) == text


def test_a_repeated_key_is_told_from_one_further_inside() -> None:
    outermost = bytes.fromhex("a2416101416102")
    inside = bytes.fromhex("a14162a2416101416102")

    found = []
    for written in (outermost, SELF_DESCRIBED + outermost, inside):
        with pytest.raises(UnacceptableCbor) as caught:
            read_cbor(written)
        found.append(caught.value.at_top)

    assert found == [True, True, False]


@pytest.mark.parametrize("opening", ["81", "a14161", "d6", "9f"])
def test_nesting_ends_at_the_limit(opening: str) -> None:
    one = bytes.fromhex(opening)
    closing = b"\xff" if opening == "9f" else b""

    read_cbor(one * MAX_DEPTH + b"\x01" + closing * MAX_DEPTH)
    with pytest.raises(MalformedCbor, match="exceeded max nested level"):
        read_cbor(one * (MAX_DEPTH + 1) + b"\x01" + closing * (MAX_DEPTH + 1))


def test_many_tags_on_each_of_many_levels_are_read() -> None:
    value = read_cbor((b"\xd6" * MAX_DEPTH + b"\x81") * MAX_DEPTH + b"\x01")

    depth = 0
    while value != 1:
        [value], depth = value, depth + 1
    assert depth == MAX_DEPTH


def test_the_type_of_a_document_is_that_below_its_tags() -> None:
    assert type_name(SELF_DESCRIBED + b"\x80") == "array"
    assert type_name(b"\x60") == "UTF-8 text string"


def test_zero_keeps_its_sign() -> None:
    assert math.copysign(1, read_cbor(write_cbor(-0.0))) == -1


@pytest.mark.parametrize("empty", [b"\xa0", b"\x80"])
def test_more_maps_than_a_body_can_hold_in_json_are_refused(empty: bytes) -> None:
    most = MAX_BODY // 3 - 1

    assert len(read_cbor(b"\x9f" + empty * most + b"\xff")) == most
    with pytest.raises(RequestTooLarge):
        read_cbor(b"\x9f" + empty * (most + 1) + b"\xff")
