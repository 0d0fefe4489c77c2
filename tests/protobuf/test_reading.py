"""Messages other than Go's own: other orders, other encodings, values at the edge."""

from __future__ import annotations

from typing import Any

import pytest

from instar.kube.protobuf.envelope import decode_object, encode_object, wrap_message
from instar.kube.protobuf.errors import UnknownKind
from instar.kube.protobuf.wire import BYTES, START_GROUP, length_prefixed, tag, varint
from tests.protobuf.messages import config_map, crd_with, double, entry, field


def schema_of(crd: dict[str, Any]) -> Any:
    return crd["spec"]["versions"][0]["schema"]["openAPIV3Schema"]


def test_a_message_without_the_fields_go_always_writes() -> None:
    found = decode_object(config_map(field(2, entry("k", b"v"))))
    assert found == {"kind": "ConfigMap", "apiVersion": "v1", "metadata": {}, "data": {"k": "v"}}


def test_fields_that_json_always_shows_are_shown_for_an_empty_message() -> None:
    pod = decode_object(wrap_message("v1", "Pod", b""))
    assert pod == {
        "kind": "Pod",
        "apiVersion": "v1",
        "metadata": {},
        "spec": {"containers": None},
        "status": {},
    }


def test_values_shown_for_nothing_are_not_shared_between_objects() -> None:
    first = decode_object(wrap_message("v1", "Pod", b""))
    first["spec"]["containers"] = []
    assert decode_object(wrap_message("v1", "Pod", b""))["spec"] == {"containers": None}


def test_an_explicit_zero_counts_where_go_has_a_pointer() -> None:
    secret = decode_object(wrap_message("v1", "Secret", field(3, b"") + field(5, 0)))
    assert "type" not in secret
    assert secret["immutable"] is False


def test_negative_numbers() -> None:
    found = decode_object(wrap_message("apps/v1", "DeleteOptions", field(1, -1)))
    assert found["gracePeriodSeconds"] == -1


def test_a_number_too_large_for_its_field_is_cut_as_go_cuts_it() -> None:
    port = field(3, 2**32 + 80) + field(5, 2**31)
    service = decode_object(wrap_message("v1", "Service", field(2, field(1, port))))
    assert service["spec"]["ports"][0]["port"] == 80
    assert service["spec"]["ports"][0]["nodePort"] == -(2**31)


def test_packed_numbers_are_read_though_go_never_writes_them() -> None:
    groups = tag(4, BYTES) + length_prefixed(varint(7) + varint(300)) + field(4, 9)
    pod = decode_object(wrap_message("v1", "Pod", field(2, field(14, groups))))
    assert pod["spec"]["securityContext"] == {"supplementalGroups": [7, 300, 9]}


def test_fields_that_are_not_known_are_skipped_groups_included() -> None:
    group = tag(900, START_GROUP) + field(1, b"x") + field(2, 5) + varint(900 << 3 | 4)
    raw = (
        field(901, b"new")
        + group
        + field(902, 1)
        + double(903, bytes(8))
        + field(1, field(1, b"a"))
    )
    assert decode_object(config_map(raw))["metadata"] == {"name": "a"}


def test_a_tag_may_be_longer_than_it_needs_to_be() -> None:
    long_tag = bytes([0x8A, 0x00])
    assert decode_object(config_map(long_tag + length_prefixed(field(1, b"a"))))["metadata"] == {
        "name": "a"
    }


def test_a_map_entry_may_lack_key_or_value_or_have_them_swapped() -> None:
    swapped = field(2, b"v") + field(1, b"k")
    raw = field(2, swapped) + field(2, field(2, b"no key")) + field(2, field(1, b"no value"))
    found = decode_object(config_map(raw))
    assert found["data"] == {"k": "v", "": "no key", "no value": ""}


def test_texts_that_are_not_utf8_are_mended_byte_by_byte() -> None:
    found = decode_object(config_map(field(2, entry("k", b"a\xff\xed\xa0\x80b"))))
    assert found["data"]["k"] == "a\ufffd\ufffd\ufffd\ufffdb"


def test_times_and_pointers_of_a_lease() -> None:
    spec = field(1, b"") + field(2, 15) + field(4, field(1, 1) + field(2, 123_456_789))
    lease = decode_object(wrap_message("coordination.k8s.io/v1", "Lease", field(2, spec)))
    assert lease["spec"] == {
        "holderIdentity": "",
        "leaseDurationSeconds": 15,
        "renewTime": "1970-01-01T00:00:01.123456Z",
    }


def test_an_empty_time_is_absent() -> None:
    metadata = field(1, b"a") + field(8, b"") + field(9, b"")
    assert decode_object(config_map(field(1, metadata)))["metadata"] == {"name": "a"}


def test_numbers_of_a_schema_are_whole_where_they_can_be() -> None:
    five, half = bytes.fromhex("0000000000001440"), bytes.fromhex("000000000000e03f")
    found = schema_of(decode_object(crd_with(double(9, five) + double(11, half))))
    assert (found["maximum"], found["minimum"]) == (5, 0.5)
    assert isinstance(found["maximum"], int)


@pytest.mark.parametrize(
    ("alternatives", "expected"),
    [
        (field(1, 0), False),
        (field(1, 1), True),
        (b"", False),
        (field(2, field(5, b"string")), {"type": "string"}),
    ],
)
def test_a_schema_or_a_boolean(alternatives: bytes, expected: Any) -> None:
    assert schema_of(decode_object(crd_with(field(30, alternatives)))) == {
        "additionalProperties": expected
    }


def test_crds_of_v1beta1_are_read_from_protobuf() -> None:
    names = {"plural": "", "kind": ""}
    version = "apiextensions.k8s.io/v1beta1"
    spec = field(1, b"example.com") + field(2, b"v1") + field(10, 0)
    found = decode_object(wrap_message(version, "CustomResourceDefinition", field(2, spec)))
    assert found["spec"] == {
        "group": "example.com",
        "version": "v1",
        "names": names,
        "scope": "",
        "preserveUnknownFields": False,
    }
    assert found["status"] == {"conditions": None, "acceptedNames": names, "storedVersions": None}
    assert decode_object(encode_object(found)) == found


def test_delete_options_come_under_every_version() -> None:
    for version in ("v1", "apps/v1", "meta.k8s.io/v1", "example.com/v1"):
        found = decode_object(wrap_message(version, "DeleteOptions", field(5, b"All")))
        assert found == {"kind": "DeleteOptions", "apiVersion": version, "dryRun": ["All"]}


def test_the_endpoint_says_what_an_object_is_that_does_not() -> None:
    body = b"k8s\x00" + field(2, field(1, field(1, b"a")))
    assert decode_object(body, "v1", "Secret")["kind"] == "Secret"
    with pytest.raises(UnknownKind):
        decode_object(body)


@pytest.mark.parametrize(
    ("version", "kind"),
    [("example.com/v1", "Widget"), ("v1", "PodSpec"), ("v1", "PodTemplateSpec"), ("v9", "Pod")],
)
def test_parts_of_kinds_and_custom_resources_are_not_kinds(version: str, kind: str) -> None:
    with pytest.raises(UnknownKind, match=f"{version}, Kind={kind}"):
        decode_object(wrap_message(version, kind, b""))
