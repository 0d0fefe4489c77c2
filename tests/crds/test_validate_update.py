"""A CRD against its past: what is fixed, what is forgiven."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from instar.base.field_errors import FieldError
from instar.base.json_values import Object
from instar.kube.crds.strategy import prepare_for_update
from instar.kube.crds.validation.update import validate_status_update, validate_update
from instar.kube.schema.structure.structural import Structural
from tests.crds.make import NOW, created, internal, update_problems, with_field, with_schema
from tests.support.crds import crd, version

A = "spec.validation.openAPIV3Schema.properties[a]"


def renamed(**names: str) -> Object:
    return crd(names={"plural": "foos", "kind": "Foo", **names})


def test_scope_and_kind_are_fixed_once_established() -> None:
    new = crd(scope="Cluster", names={"plural": "foos", "kind": "Bar"})
    assert update_problems(new, crd(), established=False) == []
    assert update_problems(new, crd(), established=True) == [
        'spec.scope: Invalid value: "Cluster": field is immutable',
        'spec.names.kind: Invalid value: "Bar": field is immutable',
    ]


def test_group_and_plural_are_fixed_always() -> None:
    new = crd(group="other.com", names={"plural": "bars", "kind": "Foo"})
    assert update_problems(new, crd()) == [
        'spec.group: Invalid value: "other.com": field is immutable',
        'spec.names.plural: Invalid value: "bars": field is immutable',
    ]


def test_accepted_names_other_than_plural_may_always_change() -> None:
    new = renamed(singular="bar", listKind="Bars")
    assert update_problems(new, crd(), established=True) == []


def _legacy(**schema: Any) -> Object:
    return with_schema(properties={"a": schema})


FORGIVEN: list[tuple[Object, Object]] = [
    (_legacy(type="text"), with_schema(properties={"b": {"type": "text"}})),
    (
        _legacy(type="array", items={"type": "object"}, **{"x-kubernetes-list-type": "set"}),
        with_schema(
            properties={
                "b": {
                    "type": "array",
                    "items": {"type": "object"},
                    "x-kubernetes-list-type": "set",
                }
            }
        ),
    ),
    (
        _legacy(
            type="array",
            items={"type": "string", "nullable": True},
            **{"x-kubernetes-list-type": "set"},
        ),
        with_schema(
            properties={
                "b": {
                    "type": "array",
                    "items": {"type": "string", "nullable": True},
                    "x-kubernetes-list-type": "set",
                }
            }
        ),
    ),
    (
        _legacy(type="object", default={"x": 1}),
        with_schema(properties={"b": {"type": "object", "default": {"y": 1}}}),
    ),
]
"""What one old violation forgives: an old CRD, and a new one with the same fault elsewhere."""


@pytest.mark.parametrize(
    ("old", "new"), FORGIVEN, ids=["type", "atomic set", "nullable item", "unpruned default"]
)
def test_one_old_violation_forgives_new_ones_anywhere(old: Object, new: Object) -> None:
    assert update_problems(new, crd()) != []
    assert update_problems(new, old) == []


def test_structure_is_demanded_again_where_fields_are_pruned() -> None:
    loose = with_field(description="no type")
    (found,) = update_problems(loose, loose)
    assert found == f"{A}.type: Required value: must not be empty for specified object fields"


def test_legacy_structure_may_stay_loose_while_nothing_is_pruned() -> None:
    loose = with_field(description="no type")
    loose["spec"]["preserveUnknownFields"] = True
    assert update_problems(loose, loose) == []
    loose["spec"]["versions"][0]["schema"]["openAPIV3Schema"]["properties"]["b"] = {
        "type": "array",
        "items": {"type": "string"},
        "x-kubernetes-list-type": "set",
    }
    assert len(update_problems(loose, loose)) == 1


def test_missing_schema_stays_forgiven_for_unserved_versions() -> None:
    bare = {"name": "v2", "served": False, "storage": False}
    old = crd(version("v1"), bare)
    assert update_problems(old, old) == []
    served = crd(version("v1"), {**bare, "served": True})
    assert update_problems(served, old) == [
        "spec.versions[1].schema.openAPIV3Schema: Required value: "
        "because otherwise all fields are pruned"
    ]


def hooked(reviews: list[str], bundle: str = "") -> Object:
    client = {"url": "https://h", **({"caBundle": bundle} if bundle else {})}
    hook = {"clientConfig": client, "conversionReviewVersions": reviews}
    return crd(conversion={"strategy": "Webhook", "webhook": hook})


def test_unknown_review_versions_stay_forgiven() -> None:
    assert update_problems(hooked(["v7"]), hooked(["v8"])) == []
    assert update_problems(hooked(["v7"]), hooked(["v1"])) != []


def test_broken_bundle_is_refused_only_once_established_and_sound() -> None:
    broken, fine = hooked(["v1"], "bm90IHBlbQ=="), hooked(["v1"])
    assert update_problems(broken, fine, established=False) == []
    assert update_problems(broken, broken, established=True) == []
    assert update_problems(broken, fine, established=True) == [
        'spec.conversion.webhookClientConfig.caBundle: Invalid value: "bm90IHBlbQ==": '
        "unable to load root certificates: unable to parse bytes as PEM block"
    ]


def test_too_many_selectable_fields_are_forgiven_while_unchanged() -> None:
    names = [f"f{n}" for n in range(10)]
    schema = {"type": "object", "properties": {name: {"type": "string"} for name in names}}

    def selecting(*chosen: str) -> Object:
        fields = [{"jsonPath": f".{name}"} for name in chosen]
        return crd(version(schema=schema, selectableFields=fields))

    assert update_problems(selecting(*names), selecting(*names)) == []
    assert update_problems(selecting(*names[:9]), selecting(*names)) != []


def test_approval_is_checked_when_its_state_changes() -> None:
    def approved(text: str | None) -> Object:
        obj = crd(group="x.k8s.io")
        if text is not None:
            obj["metadata"]["annotations"] = {"api-approved.kubernetes.io": text}
        return obj

    assert update_problems(approved(None), approved(None)) == []
    assert update_problems(approved("maybe"), approved("perhaps")) == []
    assert len(update_problems(approved(None), approved("https://h/1"))) == 1


def test_preserve_unknown_fields_may_be_kept_but_not_set_again() -> None:
    keeping = crd(preserveUnknownFields=True)
    assert update_problems(keeping, keeping) == []
    assert update_problems(crd(), keeping) == []
    assert len(update_problems(keeping, crd())) == 1


def test_rule_checker_learns_old_rules_and_unchanged_schemas() -> None:
    def ruled(text: str, **more: Any) -> Object:
        return with_schema(**{"x-kubernetes-validations": [{"rule": text}]}, **more)

    calls: list[tuple[frozenset[str], bool]] = []

    def checker(
        root: Structural,
        path: str,
        old: frozenset[str],
        waived: bool,
        spoiled: Callable[[str], bool],
    ) -> list[FieldError]:
        calls.append((old, waived))
        return []

    for new in (ruled("true"), ruled("true", description="changed")):
        before = created(ruled("true"))
        after = prepare_for_update(internal(new), before)
        assert validate_update(after, before, check_rules=checker) == []
    assert calls == [(frozenset({"true"}), True), (frozenset({"true"}), False)]


def test_status_update_checks_only_the_form_of_accepted_names() -> None:
    old = created(crd())
    status = {
        "acceptedNames": {"plural": "Foos", "kind": ""},
        "storedVersions": ["v99"],
        "conditions": [{"type": "X", "status": "?", "lastTransitionTime": NOW}] * 2,
    }
    (error,) = validate_status_update({**old, "status": status}, old)
    assert error.field == "status.acceptedNames.plural"
