"""Message tables: field numbers, types and JSON names."""

from __future__ import annotations

import json

import pytest

from instar.kube.facts.messages import MessageField, fields_of, group_versions, kinds_of, message_of
from instar.kube.facts.resources import resources
from tests.support.builtins import BUILTINS, needs_builtins


def field(message: str, name: str) -> MessageField:
    (found,) = (item for item in fields_of(message) if item.name == name)
    return found


def test_fields_by_rising_number() -> None:
    numbers = [item.number for item in fields_of("v1#PodSpec")]
    assert numbers == sorted(numbers)


def test_a_message_field_has_its_type() -> None:
    assert field("v1#PodSpec", "containers") == MessageField(
        2, "containers", "v1#Container", repeated=True, mapped=False, always=False, shown=True
    )
    assert field("v1#ConfigMap", "binaryData") == MessageField(
        3, "binaryData", "bytes", repeated=False, mapped=True, always=False, shown=False
    )
    assert field("v1#Pod", "metadata") == MessageField(
        1,
        "metadata",
        "meta.k8s.io/v1#ObjectMeta",
        repeated=False,
        mapped=False,
        always=True,
        shown=True,
    )


def test_messages_of_kinds() -> None:
    assert message_of("apps/v1", "Deployment") == "apps/v1#Deployment"
    assert message_of("apps/v1", "DeleteOptions") == "meta.k8s.io/v1#DeleteOptions"
    assert message_of("v1", "Status") == "meta.k8s.io/v1#Status"
    assert message_of("", "APIVersions") == "meta.k8s.io/v1#APIVersions"
    assert message_of("policy/v1beta1", "Eviction") == "policy/v1beta1#Eviction"
    assert message_of("v1", "PodTemplateSpec") is None
    assert message_of("example.com/v1", "Widget") is None


def test_every_resource_and_subresource_has_a_message() -> None:
    for item in resources():
        assert message_of(item.api_version, item.kind), item
        for part in item.subresources:
            version = f"{part.group}/{part.version}" if part.group else part.version
            assert message_of(version, part.kind), part


def test_every_type_a_field_names_is_there() -> None:
    todo = [message_of(version, kind) for version in group_versions() for kind in kinds_of(version)]
    seen: set[str] = set()
    while todo:
        name = todo.pop()
        assert name is not None
        if name not in seen:
            seen.add(name)
            todo += [item.type for item in fields_of(name) if "#" in item.type]
    assert len(seen) > 900


def test_a_message_that_is_not_known() -> None:
    with pytest.raises(KeyError):
        fields_of("v1#Widget")


@needs_builtins
def test_numbers_and_names_are_the_recorded_ones() -> None:
    table = json.loads((BUILTINS / "protobuf.json").read_bytes())
    for package, block in (
        ("core.v1", "v1"),
        ("apps.v1", "apps/v1"),
        ("rbac.v1", "rbac.authorization.k8s.io/v1"),
    ):
        prefix = f"k8s.io.api.{package}."
        for name, fields in table.items():
            if name.startswith(prefix):
                found = {str(f.number): f.name for f in fields_of(f"{block}#{name[len(prefix) :]}")}
                assert found == {number: json_name for number, (json_name, _) in fields.items()}
