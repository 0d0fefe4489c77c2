"""Real objects under a new CRD."""

from __future__ import annotations

from typing import Any

from instar.base.json_values import Object
from instar.kube.schema.cel_rules.evaluate import compile_rules
from instar.tools.reviewer.report import StoredObject
from instar.tools.reviewer.reviewed_crd import read_reviewed_crd
from instar.tools.reviewer.stored import Trial, Unconvertible
from tests.reviewer.widget import changed, drop, put, widget


def _object(version: str = "v1", **spec: Any) -> Object:
    return {
        "apiVersion": f"example.com/{version}",
        "kind": "Widget",
        "metadata": {"name": "a", "namespace": "default"},
        "spec": {"image": "nginx", **spec},
    }


def _try(new: Object, *objects: Object, old: Object | None = None) -> list[StoredObject]:
    return Trial(read_reviewed_crd(old or widget()), read_reviewed_crd(new), compile_rules).run(
        objects
    )


def test_object_nothing_happens_to_is_not_listed() -> None:
    assert _try(changed(drop("spec", "note")), _object(size="small")) == []


def test_dropped_field_is_pruned_from_objects_that_have_it() -> None:
    [found] = _try(changed(drop("spec", "size")), _object(size="small"))

    assert found.damage == "pruned"
    assert found.reasons[0] == "spec.size is dropped"
    assert found.name == "default/a"


def test_object_that_breaks_tighter_validation_is_frozen_not_invalid() -> None:
    [found] = _try(changed(put("spec", "image", maxLength=3)), _object())

    assert found.damage == "frozen"
    assert "may not be more than 3 bytes" in found.reasons[0]


def test_object_that_breaks_a_new_rule_is_frozen() -> None:
    rule = {"rule": "self.size() < 3", "message": "too long a name"}
    [found] = _try(changed(put("spec", "image", x_kubernetes_validations=[rule])), _object())

    assert found.damage == "frozen"
    assert "too long a name" in found.reasons[0]


def test_rules_that_could_not_run_are_not_a_reason() -> None:
    rule = {"rule": "self.size() < 30", "message": "too long a name"}
    new = changed(put("spec", "image", x_kubernetes_validations=[rule]))

    assert _try(new, _object(size="huge")) == [], "the enum was broken before, too"


def test_a_server_generated_name_is_not_a_reason() -> None:
    unnamed = {**_object(), "metadata": {"generateName": "a-"}}

    assert _try(widget(), unnamed) == []
    assert Trial(None, read_reviewed_crd(widget()), compile_rules).run([unnamed]) == []


def test_embedded_resource_is_never_forgiven() -> None:
    new = changed(put("spec", "extra", x_kubernetes_embedded_resource=True))

    [found] = _try(new, _object(extra={"a": 1}))

    assert found.damage == "invalid"


def test_removed_version_makes_objects_unreadable() -> None:
    new = changed(lambda crd: crd["spec"]["versions"].pop(1))

    [found] = _try(new, _object("v1beta1"))

    assert found.damage == "unreadable"


def test_changed_default_reads_differently() -> None:
    [found] = _try(changed(put("spec", "replicas", default=2)), _object())

    assert (found.damage, found.reasons) == ("changed", ("spec.replicas reads differently",))


def test_field_that_another_version_does_not_know_is_lost_there() -> None:
    def lose(crd: Object) -> None:
        schema = crd["spec"]["versions"][1]["schema"]["openAPIV3Schema"]
        del schema["properties"]["spec"]["properties"]["size"]

    [found] = _try(changed(lose), _object(size="small"))

    assert found.reasons == ("spec.size is lost at v1beta1",)


def test_failing_conversion_makes_objects_unreadable() -> None:
    def refuse(objects: list[Object], api_version: str) -> list[Object]:
        raise Unconvertible("no way")

    trial = Trial(read_reviewed_crd(widget()), read_reviewed_crd(widget()), compile_rules, refuse)

    [found] = trial.run([_object()])
    assert found.damage == "unreadable"
    assert found.reasons == ("conversion to v1beta1 failed: no way",)


def test_objects_of_other_kinds_do_not_belong() -> None:
    trial = Trial(None, read_reviewed_crd(widget()))

    assert trial.belongs(_object())
    assert not trial.belongs({**_object(), "kind": "Gadget"})
    assert not trial.belongs({"apiVersion": "v1", "kind": "Pod"})
    assert not trial.belongs(None)
