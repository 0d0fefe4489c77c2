"""What ``instar check`` finds, asked as a library."""

from __future__ import annotations

import json

import pytest

from instar.sdk import Converter, move
from instar.testing import assert_converter, check_converter
from instar.tools.sdk.checking.case import Uncheckable, schema_of
from instar.tools.sdk.checking.definition import parse_crd
from tests.sdk import planted


def test_a_good_converter_breaks_no_law() -> None:
    assert_converter(planted.CRD, planted.good, examples=40)


def test_the_same_seed_finds_the_same_counterexample() -> None:
    first, second = (
        check_converter(planted.CRD, planted.stale_annotation, seed=7, examples=40)
        for _ in range(2)
    )

    assert [o.counterexample for o in first.outcomes] == [o.counterexample for o in second.outcomes]


def test_objects_are_admitted_as_a_server_would_keep_them() -> None:
    embedded = {
        "type": "object",
        "x-kubernetes-embedded-resource": True,
        "x-kubernetes-preserve-unknown-fields": True,
    }
    schema = {"type": "object", "properties": {"em": embedded}}
    crd = parse_crd(
        {
            "apiVersion": "apiextensions.k8s.io/v1",
            "kind": "CustomResourceDefinition",
            "spec": {
                "group": "ex.io",
                "names": {"kind": "Foo"},
                "versions": [{"name": "v1", "schema": {"openAPIV3Schema": schema}}],
            },
        }
    )
    version = schema_of(crd, crd.versions[0])
    head = {"apiVersion": "ex.io/v1", "kind": "Foo", "metadata": {"name": "a"}}
    pod = {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "p", "zz": 1}}

    admitted = version.admit({**head, "em": pod})

    assert admitted == {**head, "em": {**pod, "metadata": {"name": "p"}}}
    assert version.admit({**head, "em": {**pod, "kind": 1}}) is None
    assert version.problems({**head, "em": {**pod, "kind": 1}}) == [
        "em.kind: Invalid value: 1: must be a string"
    ]


def test_a_crd_with_one_version_cannot_be_checked() -> None:
    crd = json.loads(json.dumps(planted.REQUIRED_CRD))
    del crd["spec"]["versions"][1]

    with pytest.raises(Uncheckable, match="fewer than two versions"):
        check_converter(crd, planted.good)


def test_moves_alone_satisfy_every_law() -> None:
    widget = Converter("Widget", group=planted.GROUP)
    widget.between("v1", "v2", rules=[move("spec.image", "spec.pullSpec")])

    assert_converter(planted.REQUIRED_CRD, widget, examples=60)
