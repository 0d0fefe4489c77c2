"""The library's face: pairing, v1beta1, what nobody claims, warnings for the server."""

from __future__ import annotations

from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from instar.base.json_values import Object
from instar.review import breaking, review
from tests.reviewer.widget import changed, drop, put, version, widget


def _beta(**spec: Any) -> Object:
    return {
        "apiVersion": "apiextensions.k8s.io/v1beta1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": "widgets.example.com"},
        "spec": {
            "group": "example.com",
            "version": "v1",
            "names": {"plural": "widgets", "kind": "Widget"},
            "preserveUnknownFields": False,
            "validation": {
                "openAPIV3Schema": {
                    "type": "object",
                    "properties": {
                        "spec": {"type": "object", "properties": {"size": {"type": "string"}}}
                    },
                }
            },
            **spec,
        },
    }


def _v1() -> Object:
    beta = _beta()
    schema = beta["spec"]["validation"]
    return {
        **beta,
        "apiVersion": "apiextensions.k8s.io/v1",
        "spec": {
            "group": "example.com",
            "scope": "Namespaced",
            "names": {"plural": "widgets", "kind": "Widget"},
            "versions": [{"name": "v1", "served": True, "storage": True, "schema": schema}],
        },
    }


def test_the_same_crd_in_both_api_versions_is_not_a_change() -> None:
    assert review(_beta(), _v1()).findings == ()


def test_v1beta1_keeps_unknown_fields_unless_it_says_otherwise() -> None:
    old = _beta()
    del old["spec"]["preserveUnknownFields"]

    rules = [item.rule for item in review(old, _v1()).findings]

    assert rules == ["preserve-unknown-fields-disabled"]


def test_many_crds_are_paired_by_name() -> None:
    other = widget()
    other["metadata"]["name"] = "gadgets.example.com"

    report = review([widget(), other], [widget()])

    assert [crd.name for crd in report.crds] == ["widgets.example.com"]
    assert report.only_old == ("gadgets.example.com",)


def test_a_change_without_a_rule_is_reported() -> None:
    report = review(widget(), changed(put("spec", "image", externalDocs={"url": "x"})))
    odd = review(widget(), changed(put("spec", "image", dependencies={"a": ["b"]})))

    assert report.findings == ()
    assert {item.rule for item in odd.findings if item.path == "spec.image"} == {"unclaimed-change"}


def test_mistyped_keyword_is_reported_where_it_is_new() -> None:
    mistyped = changed(put("spec", "image", maxLenght=3))

    assert {item.rule for item in review(widget(), mistyped)} == {"unknown-crd-field"}
    assert review(mistyped, mistyped).findings == ()


def test_inputs_are_left_alone() -> None:
    old, new = widget(), changed(drop("spec", "note"))

    review(old, new)

    assert old == widget()
    assert new == changed(drop("spec", "note"))


def test_review_is_the_same_every_time() -> None:
    new = changed(put("spec", "range", x_kubernetes_validations=[{"rule": "self.low < 5"}]))

    assert review(widget(), new) == review(widget(), new)


def test_breaking_prints_one_line_per_error() -> None:
    said = breaking(widget(), changed(drop("spec", "note")))

    assert len(said) == 2
    assert said[0].startswith("field-removed: v1 spec.note: ")
    assert breaking(widget(), changed(put("spec", "size", default="small"))) == []


def test_version_that_is_not_served_is_judged_by_what_storage_loses() -> None:
    def change(crd: Object) -> None:
        put("spec", "image", maxLength=3)(crd)
        drop("spec", "note")(crd)

    old, new = changed(version(1, served=False)), changed(version(1, served=False))
    change(new)

    found = {
        item.rule: (item.severity.value, [hit.value for hit in item.hits])
        for item in review(old, new).findings
        if item.version == "v1beta1"
    }

    assert found == {
        "max-length-tightened": ("info", []),
        "field-removed": ("error", ["stored objects"]),
    }


def test_crd_of_no_use_is_a_problem_not_a_crash() -> None:
    report = review(widget(), {**widget(), "spec": "none"})

    assert report.exit_code() == 2
    assert "cannot unmarshal string" in str(report.problems[0])


JUNK = st.sampled_from([None, 1, -1.5, "x", "", True, [], {}, [None], ["a", 1], {"a": None}])


@given(data=st.data(), junk=JUNK)
@settings(max_examples=150, deadline=None)
def test_junk_anywhere_in_a_crd_is_never_a_crash(data: st.DataObject, junk: Any) -> None:
    crd = widget()
    node: Any = crd["spec"]
    for _ in range(data.draw(st.integers(0, 9))):
        keys = list(node) if isinstance(node, dict) else list(range(len(node)))
        deeper = [key for key in keys if isinstance(node[key], (dict, list)) and node[key]]
        if not deeper:
            break
        node = node[data.draw(st.sampled_from(deeper))]
    keys = list(node) if isinstance(node, dict) else list(range(len(node)))
    node[data.draw(st.sampled_from(keys))] = junk

    for report in (review(widget(), crd), review(crd, widget()), review(None, crd)):
        assert report.exit_code() in (0, 1, 2)
