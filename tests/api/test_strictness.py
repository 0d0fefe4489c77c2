"""The order in which a strict decoder that knows the type tells what is wrong."""

from __future__ import annotations

from instar.kube.api.encoding.strict_error_order import as_json_is_read, as_yaml_is_read

BODY = b"""{"spec": {"strange": {"a": 1, "a": 2}, "strange": 3, "paused": true, "paused": false,
  "list": [{"odd": 1, "name": "a", "name": "b"}]}, "metadata": {"other": 1}}"""
UNKNOWN = ["metadata.other", "spec.strange", "spec.list[0].odd"]


def test_json_fields_are_reported_in_reading_order() -> None:
    assert as_json_is_read(BODY, UNKNOWN) == [
        'unknown field "spec.strange"',
        'duplicate field "spec.paused"',
        'unknown field "spec.list[0].odd"',
        'duplicate field "spec.list[0].name"',
        'unknown field "metadata.other"',
    ]


def test_yaml_fields_are_reported_in_the_order_of_sorted_keys() -> None:
    value = {"spec": {"strange": 3, "list": [{"odd": 1}]}, "metadata": {"other": 1}}

    assert as_yaml_is_read(value, UNKNOWN) == [
        'unknown field "metadata.other"',
        'unknown field "spec.list[0].odd"',
        'unknown field "spec.strange"',
    ]


def test_fields_without_a_position_are_reported_last_and_the_list_is_bounded() -> None:
    many = [f"field{number}" for number in range(200)]

    assert as_json_is_read(b'{"a": 1}', ["elsewhere"]) == ['unknown field "elsewhere"']
    assert len(as_json_is_read(b"{}", many)) == 100
