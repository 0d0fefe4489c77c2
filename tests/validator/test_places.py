"""A complaint's field is found in the value it is about."""

from __future__ import annotations

import pytest

from instar.base.json_values import Pointer
from instar.tools.validator.error_location import pointer_of

VALUE = {
    "metadata": {"annotations": {"a.b/c": "x", "a": {"b": 1}}},
    "spec": {"ports": [{"port": 1}], "data": {"a.b": 1, "a": {"b": 2}}},
}


@pytest.mark.parametrize(
    ("field", "pointer"),
    [
        ("", ()),
        ("spec", ("spec",)),
        ("spec.ports[0].port", ("spec", "ports", 0, "port")),
        ("spec.ports[0].targetPort", ("spec", "ports", 0)),
        ("spec.ports[7].port", ("spec", "ports")),
        ("metadata.annotations[a.b/c]", ("metadata", "annotations", "a.b/c")),
        ("spec.data.a.b", ("spec", "data", "a.b")),
        ("nowhere.at.all", ()),
        ("spec.ports[x", ("spec", "ports")),
    ],
)
def test_a_field_leads_as_far_down_as_the_value_goes(field: str, pointer: Pointer) -> None:
    assert pointer_of(field, VALUE) == pointer
