"""The judge says what a server says: the cases in which it once did not."""

from __future__ import annotations

from typing import Any

import pytest

from instar.base.json_values import Object
from instar.kube.schema.cel_rules.evaluate import compile_rules
from instar.tools.reviewer.reviewed_crd import read_reviewed_crd
from instar.tools.reviewer.server_model import CrdSimulator
from tests.reviewer.widget import Change, changed, each_version, names, put, widget

NEGATIVE = {"low": -1}


def judge(change: Change | None = None, version: str = "v1") -> CrdSimulator:
    crd = widget() if change is None else changed(change)
    return CrdSimulator(read_reviewed_crd(crd), version, compile_rules)


def obj(status: Object | None = None, **spec: Any) -> Object:
    head = {"apiVersion": "example.com/v1", "kind": "Widget", "metadata": {"name": "a"}}
    content = {"spec": {"image": "nginx", **spec}}
    return {**head, **content, **({} if status is None else {"status": status})}


def fields(errors: tuple[str, ...]) -> list[str]:
    return [text.partition(": ")[0] for text in errors]


def test_a_pattern_does_not_hide_a_rule() -> None:
    verdict = judge().create(obj(name="UPPER", range=NEGATIVE))

    assert fields(verdict.texts) == ["spec.name", "spec.range"]


def test_an_enum_error_skips_the_rules_and_reports_that() -> None:
    verdict = judge().create(obj(size="huge", range=NEGATIVE))

    assert fields(verdict.texts) == ["spec.size", "<nil>"]


@pytest.mark.parametrize("replicas", ["three", True, 1.5, -1])
def test_a_scale_path_to_a_non_integer_is_refused(replicas: Any) -> None:
    scale = {"specReplicasPath": ".spec.extra.n", "statusReplicasPath": ".status.ready"}
    scaled = judge(each_version(subresources={"scale": scale}))

    verdict = scaled.create(obj(extra={"n": replicas}))

    assert fields(verdict.texts) == [".spec.extra.n"]


def test_a_selector_that_is_not_text_is_refused() -> None:
    scale = {
        "specReplicasPath": ".spec.replicas",
        "statusReplicasPath": ".status.ready",
        "labelSelectorPath": ".spec.extra.selector",
    }

    verdict = judge(each_version(subresources={"scale": scale})).create(obj(extra={"selector": 1}))

    assert fields(verdict.texts) == [".spec.extra.selector"]


def test_embedded_resources_are_made_to_fit() -> None:
    embedded = judge(put("spec", "extra", x_kubernetes_embedded_resource=True))
    pod = {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "p", "zz": 1}}

    verdict = embedded.create(obj(extra=pod))

    assert verdict.accepted
    assert verdict.pruned == ("spec.extra.metadata.zz",)


def test_a_status_is_judged_as_a_write_to_its_endpoint() -> None:
    verdict = judge().create(obj(status={"ready": "x"}))

    assert verdict.texts[0].startswith('status.ready: Invalid value: "string": ready in body')


def test_another_kind_is_not_held_against_an_object() -> None:
    assert judge(names(kind="Gadget")).create(obj()).accepted


def test_a_version_that_the_crd_lacks_has_no_fields() -> None:
    verdict = judge(version="v9").create(obj())

    assert verdict.pruned == ("spec",)
    assert judge(version="v9").create(obj(), must_be_served=True).texts == (
        "404: the server could not find the requested resource",
    )


def test_an_update_of_status_and_spec_is_two_writes() -> None:
    rule = {"rule": "self >= oldSelf", "message": "went back"}
    moving = judge(put("status", "ready", x_kubernetes_validations=[rule]))

    verdict = moving.update(obj(status={"ready": 2}), obj(status={"ready": 1}, size="small"))

    assert fields(verdict.texts) == ["status.ready"]
    assert moving.update(obj(status={"ready": 1}), obj(status={"ready": 2})).accepted
